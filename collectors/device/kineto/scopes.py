"""Chains of modules as paths: where in the model the operations of devices belong, and in which pass."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from collectors.device.kineto.kinds import is_module, module_of, pass_of
from collectors.device.kineto.nesting import AGAIN, GRADIENT, Chains
from collectors.device.kineto.texts import Texts
from runs.scopes import path_of

_PASSES = 4  # a number of a scope holds its chain and its pass


def coded(chain: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Numbers of scopes: a chain (-1: none) and a pass of `nesting`."""
    return (chain.astype(np.int64) + 1) * _PASSES + direction


class Scope(NamedTuple):
    """`path`, `direction`: as in `ops`; `module`: the innermost of its modules."""

    path: str | None
    direction: str | None
    module: str | None


class Scopes:
    """Scopes by number.

    A chain that begins with a module of PyTorch which elsewhere, and only in one place, lies within others is taken to
    lie there: what a checkpoint computes again is called by the engine, not by the modules around. Each module has a
    name of its own in a trace.
    """

    def __init__(self, texts: Texts, chains: Chains, used: np.ndarray) -> None:
        self._texts = texts
        self._around, self._name = chains.known[:, 0], chains.known[:, 1]
        self._known: dict[int, Scope] = {}
        self._inner = self._places(used)

    def _places(self, used: np.ndarray) -> dict[int, set[int]]:
        """By the name of each module within others: the chains around it, of all chains in use."""
        found: dict[int, set[int]] = {}
        met: set[int] = set()
        for chain in np.unique(used // _PASSES - 1).tolist():
            while chain >= 0 and chain not in met:
                met.add(chain)
                if (around := int(self._around[chain])) >= 0:
                    found.setdefault(int(self._name[chain]), set()).add(around)
                chain = around
        return found

    def of(self, number: int) -> Scope:
        if number not in self._known:
            chain, direction = divmod(number, _PASSES)
            self._known[number] = self._scope(chain - 1, direction)
        return self._known[number]

    def _scope(self, chain: int, direction: int) -> Scope:
        names = [self._texts[name] for name in self._names(chain)]
        modules = any(is_module(name) for name in names)
        told = {GRADIENT: "backward", AGAIN: "recompute"}.get(direction)
        if told is None:
            said = next((p for p in map(pass_of, reversed(names)) if p), None)
            told = said or ("forward" if modules else None)
        last = names[-1] if names and not names[-1].startswith("Optimizer.") else None
        return Scope(path_of(map(module_of, names)), told, None if last is None else module_of(last))

    def _names(self, chain: int) -> list[int]:
        """Numbers of the names of a chain, outermost first."""
        inner_first = list(self._walk(chain))
        if inner_first and (places := self._inner.get(inner_first[-1])) and len(places) == 1:
            (around,) = places
            if is_module(self._texts[inner_first[-1]]):
                inner_first += self._walk(around)
        return inner_first[::-1]

    def _walk(self, chain: int) -> Iterator[int]:
        while chain >= 0:
            yield int(self._name[chain])
            chain = int(self._around[chain])
