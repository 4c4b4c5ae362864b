"""Ranks of a timeline: which came late to collectives, and by how much clocks are apart, as matched collectives tell.

Lateness is that of `ranks/stragglers/blame.py` (the median of its peers' waits less its own, from durations alone), as
a mean over the steps that were compared. Offsets are those of `ranks/stragglers/clocks.py`, from the ends of
collectives; a lane stands earlier by as much as the clock that wrote it is ahead. Each lane moves as a whole: what an
event took, and sums of it, stay what they were.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from analyzers.base import Facts
from analyzers.ranks.meetings import Meetings
from analyzers.ranks.stragglers.blame import Lateness, lateness
from analyzers.ranks.stragglers.clocks import Clocks, clocks
from analyzers.timeline.lanes import DEVICE, HOST, JOB, SERVING, Lane
from analyzers.timeline.record import Timeline
from errors import QuestionError
from runs.tables import Tables

ORDER = (JOB, SERVING, DEVICE, HOST)
Place = tuple[str, int]  # host and device


@dataclass(frozen=True)
class Rank:
    """`late_s`: by how much later than its peers' median it came, None: not compared. `offset_s`: by how much its clock
    is ahead of the median, None: it meets nobody. `drift`: in s per s."""

    label: str
    host: str
    device: int
    late_s: float | None
    offset_s: float | None
    drift: float

    @property
    def place(self) -> Place:
        return self.host, self.device


@dataclass(frozen=True)
class Ranked:
    """`ranks`: the latest first. `order`: lanes by number, those of the latest rank first among devices' and hosts';
    `ahead`: of each lane, by how many ticks its clock is ahead, 0 where that is not known; `known`: whether it is.
    `start`, `end`: where the first event begins and the last ends once lanes are moved. `steps`: that were compared;
    `wait_s`: what waits of one step are good to, `clock_s`: what offsets are; None: nothing tells."""

    ranks: tuple[Rank, ...]
    order: tuple[int, ...]
    ahead: tuple[int, ...]
    known: tuple[bool, ...]
    start: int
    end: int
    steps: int
    wait_s: float | None
    clock_s: float | None

    def rows(self, of: Timeline) -> np.ndarray:
        """`ahead` of each row."""
        return np.repeat(np.array(self.ahead, dtype=np.int64), [lane.rows for lane in of.lanes])

    @property
    def hosts_s(self) -> dict[str, float]:
        """By how many seconds the clocks of hosts are ahead."""
        return _hosts(self.ranks)

    def hosts_ns(self) -> dict[str, int]:
        return {host: round(by * 1e9) for host, by in self.hosts_s.items()}


def ranked(of: Timeline, tables: Tables, facts: Facts, met: Meetings) -> Ranked:
    """Raises QuestionError where no two ranks took part in the same collectives."""
    compared = lateness(met, tables, facts)
    found = clocks(met, compared.column >= 0)
    if not np.isfinite(found.offset_s).any():
        raise QuestionError(
            "no collective of this run was recorded by all of its ranks: nothing tells how late they came, or how far "
            "their clocks are apart",
            advice="Add profiles of all ranks that were taken at the same time.",
        )
    ranks = _ranks(met, compared, found)
    moved = _ahead(of, ranks)
    ahead = [0 if by is None else by for by in moved]
    return Ranked(
        ranks=ranks,
        order=_order(of, ranks),
        ahead=tuple(ahead),
        known=tuple(by is not None for by in moved),
        start=min(lane.start - by for lane, by in zip(of.lanes, ahead, strict=True)),
        end=max(lane.end - by for lane, by in zip(of.lanes, ahead, strict=True)),
        steps=len(compared.step),
        wait_s=compared.resolution_s if len(compared.step) else None,
        clock_s=found.resolution_s,
    )


def _ranks(met: Meetings, compared: Lateness, found: Clocks) -> tuple[Rank, ...]:
    told = met.ranks
    steps = (~np.isnan(compared.lag_s)).sum(axis=1)
    late = np.nansum(compared.lag_s, axis=1) / np.maximum(steps, 1)
    ranks = [
        Rank(str(label), str(host), int(device), float(lag) if n else None, None if np.isnan(by) else float(by), drift)
        for label, host, device, lag, n, by, drift in zip(
            told["label"], told["host"], told["device"], late, steps, found.offset_s, found.drift.tolist(), strict=True
        )
    ]
    return tuple(sorted(ranks, key=lambda rank: -_late(rank.late_s)))


def _late(seconds: float | None) -> float:
    """Who was not compared comes last."""
    return -np.inf if seconds is None else seconds


def _order(of: Timeline, ranks: tuple[Rank, ...]) -> tuple[int, ...]:
    own = {rank.place: _late(rank.late_s) for rank in ranks}
    hosts: dict[str, float] = defaultdict(lambda: -np.inf)
    for rank in ranks:
        hosts[rank.host] = max(hosts[rank.host], _late(rank.late_s))

    def key(n: int) -> tuple[int, float, int]:
        lane = of.lanes[n].lane
        late = own.get(_place(lane), -np.inf) if lane.group == DEVICE else hosts[lane.host]
        return ORDER.index(lane.group), -late if lane.group in (DEVICE, HOST) else 0.0, n

    return tuple(sorted(range(len(of.lanes)), key=key))


def _place(lane: Lane) -> Place:
    return lane.host, 0 if lane.device is None else lane.device


def _ahead(of: Timeline, ranks: tuple[Rank, ...]) -> list[int | None]:
    """Of each lane, in ticks. What a host wrote, and devices of it that met nobody, have the median of its devices'."""
    own = {rank.place: rank.offset_s for rank in ranks if rank.offset_s is not None}
    usual = _hosts(ranks)

    def ahead(lane: Lane) -> int | None:
        device = own.get(_place(lane)) if lane.group == DEVICE else None
        by = usual.get(lane.host) if device is None else device
        if by is None or lane.group == SERVING:
            return None
        return max(min(round(by * 1e12 / of.tick_ps), of.span), -of.span)

    return [ahead(row.lane) for row in of.lanes]


def _hosts(ranks: tuple[Rank, ...]) -> dict[str, float]:
    """Of each host whose clock is known, the median of its devices' offsets, in seconds."""
    hosts: dict[str, list[float]] = defaultdict(list)
    for rank in ranks:
        if rank.offset_s is not None:
            hosts[rank.host].append(rank.offset_s)
    return {host: float(np.median(offsets)) for host, offsets in hosts.items()}
