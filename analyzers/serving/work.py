"""What a serving engine computed, and how the time of its passes is shared among their tokens.

A pass over T tokens takes about a + b T: `a` reads the weights, whatever comes; `b` is what one more token costs. Both
are fitted to the run's own passes (least squares, neither below 0). A token that no answer needed (padding, a rejected
draft, one computed again) is charged what it added, b; the tokens of answers share the rest alike. Where passes are too
few or too much alike to fit, all tokens of a pass share it alike.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.serving.recorded import recorded
from catalog.inference import output_flops, prefill_attention_flops, prompt_token_flops, token_flops
from catalog.models import Model
from runs.tables import Tables

FEW = 30  # passes; fewer say little of how time grows with tokens
_COUNTS = (
    "prefill_tokens",
    "recomputed_tokens",
    "decode_requests",
    "decode_tokens",
    "drafted_tokens",
    "accepted_tokens",
    "padded_tokens",
)


@dataclass(frozen=True)
class Passes:
    """The iterations of one replica in order of time: int64 ns, and tokens as floats (unknown counts are 0).

    `device_known`: whether the input says for which part of a pass the device computed; else all of it counts.
    """

    replica: str
    start: np.ndarray
    end: np.ndarray
    device: np.ndarray
    device_known: bool
    tokens: dict[str, np.ndarray]

    @property
    def useful(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each pass that answers needed: (of prompts, generated)."""
        return np.maximum(self.tokens["prefill_tokens"] - self.tokens["recomputed_tokens"], 0), self.tokens["kept"]

    @property
    def lost(self) -> dict[str, np.ndarray]:
        """Tokens of each pass that no answer needed, by account."""
        t = self.tokens
        return {
            "bucket_padding": t["padded_tokens"],
            "rejected_speculation": np.maximum(t["drafted_tokens"] - t["accepted_tokens"], 0),
            "preemption_recompute": np.minimum(t["recomputed_tokens"], t["prefill_tokens"]),
        }

    @property
    def total(self) -> np.ndarray:
        return sum(self.useful) + sum(self.lost.values())


@dataclass(frozen=True)
class Shared:
    """Nanoseconds of one replica's device by what they went into; the parts sum to the device's time."""

    prefill: float
    decode: float
    lost: dict[str, float]
    empty: float  # passes without a token
    fitted: bool


def passes(tables: Tables) -> list[Passes]:
    """The recorded iterations, server by server (see `recorded`); those without start or duration are left out."""
    rows, _ = recorded(tables, ["device_ns", *_COUNTS])
    rows = rows[rows["start_ns"].notna() & (rows["dur_ns"] > 0).fillna(False)]
    return [_passes(str(name), group.sort_values("start_ns")) for name, group in rows.groupby("replica", sort=True)]


def _passes(name: str, rows: pd.DataFrame) -> Passes:
    start, duration = rows["start_ns"].to_numpy(dtype=np.int64), rows["dur_ns"].to_numpy(dtype=np.int64)
    told = bool(rows["device_ns"].notna().any())
    device = rows["device_ns"].fillna(rows["dur_ns"] if not told else 0).to_numpy(dtype=np.int64)
    tokens = {c: np.maximum(rows[c].to_numpy(dtype=float, na_value=0.0), 0) for c in _COUNTS}
    kept = rows["decode_tokens"].fillna(rows["decode_requests"] + rows["accepted_tokens"].fillna(0))
    tokens["kept"] = np.maximum(kept.to_numpy(dtype=float, na_value=0.0), 0)
    return Passes(name, start, start + duration, np.clip(device, 0, duration), told, tokens)


def shared(of: Passes) -> Shared:
    """Share the device's time of every pass among its tokens, as the module says."""
    total, device = of.total, of.device.astype(float)
    some = total > 0
    fixed, each = _fit(total[some], device[some])
    fitted = each is not None
    weight = fixed + each * total if fitted else total
    rate = np.divide((each if fitted else 1.0) * device, weight, out=np.zeros_like(device), where=weight > 0)
    lost = {name: rate * tokens for name, tokens in of.lost.items()}
    prompt, kept = of.useful
    needed = prompt + kept
    rest = device - sum(lost.values())
    wasted = some & (needed == 0)  # nothing in it was needed: its fixed part goes with what was in it
    for name, tokens in of.lost.items():
        lost[name][wasted] = (device * np.divide(tokens, total, out=np.zeros_like(total), where=some))[wasted]
    good = needed > 0
    prefill = np.divide(rest * prompt, needed, out=np.zeros_like(rest), where=good)
    decode = np.divide(rest * kept, needed, out=np.zeros_like(rest), where=good)
    return Shared(
        prefill=float(prefill.sum()),
        decode=float(decode.sum()),
        lost={n: float(x.sum()) for n, x in lost.items()},
        empty=float(device[~some].sum()),
        fitted=fitted,
    )


def _fit(tokens: np.ndarray, device: np.ndarray) -> tuple[float, float | None]:
    """(a, b) of device = a + b tokens, or (0, None) where passes are too few or too much alike to tell."""
    if len(tokens) < FEW or np.ptp(tokens) < 0.1 * tokens.max():
        return 0.0, None
    from scipy.optimize import nnls  # late: a third of a second, that a run about training does not wait for

    (fixed, each), _ = nnls(np.column_stack([np.ones_like(tokens), tokens]), device)
    return (float(fixed), float(each)) if fixed + each > 0 else (0.0, None)


def request_flops(model: Model, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """FLOPs of each request (of the prompt tokens that were not cached, of the tokens generated after the first).

    Columns: prompt_tokens, cached_tokens, output_tokens; unknown counts are 0. Prompts end with one output projection.
    """
    prompt, cached, output = (
        rows[c].to_numpy(dtype=float, na_value=0.0) for c in ("prompt_tokens", "cached_tokens", "output_tokens")
    )
    fresh, after = np.maximum(prompt - cached, 0), np.maximum(output - 1, 0)
    first = np.where(output > 0, output_flops(model), 0.0)
    prefill = fresh * prompt_token_flops(model) + prefill_attention_flops(model, fresh, np.minimum(cached, prompt))
    return prefill + first, after * token_flops(model) + prefill_attention_flops(model, after, prompt)
