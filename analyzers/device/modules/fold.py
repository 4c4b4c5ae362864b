"""Modules that repeat, such as the layers of a transformer, folded into one that stands for all of them.

Siblings are copies of one another where their names differ in a number at the end, they are layers (they hold modules,
or several kinds of operations), and at least half of what they execute is the same. So `Block_0` to `Block_11` are
one, two `Linear`s in a block are two.
"""

import re
from collections.abc import Callable, Iterable
from statistics import median

import numpy as np

from analyzers.device.modules.tree import AT, Node, path_in

KINDS_OF_A_LAYER = 4  # of operations, that a module without modules in it has at least to be a layer
LEAST_LEAVES = 3  # of such layers; two normalisations of a block are not one that repeats
ALIKE = 0.5  # of what two execute together, what both do
MOST_GROUPS = 16  # of copies among siblings of one name: what is like none of these stays alone
SLOW, OF_ALL, COPIES = 1.2, 0.005, 3  # a slowest copy is named from so many times the median, that part of all time
_NUMBERED = re.compile(r"^(.*?)(\d{1,9})$", re.DOTALL)
Part = tuple[str, ...]


def folded(node: Node) -> Node:
    """The tree with copies folded, from the innermost out; `whole` is kept."""
    return _placed(_folded(node), "")


def _folded(node: Node) -> Node:
    made = Node(node.name, node.path, node.told, node.own, node.whole, node.ops)
    children = [_folded(child) for child in node.children.values()] if node.told else list(node.children.values())
    for group in _groups(children):
        child = _one(group) if len(group) > 1 else group[0]
        while child.name in made.children or (len(group) > 1 and child.name in node.children):
            child.name += "'"  # a module may be called what copies are called together
        made.children[child.name] = child
    return made


def _placed(node: Node, path: str) -> Node:
    """The tree with paths by the names that its modules have now."""
    node.path = path
    for child in node.children.values():
        _placed(child, path_in(path, child.name))
    return node


def _groups(children: list[Node]) -> list[list[Node]]:
    """Copies together, in order of their numbers; what has none stays alone."""
    groups: dict[str, list[tuple[set[Part], list[Node]]]] = {}
    alone: list[list[Node]] = []
    for child in sorted(children, key=lambda c: _number(c.name)):
        match = _NUMBERED.match(child.name)
        if not match or not _layer(child):
            alone.append([child])
            continue
        mine, known = _parts(child), groups.setdefault(match[1], [])
        like = next((nodes for parts, nodes in known if _alike(parts, mine)), None)
        if like is not None:
            like.append(child)
        elif len(known) < MOST_GROUPS:
            known.append((mine, [child]))
        else:
            alone.append([child])
    found = [nodes for known in groups.values() for _, nodes in known]
    few = [[n] for nodes in found if not _enough(nodes) for n in nodes]
    return [nodes for nodes in found if _enough(nodes)] + few + alone


def _enough(copies: list[Node]) -> bool:
    return len(copies) >= (2 if copies[0].children else LEAST_LEAVES)


def _number(name: str) -> int:
    match = _NUMBERED.match(name)
    return int(match[2]) if match else -1


def _layer(node: Node) -> bool:
    return node.told and (bool(node.children) or len({op for op, _ in node.ops}) >= KINDS_OF_A_LAYER)


def _parts(node: Node) -> set[Part]:
    """What a module executes: by operation and shape, where it holds modules by operation and the kind of module."""
    return {(op,) for op in _kinds(node)} if node.children else node.ops  # type: ignore[return-value]


def _kinds(node: Node, within: str = "") -> Iterable[str]:
    yield from (f"{within}/{op}" for op, _ in node.ops)
    for child in node.children.values():
        yield from _kinds(child, f"{within}/{_stem(child.name)}")


def _unfolded(name: str) -> str | None:
    """What copies are called together, without what tells of their numbers; None for a name that is of no copies."""
    if not name.endswith("]"):
        return None
    begin = name.find("[", name.rfind("]", 0, -1) + 1)
    return name[:begin] if begin >= 0 else None


def _stem(name: str) -> str:
    stem = _unfolded(name)
    if stem is None and (match := _NUMBERED.match(name)):
        return match[1]
    return name if stem is None else stem


def _alike(a: set[Part], b: set[Part]) -> bool:
    return len(a & b) >= ALIKE * len(a | b)


def _one(copies: list[Node]) -> Node:
    """The module that stands for copies, named by their numbers: `Block_[0-11]`."""
    numbers = [_number(c.name) for c in copies]
    low, high, n = min(numbers), max(numbers), len(numbers)
    said = f"{low}-{high}" if high - low == n - 1 else f"{n} of {low}-{high}"
    return _merged(f"{_stem(copies[0].name)}[{said}]", copies)


def _merged(name: str, copies: list[Node]) -> Node:
    made = Node(name, "", True, _sum(c.own for c in copies), _sum(c.whole for c in copies))
    made.ops = set().union(*(c.ops for c in copies))
    made.copies = [each for c in copies for each in (c.copies or [(c.path, c.whole)])]
    for called, nodes in _aligned(copies).items():
        made.children[called] = _merged(called, nodes)
    return made


def _sum(vectors: Iterable[np.ndarray]) -> np.ndarray:
    return np.sum(list(vectors), axis=0)


def _aligned(copies: list[Node]) -> dict[str, list[Node]]:
    """The children of copies by what they are called in all of them: by name where names are the same, else by kind and
    place among their like, such as `Linear_*#2`."""
    same = {frozenset(c.children) for c in copies}
    name_of: Callable[[Node], dict[str, str]] = _by_place if len(same) > 1 else lambda c: {n: n for n in c.children}
    found: dict[str, list[Node]] = {}
    for copy in copies:
        for own, called in name_of(copy).items():
            found.setdefault(called, []).append(copy.children[own])
    return found


def _by_place(node: Node) -> dict[str, str]:
    like: dict[str, list[str]] = {}
    for name in sorted(node.children, key=_number):
        mark = "[*]" if _unfolded(name) is not None else "*" if _NUMBERED.match(name) else ""
        like.setdefault(_stem(name) + mark, []).append(name)
    return {
        name: called if len(names) == 1 else f"{called}#{i + 1}"
        for called, names in like.items()
        for i, name in enumerate(names)
    }


def spread(node: Node, total: float) -> tuple[float, float, float, str | None] | None:
    """(least, median, longest) seconds of a copy and the path of the slowest, which is None where none stands out: of
    few copies, of alike ones, and where its excess is nothing beside `total`. None for a module that is one alone."""
    if not node.copies:
        return None
    seconds = [float(whole[AT["seconds"]]) for _, whole in node.copies]
    middle, longest = median(seconds), max(seconds)
    out = len(seconds) >= COPIES and longest >= SLOW * middle and longest - middle >= OF_ALL * total
    return min(seconds), middle, longest, node.copies[seconds.index(longest)][0] if out else None
