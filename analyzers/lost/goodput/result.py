"""What the question `goodput` answers with."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers.lost.goodput.buckets import CUSTOM, Badput
from analyzers.lost.goodput.slices import SliceEfficiency
from analyzers.time.calendar import NO_STEP_READ


@dataclass(frozen=True, kw_only=True)
class GoodputResult:
    """Goodput of a job, of a window or of an attempt of it, by one of two rule sets.

    goodput_share   productive_s / total_s, 0 to 1; None where the total is 0 and, by the exact rules, where no step
                    was read: time of which nothing tells whether it went into steps is then in the bucket other
    productive_s    time in steps that were kept      total_s   time for which the job held its chips
    badput_s        s by bucket of ml-goodput; custom events by name. By the exact rules productive_s and all of its
                    leaves sum to total_s; by the library's they need not
    badput_share    the same as parts of total_s
    data_loading_async_s  fetches inside steps: no badput, since a fetch there may be hidden behind the device's work
    excluded_s      time left out on request, as the rules count it
    disruptions     how often training stopped without the job being done
    max_step        last step that is known to be productive; None (library: 0) without one
    ideal_step_s    see `step_deviation`; None (library: 0) without one
    steps           one row per step, in their order: step, step_s, deviation_s (absolute), spike
    slice_efficiency  part of its slices that stepped and that was there, averaged over time; None without counts
    attempts        one row per attempt: attempt, start_ns, end_ns, outcome, first_step, last_step, goodput_share,
                    productive_s, total_s, one `<bucket>` column in s; empty by the library's rules
    over_time       one row per equal stretch of time: start_ns, end_ns, productive and each bucket in s, total_s,
                    share, cumulative_share, rolling_share (over `rolling_s` up to end_ns); empty likewise
    slice_counts    time_ns, active, available, total: slice counts that hold from then on
    differences     in sentences: where the two rule sets differ for this job, and why
    steps_read      whether any input tells which steps were taken, and when; why_no_steps: else why not, as a clause
    start_ns, end_ns  the time that is told of; None where the inputs carry no time of day
    """

    rules: str
    goodput_share: float | None
    productive_s: float
    total_s: float
    badput_s: Badput
    badput_share: Badput
    data_loading_async_s: float
    excluded_s: float
    disruptions: int
    max_step: int | None
    ideal_step_s: float | None
    steps: pd.DataFrame
    spike_cumulative_s: float
    spike_interval_s: float
    slice_efficiency: SliceEfficiency | None
    slice_counts: pd.DataFrame
    attempts: pd.DataFrame
    over_time: pd.DataFrame
    rolling_s: float | None
    start_ns: int | None
    end_ns: int | None
    chips: int | None
    usd_per_chip_hour: float | None
    finished: bool | None
    steps_read: bool = True
    why_no_steps: str = NO_STEP_READ
    differences: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    @property
    def badput_total_s(self) -> float:
        """Seconds of all buckets that are badput: without asynchronous loads, which lie inside steps."""
        parts = (v for b, v in self.badput_s.items() if b != "data_loading_async")
        return math.fsum(s for v in parts for s in (v.values() if isinstance(v, Mapping) else (v,)))

    def to_dict(self) -> dict[str, Any]:
        slices = self.slice_efficiency
        deviations = dict(zip(map(str, self.steps["step"].tolist()), self.steps["deviation_s"].tolist(), strict=True))
        return {
            "rules": self.rules,
            "goodput_share": self.goodput_share,
            "productive_s": self.productive_s,
            "total_s": self.total_s,
            "badput_s": _plain(self.badput_s),
            "disruptions": self.disruptions,
            "max_step": self.max_step,
            "ideal_step_s": self.ideal_step_s,
            "step_deviation_s": deviations,
            "badput_share": _plain(self.badput_share),
            "data_loading_async_s": self.data_loading_async_s,
            "excluded_s": self.excluded_s,
            "spike_cumulative_s": self.spike_cumulative_s,
            "spike_interval_s": self.spike_interval_s,
            "slice_efficiency": None
            if slices is None
            else {
                "stepping": slices.stepping,
                "available": slices.available,
                "known_s": slices.known_s,
            },
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "rolling_s": self.rolling_s,
            "attempts": _rows(self.attempts),
            "over_time": _rows(self.over_time),
            "differences": list(self.differences),
            "notes": list(self.notes),
        }


def _plain(badput: Badput) -> dict[str, Any]:
    return {b: dict(v) if b == CUSTOM and isinstance(v, Mapping) else v for b, v in badput.items()}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON takes them: what is missing is None."""
    return table.astype(object).where(table.notna(), None).to_dict("records")
