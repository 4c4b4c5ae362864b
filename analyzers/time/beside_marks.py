"""Step lines beside goodput entries: whether they tell of the same steps, and which of the two tells of more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.time.source_clocks import COARSE_NS
from analyzers.time.step_streams import UNTIMED
from analyzers.time.step_takes import SAID

LEAST = 5  # lines at the times of entries that tell whether they are of the same steps
NEAR_STEPS = 10  # lines are often the mean over ten steps, which a save among them moves


@dataclass(frozen=True)
class Beside:
    """`alike`, `other`: lines at the times of entries, by whether the step marked there is theirs. `beyond`: lines, and
    `lacking`: entries, at times of which the other tells nothing; `between`: those of these lines that lie after one
    entry and before another, as those of an attempt do whose entries were lost."""

    alike: int = 0
    other: int = 0
    beyond: int = 0
    lacking: int = 0
    between: int = 0

    @property
    def of_one_job(self) -> bool:
        return self.alike >= max(LEAST, self.other)

    @property
    def further(self) -> bool:
        """Whether lines of the same job tell of more that entries do not tell than these do of what lines do not."""
        return self.of_one_job and self.beyond > max(self.lacking, NEAR_STEPS)

    @property
    def of_another(self) -> bool:
        return not self.of_one_job and self.other + self.between >= LEAST


def beside(
    step: np.ndarray, at: np.ndarray, line: np.ndarray, then: np.ndarray, usual_ns: int, took: np.ndarray
) -> Beside:
    """Steps that entries mark beside those of `line`, `at` and `then` when each began, both in order and by one clock.
    `took`: how long lines tell that each step took."""
    if not len(at) or not len(then) or (then == UNTIMED).any():
        return Beside()
    reach = max(COARSE_NS, usual_ns) // 2
    mean = _mean_over(took)
    alike, outside, apart = _against(line, then, step, at, reach, mean)
    _, before, unlike = _against(step, at, line, then, reach, mean)
    other = ~(alike | outside | apart)
    return Beside(*(int(x.sum()) for x in (alike, other, outside | apart, before | unlike, apart)))


def _against(
    step: np.ndarray, at: np.ndarray, other: np.ndarray, then: np.ndarray, reach: int, mean: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each step that began `at`: whether the other, which tells of steps that began `then`, tells of it at that
    time, whether that lies before or after all that the other tells of, and whether, between, it tells of nothing near
    it. `mean`: over how many steps one of them tells means, which a save among these draws out."""
    after = np.searchsorted(then, at)
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(then) - 1)
    nearest = np.where(np.abs(at - then[before]) < np.abs(then[after] - at), before, after)
    ahead = other[nearest] - step
    outside = (at < then[0] - reach) | (at > then[-1] + reach)
    alike = np.where(outside, (ahead >= 0) & (ahead < mean - 1), np.abs(ahead) <= max(NEAR_STEPS, mean))
    apart = np.abs(then[nearest] - at) > reach
    return alike, outside & ~alike, ~outside & ~alike & apart


def _mean_over(took: np.ndarray) -> int:
    """Over how many steps each time is a mean, where as many in a row are told to have taken equally long."""
    runs = np.diff(np.flatnonzero(np.diff(took)))
    return int(np.median(runs)) if len(runs) >= LEAST - 1 else 1


def said(told: Beside, marks: Sequence[str], lines: Sequence[str]) -> list[str]:
    """What a note says of lines that are of another job, or that reach further than the entries do. `marks`, `lines`:
    the sources of both."""
    entries, log = (", ".join(names[:SAID]) or "an input" for names in (marks, lines))
    if told.of_another:
        return [
            f"{log}: left out, as at most of its times {entries} tells of other steps: it is of another job, or by "
            "another clock. Ingest each job alone."
        ]
    if not (told.of_one_job and told.beyond > NEAR_STEPS):
        return []
    where = (
        f"at times of which {entries} tells nothing" if told.between else f"before or after all that {entries} tells of"
    )
    lie = f"{told.beyond:,} steps lie {where}"
    return [f"{log}: {lie}, {'so all steps are taken from it' if told.further else 'and are left out'}."]
