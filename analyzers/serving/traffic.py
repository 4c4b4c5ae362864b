"""Workload: how traffic arrives, how long prompts and answers are, and whether a Poisson process is a fair model of it.

Works on any run with requests: a trace that nobody served, or a load that somebody did. Definitions of arrivals are in
`arrivals.py`. A prompt of at least `heavy_prompt` tokens is heavy, an answer of at least `heavy_output` as well; the
thresholds 512 and 128 are those of TetriInfer (arXiv 2401.11181).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.serving.arrivals import Gaps, Window, chance_dip, chance_peak, gaps, in_flight, shape, window
from analyzers.serving.loads_told_twice import without
from analyzers.serving.own_clocks import put_in_turn
from analyzers.serving.served import ADVICE, has_requests, served, summary
from errors import QuestionError
from errors import format as fmt
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.tables import Tables, frame

STAGE = Option("stage", str, None, "one load of a load test; default: all requests", label="Load")
OPTIONS = (
    STAGE,
    Option("heavy_prompt", FROM_ZERO, 512, "tokens from which a prompt is heavy", unit="tokens"),
    Option("heavy_output", FROM_ZERO, 128, "tokens from which an answer is heavy", unit="tokens"),
)
WINDOWS_S = (1.0, 10.0, 60.0)
MIX = ("short_both", "heavy_prompt", "heavy_output", "heavy_both")
LOST = ("failed", "aborted")  # states without an answer
CUT_OFF = "cut_off"  # of an answer whose length is not known, for the load ended before it
MAX_TENANTS = 50
LEAST_RATES, MAX_RATES = 30, 1500  # windows of the picture of the rate
_NICE_S = (0.001, 0.01, 0.1, 1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400)


@dataclass(frozen=True, kw_only=True)
class WorkloadResult:
    """Times in s; tokens as counted by the input.

    `shape`: see `arrivals.shape`. `windows`: for 1, 10 and 60 s as far as the traffic lasts. `curve`: columns window_s,
    dispersion, chance_low, chance_high over many lengths. `rates`: start_s, requests_per_s, prompt_tokens_per_s,
    output_tokens_per_s in windows of `rate_window_s`: of a Poisson process, they would all stay within
    `rate_chance` (99 times in 100 each). `lengths`: q (0 to 1), prompt_tokens, output_tokens.
    `joint`: prompt_from, output_from (powers of two, 0 for nothing), requests. `mix`: share of requests by MIX.
    `tenants`: tenant, requests, share, request_rate_per_s, cv, prompt_tokens, output_tokens (means), most first.
    `flight`: start_s, in_flight; empty where nobody served. Tenants of loads one after another have no rate and no
    cv. None stands for what the input does not tell.
    """

    requests: int
    served: bool
    failed: int
    duration_s: float | None
    request_rate_per_s: float | None
    gaps: Gaps | None
    shape: str
    windows: tuple[Window, ...]
    curve: pd.DataFrame
    rates: pd.DataFrame
    rate_window_s: float | None
    rate_chance: tuple[float, float] | None
    prompt_tokens: dict[str, float] | None
    output_tokens: dict[str, float] | None
    prompt_share: float | None
    heavy_prompt: int
    heavy_output: int
    mix: dict[str, float] | None
    lengths: pd.DataFrame
    joint: pd.DataFrame
    tenants: pd.DataFrame
    concurrency: dict[str, float] | None
    flight: pd.DataFrame
    notes: tuple[str, ...] = field(default=())
    loads: int = 1

    @property
    def hardest(self) -> Window | None:
        """The window in which a Poisson model misses the peak by most."""
        return _hardest(self.windows)

    @property
    def unlikeliest(self) -> Window | None:
        """The window in which counts vary most against the most that chance allows; None where none is judged."""
        judged = [w for w in self.windows if w.dispersion is not None]
        return max(judged, key=lambda w: w.dispersion / w.chance_high, default=None)

    def window(self, window_s: float) -> Window | None:
        return next((w for w in self.windows if w.window_s == window_s), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "served": self.served,
            "failed": self.failed,
            "arrivals_span_s": self.duration_s,
            "arrival_rate_per_s": self.request_rate_per_s,
            "interarrival_s": None
            if self.gaps is None
            else {
                "mean": self.gaps.mean,
                "std": self.gaps.std,
                "cv": self.gaps.cv,
                "p50": self.gaps.p50,
                "p99": self.gaps.p99,
                "max": self.gaps.max,
            },
            "shape": self.shape,
            "loads": self.loads,
            "poisson_is_fair": None if self.shape in ("unknown", "at_once") else self.shape == "poisson",
            "windows": [asdict(w) for w in self.windows],
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "prompt_share": self.prompt_share,
            "heavy": {"prompt_tokens": self.heavy_prompt, "output_tokens": self.heavy_output},
            "mix": self.mix,
            "concurrency": self.concurrency,
            "tenants": self.tenants.astype(object).where(self.tenants.notna(), None).to_dict("records"),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> WorkloadResult:
    """Arrivals and lengths. Raises QuestionError where the run has no requests or a load has none."""
    for name in ("heavy_prompt", "heavy_output"):
        if options[name] < 1:
            raise QuestionError(f"option {name}={options[name]}", expected="a whole number of tokens from 1")
    rows, notes = _rows(tables, options["stage"])
    times = np.sort(_seconds(rows))
    apart = _apart(rows)  # the pauses between loads are no traffic: how requests come is told of one load
    between = gaps(times) if len(times) and apart < 2 else None
    windows = [w for s in WINDOWS_S if len(times) > 1 and apart < 2 and (w := window(times, s)) is not None]
    duration = float(times[-1] - times[0]) if len(times) > 1 else None
    prompt, output = _tokens(rows, "prompt_tokens"), _tokens(rows, "output_tokens")
    notes += _notes(rows, times, between, output, facts)
    rates, rate_window_s = _rates(rows, duration, _width(duration, windows), prompt, output, apart < 2)
    flight, concurrency = _flight(tables, options["stage"], apart)
    both = float(np.nansum(prompt)), float(np.nansum(output))
    told = not np.isnan(prompt).all() and not np.isnan(output).all() and sum(both) > 0
    return WorkloadResult(
        requests=len(rows),
        served=bool(rows["status"].notna().any()),
        failed=int(rows["status"].isin(LOST).sum()),
        duration_s=duration,
        request_rate_per_s=1 / between.mean if between and between.mean > 0 else None,
        gaps=between,
        shape=shape(between, windows),
        windows=tuple(windows),
        loads=max(apart, 1),
        curve=_curve(times, duration if apart < 2 else None),
        rates=rates,
        rate_window_s=rate_window_s,
        rate_chance=_chance_rates(times, rates, rate_window_s) if apart < 2 else None,
        prompt_tokens=summary(prompt),
        output_tokens=summary(output),
        prompt_share=both[0] / sum(both) if told else None,
        heavy_prompt=options["heavy_prompt"],
        heavy_output=options["heavy_output"],
        mix=_mix(prompt, output, options),
        lengths=_lengths(prompt, output),
        joint=_joint(prompt, output),
        tenants=_tenants(rows, prompt, output, apart < 2),
        concurrency=concurrency,
        flight=flight,
        notes=tuple(notes),
    )


def _rows(tables: Tables, stage: str | None) -> tuple[pd.DataFrame, list[str]]:
    columns = ["stage", "tenant", "arrival_ns", "last_token_ns", "e2e_ns", "prompt_tokens", "output_tokens"]
    rows = without(tables, frame(tables, "requests", [*columns, "status", "source"]))
    rows, notes = put_in_turn(rows.reset_index(drop=True))
    if not len(rows):
        raise QuestionError("this run has no requests", advice=f"Add a trace of traffic. {ADVICE}")
    stages = rows["stage"].dropna().astype(str).unique()
    if stage is not None:
        rows = rows[rows["stage"].astype(str) == stage].reset_index(drop=True)
        if not len(rows):
            raise QuestionError(f"no requests of a load {stage!r}", expected=f"one of {', '.join(stages) or 'none'}")
    elif len(stages) > 1:
        said = f"These are {len(stages)} loads of a test. One of them can be asked about {STAGE.chosen}."
        return rows, [said, *notes]
    return rows, notes if stage is None else []


def _apart(rows: pd.DataFrame) -> int:
    """How many loads there are that came one after another; 0 where some came at the same time, or none is named."""
    known = rows[rows["arrival_ns"].notna() & rows["stage"].notna()]
    spans = known.groupby(known["stage"].astype(str))["arrival_ns"].agg(["min", "max"]).sort_values("min")
    overlap = (spans["min"].to_numpy()[1:] < spans["max"].to_numpy()[:-1]).any()
    return 0 if overlap else len(spans)


def _seconds(rows: pd.DataFrame) -> np.ndarray:
    """Known arrivals in s since the first: ns since the epoch do not fit a double, their differences do."""
    known = rows["arrival_ns"].dropna().to_numpy(dtype=np.int64)
    return (known - known.min()) / 1e9 if len(known) else np.zeros(0)


def _tokens(rows: pd.DataFrame, column: str) -> np.ndarray:
    values = rows[column].to_numpy(dtype=float, na_value=np.nan)
    if column == "output_tokens":  # what failed has no length, whatever was written for it
        values = np.where(rows["status"].isin((*LOST, CUT_OFF)), np.nan, values)
    return np.where(values < 0, np.nan, values)


def _curve(times: np.ndarray, duration: float | None) -> pd.DataFrame:
    lengths = [] if not duration else np.geomspace(max(duration / 1e6, 0.1), max(duration / 20, 0.1), 25)
    found = [w for s in lengths if (w := window(times, float(s))) is not None and w.dispersion is not None]
    names = ["window_s", "dispersion", "chance_low", "chance_high"]
    return pd.DataFrame([[getattr(w, n) for n in names] for w in found], columns=names)


def _hardest(windows: Sequence[Window]) -> Window | None:
    return max(windows, key=lambda w: w.peak_per_s / w.chance_peak_per_s, default=None)


def _width(duration: float | None, windows: Sequence[Window]) -> float:
    """The window of the picture: the one that a Poisson model misses most, where that makes a picture."""
    hardest = _hardest(windows)
    if not duration:
        return 1.0
    if hardest is not None and LEAST_RATES <= hardest.windows <= MAX_RATES:
        return hardest.window_s
    return next((float(s) for s in _NICE_S if duration / s <= MAX_RATES), duration / MAX_RATES)


def _rates(
    rows: pd.DataFrame, duration: float | None, width: float, prompt: np.ndarray, output: np.ndarray, alike: bool
) -> tuple[pd.DataFrame, float | None]:
    """Rates by window. `alike`: windows are held against one another, so that one cut short by the end of the traffic
    is left out; of loads one after another it may be all of the last."""
    names = ["start_s", "requests_per_s", "prompt_tokens_per_s", "output_tokens_per_s"]
    if not duration:
        return pd.DataFrame(columns=names), None
    known = rows["arrival_ns"].notna().to_numpy()
    index = (_seconds(rows) // width).astype(np.int64)
    size = int(index.max()) + 1
    sums = [
        np.bincount(index, weights=np.nan_to_num(w), minlength=size) / width
        for w in (np.ones(len(index)), prompt[known], output[known])
    ]
    if alike and size > 1 and duration < size * width:
        sums, size = [s[:-1] for s in sums], size - 1
    return pd.DataFrame(dict(zip(names, [np.arange(size) * width, *sums], strict=True))), width


def _chance_rates(times: np.ndarray, rates: pd.DataFrame, width_s: float | None) -> tuple[float, float] | None:
    """The rates that the emptiest and the busiest window of `rates` keep to, were arrivals a Poisson process."""
    if width_s is None or not len(rates):
        return None
    mean = (len(times) - 1) / (times[-1] - times[0]) * width_s
    return chance_dip(mean, len(rates)) / width_s, chance_peak(mean, len(rates)) / width_s


def _mix(prompt: np.ndarray, output: np.ndarray, options: dict[str, Any]) -> dict[str, float] | None:
    known = ~np.isnan(prompt) & ~np.isnan(output)
    if not known.any():
        return None
    kinds = (prompt[known] >= options["heavy_prompt"]) + 2 * (output[known] >= options["heavy_output"])
    shares = np.bincount(kinds.astype(int), minlength=4) / known.sum()
    return dict(zip(MIX, shares.tolist(), strict=True))


def _lengths(prompt: np.ndarray, output: np.ndarray) -> pd.DataFrame:
    q = np.linspace(0, 1, 201)
    kept = {name: v[~np.isnan(v)] for name, v in (("prompt_tokens", prompt), ("output_tokens", output))}
    return pd.DataFrame({"q": q, **{n: np.quantile(v, q) if len(v) else np.nan for n, v in kept.items()}})


def _joint(prompt: np.ndarray, output: np.ndarray) -> pd.DataFrame:
    known = ~np.isnan(prompt) & ~np.isnan(output)
    floor = [np.where(v[known] >= 1, np.exp2(np.floor(np.log2(np.maximum(v[known], 1)))), 0) for v in (prompt, output)]
    found = pd.DataFrame({"prompt_from": floor[0], "output_from": floor[1]})
    return found.groupby(["prompt_from", "output_from"]).size().rename("requests").reset_index()


def _tenants(rows: pd.DataFrame, prompt: np.ndarray, output: np.ndarray, alike: bool) -> pd.DataFrame:
    """`alike`: gaps between requests are those of traffic, and not of loads one after another."""
    names = ["tenant", "requests", "share", "request_rate_per_s", "cv", "prompt_tokens", "output_tokens"]
    if rows["tenant"].isna().all():
        return pd.DataFrame(columns=names)
    found = []
    held, texts = pd.factorize(rows["tenant"])  # -1: not told
    counts = pd.Series(held).value_counts().head(MAX_TENANTS)
    for code, count in counts.items():
        mine = held == code
        tenant = str(texts[code]) if code >= 0 else "not told"
        between = gaps(np.sort(_seconds(rows[mine]))) if alike else None
        rate = 1 / between.mean if between and between.mean > 0 else None
        means = [float(np.nanmean(v[mine])) if not np.isnan(v[mine]).all() else None for v in (prompt, output)]
        found.append([tenant, int(count), count / len(rows), rate, between.cv if between else None, *means])
    return pd.DataFrame(found, columns=names)


def _flight(tables: Tables, stage: str | None, apart: int) -> tuple[pd.DataFrame, dict[str, float] | None]:
    """Requests in flight over time, their mean and peak: of loads one after another the mean over the time of each."""
    empty = pd.DataFrame({"start_s": [], "in_flight": []})
    if not has_requests(tables):
        return empty, None
    timed = served(tables).for_stage(stage).timed
    timed = timed[timed["arrival_ns"].notna() & timed["e2e_s"].notna()]
    if not len(timed):
        return empty, None
    seconds, lasts = _seconds(timed), timed["e2e_s"].to_numpy(dtype=float)
    mean, peak, times, level = in_flight(seconds, lasts)
    if apart > 1:
        ends = pd.DataFrame({"from": seconds, "to": seconds + lasts}).groupby(timed["stage"].astype(str).to_numpy())
        took = float((ends["to"].max() - ends["from"].min()).sum())
        mean = float(lasts.sum()) / took if took > 0 else 0.0
    return pd.DataFrame({"start_s": times, "in_flight": level}), {"mean": mean, "peak": peak}


def _notes(rows: pd.DataFrame, times: np.ndarray, between: Gaps | None, output: np.ndarray, facts: Facts) -> list[str]:
    notes = []
    if not len(times):
        notes.append("No time of day is known: nothing can be said of arrivals.")
    elif len(times) < len(rows):
        notes.append(
            f"{len(rows) - len(times):,} of {len(rows):,} requests have no arrival time and count for lengths only."
        )
    if between and between.zero_share > 0.05 and between.cv is not None:
        notes.append(
            f"{between.zero_share:.0%} of the gaps are exactly 0: times are rounded, or requests come in batches."
        )
    if fact(facts, "arrival_unit"):
        notes.append(f"The trace does not say the unit of its times; they are read as {fact(facts, 'arrival_unit')}.")
    if nothing := int((output == 0).sum()):
        notes.append(
            f"{fmt.count(nothing, 'request')} got an answer of 0 tokens: in traces of traffic these usually failed."
        )
    if rows["status"].isin(LOST).any():
        notes.append("Answers of requests that failed have no length.")
    return notes
