"""Who hangs whom: which rank did not enter which collective, from what flight recorders left of each rank.

Steps that hung are another matter (`analyzers/time/hangs.py`): here a job stands still, and each rank's dump says what
its host had enqueued and what had completed. No clock is compared and no duration is made of it: numbers of operations
alone tell. `world.py` joins the dumps, `operations.py` the ranks of each operation, `graph.py` follows who waits for
whom to where it ends, and `causes.py` says what an end means.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers.base import Facts
from analyzers.ranks.blocked.causes import (
    IN_FLIGHT,
    KINDS,
    NOT_ENTERED,
    NOT_KNOWN,
    UNSEEN,
    Cause,
    causes,
)
from analyzers.ranks.blocked.graph import ends, orders
from analyzers.ranks.blocked.operations import Late, Operation, late_to_complete, operations
from analyzers.ranks.blocked.world import World, world
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = ()
ACCUSED, UNCOUNTED, SILENT, WAITS, FREE = "named", "unseen", "silent", "waits", "free"
ROLES = {
    ACCUSED: "did not enter what others wait for",
    UNCOUNTED: "has not completed what its peers completed",
    SILENT: "nothing is known of it",
    WAITS: "has operations that had not completed",
    FREE: "has nothing open",
}
RANKS = ("rank", "role", "unfinished", "unseen", "call", "group", "description", "number", "waits_for", "reason")
MISSING, LATE, OPEN, DONE, UNTOLD = "missing", "unseen", "open", "done", "unknown"
PLACES = (
    "group",
    "description",
    "p2p",
    "rank",
    "entered",
    "furthest",
    "behind",
    "unfinished",
    "unseen",
    "missing",
    "state",
)


@dataclass(frozen=True, kw_only=True)
class BlockedResult:
    """`causes`: see `Cause`; empty where nothing is open. `hung`: whether any operation had not completed.

    `ranks`: one row per rank: role (see ROLES), unfinished (operations that it had not completed), unseen (of these,
    those that a peer had), the first of them (call, group, description, number), waits_for (named ranks that its
    waiting may end at), reason (why nothing is known of it).

    `places`: one row per rank of each group in which something is open, collectives and, with `p2p`, sends and
    receives apart: entered (number of the last collective that it entered; null: not known), furthest (the most of any
    rank), behind = furthest - entered; operations that it had not completed (unfinished), of these those that a peer
    had (unseen), and those that others have open and it has not entered (missing); state: missing, unseen, open, done,
    or unknown.

    `timed_out`: open operations of which a watchdog is known to have let go.
    """

    hung: bool
    causes: tuple[Cause, ...]
    ranks: pd.DataFrame
    places: pd.DataFrame
    dumps: int
    unfinished: int
    timed_out: int
    notes: tuple[str, ...] = field(default=())

    @property
    def named(self) -> tuple[int, ...]:
        """Ranks that are accused: of not entering, or of not completing what their peers completed."""
        return tuple(sorted({r for c in self.causes if c.kind in (NOT_ENTERED, UNSEEN) for r in c.ranks}))

    def to_dict(self) -> dict[str, Any]:
        return {
            "hung": self.hung,
            "named": list(self.named),
            "causes": [cause.to_dict() for cause in self.causes],
            "ranks": _records(self.ranks),
            "places": _records(self.places),
            "dumps": self.dumps,
            "unfinished": self.unfinished,
            "timed_out": self.timed_out,
            "notes": list(self.notes),
        }


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = rows.astype(object).where(rows.notna(), None).to_dict("records")  # type: ignore[assignment]
    return told


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> BlockedResult:
    """Who hangs whom. Raises QuestionError where the run has no dump of a flight recorder."""
    if not tables.rows("group_progress"):
        raise QuestionError(
            "this run has no dump of a flight recorder",
            advice="Set TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and ingest the "
            "nccl_trace_rank_<N> files of all ranks together.",
        )
    joined = world(tables)
    late = late_to_complete(joined)
    found = operations(joined, late)
    reached = ends(found, orders(found))
    why = causes(joined, found, reached, late)
    rows = joined.unfinished
    return BlockedResult(
        hung=len(rows) > 0,
        causes=tuple(why),
        ranks=_ranks(joined, late, why),
        places=_places(joined, found, late),
        dumps=len(joined.ranks) - sum(rank in joined.silent for rank in joined.ranks),
        unfinished=len(rows),
        timed_out=int(rows["retired"].fillna(False).astype(bool).sum()),
        notes=_notes(joined, why),
    )


def _ranks(joined: World, late: Late, why: list[Cause]) -> pd.DataFrame:
    rows = joined.unfinished
    counts = Counter(rows["rank"].tolist())
    first = {int(row["rank"]): row for row in rows.drop_duplicates("rank").to_dict("records")}
    accused = {r for cause in why if cause.kind == NOT_ENTERED for r in cause.ranks}
    towards: dict[int, set[int]] = {}
    for cause in why:
        for rank in cause.held if cause.kind == NOT_ENTERED else ():
            towards.setdefault(rank, set()).update(cause.ranks)
    out = []
    for rank in joined.ranks:
        head = first.get(rank)
        group = joined.groups[int(head["place"])] if head is not None and head["place"] >= 0 else None
        out.append(
            {
                "rank": rank,
                "role": _role(rank, accused, late, joined, counts),
                "unfinished": None if rank in joined.silent else counts[rank],
                "unseen": late.ranks.get(rank, 0),
                "call": None if head is None else head["call"] or None,
                "group": group and group.name,
                "description": (group and group.description) or None,
                "number": None if head is None else _number(head),
                "waits_for": sorted(towards.get(rank, set()) - {rank}),
                "reason": joined.silent.get(rank),
            }
        )
    rows = pd.DataFrame(out, columns=list(RANKS), dtype=object)
    rows = rows.where(rows.notna(), None)  # a column without a single text must not turn to NaN
    return rows.astype({"rank": "int64", "unfinished": "Int64", "unseen": "int64", "number": "Int64"})


def _role(rank: int, accused: set[int], late: Late, joined: World, counts: Counter[int]) -> str:
    if rank in accused:
        return ACCUSED
    if rank in late.ranks:
        return UNCOUNTED
    if rank in joined.silent:
        return SILENT
    return WAITS if counts[rank] else FREE


def _number(row: dict[Any, Any]) -> int | None:
    number = int(row["p2p_seq"] if row["p2p"] and row["p2p_seq"] >= 0 else row["seq"])
    return number if number >= 0 else None


def _places(joined: World, found: list[Operation], late: Late) -> pd.DataFrame:
    rows = joined.unfinished
    unseen = rows[late.rows]
    at = _At(
        Counter(zip(rows["place"].tolist(), rows["p2p"].tolist(), rows["rank"].tolist(), strict=True)),
        Counter(zip(unseen["place"].tolist(), unseen["p2p"].tolist(), unseen["rank"].tolist(), strict=True)),
        Counter((one.group, one.p2p, rank) for one in found for rank in one.missing),
    )
    out = []
    for place, p2p in sorted({(one.group, one.p2p) for one in found}):
        group = joined.groups[place]
        entered = {} if p2p else _entered(joined, place)
        furthest = max(entered.values(), default=None)
        for rank in group.ranks:
            key, came = (place, p2p, rank), entered.get(rank)
            known = rank not in joined.silent and (p2p or came is not None or (place, rank) in joined.reached.inferred)
            told = at.open[key], at.unseen[key], at.missing[key], at.state(key, known)
            behind = None if came is None or furthest is None else furthest - came
            out.append((group.name, group.description or None, p2p, rank, came, furthest, behind, *told))
    kinds = {name: "Int64" for name in ("entered", "furthest", "behind")}
    return pd.DataFrame(out, columns=list(PLACES)).astype(kinds)


def _entered(joined: World, place: int) -> dict[int, int]:
    """{rank: number of the last collective that it is known to have entered in a group}."""
    keys = ((place, rank) for rank in joined.groups[place].ranks)
    return {
        key[1]: joined.reached.last[key]
        for key in keys
        if key in joined.reached.last and key not in joined.reached.inferred
    }


@dataclass(frozen=True)
class _At:
    """How many operations of (group, sends and receives or not, rank) are open, unseen, or not entered."""

    open: Counter[tuple[int, bool, int]]
    unseen: Counter[tuple[int, bool, int]]
    missing: Counter[tuple[int, bool, int]]

    def state(self, key: tuple[int, bool, int], known: bool) -> str:
        if self.missing[key]:
            return MISSING
        if self.unseen[key]:
            return LATE
        return OPEN if self.open[key] else DONE if known else UNTOLD


def _notes(joined: World, why: list[Cause]) -> tuple[str, ...]:
    notes = list(joined.notes)
    if joined.silent:
        by_reason: dict[str, list[int]] = {}
        for rank, reason in sorted(joined.silent.items()):
            by_reason.setdefault(reason, []).append(rank)
        notes += [f"{ranks_listed(ranks)}: {reason}." for reason, ranks in by_reason.items()]
    if len(joined.unfinished):
        notes.append(
            "A dump does not say when it was taken. These are taken as written after the job had stopped: of a job "
            "that still ran they show operations on their way, and a rank dumped earlier looks as if it were behind."
        )
    if any(cause.kind == IN_FLIGHT for cause in why):
        notes.append("Where all entered and none completed, the network, a device or a driver is left as the reason.")
    if joined.reached.partial:
        notes.append(
            f"{ranks_listed(sorted(joined.reached.partial))}: the recorder has lost operations that may be open. "
            "TORCH_FR_BUFFER_SIZE is how many it keeps."
        )
    if joined.unclear:
        notes.append(
            "Some operations were launched as one, and no dump tells whether that completed: they are left out."
        )
    return tuple(notes)


def ranks_listed(ranks: list[int] | tuple[int, ...], most: int = 8) -> str:
    """`rank 3`, `ranks 3 and 5`, `ranks 3, 4, 5, and 9 more`."""
    shown = [f"{r:,}" for r in ranks[:most]]
    if len(ranks) > most:
        return f"ranks {', '.join(shown)} and {len(ranks) - most:,} more"
    if len(ranks) == 1:
        return f"rank {shown[0]}"
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}" if shown else "no rank"


__all__ = ["KINDS", "NOT_KNOWN", "OPTIONS", "BlockedResult", "analyze"]
