"""Operations that had not completed, joined over ranks: who is in each, who is missing, and which rank comes before.

A collective is one by its group and number. Sends and receives between two ranks follow one another, so that the first
that is open on one side meets the first that is open on the other; where one side has more, the other has not entered
the rest.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analyzers.ranks.blocked.world import SYNCHRONISING, World, plain

EQUAL_BYTES = ("all-reduce", "reduce-scatter", "broadcast", "reduce")  # their inputs are as large on every rank
EVEN_CALLS = (
    "_all_gather_base",
    "_allgather_base",
    "all_gather_into_tensor",
    "all_gather_into_tensor_coalesced",
)  # all-gathers of which that holds too
SEVERAL = 2  # ranks in an operation: as many cannot all be late to notice that it completed


@dataclass
class Operation:
    """One operation that some rank had not completed.

    group     position in `World.groups`
    number    among the group's collectives; of a send or receive: of the rank that waits
    rows      {rank: row of `World.unfinished`} of the ranks in it that had not completed it
    missing   ranks that have not entered it
    inferred  of these, those of which no number tells it
    unknown   ranks of which it is not known whether they entered it, but for
    untold    ranks of which nothing tells how far they came: one tuple for all operations of the group
    differs   how the ranks' calls differ; "" where they agree
    """

    group: int
    number: int
    p2p: bool
    rows: dict[int, int]
    missing: list[int] = field(default_factory=list)
    inferred: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    untold: tuple[int, ...] = ()
    differs: str = ""


@dataclass(frozen=True)
class Late:
    """Operations that a rank had not completed although a peer had, which needs every rank: what it tells of its
    device is not so. `rows`: positions in `World.unfinished`; `ranks`: {rank: how many}."""

    rows: np.ndarray
    ranks: dict[int, int]


def late_to_complete(world: World) -> Late:
    """See `Late`."""
    rows = world.unfinished
    most = _completed(world)
    open_ = ~rows["p2p"] & (rows["seq"] >= 0) & (rows["place"] >= 0)
    proof = open_ & (rows["seq"] <= rows["place"].map(most).fillna(-1)) & rows["kind"].isin(SYNCHRONISING)
    # Where most of a group have it open, it is the one that says otherwise which is odd.
    size = rows["place"].map(dict(enumerate(len(group.ranks) for group in world.groups))).fillna(0)
    proof &= 2 * rows["rank"].where(proof).groupby([rows["place"], rows["seq"]]).transform("nunique") <= size
    # Those before it in the group are done too, of whatever kind: a device takes them in order.
    upto = rows["seq"].where(proof, -1).groupby([rows["place"], rows["rank"]]).transform("max")
    late = open_ & (rows["seq"] <= upto)
    counts = Counter(rows.loc[late, "rank"].tolist())
    return Late(late.to_numpy(dtype=bool), dict(sorted(counts.items())))


def _completed(world: World) -> dict[int, int]:
    """{group: number of the last collective that some rank completed there}: those of one group complete in order."""
    most: dict[int, int] = {}
    for key, number in world.reached.completed.items():
        if key[1] not in world.silent and key not in world.unclear:
            most[key[0]] = max(most.get(key[0], -1), number)
    return most


def operations(world: World, late: Late) -> list[Operation]:
    """All of them, without the rows that are late to complete, and without the sends and receives of late ranks."""
    rows = world.unfinished
    stale = late.rows | (rows["p2p"].to_numpy() & rows["rank"].isin(late.ranks).to_numpy())
    known = rows[(rows["place"] >= 0)]
    return [
        *_collectives(world, known[~known["p2p"] & (known["seq"] >= 0) & ~stale[known.index]], late),
        *_pairs(world, known[known["p2p"] & (known["peer"] >= 0)], late),
    ]


def _collectives(world: World, rows: pd.DataFrame, late: Late) -> Iterator[Operation]:
    differing, done = _differing(world, rows), _completed(world)
    members = {place: _Members(world, place) for place in rows["place"].unique().tolist()}
    for (place, number), entered in _by_number(rows).items():
        found = Operation(place, number, False, entered, differs=differing.get((place, number), ""))
        members[place].put(found, len({*entered} - {*late.ranks}), done.get(place, -1))
        if not world.groups[place].told:
            found.unknown.append(-1)
        yield found


def _by_number(rows: pd.DataFrame) -> dict[tuple[int, int], dict[int, int]]:
    """{(group, number): {rank: its row}}, in this order."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    rows = rows.sort_values(["place", "seq", "rank"], kind="stable")
    columns = (rows[name].tolist() for name in ("place", "seq", "rank"))
    for place, number, rank, row in zip(*columns, rows.index.tolist(), strict=True):
        found.setdefault((place, number), {})[rank] = row
    return found


class _Members:
    """The ranks of a group and how far they came, as columns: both ranks and operations may be many thousands.

    What a rank states may count sends and receives. Where several have an operation open that it says to have passed,
    or of which it lists nothing, it has not entered it: it cannot have completed without them.
    """

    def __init__(self, world: World, place: int):
        last = world.reached.last
        self.untold = tuple(rank for rank in world.groups[place].ranks if (place, rank) not in last)
        ranks = [rank for rank in world.groups[place].ranks if (place, rank) in last]
        self.ranks = np.array(ranks, dtype=np.int64)
        self.last = np.array([last[place, rank] for rank in ranks], dtype=np.int64)
        self.stated, self.inferred, self.unclear = (
            np.array([(place, rank) in keys for rank in ranks], dtype=bool)
            for keys in (world.reached.stated, world.reached.inferred, world.unclear)
        )

    def put(self, found: Operation, others: int, done: int) -> None:
        """The ranks that have the operation not open: they have not entered it, they have completed it, or nobody
        knows. `others`: how many have it open whose completions can be seen. `done`: the last that some rank completed
        in the group."""
        behind = self.last < found.number
        # One that says that it has passed it, or numbers sends and receives: all entered `done`.
        unknown = self.unclear | (self.stated & ~(behind & (self.last >= done)))
        inferred = self.inferred & ~unknown
        if others < SEVERAL:
            unknown, inferred = unknown | inferred, np.zeros_like(inferred)
        missing = (behind | inferred) & ~unknown
        away = ~np.isin(self.ranks, [*found.rows])
        found.missing, found.inferred, found.unknown = (
            self.ranks[away & which].tolist() for which in (missing, inferred, unknown)
        )
        found.untold = self.untold


def _pairs(world: World, rows: pd.DataFrame, late: Late) -> Iterator[Operation]:
    """Sends with the receives at the other end."""
    sides: dict[tuple[int, int, int], dict[str, list[int]]] = defaultdict(lambda: {"send": [], "recv": []})
    columns = (rows[name].tolist() for name in ("place", "rank", "peer", "kind"))
    for index, place, rank, peer, kind in zip(rows.index.tolist(), *columns, strict=True):
        if kind in ("send", "recv"):
            sides[(place, *((rank, peer) if kind == "send" else (peer, rank)))][kind].append(index)
    for (place, sender, receiver), side in sides.items():
        both = min(len(side["send"]), len(side["recv"]))
        for kind, rank, peer in (("send", sender, receiver), ("recv", receiver, sender)):
            for nth, index in enumerate(side[kind]):
                if rank in late.ranks or (nth < both and kind == "recv" and peer not in late.ranks):
                    continue
                yield _met(world, place, rank, peer, index, nth, side, kind, late)


def _met(
    world: World, place: int, rank: int, peer: int, index: int, nth: int, side: dict, kind: str, late: Late
) -> Operation:
    """One send or receive, with what meets it at the other end."""
    other = side["recv" if kind == "send" else "send"]
    found = Operation(place, int(world.unfinished["p2p_seq"].to_numpy()[index]), True, {rank: index})
    if nth < len(other):
        found.rows |= {peer: other[nth]} if peer not in late.ranks else {}
    elif peer in world.silent or (place, peer) in world.unclear:
        found.unknown.append(peer)
    else:
        found.missing.append(peer)
    return found


def _differing(world: World, rows: pd.DataFrame) -> dict[tuple[int, int], str]:
    """How the calls of one number differ between ranks: of each group the first such number, of which the others may
    be consequences."""
    listed = world.listed[world.listed["place"] >= 0]
    open_ = pd.MultiIndex.from_frame(rows[["place", "seq"]].drop_duplicates())
    listed = plain(listed[pd.MultiIndex.from_frame(listed[["place", "seq"]]).isin(open_)])
    # Of operations that were launched as one, each rank has several under the number: which meets which is not told.
    alone = ~listed.duplicated(["place", "seq", "rank"], keep=False)
    listed = listed[alone.groupby([listed["place"], listed["seq"]]).transform("all")]
    found: dict[tuple[int, int], str] = {}
    even = listed["kind"].isin(EQUAL_BYTES) | listed["call"].isin(EVEN_CALLS)
    sized = listed["bytes"].astype("Float64").where(even)
    told = {
        "kind": listed["kind"].where(listed["kind"] != ""),
        "element type": listed["dtype"].where((listed["dtype"] != "") & (listed["kind"] != "barrier")),
        "size": sized,
    }
    keys = [listed["place"], listed["seq"]]
    first: dict[int, int] = {}
    for words, values in told.items():
        counts = values.groupby(keys).nunique()
        for place, number in counts[counts > 1].index:
            key = int(place), int(number)
            if number < first.get(int(place), number + 1):
                found = {k: v for k, v in found.items() if k[0] != place}
                first[int(place)] = int(number)
            if first[int(place)] == number:
                found.setdefault(key, words)
    return found
