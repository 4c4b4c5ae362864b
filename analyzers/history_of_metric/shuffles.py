"""How often the same values, shuffled, show as much of another change: what a t by their scatter cannot tell where some
runs are odd. A neighbour slows one night in five down by a tenth: three such nights in a row are no new level, and
among two hundred nights they are no rarity.

    rest      values less the medians of the levels that are told, a value further than CLIP deviations off counted as
              if it lay there: what an odd run weighs depends on no neighbour, so that its place is all that is shuffled
    change    one more: the most that a cut leaves of squared deviations within a level that is told; two more: the most
              that a stretch leaves that is another than what lies beside it

Shuffling takes runs as independent: how much neighbours hang together the t of a change takes off, which is asked too.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW, LEAST, MOST, CELLS = 199, 999, 4_999, 1_000_000  # shuffles; fewer of very many runs, so that none waits long
LIKELY = 0.03  # a change that few shuffles show to be as likely as this is none: no more are made
LONGER = 1.25  # by which the lengths of stretches grow that are looked at
CLIP, ROBUST = 3.0, 1.4826


def chance_of_order(values: Floats, cuts: Sequence[int], more: int, *, shortest: int, noise: float) -> float:
    """How likely values in another order show as much of `more` changes (one, or two that set a stretch apart) beside
    those at `cuts`. The same for the same values; O(n log n) for each shuffle."""
    bounds = [0, *cuts, len(values)]
    rest = _rest(values, bounds, noise)
    shown, order = _most(rest[None, :], bounds, more, shortest) * (1 - 1e-9), np.random.default_rng(0)
    chance = 1.0
    for times in (FEW, int(np.clip(CELLS // len(rest), LEAST, MOST))):
        shuffled = order.permuted(np.broadcast_to(rest, (times, len(rest))), axis=1)
        chance = float(1 + (_most(shuffled, bounds, more, shortest) >= shown).sum()) / (times + 1)
        if chance >= LIKELY:
            break
    return chance


def _rest(values: Floats, bounds: Sequence[int], noise: float) -> Floats:
    levels = [float(np.median(values[a:b])) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    rest = values - np.repeat(levels, np.diff(bounds))
    apart = min(float(np.median(np.abs(rest))), float(np.median(np.abs(np.diff(rest)))) / math.sqrt(2))
    reach = CLIP * max(ROBUST * apart, noise)
    return np.clip(rest, -reach, reach)


def _most(rows: Floats, bounds: Sequence[int], more: int, shortest: int) -> Floats:
    """Of each row, by how much its squared deviations fall at most."""
    most = np.zeros(len(rows))
    for a, b in zip(bounds[:-1], bounds[1:], strict=True):
        if b - a >= 2 * shortest:
            part = rows[:, a:b] - rows[:, a:b].mean(axis=1, keepdims=True)
            summed = np.concatenate((np.zeros((len(rows), 1)), np.cumsum(part, axis=1)), axis=1)
            for apart, size in _cut(summed, shortest) if more == 1 else _stretches(summed, shortest):
                gain = apart * apart * (1 / size + 1 / (b - a - size))
                most = np.maximum(most, gain.max(axis=1))
    return most


def _cut(summed: Floats, shortest: int) -> Iterator[tuple[Floats, Floats]]:
    """(sums, sizes) of all first parts."""
    size = np.arange(shortest, summed.shape[1] - shortest)
    yield summed[:, size], size.astype(np.float64)


def _stretches(summed: Floats, shortest: int) -> Iterator[tuple[Floats, Floats]]:
    """(sums, sizes) of all stretches of some lengths."""
    size = shortest
    while size < summed.shape[1] - shortest:
        yield summed[:, size:] - summed[:, :-size], np.array([size], dtype=np.float64)
        size = max(size + 1, int(size * LONGER))
