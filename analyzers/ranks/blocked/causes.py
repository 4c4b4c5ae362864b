"""What an end of waiting means: who is named, how sure that is, and why."""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from analyzers.ranks.blocked.graph import End
from analyzers.ranks.blocked.operations import SEVERAL, Late, Operation
from analyzers.ranks.blocked.world import World

NOT_ENTERED, UNSEEN, DIFFER, RING, IN_FLIGHT, NOT_KNOWN = (
    "not_entered",
    "completion_unseen",
    "calls_differ",
    "ring",
    "in_flight",
    "not_known",
)
KINDS = {
    NOT_ENTERED: "it did not enter what the others wait for, and waits for nobody itself",
    UNSEEN: "it has not completed what its peers completed with it: its device, its link or its driver stopped",
    DIFFER: "the ranks call different operations under one number",
    RING: "ranks wait for each other in a ring: they enqueued operations in different orders, or one stopped",
    IN_FLIGHT: "all ranks entered it and none completed it: nobody is missing",
    NOT_KNOWN: "whether these ranks entered it is not known",
}
INFERRED, ONE_SIDE = "inferred", "one_side"
DOUBTS = {
    INFERRED: "its dump lists nothing of that group, and what it states of its progress may count sends and receives",
    ONE_SIDE: "a send or receive that one side alone has open may also have completed there unseen",
}
SHOWN, LIKELY, UNKNOWN = "shown", "likely", "unknown"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why something hangs.

    kind        see KINDS
    ranks       those it names, rising: an accusation for NOT_ENTERED, UNSEEN and, where one calls otherwise, DIFFER;
                else those concerned
    sure        shown: the dumps say so; likely: it follows from what they do not list, or another reading is possible;
                unknown: nobody is accused
    group, description, group_ranks, call, number   the first operation concerned
    waiting     ranks that have that operation open
    held        ranks all of whose waiting may end here, with those
    operations  operations concerned
    unseen      of a rank that is named: operations that peers completed and it did not
    doubt       why it is likely only, see DOUBTS; "" where it is shown
    frame       line of the program that called the operation, where it was recorded
    """

    kind: str
    ranks: tuple[int, ...]
    sure: str
    group: str
    description: str
    group_ranks: tuple[int, ...]
    call: str
    number: int | None
    waiting: tuple[int, ...]
    held: tuple[int, ...]
    operations: int
    unseen: int = 0
    doubt: str = ""
    frame: str = ""
    differs: str = ""

    @property
    def label(self) -> str:
        return self.description or self.group

    def to_dict(self) -> dict[str, Any]:
        told = asdict(self)
        lists = {name: list(told[name]) for name in ("ranks", "group_ranks", "waiting", "held")}
        texts = {name: told[name] or None for name in ("group", "description", "call", "doubt", "frame", "differs")}
        return {**told, **lists, **texts}


def causes(world: World, found: list[Operation], ends: list[End], late: Late) -> list[Cause]:
    """What hangs and why: who is named first, then by how many are held up."""
    lacking = _lacking(found)
    made = [cause for end in ends if (cause := _of_end(world, found, lacking, end, late)) is not None]
    named = {rank for cause in made if cause.kind == NOT_ENTERED for rank in cause.ranks}
    made = [cause for cause in made if cause.kind != NOT_KNOWN or not cause.ranks or not {*cause.ranks} <= named]
    made += [_unseen(world, rank, count, late) for rank, count in late.ranks.items() if rank not in named]
    order = [NOT_ENTERED, UNSEEN, DIFFER, RING, NOT_KNOWN, IN_FLIGHT]
    return sorted(_together(made), key=lambda c: (order.index(c.kind), -len(c.held), c.ranks, c.number or 0))


def _lacking(found: list[Operation]) -> dict[int, list[Operation]]:
    """{rank: operations that it has not entered}: of thousands of ranks none looks through them all."""
    lacking: dict[int, list[Operation]] = defaultdict(list)
    for one in found:
        for rank in () if one.differs else one.missing:
            lacking[rank].append(one)
    return lacking


def _of_end(
    world: World, found: list[Operation], lacking: dict[int, list[Operation]], end: End, late: Late
) -> Cause | None:
    if end.ring:
        return _ring(world, found, end)
    if end.ranks:
        return _not_entered(world, lacking[end.ranks[0]], end, end.ranks[0], late)
    one = found[end.operations[0]]
    concerned = {*world.groups[one.group].ranks} if not one.p2p else {*one.rows, *_peers(world, one)}
    unknown = tuple(sorted((*one.unknown, *one.untold)))
    if not one.differs and not unknown and concerned & {*late.ranks}:
        return None  # told with the rank whose completions are unseen
    if one.differs:
        ranks, sure = _odd_one(world, one)
        return _cause(world, DIFFER, ranks, sure, one, end, 1)
    if unknown:
        return _cause(world, NOT_KNOWN, unknown, UNKNOWN, one, end, 1)
    return _cause(world, IN_FLIGHT, tuple(sorted(one.rows)), UNKNOWN, one, end, 1)


def _peers(world: World, one: Operation) -> set[int]:
    return {*world.unfinished["peer"].loc[[*one.rows.values()]].astype(int).tolist()}


def _ring(world: World, found: list[Operation], end: End) -> Cause:
    """Ranks in a ring. Where one alone has not entered something, it may have stopped, or wait for its own turn."""
    mine = [found[n] for n in end.operations]
    first = min(mine, key=lambda one: (not one.missing, min(one.rows.values())))
    within = {*end.ranks} if len(end.ranks) > 1 else {*end.ranks, *(rank for one in mine for rank in one.rows)}
    return _cause(world, RING, tuple(sorted(within)), UNKNOWN, first, end, len(mine))


def _not_entered(world: World, lacking: list[Operation], end: End, rank: int, late: Late) -> Cause:
    waiting = Counter(one.group for one in lacking)
    first = min(lacking, key=lambda one: (one.p2p, -len(one.rows), -waiting[one.group], one.number))
    unseen = late.ranks.get(rank, 0)
    if rank in world.silent or rank in world.reached.partial:
        return _cause(world, NOT_KNOWN, (rank,), UNKNOWN, first, end, len(lacking), unseen)
    doubt = _doubt(rank, lacking)
    if doubt == ONE_SIDE and len({other for one in lacking for other in one.rows}) < SEVERAL:
        return _cause(
            world, NOT_KNOWN, (rank,), UNKNOWN, first, end, len(lacking), unseen, doubt
        )  # or the other's fault
    return _cause(world, NOT_ENTERED, (rank,), LIKELY if doubt else SHOWN, first, end, len(lacking), unseen, doubt)


def _doubt(rank: int, lacking: list[Operation]) -> str:
    """Why it is not certain that the rank has not entered any of these; "" where it is."""
    collectives = [one for one in lacking if not one.p2p]
    if not collectives:
        return ONE_SIDE
    return "" if any(rank not in one.inferred for one in collectives) else INFERRED


def _odd_one(world: World, one: Operation) -> tuple[tuple[int, ...], str]:
    """The rank that calls otherwise than all others do, where there are two others at least; else all of them."""
    listed = world.listed
    rows = listed[(listed["place"] == one.group) & (listed["seq"] == one.number)]
    calls = {int(r): (k, d, b) for r, k, d, b in rows[["rank", "kind", "dtype", "bytes"]].astype(object).to_numpy()}
    if one.differs != "size":
        calls = {rank: call[:2] for rank, call in calls.items()}
    counted = Counter(map(str, calls.values()))
    odd = [rank for rank, call in calls.items() if counted[str(call)] == 1]
    alone = len(counted) == 2 and len(odd) == 1 and len(calls) > 2
    return (tuple(odd), LIKELY) if alone else (tuple(sorted(calls)), UNKNOWN)


def _unseen(world: World, rank: int, count: int, late: Late) -> Cause:
    rows = world.unfinished[late.rows]
    first = rows[rows["rank"] == rank].iloc[0]
    group = world.groups[int(first["place"])]
    return Cause(
        kind=UNSEEN,
        ranks=(rank,),
        sure=LIKELY,
        group=group.name,
        description=group.description,
        group_ranks=group.ranks,
        call=str(first["call"]),
        number=int(first["seq"]),
        waiting=(rank,),
        held=(),
        operations=count,
        unseen=count,
        doubt="",
        frame=str(first["frame"]),
    )


def _cause(
    world: World,
    kind: str,
    ranks: tuple[int, ...],
    sure: str,
    one: Operation,
    end: End,
    count: int,
    unseen: int = 0,
    doubt: str = "",
) -> Cause:
    group, row = world.groups[one.group], world.unfinished.loc[min(one.rows.values())]
    return Cause(
        kind=kind,
        ranks=tuple(rank for rank in ranks if rank >= 0),
        sure=sure,
        group=group.name,
        description=group.description,
        group_ranks=group.ranks,
        call=str(row["call"]),
        number=one.number,
        waiting=tuple(sorted(one.rows)),
        held=end.held,
        operations=count,
        unseen=unseen,
        doubt=doubt,
        frame=str(row["frame"]),
        differs=one.differs,
    )


def _together(made: list[Cause]) -> list[Cause]:
    """Ends at ranks of which nothing is known, and operations in flight, of one group's ranks as one cause each."""
    merged: dict[tuple[Any, ...], Cause] = {}
    for n, cause in enumerate(made):
        key = (cause.kind, cause.ranks) if cause.kind in (NOT_KNOWN, IN_FLIGHT) else (n,)
        if (before := merged.get(key)) is None:
            merged[key] = cause
            continue
        told = {**before.__dict__, "operations": before.operations + cause.operations}
        merged[key] = Cause(**{**told, "held": tuple(sorted({*before.held, *cause.held}))})
    return list(merged.values())
