"""All events of a log as columns: which job it is about, duplicates, and the order in which they were written."""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from collectors.reading.textlog import Tally
from collectors.training.goodput_log.events import Events
from collectors.training.goodput_log.keys import CODES, NONE, RESTORE, SAVE, STEP
from collectors.training.goodput_log.numbers import mixed

_COLUMNS = {"code": "i1", "job": "i4", "time": "i8", "value": "i8", "logged": "i8", "position": "i8", "key": "u8"}


@dataclass
class Ordered:
    """Events of one job, without duplicates, in log order; `code`, `time`, `value` and `logged` as in Events.

    `order` is the position in the file, from its end if it lists the newest first. `when` is `logged`, where an entry
    without a timestamp counts as written with the one before it in the file.
    """

    code: np.ndarray
    time: np.ndarray
    value: np.ndarray
    logged: np.ndarray
    order: np.ndarray
    when: np.ndarray
    texts: list[str]
    checkpoints: list[tuple[int, int, str | None]]

    @property
    def attempt(self) -> np.ndarray:
        """Of each event the job starts up to and including it, less one; never below 0."""
        return np.maximum(np.cumsum(self.code == CODES["job_start_time"]) - 1, 0)


class Log:
    """Gathers the events of a file, 45 bytes each: a month of steps fits in memory."""

    def __init__(self, tally: Tally):
        self.tally = tally
        self.entries = 0
        self.jobs: dict[str, int] = {}
        self.named_after: Counter[int] = Counter()
        self.texts: dict[str, int] = {}
        self.checkpoints: list[tuple[int, int, str | None]] = []
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in _COLUMNS}

    def add(self, events: Events) -> None:
        """The events of the next entries."""
        for passed in events.passed_over:
            self.tally.add(passed.what, passed.reason, passed.offset, passed.count)
        if events.entry.size:
            position = events.entry + self.entries
            key = events.key
            if not key.all():  # an entry without an insertId is like no other
                key = np.where(key == 0, mixed(~position.view("u8")), key)
            jobs = np.full(len(events.jobs), -1, "i4")
            for job in events.job[np.sort(np.unique(events.job, return_index=True)[1])].tolist():  # as they come
                jobs[job] = self.jobs.setdefault(events.jobs[job], len(self.jobs))
            texts = np.array([*(self.texts.setdefault(t, len(self.texts)) for t in events.texts), -1], "i8")
            value = events.value
            pair_or_slices = ~np.isin(events.code, (STEP, SAVE, RESTORE))
            if pair_or_slices.any():
                value = np.where(pair_or_slices, texts[np.where(pair_or_slices, value, -1)], value)
            if events.checkpoints:
                value = np.where(np.isin(events.code, (SAVE, RESTORE)), value + len(self.checkpoints), value)
                self.checkpoints += events.checkpoints
            new = (events.code, jobs[events.job], events.time, value, events.logged, position, key)
            for (name, kind), column in zip(_COLUMNS.items(), new, strict=True):
                self._columns[name].append(column.astype(kind, copy=False))
            for job, log_name, count in events.named:
                number = self.jobs[events.jobs[job]]
                if log_name is not None and log_name.endswith(f"/goodput_{quote(events.jobs[job], safe='')}"):
                    self.named_after[number] += count
        self.entries += events.entries

    def main_job(self) -> str | None:
        """The job that the log is about: the one it is named after, else that with the most events. Others are counted.

        None where there is no event at all.
        """
        names, counts = list(self.jobs), Counter[int]()
        for column in self._columns["job"]:
            numbers, times = np.unique(column, return_counts=True)
            counts.update(dict(zip(numbers.tolist(), times.tolist(), strict=True)))
        ranked = sorted(counts, key=lambda number: (-self.named_after[number], -counts[number], number))
        for number in ranked[1:]:
            self.tally.add(f"events of job {names[number][:100]!r}", "another job's, left out", count=counts[number])
        return names[ranked[0]] if ranked else None

    def ordered(self, job: str) -> Ordered:
        """The events of one job. The columns gathered are used up."""
        column = {name: np.concatenate(self._columns.pop(name)) for name in _COLUMNS}
        position, logged = column.pop("position"), column["logged"]
        known = logged[logged != NONE]
        newest_first = bool(known.size and known[-1] < known[0] and np.all(known[1:] <= known[:-1]))
        order = position[-1] - position if newest_first else position
        mine, repeated = column.pop("job") == self.jobs[job], _repeated(column.pop("key"), order)
        if repeated.any() and (count := len(np.unique(order[repeated & mine]))):
            self.tally.add("entries", "each has the insertId and timestamp of an earlier one", count=count)
        column |= {"order": order, "when": _when(logged)}
        keep = mine & ~repeated
        if not keep.all():
            column = {name: values[keep] for name, values in column.items()}
        when, order = column["when"], column["order"]
        if newest_first or np.any(when[1:] < when[:-1]):
            places = np.lexsort((order, when))
            column = {name: values[places] for name, values in column.items()}
        return Ordered(**column, texts=list(self.texts), checkpoints=self.checkpoints)


def _when(logged: np.ndarray) -> np.ndarray:
    """When each was written; without a timestamp, where it stands in the file: with the one before it."""
    if not np.any(logged == NONE):
        return logged
    place = np.maximum.accumulate(np.where(logged != NONE, np.arange(len(logged)), -1))
    return np.where(place >= 0, logged[np.maximum(place, 0)], NONE)


def _repeated(key: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Which events are of an entry whose key an earlier entry has.

    A 64-bit hash stands for the entry: a false match in ten million entries has odds of one in 400,000.
    """
    of_entry = key[np.r_[True, order[1:] != order[:-1]]]
    of_entry.sort()
    twice = of_entry[1:][of_entry[1:] == of_entry[:-1]]
    repeated = np.zeros(len(key), bool)
    if twice.size:
        at = np.flatnonzero(np.isin(key, twice))
        at = at[np.lexsort((order[at], key[at]))]
        begins = np.r_[True, key[at][1:] != key[at][:-1]]
        first = order[at][np.maximum.accumulate(np.where(begins, np.arange(len(at)), 0))]
        repeated[at] = order[at] != first
    return repeated
