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
    `lacking`: entries, before and after all of the other's times."""

    alike: int = 0
    other: int = 0
    beyond: int = 0
    lacking: int = 0

    @property
    def of_one_job(self) -> bool:
        return self.alike >= max(LEAST, self.other)

    @property
    def further(self) -> bool:
        """Whether lines of the same job tell of more before and after the entries than these do of theirs."""
        return self.of_one_job and self.beyond > max(self.lacking, NEAR_STEPS)

    @property
    def of_another(self) -> bool:
        return self.other >= LEAST and self.other > self.alike


def beside(step: np.ndarray, at: np.ndarray, line: np.ndarray, then: np.ndarray, usual_ns: int) -> Beside:
    """Steps that entries mark, `at` in order of time, beside those of `line` that began `then`, both by one clock."""
    if not len(at) or not len(then) or (then == UNTIMED).any():
        return Beside()
    reach = max(COARSE_NS, usual_ns) // 2
    within = (then >= at[0] - reach) & (then <= at[-1] + reach)
    after = np.clip(np.searchsorted(at, then), 1, len(at) - 1) if len(at) > 1 else np.zeros(len(then), dtype=np.int64)
    nearest = np.where(then - at[after - 1] < at[after] - then, after - 1, after)
    alike = within & (np.abs(step[nearest] - line) <= NEAR_STEPS)
    lacking = (at < then.min() - reach) | (at > then.max() + reach)
    return Beside(int(alike.sum()), int((within & ~alike).sum()), int((~within).sum()), int(lacking.sum()))


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
    lie = f"{told.beyond:,} steps lie before or after all that {entries} tells of"
    return [f"{log}: {lie}, {'so all steps are taken from it' if told.further else 'and are left out'}."]
