"""A tree of the model's modules or name scopes, with what the operations of each took."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from runs.scopes import names_of, path_of

# What is summed, in the order of `Node.own`.
MEASURES = (
    "seconds",
    "forward_seconds",
    "backward_seconds",
    "recompute_seconds",
    "at_roof_seconds",
    "wasted_seconds",
    "communication_seconds",
    "unknown_seconds",
    "exposed_communication_seconds",
    "flops",
    "recomputed_flops",
    "counted",  # operations whose FLOPs are known
    "executions",
)
AT = {name: i for i, name in enumerate(MEASURES)}
UNTOLD = "no module told"
MOST_MODULES = 20_000  # that are told apart; models have a few hundred


def path_in(around: str, name: str) -> str:
    """The path of a module of this name in that of another."""
    own = path_of([name]) or "?"
    return f"{around}/{own}" if around else own


@dataclass
class Node:
    """A module. `own`: MEASURES of what is in it and in none of its children; `whole`: with them (`summed`).

    `ops`: (operation, shape) that it executes itself. `copies`: (path, MEASURES) of each of the alike modules that it
    stands for; empty where it is one alone. `told`: whether it is one that the profile names.
    """

    name: str
    path: str
    told: bool = True
    own: np.ndarray = field(default_factory=lambda: np.zeros(len(MEASURES)))
    whole: np.ndarray = field(default_factory=lambda: np.zeros(len(MEASURES)))
    ops: set[tuple[str, str]] = field(default_factory=set)
    children: dict[str, "Node"] = field(default_factory=dict)
    copies: list[tuple[str, np.ndarray]] = field(default_factory=list)

    def child(self, name: str, told: bool = True) -> "Node":
        """Its child of this name, a new one where it is new."""
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = Node(name, path_in(self.path, name), told)
        return found

    def summed(self) -> "Node":
        """Works out `whole`, here and below: exactly its own and those of its children. Paths have few levels."""
        self.whole = self.own.copy()
        for child in self.children.values():
            self.whole += child.summed().whole
        return self

    def walk(self, depth: int = 0) -> Iterator[tuple["Node", int]]:
        """It and all below with their depth, parents before children, of siblings the longest first, what is not told
        last."""
        yield self, depth
        for child in sorted(self.children.values(), key=lambda c: (not c.told, -c.whole[AT["seconds"]])):
            yield from child.walk(depth + 1)


@dataclass(frozen=True)
class Row:
    """Operations of one name and shape in one scope: `scope` None where the profile tells none."""

    scope: str | None
    category: str
    op: str
    shape: str
    measures: np.ndarray


def tree_of(rows: Iterable[Row], levels: int) -> Node:
    """The root of all; what lies deeper than `levels`, or beyond MOST_MODULES in order of the rows, is its parent's own
    there. What has no scope is a branch of its own, apart by category."""
    root, made = Node("", ""), 0
    for row in rows:
        node, names = root, names_of(row.scope or "")[:levels]
        if names[:1] == [UNTOLD]:
            names[0] += ", says the module"
        for name in names:
            if name not in node.children and made >= MOST_MODULES:
                break
            made += name not in node.children
            node = node.child(name)
        if node is root:
            node = root.child(UNTOLD, told=False).child(row.category, told=False)
        node.own += row.measures
        node.ops.add((row.op, row.shape))
    return root.summed()
