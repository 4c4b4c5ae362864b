"""The knee of a load curve: between which two loads does the server stop keeping up?

A load lies beyond the knee by either of two signs, each with a margin for noise:

    rate      it answers less than 95 % of what a server would that kept up (see `load_points`), less 2 / sqrt(requests)
              for the chance in arrivals
    latency   its power, answered per second / mean latency, is below 1 / 1.1 of the greatest power of a lighter load:
              since then latency grew out of proportion to the rate (L. Kleinrock, 1979: the knee is where power is
              greatest)

The truth is a range, since only these loads were tried: from the heaviest load below all signs to the first that shows
one. Where loads fall behind, the rates that they still answer tell the capacity, and two straight lines (answered =
offered, answered = capacity) meet there. P. Denning and J. Buzen (1978) call these the asymptotes of a closed system.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from errors import format as fmt

KEEPS_UP = 0.95
CHANCE = 2.0  # standard deviations of the number of arrivals
OUT_OF_PROPORTION = 1.1
PLATEAU = 0.05  # closed loop: rates within so much of the greatest are one level, if several loads reach it
ALIKE = 1.25  # loads whose requests are longer than others' by more are no one curve
AXES = {"rate": "requests/s offered", "concurrency": "requests in flight allowed", "answered": "requests/s answered"}


@dataclass(frozen=True, kw_only=True)
class Knee:
    """`low`: the heaviest load below the knee (None: the first is beyond), `high`: the first beyond.

    `low_load`, `high_load`: the same on `axis` (see AXES), NaN for a load that stands nowhere on it, equal where tries
    of one load lie on both sides. `sign`: rate, latency or both. `capacity_per_s`: (low,
    mid, high) of requests answered per second by the loads that fell behind, None where none did.
    """

    axis: str
    low: str | None
    high: str
    low_load: float | None
    high_load: float
    sign: str
    capacity_per_s: tuple[float, float, float] | None
    capacity_output_tokens_per_s: float | None

    def to_dict(self) -> dict[str, Any]:
        capacity = self.capacity_per_s
        return {
            "axis": self.axis,
            "unit": AXES[self.axis],
            "low": self.low,
            "high": self.high,
            "low_load": self.low_load,
            "high_load": self.high_load if np.isfinite(self.high_load) else None,
            "sign": self.sign,
            "capacity_per_s": None if capacity is None else dict(zip(("low", "mid", "high"), capacity, strict=True)),
            "capacity_output_tokens_per_s": self.capacity_output_tokens_per_s,
        }


def axis_of(table: pd.DataFrame) -> str:
    """Along what the loads of a run differ: rate, concurrency, or only what they answered."""
    good = table[~table["failed_load"]]
    if len(good) and np.isfinite(good["offered_per_s"]).all():
        return "rate"
    if len(good) and good["max_concurrency"].notna().all():
        return "concurrency"
    return "answered"


def placed(table: pd.DataFrame, axis: str) -> pd.Series:
    """Where each load stands on the axis; NaN for one of which only is known that nothing was answered."""
    column = {"rate": "offered_per_s", "concurrency": "max_concurrency", "answered": "request_rate_per_s"}[axis]
    place = table[column].astype(float)
    return place.mask(table["failed_load"]) if axis == "answered" else place


def judge(table: pd.DataFrame, latency: str) -> None:
    """Add `falls_behind`, `out_of_proportion` and `power` to loads in order of the axis. `latency`: a column."""
    sent = (table["completed"] + table["failed"].fillna(0)).clip(lower=1)
    with np.errstate(invalid="ignore"):
        limit = KEEPS_UP - CHANCE / np.sqrt(sent)
    table["falls_behind"] = (table["keeping_up"] < limit) | table["failed_load"]
    power = table["request_rate_per_s"] / table[latency]
    before = power.cummax().shift()
    table["power"] = power
    table["out_of_proportion"] = (power < before / OUT_OF_PROPORTION) | table["failed_load"]


def _up_to(load: pd.Series) -> str:
    most = float(load.dropna().iloc[-1])
    return f" up to {f'{most:,.0f}' if most >= 1000 else f'{most:.4g}'}"


def find(table: pd.DataFrame, axis: str) -> tuple[Knee | None, str]:
    """(the knee, one sentence on what was found or why none can be told) of loads that `judge` has marked."""
    load = placed(table, axis)
    if len(table) < 2:
        if len(table) and table["falls_behind"].iloc[0]:
            return _knee(table, axis, load, 0), "The only load is beyond what the server bears."
        return None, "One load makes no curve: a knee needs several."
    if sentence := _unlike(table):
        return None, sentence
    beyond = (table["falls_behind"] | table["out_of_proportion"]).to_numpy()
    if not beyond.any():
        return None, f"No knee was seen{_up_to(load)} {AXES[axis]}." if load.notna().any() else "No knee was seen."
    first = int(np.argmax(beyond))
    knee = _knee(table, axis, load, first)
    if not beyond[first:].all():
        return (
            knee,
            f"Signs are mixed: {knee.high} is out of line and a heavier load is not: repeat the loads around it.",
        )
    return knee, ""


def _unlike(table: pd.DataFrame) -> str:
    for column, words in (("prompt_tokens_mean", "prompts"), ("output_tokens_mean", "answers")):
        known = table[column].dropna()
        if len(known) and known.min() > 0 and known.max() > ALIKE * known.min():
            lengths = f"{fmt.at_most(known.min(), 4)} to {fmt.at_most(known.max(), 4)} tokens"
            return f"Loads differ in the length of their {words} ({lengths}): no one curve, and no knee is told."
    return ""


def _knee(table: pd.DataFrame, axis: str, load: pd.Series, first: int) -> Knee:
    row = table.iloc[first]
    below = table.iloc[first - 1] if first else None
    signs = [name for name, sign in (("rate", row["falls_behind"]), ("latency", row["out_of_proportion"])) if sign]
    behind = table[table["falls_behind"] & ~table["failed_load"]]
    if axis == "concurrency":
        level = table[table["request_rate_per_s"] >= table["request_rate_per_s"].max() / (1 + PLATEAU)]
        behind = level if len(level) > 1 else level.head(0)
    rates = behind["request_rate_per_s"].dropna()
    tokens = behind["output_tokens_per_s"].dropna()
    return Knee(
        axis=axis,
        low=None if below is None else str(below["stage"]),
        high=str(row["stage"]),
        low_load=None if below is None else float(load.iloc[first - 1]),
        high_load=float(load.iloc[first]),
        sign="both" if len(signs) == 2 else signs[0],
        capacity_per_s=(float(rates.min()), float(rates.median()), float(rates.max())) if len(rates) else None,
        capacity_output_tokens_per_s=float(tokens.median()) if len(tokens) else None,
    )
