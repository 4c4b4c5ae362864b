"""Strong and weak scaling of runs that differ in their chips alone.

    T          mean of the settled steps of a run, on n chips; 1: the run on the fewest chips
    strong     the global batch is the same: efficiency = n1 T1 / (n Tn)
    weak       the batch of a chip is the same: efficiency = T1 / Tn
    range      of Tn / T1, as two runs are compared, carried over
    eaten      of the chip time of a step on n chips, what each account takes more than 1's would for the same work:
                   strong: (n a_n - n1 a_1) / (n Tn),   weak: (a_n - a_1) / Tn
               where profiles show the accounts of both, over the profiled steps; all accounts add up to 1 - efficiency
               of these
    serial     s of T(n) = T1' (s + (1 - s) n1 / n), fitted to relative errors: of a step on the fewest chips, the share
               that more chips do not shorten. Its range is the wider of two: that of Student's t from what the fit
               misses, and that of the errors of the means themselves. Told of at least LEAST_FITTED numbers of chips,
               where no point is missed by more than MISSED, where more chips shorten a step, and where the range
               leaves 0 out

What follows from the chips (slice, mesh, hosts, batches of a device) may differ; a run of which anything else differs
is left out, by name. Which run the others are held to is the one by which most numbers of chips come together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from analyzers.difference.differs import alike, flat
from analyzers.difference.step_time import BETWEEN, StepTimes, compare, stalls_alike, variance_of_mean
from analyzers.several.differing import Member
from errors import QuestionError

Kind = Literal["strong", "weak"]
LEAST_FITTED, MISSED = 4, 0.05
SURE = 0.95  # of a range of the serial share
BATCH_ALIKE = 0.005  # relative: tokens of a step are told by rates, which are rounded
CHIPS_FACTS = frozenset(
    (
        "chips",
        "devices",
        "hosts",
        "slices",
        "topology",
        "parallelism",
        "mesh",
        "processes",
        "ranks",
        "global_batch",
        "per_device_batch_size",
        "model_flops_per_step",
        "planned_steps",
        "checkpoint_period_steps",
        "usd_per_chip_hour",
        "model.global_batch_size",
        "model.global_batch",
    )
)
"""What may differ in a series: the chips, what follows from them, the batch (which says which series it is), and how
long the job runs."""


@dataclass(frozen=True, kw_only=True)
class Grown:
    """A run that may be part of a series. `batch`: what a step works on, of all chips: sequences or tokens; `accounts`:
    seconds of a profiled step on one chip, None where no profile shows steps; `may_be`: as of `StepAccounts`."""

    member: Member
    chips: int
    times: StepTimes
    batch: float | None
    accounts: Mapping[str, float] | None = None
    may_be: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Point:
    """A run of the series. `low`, `high`: of its efficiency; None where its steps tell no range, and for the first.
    `accounts`, `eaten`: by account, None where either profile lacks; `moved`: accounts that grew for no more than that
    the first run enters elsewhere what this one tells."""

    run_id: str
    name: str
    chips: int
    step_s: float
    efficiency: float
    low: float | None
    high: float | None
    accounts: Mapping[str, float] | None
    eaten: Mapping[str, float] | None
    moved: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "name": self.name,
            "chips": self.chips,
            "step_s": self.step_s,
            "efficiency": self.efficiency,
            "low": self.low,
            "high": self.high,
            "accounts_s": self.accounts and dict(self.accounts),
            "eaten_share": self.eaten and dict(self.eaten),
        }


@dataclass(frozen=True)
class Serial:
    """Share of a step on the fewest chips that more chips do not shorten. `missed`: by how much the fit misses the
    point that it misses most."""

    share: float
    low: float
    high: float
    missed: float


@dataclass(frozen=True)
class Series:
    """`points` in the order of chips, of as many chips the quickest first. `serial`: None where `why` says why it is
    not told. `untold`: settings that some of the runs alone tell: whether they differ in these is not known."""

    kind: Kind
    points: tuple[Point, ...]
    serial: Serial | None = None
    why: str = ""
    untold: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        serial = self.serial
        return {
            "kind": self.kind,
            "points": [p.to_dict() for p in self.points],
            "serial_share": serial and {"share": serial.share, "low": serial.low, "high": serial.high},
            "why": self.why,
            "not_told_by_all": list(self.untold),
        }


@dataclass(frozen=True)
class Scaling:
    """`left_out`: (run, why)."""

    series: tuple[Series, ...]
    left_out: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        left = [{"name": name, "why": why} for name, why in self.left_out]
        return {"series": [s.to_dict() for s in self.series], "left_out": left}


def scaling(grown: Sequence[Grown], others: Sequence[tuple[str, str]] = ()) -> Scaling:
    """`others`: runs that cannot be part of any series, with why. No series where no two runs differ in chips alone."""
    told = {g.member.run_id: settings(g.member) for g in grown}
    kinds: tuple[Kind, ...] = ("strong", "weak")
    every: dict[Kind, list[Grown]] = {kind: _members(grown, told, kind) for kind in kinds}
    found: dict[Kind, list[Grown]] = {kind: some for kind, some in every.items() if len({g.chips for g in some}) > 1}
    used = {g.member.run_id for s in found.values() for g in s}
    left = [(g.member.name, _why(g, found, told)) for g in grown if g.member.run_id not in used]
    series = [
        replace(_series(s, kind), untold=_untold([told[g.member.run_id] for g in s])) for kind, s in found.items()
    ]
    return Scaling(tuple(series), (*others, *left) if found else ())


def _untold(of: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Settings that some of these tell, and not all."""
    names = dict.fromkeys(n for told in of for n, v in told.items() if v is not None)
    return tuple(n for n in names if any(told.get(n) is None for told in of))


def settings(member: Member) -> dict[str, Any]:
    """All that is known of a run but what may differ in a series."""
    told = {n: v for n, v in flat(member.facts) if n not in CHIPS_FACTS and n.split(".")[0] not in CHIPS_FACTS}
    return {**told, "its kind": member.kind, "whether it was simulated": member.simulated}


def differing_in(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Settings that both tell, and tell differently."""
    both = [n for n in a if n in b and a[n] is not None and b[n] is not None]
    return [n for n in both if not alike(a[n], b[n])]


def _members(grown: Sequence[Grown], told: Mapping[str, Mapping[str, Any]], kind: Kind) -> list[Grown]:
    """The largest series of a kind, in the order of chips: every two of it agree in what both tell. Of runs on as many
    chips the quickest comes first: it stands for them."""

    def order(g: Grown) -> tuple[int, float, str]:
        return g.chips, g.times.mean_s, g.member.run_id

    best, in_order = list[Grown](), sorted(grown, key=order)
    for head in in_order:
        some = [head]
        for g in in_order:
            if g is not head and _same_work(head, g, kind) and not any(_differ(x, g, told) for x in some):
                some.append(g)
        if len({g.chips for g in some}) > len({g.chips for g in best}):
            best = sorted(some, key=order)
    return best


def _differ(a: Grown, b: Grown, told: Mapping[str, Mapping[str, Any]]) -> bool:
    return bool(differing_in(told[a.member.run_id], told[b.member.run_id]))


def _same_work(a: Grown, b: Grown, kind: Kind) -> bool:
    if a.batch is None or b.batch is None:
        return False
    mine, theirs = (g.batch / (g.chips if kind == "weak" else 1) for g in (a, b) if g.batch is not None)
    return math.isclose(mine, theirs, rel_tol=BATCH_ALIKE)


def _why(g: Grown, found: Mapping[Kind, Sequence[Grown]], told: Mapping[str, Mapping[str, Any]]) -> str:
    """What keeps a run out of every series: of one whose work it shares the fewest settings in which it differs from
    any run of it, else the fewest in which it differs from the first of one."""
    if g.batch is None:
        return "how much a step works on is not told"
    sharing = [m for kind, some in found.items() if _same_work(some[0], g, kind) for m in some]
    firsts = [some[0] for some in found.values()]
    in_these, in_first = (
        [differing_in(told[m.member.run_id], told[g.member.run_id]) for m in some] for some in (sharing, firsts)
    )
    apart = min(filter(None, in_these), key=len, default=None) or min(in_first, key=len, default=[])
    if apart:
        more = f" and {len(apart) - 2} more" if len(apart) > 2 else ""
        return f"it differs in {', '.join(n.replace('_', ' ') for n in apart[:2])}{more} as well"
    return "neither its batch nor its batch of a chip is that of the series"


def _series(members: Sequence[Grown], kind: Kind) -> Series:
    times = stalls_alike(*(g.times for g in members))
    members = [replace(g, times=t) for g, t in zip(members, times, strict=True)]
    first = members[0]
    points = tuple(_point(first, g, kind) for g in members)
    if kind == "weak":
        return Series(kind, points)
    serial, why = serial_share([(p.chips, p.step_s) for p in points], [error(g.times) for g in members])
    return Series(kind, points, serial, why)


def _point(first: Grown, g: Grown, kind: Kind) -> Point:
    ideal = first.chips / g.chips if kind == "strong" else 1.0
    step_s = g.times.mean_s
    low = high = None
    if g is not first:
        try:
            found = compare(first.times, g.times)
        except QuestionError:
            found = None
        if found is not None and found.low is not None and found.high is not None and found.low > -1:
            low, high = ideal / (1 + found.high), ideal / (1 + found.low)
    return Point(
        g.member.run_id,
        g.member.name,
        g.chips,
        step_s,
        ideal * first.times.mean_s / step_s,
        low,
        high,
        g.accounts,
        took := None if g is first else eaten(first, g, kind),
        _moved(first, g, ideal, took or {}),
    )


def _moved(first: Grown, g: Grown, times: float, took: Mapping[str, float]) -> frozenset[str]:
    whole = sum((g.accounts or {}).values())
    return frozenset(
        n for n, v in took.items() if v * whole + g.may_be.get(n, 0.0) - times * first.may_be.get(n, 0.0) <= 0
    )


def eaten(first: Grown, g: Grown, kind: Kind) -> dict[str, float] | None:
    """By account, of the chip time of a profiled step of this run: see the module."""
    if first.accounts is None or g.accounts is None:
        return None
    whole = sum(g.accounts.values())
    if not whole > 0:
        return None
    times = first.chips / g.chips if kind == "strong" else 1.0
    names = dict.fromkeys([*first.accounts, *g.accounts])
    return {n: (g.accounts.get(n, 0.0) - times * first.accounts.get(n, 0.0)) / whole for n in names}


def error(times: StepTimes) -> float:
    """Of the mean of settled steps, as a share of it: their scatter, and what two starts of one job differ by."""
    scatter = variance_of_mean(times.seconds)[0] / times.mean_s**2 if len(times.seconds) > 1 else 0.0
    return math.sqrt(scatter + BETWEEN**2)


def serial_share(points: Sequence[tuple[int, float]], errors: Sequence[float]) -> tuple[Serial | None, str]:
    """(the share, or None and why) of (chips, seconds of a step), each with its relative error."""
    many = len({n for n, _ in points})
    if many < LEAST_FITTED:
        return None, f"a serial share takes {LEAST_FITTED} numbers of chips, and there are {many}"
    chips, taken = (np.array(v, float) for v in zip(*points, strict=True))
    terms = np.stack([np.ones_like(chips), chips.min() / chips], axis=1) / taken[:, None]
    solve = np.linalg.pinv(terms)
    fixed, shared = solve @ np.ones_like(taken)
    left = 1 - terms @ np.array([fixed, shared])
    missed = float(np.abs(left).max())
    if not (fixed + shared > 0 and missed <= MISSED):
        return None, f"one part that is shared out and one that is not miss a point by {missed:.0%}"
    if not shared > 0:
        return None, "more chips do not shorten a step"
    whole, free = fixed + shared, len(taken) - 2
    share = fixed / whole
    slope = np.array([shared, -fixed]) / whole**2 @ solve  # of the share, by each point's relative time
    by_misses = float(stdtrit(free, 0.5 + SURE / 2)) * math.sqrt(float(left @ left) / free * float(slope @ slope))
    by_errors = float(ndtri(0.5 + SURE / 2)) * math.sqrt(float(slope**2 @ np.array(errors) ** 2))
    reach = max(by_misses, by_errors)
    if not share - reach > 0:
        return None, "the range of the serial share holds 0"
    return Serial(float(share), float(share - reach), float(min(share + reach, 1.0)), missed), ""
