"""The attempts of a job, and what lies between two of them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, spans
from analyzers.time.job_times import ONE_START_NS, Jobs

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Interruption:
    """An attempt that ended without the job ending: what was lost and until when."""

    attempt: int
    last_sign_ns: int
    restart_ns: int
    last_step: int | None
    resumed_step: int | None
    wasted_steps: int


def as_ns(column: pd.Series) -> np.ndarray:
    return column.to_numpy(dtype=np.int64)


@dataclass(frozen=True)
class Attempts:
    """Each attempt's last sign of life, the end of its window, whether it finished, and whether its end was recorded,
    by itself or cut short; the time after it. `stood`: whether nothing went on in the last one between these two."""

    start: np.ndarray
    last: np.ndarray
    end: np.ndarray
    finished: np.ndarray
    ended: np.ndarray
    stood: bool = False

    @property
    def windows(self) -> Spans:
        return spans(self.start, self.end)

    @property
    def between(self) -> Spans:
        """After an attempt whose end was recorded, until the next starts."""
        done = self.ended[:-1]
        return spans(self.end[:-1][done], self.start[1:][done])

    @property
    def recovery(self) -> Spans:
        """After the last sign of life of an interrupted attempt, until its end, or the next start; of the last, as long
        as it is known to have stood."""
        lost = ~self.finished
        last = self.end[-1] if self.stood else self.last[-1]
        until = np.append(np.where(self.ended[:-1], self.end[:-1], self.start[1:]), last)
        return spans(self.last[lost], until[lost])

    def until(self, given_up_ns: int) -> "Attempts":
        """These, the last of which stood until then."""
        return replace(self, end=np.append(self.end[:-1], given_up_ns), stood=True)


def attempts_of(jobs: Jobs, signs: np.ndarray, steps: pd.DataFrame, now_ns: int | None) -> Attempts:
    """An attempt is finished where the job said that it ended and took no step after that, and nothing cut it short.
    `signs`: without the ends at which something did, which are no sign of life. What was cut short may take steps for
    a little longer, as schedulers end jobs by asking them to, and by another clock: then it ended with the last."""
    start = jobs.starts
    following = np.append(start[1:], NEVER)
    last = np.maximum(signs[np.maximum(np.searchsorted(signs, following, side="left") - 1, 0)], start)
    step_start, step_end = as_ns(steps["start_ns"]), as_ns(steps["end_ns"])
    begun = np.searchsorted(step_start, following, side="left") - 1  # last step begun before the next attempt
    latest = np.append(np.maximum.accumulate(step_end), 0)[begun] if len(step_end) else np.zeros(len(start), np.int64)
    last = np.minimum(np.maximum(last, latest), following)
    last_begun = np.append(step_start, 0)[begun] if len(step_start) else latest
    ended_at = np.append(jobs.ends, -NEVER)[np.searchsorted(jobs.ends, following, side="right") - 1]
    ends_it = ended_at >= start
    cut = ends_it & np.isin(ended_at, jobs.cut) & (last_begun - ONE_START_NS <= ended_at)
    ended = cut | (ends_it & (ended_at >= last_begun))
    ended_at = np.where(cut & (last_begun > ended_at), np.minimum(latest, following), ended_at)
    # Of an attempt of which nothing else is known all of it may have been work.
    last = np.where(cut, np.where(last > start, np.minimum(last, ended_at), ended_at), last)
    end = np.where(ended, ended_at, np.where(following < NEVER, following, last))
    if now_ns is not None and not ended[-1]:
        end[-1] = max(int(end[-1]), now_ns)
    return Attempts(start, last, end, ended & ~cut, ended)


def interruptions_of(attempts: Attempts, steps: pd.DataFrame) -> tuple[Interruption, ...]:
    start = as_ns(steps["start_ns"])
    number = steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    lost = np.concatenate(([0], np.cumsum(~steps["kept"].to_numpy(dtype=bool))))
    begins = np.searchsorted(start, attempts.start)
    found = []
    for k in np.flatnonzero(~attempts.finished[:-1]).tolist():
        mine, after = int(begins[k]), int(begins[k + 1])
        found.append(
            Interruption(
                attempt=k,
                last_sign_ns=int(attempts.last[k]),
                restart_ns=int(attempts.start[k + 1]),
                last_step=int(number[after - 1]) if after > mine else None,
                resumed_step=int(number[after]) if after < len(number) else None,
                wasted_steps=int(lost[after] - lost[mine]),
            )
        )
    return tuple(found)
