"""What one run spent, as a fleet needs it: each account's chip-seconds, and in which hours they were spent.

    hours of an account    by the headings of the job's calendar, exactly: what is lost between steps by its own
                           heading, what is inside kept steps (useful maths, waiting, padding ...) by the heading
                           `kept`, since no input tells these hour by hour
    without a calendar     evenly from the first to the last instant that the inputs tell (serving, a profile alone)
    without times of day   in no hour: the run is counted, and stands in no day, week or month

It is kept beside a run's headline numbers, so that a fleet of ten thousand runs opens none of them.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from analyzers.intervals import Spans
from analyzers.time.calendar import CODE, HEADINGS, Calendar
from analyzers.time.ledger import LedgerResult
from analyzers.time.useful import uncounted, useful_share
from runs.accounts import ACCOUNTS
from runs.ledger import Account

USEFUL = "useful_maths"
UNKNOWN = "unattributed"
KEPT = ("productive", "served")  # time in kept steps; of serving, in tokens of answers
HOUR_S, DAY_S = 3600, 86_400
MOST_CELLS = 4_000  # hours (or days, where that many hours do not reach) that are told one by one
MOST_SPANS = 50
MOST_INPUTS = 500
SAID = "sidecar"  # the collector of `chipledger.json`
ID_LENGTH = 16  # hex digits of an input's SHA-256 that are kept
PARTS_OF_PARENT = {"no_single_rank", "not_broken_down"}  # no causes of their own
_S = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Chip-seconds in one account; `path` from below `held`, such as `badput/checkpoint_save`."""

    path: str
    chip_s: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Microseconds of the calendar under each heading, in cells of `each_s` seconds from `start_s` (since 1970) on."""

    start_s: int
    each_s: int
    of: dict[str, list[int]]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run spent.

    held          [start, end) in ns, as often as chips were held and given back; none: no input tells a time of day
    cells         None: nothing tells how the time went hour by hour, it is spread evenly over `held`
    usd           at the price that is known, None without one
    useful_flops  the model's FLOPs in kept steps, all chips; None where not known
    useful_told   whether useful maths is known; `useful_least`: only what it is at least
    chips_known   False: the number of chips is not told, and chip-seconds are those of one
    inputs        which files it was made of: beginnings of their hashes, sorted. Empty ones are left out, and what was
                  said of the run (`chipledger.json`): where that is put right, the run is told once more
    """

    entries: tuple[Entry, ...]
    held: tuple[tuple[int, int], ...] = ()
    cells: Cells | None = None
    usd: float | None = None
    useful_flops: float | None = None
    useful_told: bool = False
    useful_least: bool = False
    chips_known: bool = True
    inputs: tuple[str, ...] = ()

    @cached_property
    def chip_s(self) -> float:
        return float(sum(e.chip_s for e in self.entries))

    def to_json(self) -> str:
        told = asdict(self) | {"entries": [[e.path, e.chip_s, e.basis] for e in self.entries]}
        return json.dumps(told, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "Spent | None":
        """None where it is not what `to_json` wrote."""
        try:
            told = json.loads(text)
            told["entries"] = tuple(Entry(path=p, chip_s=float(s), basis=b) for p, s, b in told["entries"])
            told["held"] = tuple((int(a), int(b)) for a, b in told["held"])
            told["cells"] = told["cells"] and Cells(**told["cells"])
            told["inputs"] = tuple(told["inputs"])
            return Spent(**told)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def spent(result: LedgerResult, days: Calendar | None, sources: Sequence[dict[str, Any]] = ()) -> Spent:
    """`days`: the calendar that the ledger rests on, None where it rests on none; `sources`: of the run's manifest."""
    ledger = result.ledger
    start, end = result.start_ns, result.end_ns
    held = () if start is None or end is None or end <= start else ((int(start), int(end)),)
    return Spent(
        entries=entries(ledger.account),
        held=_held(days) if days is not None else held,
        cells=_cells(days) if days is not None else None,
        usd=ledger.usd,
        useful_flops=ledger.useful_flops,
        useful_told=useful_share(ledger) is not None,
        useful_least=uncounted(ledger),
        chips_known=ledger.chips_known,
        inputs=tuple(sorted({str(s["sha256"])[:ID_LENGTH] for s in sources if _is_input(s)}))[:MOST_INPUTS],
    )


def _is_input(source: dict[str, Any]) -> bool:
    return bool(source["bytes"]) and source.get("collector") != SAID


def entries(account: Account) -> tuple[Entry, ...]:
    """The leaves of a ledger, each under the nearest account that has a definition: parts that an analyzer names after
    hosts or events belong to no other run. They sum to the whole, as the leaves do."""
    amounts: dict[str, list[Account]] = {}
    for path, leaf in account.walk():
        if not leaf.children and leaf.chip_seconds > 0:
            amounts.setdefault("/".join(defined(path[1:])), []).append(leaf)
    return tuple(
        Entry(path=path, chip_s=float(sum(a.chip_seconds for a in leaves)), basis=_weakest(leaves))
        for path, leaves in amounts.items()
    )


def defined(path: Sequence[str]) -> tuple[str, ...]:
    """The path up to its last account that has a definition; `unattributed` where none has."""
    names = list(path)
    while names and (names[-1] not in ACCOUNTS or names[-1] in PARTS_OF_PARENT):
        names.pop()
    return tuple(names) or ("unattributed",)


def _weakest(leaves: Sequence[Account]) -> str:
    order = ("measured", "derived", "modelled", "unattributed")
    return max((a.basis for a in leaves), key=order.index)


def heading_of(path: str) -> str:
    """The heading of the calendar under which an account's time lies; empty: none."""
    head, _, rest = path.partition("/")
    if head == "productive":
        return "kept"
    if head == "badput":
        return rest.partition("/")[0]
    return "other" if head == "unattributed" else ""


def _held(days: Calendar) -> tuple[tuple[int, int], ...]:
    """When chips were held; of a job with very many pauses from its start to its end."""
    outside = days.painting.spans(CODE["outside"])
    starts = [days.start_ns, *(int(t) for t in outside.end)]
    ends = [*(int(t) for t in outside.start), days.end_ns]
    pieces = tuple((a, b) for a, b in zip(starts, ends, strict=True) if b > a)
    return pieces if len(pieces) <= MOST_SPANS else ((days.start_ns, days.end_ns),)


def _cells(days: Calendar) -> Cells | None:
    """The calendar in hours, of a job of many months in days."""
    for each_s in (HOUR_S, DAY_S):
        first, last = days.start_ns // (each_s * _S), -(-days.end_ns // (each_s * _S))
        if 0 < last - first <= MOST_CELLS:
            return Cells(start_s=first * each_s, each_s=each_s, of=_by_heading(days, first, last, each_s))
    return None


def _by_heading(days: Calendar, first: int, last: int, each_s: int) -> dict[str, list[int]]:
    """Microseconds by heading and cell."""
    edges = np.arange(first, last + 1, dtype=np.int64) * (each_s * _S)
    told = {name: _in_cells(days.painting.spans(CODE[name]), edges) for name in HEADINGS if name != "outside"}
    return {name: np.rint(ns / 1000).astype(np.int64).tolist() for name, ns in told.items() if ns.any()}


def _in_cells(x: Spans, edges: np.ndarray) -> np.ndarray:
    """Nanoseconds of disjoint, sorted spans between each two neighbouring edges."""
    if not len(x.start):
        return np.zeros(len(edges) - 1, dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(x.end - x.start)))
    at = np.searchsorted(x.start, edges, side="right")
    last = np.maximum(at - 1, 0)
    until = np.where(at > 0, before[last] + np.minimum(edges, x.end[last]) - x.start[last], 0)
    return np.diff(until)
