"""Which operation of one program is which of another: by what they are, from the surest to the likeliest.

Names and numbers are of no account: a compiler gives them anew. In each round operations with the same key are matched
in the order of their programs; what is matched in a round is out of those that follow. Where fusions hold other things
than before, those with most of their parts in common are matched, by FLOPs and bytes; one that was taken up by another,
or came out of one, goes with it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from analyzers.program.sides import Side

Key = Callable[[Side, int], Hashable]


def _exact(s: Side, i: int) -> Hashable:
    return s.scope_of(i), s.deep[i], s.of["op_name"][i]


def _alike(s: Side, i: int) -> Hashable:
    return s.scope_of(i), s.own[i], s.of["op_name"][i]


def _laid_out(s: Side, i: int) -> Hashable:
    return s.scope_of(i), s.of["opcode"][i], s.of["op_name"][i], s.of["shape"][i]


def _shaped(s: Side, i: int) -> Hashable:
    return s.scope_of(i), s.of["opcode"][i], s.of["op_name"][i], s.bare[i]


def _named(s: Side, i: int) -> Hashable:
    return s.scope_of(i), s.of["category"][i], s.of["op_name"][i]


def _somewhere(s: Side, i: int) -> Hashable:
    return s.of["category"][i], s.of["op_name"][i]


def _nameless(s: Side, i: int) -> Hashable:
    return s.of["opcode"][i], s.bare[i]


ROUNDS: tuple[Key, ...] = (_exact, _alike, _laid_out, _shaped)
LEAVES: tuple[Key, ...] = (_shaped, _named, _somewhere)
LAST: tuple[Key, ...] = (_named, _somewhere, _nameless)


def matched(a: Side, b: Side) -> tuple[dict[int, int], dict[int, int]]:
    """(operation of A: its match in B, operation of B: its match in A) over what devices execute.

    Mostly each is the other's; several have one match where they were fused into it, or came out of it.
    """
    forth: dict[int, int] = {}
    for key in ROUNDS:
        forth |= _paired(a, b, _left(a.units, forth), _left(b.units, forth.values()), key)
    for key in LEAVES:
        forth |= _by_leaves(a, b, forth, key)
    for key in LAST:
        forth |= _paired(a, b, _named_ones(a, forth, key), _named_ones(b, forth.values(), key), key)
    back = {n: m for m, n in forth.items()}
    return {**_parts_of(a, b, forth), **_taken_up(a, b, forth), **forth}, {
        **_parts_of(b, a, back),
        **_taken_up(b, a, back),
        **back,
    }


def _left(units: Sequence[int], done: Iterable[int]) -> list[int]:
    gone = set(done)
    return [u for u in units if u not in gone]


def _named_ones(s: Side, done: Iterable[int], key: Key) -> list[int]:
    """Those left that a key tells apart: without a name it would match anything with anything."""
    return [u for u in _left(s.units, done) if key is _nameless or s.of["op_name"][u]]


def _paired(a: Side, b: Side, of_a: Sequence[int], of_b: Sequence[int], key: Key) -> dict[int, int]:
    """Those with the same key, in order; of several the n-th with the n-th."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for n in reversed(of_b):
        waiting[key(b, n)].append(n)
    return {m: found.pop() for m in of_a if (found := waiting.get(key(a, m)))}


def _by_leaves(a: Side, b: Side, forth: dict[int, int], key: Key) -> dict[int, int]:
    """Operations that share most of what they are made of, the largest share first."""
    votes = _votes(a, b, _left(a.units, forth), _left(b.units, forth.values()), key)
    found: dict[int, int] = {}
    taken: set[int] = set()
    for (m, n), _ in sorted(votes.items(), key=lambda v: (-v[1], v[0])):
        if m not in found and n not in taken:
            found[m] = n
            taken.add(n)
    return found


def _votes(a: Side, b: Side, of_a: Sequence[int], of_b: Sequence[int], key: Key) -> Counter[tuple[int, int]]:
    """How much two operations have in common: FLOPs and bytes of results of their leaves that match; among those
    alike, the one that makes the result."""
    home_a = {leaf: u for u in of_a for leaf in a.leaves[u] if a.of["op_name"][leaf]}
    home_b = {leaf: u for u in of_b for leaf in b.leaves[u] if b.of["op_name"][leaf]}
    votes: Counter[tuple[int, int]] = Counter()
    for leaf, other in _paired(a, b, sorted(home_a), sorted(home_b), key).items():
        ends = _gives(a, leaf, home_a) and _gives(b, other, home_b)
        votes[home_a[leaf], home_b[other]] += _weight(a, leaf) + ends
    return votes


def _gives(s: Side, leaf: int, home: dict[int, int]) -> bool:
    """Whether a leaf makes the result of the operation that it is in."""
    return home[leaf] == leaf or bool(s.of["root"][leaf])


def _weight(s: Side, leaf: int) -> int:
    return 1 + int(s.total(leaf, "flops")) + int(s.of["result_bytes"][leaf] or 0) * int(s.of["count"][leaf] or 1)


def _taken_up(a: Side, b: Side, forth: dict[int, int]) -> dict[int, int]:
    """Operations of A left over whose leaves are in an operation of B that is matched already."""
    left = _left(a.units, forth)
    found: dict[int, int] = {}
    for key in LEAVES[:2]:
        of_a = [u for u in left if u not in found]
        best: dict[int, tuple[int, int]] = {}
        for (m, n), votes in _votes(a, b, of_a, b.units, key).items():
            if votes > best.get(m, (0, 0))[0]:
                best[m] = (votes, n)
        found |= {m: n for m, (_, n) in best.items()}
    return found


def _parts_of(a: Side, b: Side, forth: dict[int, int]) -> dict[int, int]:
    """Products of A left over of which B has the same product of the model, matched already: a compiler cut it into
    several, or joined several to one. The largest of B's stands for all."""
    of_b: dict[Hashable, int] = {}
    for n in forth.values():
        if b.total(n, "flops") and b.of["op_name"][n]:
            name = b.of["op_name"][n]
            if name not in of_b or b.total(n, "flops") > b.total(of_b[name], "flops"):
                of_b[name] = n
    left = (u for u in _left(a.units, forth) if a.total(u, "flops"))
    return {u: of_b[a.of["op_name"][u]] for u in left if a.of["op_name"][u] in of_b}
