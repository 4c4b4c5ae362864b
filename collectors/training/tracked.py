"""What readers of tracked metrics share: numbers that a job logged by name and step, and the files and services that
keep them (TensorBoard and its like).

What a tracker keeps is a name, a step and a number, and mostly the time when it was logged. Each becomes a row of
`scalars`, with the unit that its name tells (`unit_of`). Where one of the names tells how long a step took, there are
rows of `steps` as well: see `tracked_steps`; where none does, the times of its entries may tell them: `untimed_steps`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Fact, Rows, Source
from collectors.reading.textlog import Buffer, Tally, clean, within_64_bits
from collectors.training.tracked_steps import LoggedSteps, is_told
from collectors.training.untimed_steps import UntimedSteps, kind_of
from runs.schema import SCHEMAS

MAX_NAME = 200  # characters of a name
_IN_BRACKETS = re.compile(r"\((s|ms|%|GiB|GB|MiB|MB|tps)\)$")  # torchtitan
_UNITS = (  # of names that jobs use, in the form of what a name begins or ends with
    (re.compile(r"(?:^|/|_)tflops?_per_sec|^tflops$|^throughput/tflops"), "TFLOP/s"),
    (re.compile(r"^perf/per_device_tflops$"), "TFLOP"),
    (re.compile(r"^perf/per_device_tokens$|/total_num_tokens$"), "tokens"),
    (re.compile(r"tokens_per_sec|tokens_per_second"), "tokens/s"),
    (re.compile(r"samples_per_second$|samples_per_sec$"), "samples/s"),
    (re.compile(r"steps_per_second$|steps_per_sec$|^global_step/sec$"), "steps/s"),
    (re.compile(r"(?:_|/)runtime$|_seconds$| in s$|^timing_s/|^iteration-time/iteration-time(?! vs)"), "s"),
    (re.compile(r"^mem-(?:reserved|allocated|max-allocated)-bytes$"), "B"),
    (re.compile(r"^memory/.*-gigabytes$"), "GB"),
    (re.compile(r"^power/gpu$"), "W"),
    (re.compile(r"^iter-energy/gpu$"), "J"),
)


class Tracked:
    """What one source logged, in its order: `add` each number or `extend` by columns of them, `full` in between, `rest`
    at the end, and `facts` behind that. `format`: the collector. `host`: of which host, null for the job as a whole."""

    def __init__(self, source: Source, format: str, tally: Tally, host: str | None = None):
        self._source = source.name
        self._scalars = Buffer("scalars", "ts_ns", "step", "name", "value", "unit", "source")
        self._columns: list[Rows] = []
        self._steps = LoggedSteps(source, format, tally, host)
        self._untimed = UntimedSteps(source, format, tally, host)

    def add(self, step: int | None, ts_ns: int | None, name: str, value: float, unit: str | None = None) -> None:
        """A number of this name, logged for this step at this time. What comes for one step in a row is one entry."""
        name = clean(name)[:MAX_NAME]
        step = None if step is None else within_64_bits(step)
        self._scalars.add(ts_ns, step, name, value, unit or unit_of(name), self._source)
        if step is None:
            return
        if _may_tell(name):
            self._steps.told(step, ts_ns, name, value)
        if not self._steps.timed and kind_of(name):
            self._untimed.told(step, ts_ns, name, value)

    def extend(self, names: Any, steps: np.ndarray, ts_ns: np.ndarray, values: np.ndarray) -> None:
        """The same of many numbers: `names` a dictionary of bytes, `ts_ns` 0 where none is known."""
        spelt = [clean(one.decode("utf-8", "replace"))[:MAX_NAME] for one in names.dictionary.to_pylist()]
        units = [unit_of(name) for name in spelt]
        known = [unit for unit in dict.fromkeys(units) if unit]
        code = names.indices.to_numpy(zero_copy_only=False)
        unit = np.array([known.index(u) if u else -1 for u in units] or [0])[code]
        table = {
            "ts_ns": pa.array(ts_ns, mask=ts_ns == 0),
            "step": pa.array(steps),
            "name": _of(spelt, code),
            "value": pa.array(values),
            "unit": pa.DictionaryArray.from_arrays(
                pa.array(unit, pa.int32(), mask=unit < 0), pa.array(known, pa.string())
            ),
            "source": _of([self._source], np.zeros(len(code), np.int32)),
        }
        self._columns += [*self._scalars.rest(), Rows("scalars", SCHEMAS["scalars"].batch(table))]
        tells = [is_told(name) for name in spelt]
        chosen = np.flatnonzero(np.array([*map(bool, map(kind_of, spelt))] or [False])[code])
        if self._steps.timed or not len(chosen):
            chosen = np.flatnonzero(np.array(tells or [False])[code])
        else:
            chosen = np.union1d(chosen, np.flatnonzero(np.array(tells)[code]))
        told = (column[chosen].tolist() for column in (steps, ts_ns, code, values))
        for step, at, which, value in zip(*told, strict=True):
            if tells[which]:
                self._steps.told(step, at or None, spelt[which], value)
            if not self._steps.timed and kind_of(spelt[which]):
                self._untimed.told(step, at or None, spelt[which], value)

    def begun(self, ns: int) -> None:
        """Training began at this time, as far as the source tells."""
        self._steps.begun_ns = ns

    def trains(self, tokens_of_sequence: int, chips: int) -> None:
        """What each step has, as far as the source tells before it."""
        self._steps.share_of_tokens = tokens_of_sequence / chips

    def counts(self, by_the_job: bool | None) -> None:
        """Whether the steps of what is added next are sure to be the job's own, or a count of the tracker's."""
        self._steps.counted = self._untimed.counted = by_the_job

    @property
    def timed(self) -> bool:
        """Whether a name told how long steps take, and not the times of entries alone."""
        return self._steps.timed

    def full(self) -> Iterator[Rows]:
        """Batches that are full."""
        yield from self._extended()
        yield from self._scalars.full()
        yield from self._steps.full()

    def rest(self) -> Iterator[Rows]:
        """Whatever is left: nothing comes after it."""
        yield from self._extended()
        yield from self._scalars.rest()
        yield from self._steps.rest()
        if not self._steps.timed:
            yield from self._untimed.rest()

    def facts(self) -> Iterator[Fact]:
        """What the steps tell of the run, once all was read."""
        yield from self._steps.facts()
        yield from self._untimed.facts()

    def _extended(self) -> Iterator[Rows]:
        yield from self._columns
        self._columns = []


_may_tell = lru_cache(maxsize=4096)(is_told)


@lru_cache(maxsize=4096)
def unit_of(name: str) -> str | None:
    """The unit that a name tells, or that jobs are known to log it in; None where neither."""
    if match := _IN_BRACKETS.search(name):
        return {"tps": "tokens/s"}.get(match[1], match[1])
    return next((unit for pattern, unit in _UNITS if pattern.search(name)), None)


def _of(words: list[str], code: np.ndarray) -> Any:
    """A column of words by their numbers; below 0: none."""
    return pa.DictionaryArray.from_arrays(pa.array(code, pa.int32(), mask=code < 0), pa.array(words, pa.string()))
