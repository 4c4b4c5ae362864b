"""A fleet: many runs over time, in one ledger, by team, model, chip, group or tag, and by day, week or month.

    counted time        every chip-second that a run's ledger accounts for, once (`once.py`), within the time asked for
    sums                over groups = over periods and what stands in none = over runs = over accounts: all of them add
                        up the same entries (`sums.py`), as ledgers add
    parts               runs are summed in blocks (`parts.py`): one that is another has its own block summed anew alone
    left out            told by reason and number: simulated and compiled runs are never summed with measured ones

ML productivity goodput = scheduling x runtime x program goodput (arXiv 2502.06982):

    scheduling    of the chips that the fleet has, the share that jobs held; runs alone cannot tell it: it needs the
                  number of chips (`capacity_chips`) and a time to look at
    runtime       of the time that jobs held chips, the share in steps that were kept (of serving, in answers)
    program       of the time in kept steps, the share that the model's FLOPs take at the chips' peak; the source takes
                  what the compiler's graph needs at peak, of which the model's own FLOPs are a part
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any

import numpy as np

from analyzers.fleet.base import Every
from analyzers.fleet.causes import MOST_CAUSES, Cause, causes
from analyzers.fleet.chosen import Runs, chosen_of
from analyzers.fleet.counted import Counted, CountedRuns
from analyzers.fleet.counting import COUNTED, why_not
from analyzers.fleet.once import Twice, told_twice
from analyzers.fleet.parts import MARKS, Part, Parts
from analyzers.fleet.periods import Period, edges, periods
from analyzers.fleet.sums import Sum, Tally, added_up
from errors import QuestionError

LEFT_OUT = {
    "damaged": "damaged, so that they cannot be read",
    "pending": "whose numbers are still being worked out",
    "simulated": "simulated",
    "compiled": "compiled and never run",
    "measured": "measured",
    "no_ledger": "without a ledger of their time",
    "chips_unknown": "of which no input tells how many chips they held",
    "told_again": "made of files that another run holds too",
    "told_elsewhere": "of a job of which another run tells the same time",
    "undated": "without a time of day, while a time was asked for",
    "outside": "wholly outside the time asked for",
}
"""Why runs are not counted, in the order in which it is looked."""


@dataclass(frozen=True, kw_only=True)
class FleetAsked:
    """`since_ns`, `until_ns`: the time that is counted, None: no bound. `every`: the periods of the trend; `zone`: the
    time zone of its days. `simulated`: simulated runs, and no others. `capacity_chips`: chips that the fleet has."""

    by: str = "team"
    every: Every = "week"
    since_ns: int | None = None
    until_ns: int | None = None
    zone: tzinfo = UTC
    simulated: bool = False
    capacity_chips: int | None = None


@dataclass(frozen=True, kw_only=True)
class FleetResult:
    """`total` is the sum of `groups`, of `runs`, and of `trend` with `undated` (None where every run is dated).

    `left_out`: runs that are not counted, by reason (`LEFT_OUT`). `partly`: counted runs some of whose time another
    run of the job tells, `partly_chip_s` of it. `evenly_chip_s`: time of which no input tells the hours. `developers`:
    owners of the counted runs that tell their FLOPs, which are `flops_of_owned`; `unowned_runs`: counted runs without
    an owner. `scheduling`: None where it cannot be told.
    """

    asked: FleetAsked
    total: Sum
    groups: tuple[tuple[str, Sum], ...]
    trend: tuple[tuple[Period, Sum], ...]
    undated: Sum | None
    all_causes: tuple[Cause, ...]
    runs: CountedRuns
    left_out: Mapping[str, int]
    partly: int = 0
    partly_chip_s: float = 0.0
    evenly_chip_s: float = 0.0
    developers: int = 0
    unowned_runs: int = 0
    flops_of_owned: float | None = None
    scheduling: float | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    marks: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The ten in which most was lost, the largest first."""
        return self.all_causes[:MOST_CAUSES]

    @property
    def flops_per_developer(self) -> float | None:
        """The model's FLOPs in kept steps of runs that tell them and name an owner, over the number of their owners."""
        return self.flops_of_owned / self.developers if self.flops_of_owned is not None and self.developers else None

    def to_dict(self, most_runs: int = 20) -> dict[str, Any]:
        rest, rest_chip_s = self.runs.beyond(most_runs)
        return {
            "by": self.asked.by,
            "every": self.asked.every,
            "zone": str(self.asked.zone),
            "since_ns": self.asked.since_ns,
            "until_ns": self.asked.until_ns,
            "simulated": self.asked.simulated,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "total": self.total.to_dict(),
            "scheduling_goodput": self.scheduling,
            "capacity_chips": self.asked.capacity_chips,
            "groups": [{"key": key, **part.to_dict()} for key, part in self.groups],
            "trend": [
                {"period": p.name, "start_ns": p.start_ns, "end_ns": p.end_ns, **part.to_dict()}
                for p, part in self.trend
            ],
            "undated": self.undated and self.undated.to_dict(),
            "causes": [c.to_dict() for c in self.causes],
            "developers": self.developers,
            "runs_without_owner": self.unowned_runs,
            "model_flops_per_developer": self.flops_per_developer,
            "runs": [_run_dict(r) for r in self.runs[:most_runs]],
            "other_runs": {"runs": rest, "chip_hours": rest_chip_s / 3600},
            "left_out": dict(self.left_out),
            "counted_in_part": {"runs": self.partly, "left_out_chip_hours": self.partly_chip_s / 3600},
            "spread_evenly_chip_hours": self.evenly_chip_s / 3600,
            "counted_of_which": dict(self.marks),
        }


def _run_dict(told: Counted) -> dict[str, Any]:
    return {
        "run_id": told.run.run_id,
        "name": told.run.name,
        "chip_hours": told.chip_s / 3600,
        "counted_share": told.chip_s / told.whole_chip_s if told.whole_chip_s > 0 else None,
        "usd": told.usd,
    }


def twice(runs: Runs, asked: FleetAsked) -> Twice:
    """What is told twice among the runs that may be counted."""
    chosen = chosen_of(runs)
    may = np.concatenate([np.zeros(0, dtype=bool), *(why_not(c, asked) == COUNTED for c in chosen.blocks)])
    return told_twice(chosen.only(may[chosen.slots]))


def fleet(runs: Runs, asked: FleetAsked, known: Twice | None = None, kept: Parts | None = None) -> FleetResult:
    """`known`: what is told twice, where these runs are a part of those among which it was looked for. `kept`: what the
    parts of the fleet came to when the same was asked before. Raises QuestionError where the time asked for is none, or
    more chips were held than the fleet has."""
    if asked.since_ns is not None and asked.until_ns is not None and asked.until_ns <= asked.since_ns:
        raise QuestionError("the time asked for ends before it begins", expected="since before until")
    chosen = chosen_of(runs)
    told = twice(chosen, asked) if known is None else known
    blocks, keeping = (chosen.summed_up, Parts()) if kept is None else (chosen.as_stored, kept)
    parts = keeping.parts(blocks, asked, asked.by, told)
    first, last = _span(parts)
    total, undated = _together([p.groups for p in parts]), _together([p.undated for p in parts])
    in_time = () if first is None or last is None else periods(first, last - 1, asked.every, asked.zone)
    trend = keeping.trends(asked, told, edges(in_time)) if in_time else []
    left_out, marks = sum((p.left_out for p in parts), Counter[str]()), sum((p.marks for p in parts), Counter[str]())
    return FleetResult(
        asked=asked,
        total=total,
        groups=_groups(parts),
        trend=tuple(zip(in_time, _by_period(trend, len(in_time)), strict=True)),
        undated=undated if undated.runs else None,
        all_causes=causes([p.losses for p in parts], chosen.rank, chosen.run),
        runs=CountedRuns(parts),
        left_out={name: left_out[name] for name in LEFT_OUT if left_out[name]},
        partly=sum(p.partly for p in parts),
        partly_chip_s=sum(p.partly_chip_s for p in parts),
        evenly_chip_s=sum(p.evenly_chip_s for p in parts),
        developers=len(frozenset[str]().union(*(p.owners for p in parts))),
        unowned_runs=sum(p.unowned for p in parts),
        flops_of_owned=_together([p.owned for p in parts]).flops,
        scheduling=_scheduling(total, undated, asked, (first, last)),
        first_ns=first,
        last_ns=last,
        marks={name: marks[name] for name in MARKS},
    )


def _span(parts: Sequence[Part]) -> tuple[int, int] | tuple[None, None]:
    """From the first instant that is counted to the last."""
    spans = [part.span for part in parts if part.span is not None]
    return (min(a for a, _ in spans), max(b for _, b in spans)) if spans else (None, None)


def _together(tallies: Sequence[Tally]) -> Sum:
    """The sum of all keys."""
    return added_up(tallies, [np.zeros(t.values.shape[1], dtype=np.int64) for t in tallies], 1)[0]


def _groups(parts: Sequence[Part]) -> tuple[tuple[str, Sum], ...]:
    """The largest first."""
    keys: dict[str, int] = {}
    mine = [np.array([keys.setdefault(name, len(keys)) for name in p.names], dtype=np.int64) for p in parts]
    told = added_up([p.groups for p in parts], mine, len(keys))
    found = [(key, part) for key, part in zip(keys, told, strict=True) if part.chip_s > 0]
    return tuple(sorted(found, key=lambda pair: (-pair[1].chip_s, pair[0])))


def _by_period(tallies: Sequence[Tally], count: int) -> list[Sum]:
    return added_up(tallies, [np.arange(count)] * len(tallies), count)


def _scheduling(total: Sum, undated: Sum, asked: FleetAsked, span: tuple[int | None, int | None]) -> float | None:
    """Chip time held over the chip time that the fleet had: capacity x time. Raises QuestionError where it is more."""
    if asked.capacity_chips is None or span[0] is None or span[1] is None:
        return None
    since = span[0] if asked.since_ns is None else asked.since_ns
    until = span[1] if asked.until_ns is None else asked.until_ns
    held, had = total.chip_s - undated.chip_s, asked.capacity_chips * (until - since) / 1e9
    if held > had * (1 + 1e-6):
        raise QuestionError(
            f"the runs held more than {asked.capacity_chips:,} chips have in that time",
            expected=f"a capacity of {int(-(-held * 1e9 // (until - since))):,} chips or more",
            advice="Or narrow the search to the runs on these chips.",
        )
    return held / had if had > 0 else None
