"""Whether a result's statistics are those of its own requests: recomputed by the tool's definitions, and compared."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

_RELATIVE = 1e-6  # float sums in another order


def differences(
    printed: Mapping[str, Any], recomputed: Mapping[str, float | None]
) -> Iterator[tuple[str, float, float]]:
    """(key, printed, recomputed) of every number that differs by more than its printed digits allow.

    `printed` and `recomputed` by the result's own keys; a key that one of them lacks is not compared.
    """
    for key, ours in recomputed.items():
        theirs = printed.get(key)
        if ours is None or isinstance(theirs, bool) or not isinstance(theirs, int | float):
            continue
        if not -1e300 < theirs < 1e300:  # whole numbers of a file may be longer than floats reach
            yield key, theirs if isinstance(theirs, float) else inf if theirs > 0 else -inf, ours
        elif abs(theirs - ours) > tolerance(float(theirs)):
            yield key, float(theirs), ours


def tolerance(printed: float) -> float:
    """How far a value may lie from a printed number: half of its last digit, or the noise of float sums."""
    digits = repr(printed)
    decimals = len(digits.partition(".")[2]) if "e" not in digits else 17
    half = 0.5 * 10.0**-decimals if decimals < 12 else 0.0
    return half * (1 + 1e-9) + _RELATIVE * abs(printed)


def of_requests(
    keys: Mapping[str, Any],
    done: np.ndarray,
    prompt: np.ndarray,
    output: np.ndarray,
    ttft_s: np.ndarray,
    e2e_s: np.ndarray | None,
    gaps_s: np.ndarray | None,
    duration_s: float | None,
) -> dict[str, float | None]:
    """What single requests give for those of `keys` that can be recomputed.

    `done`: bool of each request; `prompt`, `output`: tokens; `ttft_s`, `e2e_s`: seconds, NaN where unknown; `gaps_s`:
    all gaps of answered requests in one array. None for an array: not known, and nothing that needs it is recomputed.
    tpot = (e2e - ttft) / (output - 1) of each request with more than one token; percentiles interpolated linearly.
    """
    tokens_in, tokens_out = float(prompt[done].sum()), float(output[done].sum())
    found: dict[str, float | None] = {
        "completed": float(done.sum()),
        "failed": float((~done).sum()),
        "total_input_tokens": tokens_in,
        "total_output_tokens": tokens_out,
    }
    if duration_s:
        found |= {
            "request_throughput": done.sum() / duration_s,
            "input_throughput": tokens_in / duration_s,
            "output_throughput": tokens_out / duration_s,
            "total_token_throughput": (tokens_in + tokens_out) / duration_s,
        }
    samples = {"ttft": ttft_s[done], "itl": gaps_s}
    if e2e_s is not None:
        many = done & (output > 1)
        samples |= {
            "e2el": e2e_s[done],
            "e2e_latency": e2e_s[done],
            "tpot": (e2e_s[many] - ttft_s[many]) / (output[many] - 1),
        }
    for metric, seconds in samples.items():
        if seconds is not None and len(seconds) and not np.isnan(seconds).any():
            found |= {key: 1e3 * value for key, value in _statistics(keys, metric, seconds).items()}
    return found


def _statistics(keys: Mapping[str, Any], metric: str, seconds: np.ndarray) -> dict[str, float]:
    found = {}
    for key in keys:
        which, _, rest = key.partition("_")
        if rest != f"{metric}_ms":
            continue
        if which in ("mean", "median", "std", "min", "max"):
            found[key] = float(getattr(np, which)(seconds))
        elif which.startswith("p") and which[1:].replace(".", "", 1).isdigit() and float(which[1:]) <= 100:
            found[key] = float(np.percentile(seconds, float(which[1:])))
    return found
