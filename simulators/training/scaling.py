"""How a job grows with its chips: measured points held against the smallest, and a curve that is asked no further than
it can know.

Strong scaling is the same work on more chips, weak scaling the same work a chip. With times T and chips n, and the
smallest number of chips as 1 (of several points there the median of their times):

    strong: speed-up = T1 / Tn, ideal = n / n1, efficiency = speed-up / ideal
    weak:   efficiency = T1 / Tn
    where the samples S that a job learned from are known:
    system efficiency = (Sn / (n Tn)) / (S1 / (n1 T1)), sample efficiency = S1 / Sn, efficiency = their product

The curve of times is a/n + b + c log2 n + d n with no coefficient below 0: work that is shared out, work that is not, a
tree of messages, a ring of them. (Weak scaling: without the first.) It is fitted to relative errors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit  # scipy.stats has these by name, and takes half a second to load

from errors import QuestionError

Kind = Literal["strong", "weak"]
LEAST_POINTS = 4  # different numbers of chips: fewer are no curve
SURE, FARTHEST = 2.0, 4.0  # times the most chips: so far a prediction is told, then with a warning, then not at all
DRAWS, SEED = 400, 7


@dataclass(frozen=True)
class Point:
    """A run: chips, seconds of it or of a step, and samples it learned from (None: not known, or the same for all)."""

    chips: int
    seconds: float
    samples: float | None = None


@dataclass(frozen=True)
class Scaled:
    """A point beside the smallest. `system` and `sample`: None where the samples of either are not known."""

    point: Point
    speedup: float
    ideal: float
    efficiency: float
    system: float | None
    sample: float | None


@dataclass(frozen=True)
class Predicted:
    """Seconds at a number of chips, and the range of nine of ten fits to points that err as these do, alike to both
    sides. `far`: beyond twice the most chips that were measured."""

    chips: int
    seconds: float
    low: float
    high: float
    efficiency: float
    far: bool


def scaled(points: Sequence[Point], kind: Kind) -> tuple[Scaled, ...]:
    """Each point held against what the fewest chips take, in the order of chips and times."""
    first = smallest(points)
    return tuple(_beside(first, p, kind) for p in _ordered(points))


def _ordered(points: Sequence[Point]) -> list[Point]:
    """In one order, whichever they were given in."""
    return sorted(points, key=lambda p: (p.chips, p.seconds, p.samples or 0.0))


def smallest(points: Sequence[Point]) -> Point:
    """What the fewest chips take."""
    return _as_one(points, min(p.chips for p in points))


def largest(points: Sequence[Point], kind: Kind) -> Scaled:
    """What the most chips take, held against what the fewest do."""
    return _beside(smallest(points), _as_one(points, max(p.chips for p in points)), kind)


def _as_one(points: Sequence[Point], chips: int) -> Point:
    """All points of so many chips as one: the medians of their times and, where all are known, of their samples."""
    mine = [p for p in points if p.chips == chips]
    known = [p.samples for p in mine if p.samples]
    return Point(chips, median(p.seconds for p in mine), median(known) if len(known) == len(mine) else None)


def _beside(first: Point, p: Point, kind: Kind) -> Scaled:
    ideal = p.chips / first.chips
    speedup = first.seconds / p.seconds * (1.0 if kind == "strong" else ideal)
    sample = first.samples / p.samples if first.samples and p.samples and kind == "strong" else None
    efficiency = speedup / ideal
    return Scaled(p, speedup, ideal, efficiency, None if sample is None else efficiency / sample, sample)


@dataclass(frozen=True)
class Curve:
    """The fit. `coefficients`: seconds by term, see the module; `worst`: the largest relative error at a point."""

    points: tuple[Point, ...]
    kind: Kind
    coefficients: dict[str, float]
    worst: float

    def seconds(self, chips: float) -> float:
        return float(_terms(np.array([chips], float), self.kind)[0] @ np.array(list(self.coefficients.values())))

    @property
    def most_chips(self) -> int:
        return max(p.chips for p in self.points)

    @cached_property
    def _redrawn(self) -> np.ndarray:
        """Coefficients fitted to points that err as these do: the same curve with its own relative errors dealt out
        anew, widened for the coefficients that were fitted and, as Student's t is, for how few points there are. One
        row a draw."""
        chips, taken = _columns(self.points)
        smooth = np.array([self.seconds(n) for n in chips])
        free = max(1, len(chips) - sum(c > 0 for c in self.coefficients.values()))
        widened = math.sqrt(len(chips) / free) * float(stdtrit(free, 0.95) / ndtri(0.95))
        errors = (taken / smooth - 1) * widened
        draw = np.random.default_rng(SEED)
        worlds = smooth * (1 + draw.choice(errors, (DRAWS, len(chips))))
        return np.array([_fit(chips, np.maximum(world, smooth * 1e-3), self.kind) for world in worlds])

    def predicted(self, chips: int, first: Point) -> Predicted:
        """At a number of chips. Raises QuestionError beyond FARTHEST times the most that were measured, and below the
        fewest."""
        most, least = self.most_chips, min(p.chips for p in self.points)
        if chips > FARTHEST * most:
            raise QuestionError(
                f"{chips:,} chips, more than {FARTHEST:g} times the {most:,} that were measured",
                expected=f"at most {int(FARTHEST * most):,}",
                advice="A curve says nothing of networks that it never crossed: measure a larger run",
            )
        if chips < least:
            raise QuestionError(f"{chips:,} chips, fewer than were measured", expected=f"at least {least:,}")
        terms = _terms(np.array([chips], float), self.kind)[0]
        low, high = np.percentile(terms @ self._redrawn.T, (5, 95))
        least = np.percentile(terms[0] * self._redrawn[:, 0], 5)  # with the first term alone: nothing does better
        seconds = self.seconds(chips)
        reach = max(high / seconds, seconds / low)  # a term that is at 0 errs to one side: the other is as wide
        low, high = max(seconds / reach, min(least, low)), seconds * reach
        there = _beside(first, Point(chips, seconds), self.kind)
        return Predicted(chips, seconds, float(low), float(high), there.efficiency, chips > SURE * most)


def curve(points: Sequence[Point], kind: Kind) -> Curve | None:
    """The curve of the points; None where they are of fewer than LEAST_POINTS numbers of chips."""
    if len({p.chips for p in points}) < LEAST_POINTS:
        return None
    points = _ordered(points)
    chips, taken = _columns(points)
    fitted = _fit(chips, taken, kind)
    worst = float(np.max(np.abs(_terms(chips, kind) @ fitted / taken - 1)))
    return Curve(tuple(points), kind, dict(zip(_names(kind), map(float, fitted), strict=True)), worst)


def _columns(points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([p.chips for p in points], float), np.array([p.seconds for p in points], float)


def _names(kind: Kind) -> tuple[str, ...]:
    return ("shared", "fixed", "tree", "ring") if kind == "strong" else ("fixed", "tree", "ring")


def _terms(chips: np.ndarray, kind: Kind) -> np.ndarray:
    """A row for each number of chips: 1/n (strong alone), 1, log2 n, n."""
    columns = [1 / chips, np.ones_like(chips), np.log2(chips), chips]
    return np.stack(columns[0 if kind == "strong" else 1 :], axis=1)


def _fit(chips: np.ndarray, taken: np.ndarray, kind: Kind) -> np.ndarray:
    """Coefficients of least squared relative error, none below 0. Columns of unlike size are fitted at one size."""
    terms = _terms(chips, kind) / taken[:, None]
    size = np.linalg.norm(terms, axis=0)
    from scipy.optimize import nnls  # late: a fifth of a second, that other pages do not wait for

    return nnls(terms / size, np.ones_like(taken))[0] / size
