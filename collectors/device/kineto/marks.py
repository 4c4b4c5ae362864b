"""Steps, waits for data and samples of memory."""

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.device import Devices
from collectors.device.kineto.gather import Gathered
from collectors.device.kineto.kinds import BARE, step_of
from collectors.device.kineto.span import Span
from collectors.device.kineto.who import of_device, properties
from collectors.device.xplane.arrays import batch, coded, over

_ON_HOST, _MOST_DEVICES, _BATCH = 0, 1 << 20, 1 << 16
_SAME_PACE = 0.1  # devices that take so much longer or shorter for the same steps have a pace of their own
_AS_FAR_AHEAD = 0.1  # of a step: a host that runs ahead by more in some steps than in others marks none as it was taken
_FAR_LONGER = 5  # times what steps usually take
Steps = list[tuple[int, int, int]]  # (start, end as written, step), by start
OfDevices = list[tuple[int, int, int, int | None]]  # the same with the device that took it; None: all did


def steps_by_process(gathered: Gathered, span: Span) -> dict[int, Steps]:
    """The steps that the profiler marked on the host, each once, by process: several that lie in one file count for
    themselves, those without a number by their time. Marks within a step (`batch 3` in `iteration 7`) are parts of it.
    """
    process, counted = gathered.threads.rows[:, 0], Counter[int]()
    found: dict[int, set[tuple[int, int, int]]] = {}
    for start, dur, name, thread in sorted(gathered.steps):
        number, of = step_of(gathered.texts[name]), int(process[thread])
        if number == BARE:
            number, counted[of] = counted[of], counted[of] + 1
        if number is not None and span.near(np.array([start]), np.array([dur]))[0]:
            found.setdefault(of, set()).add((start, start + dur, number))
    return {of: _outermost(steps) for of, steps in found.items()}


def _outermost(steps: set[tuple[int, int, int]]) -> Steps:
    """The steps that lie within no other, by their time, where two or more hold others; all where one alone does, or
    one is far longer than they usually are: a range that was never closed, or the loop itself."""
    outer, holding = list[tuple[int, int, int]](), set[int]()
    for start, end, number in sorted(steps, key=lambda s: (s[0], -s[1], s[2])):
        if not outer or end > outer[-1][1] or (start, end) == outer[-1][:2]:
            outer.append((start, end, number))
        else:
            holding.add(len(outer) - 1)
    took = [end - start for start, end, _ in outer]
    parts = len(holding) > 1 and max(took) <= _FAR_LONGER * median(took)
    return outer if parts else sorted(steps)


def steps_of_launches(
    marked: dict[int, Steps], devices: Devices, launched_ns: np.ndarray, process: np.ndarray
) -> np.ndarray:
    """Step of each event of a device: the one in which it was launched, by the marks of the process that launched it,
    or by all marks where it made none; -1 where that is not known. `launched_ns`: when calls began, by their rows;
    `process`: whose they are."""
    out = np.full(len(devices.events), -1, np.int64)
    if not marked:
        return out
    every, of_call = _all_steps(marked), np.full(len(launched_ns), -1, np.int64)
    for one in np.unique(process).tolist():
        mine = np.flatnonzero(process == one)
        of_call[mine] = _step_at(marked.get(one, every), launched_ns[mine])
    known = np.flatnonzero(devices.launch >= 0)
    out[known] = of_call[devices.launch[known]]
    return out


def owners_of(devices: Devices, process: np.ndarray) -> np.ndarray:
    """The process that launched each event of a device, -1 where that is not known; `process`: whose calls are, by
    their rows."""
    return np.where(devices.launch >= 0, process[devices.launch], -1) if len(process) else devices.launch * 0 - 1


def devices_by_process(devices: Devices, owner: np.ndarray, step: np.ndarray) -> dict[int, list[int]]:
    """The devices that each of several processes drives; nothing of one alone. What a process launches outside of steps
    makes no device its own, where any is launched in them."""
    known = (owner >= 0) & devices.kernels()
    known = known & (step >= 0) if (known & (step >= 0)).any() else known
    whose = owner[known]
    if not len(whose) or whose.min() == whose.max():
        return {}
    drivers, code = np.unique(whose, return_inverse=True)
    number = devices.number[devices.events["row"][known]]
    most, found = int(number.max()) + 1, dict[int, list[int]]()
    for pair in np.unique(code * most + number).tolist():  # of numbers: of rows it takes a hundred times as long
        found.setdefault(int(drivers[pair // most]), []).append(pair % most)
    return found


def steps_taken(
    marked: dict[int, Steps],
    step: np.ndarray,
    devices: Devices,
    owner: np.ndarray,
    driven: dict[int, list[int]],
    lost: Counter[str],
) -> OfDevices:
    """The steps as they were taken (`device_steps`): of several processes in one file each on its own devices, since
    others of the host took theirs at another time. Those that make no marks, and devices of which nobody tells what was
    launched, take the steps of the process that makes the most. `lost`: counts steps that no device took."""
    if not driven or not marked:
        return [(*one, None) for one in device_steps(_all_steps(marked), step, devices)]
    most, number = max(marked.values(), key=len), devices.number[devices.events["row"]]
    untold = np.unique(number[(owner < 0) & devices.kernels()]).tolist()
    taken = [(marked.get(one, most), owner == one, mine) for one, mine in driven.items()]
    taken += [(most, number == one, [one]) for one in untold if not any(one in mine for mine in driven.values())]
    if idle := sum(len(s) for s in marked.values() if not any(s is steps for steps, *_ in taken)):
        lost["steps: their process launches nothing, and others drive all devices"] += idle
    found: OfDevices = []
    for steps, own, mine in taken:
        each = device_steps(steps, np.where(own, step, -1), devices)
        found += [(*one, device) for one in each for device in mine]
    return sorted(found, key=lambda row: (*row[:3], -1 if row[3] is None else row[3]))


def _all_steps(marked: dict[int, Steps]) -> Steps:
    """The steps of all processes, each once."""
    return sorted({step for steps in marked.values() for step in steps})


def _step_at(steps: Steps, time: np.ndarray) -> np.ndarray:
    """The step that each time lies in, -1 for none."""
    table = np.array(steps, np.int64)
    at = np.searchsorted(table[:, 0], time, "right") - 1
    within = (at >= 0) & (time < table[np.maximum(at, 0), 1])
    return np.where(within, table[np.maximum(at, 0), 2], -1)


def device_steps(steps: Steps, step: np.ndarray, devices: Devices) -> Steps:
    """The steps as they were taken: by the host's marks where the devices keep its pace, else by what the devices ran.

    A host that waits for nothing in its loop marks steps long before the devices take them, and shorter; one that reads
    a loss every few steps marks some that are over at once, and then one as long as all of them. Then a step begins
    with the first kernel launched in it and ends where the next begins, so that what devices waited for belongs to it;
    the last one ends with its own last kernel. A step that is alone holds all that was launched in it.
    """
    numbers = [number for _, _, number in steps]
    if not steps or len(set(numbers)) < len(numbers):
        return steps
    known = np.flatnonzero((step >= 0) & devices.kernels())
    start, end = devices.events["start"][known], devices.events["start"][known] + devices.events["dur"][known]
    first_of, order = np.unique(step[known], return_index=True)  # executions are in order of their start
    begins = dict(zip(first_of.tolist(), start[order].tolist(), strict=True))
    if not begins.keys() >= set(numbers):
        return steps
    firsts = [begins[number] for number in numbers]
    last = max(int(end[step[known] == numbers[-1]].max()), steps[-1][1])
    if len(steps) == 1:
        return [(steps[0][0], last, numbers[0])]
    pace = (firsts[-1] - firsts[0]) / max(steps[-1][0] - steps[0][0], 1)
    usual = median(np.diff(firsts).tolist())
    mine = np.isin(step[known], numbers)
    ahead = _ahead(np.array(steps, np.int64)[:, [0, 2]], step[known][mine], end[mine])
    paced = abs(pace - 1) < _SAME_PACE and ahead.max() - ahead.min() < _AS_FAR_AHEAD * usual
    if paced or any(b <= a for a, b in zip(firsts, firsts[1:], strict=False)):
        return steps
    return [(a, b, n) for a, b, n in zip(firsts, [*firsts[1:], last], numbers, strict=True)]


def _ahead(marks: np.ndarray, step: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How long after each mark but the first devices still run what was launched in the steps before; 0 where they are
    done with it. `marks`: (start, step) in order; `step`, `end`: of what devices ran, each in one of these steps."""
    place = np.argsort(marks[:, 1], kind="stable")
    of = place[np.searchsorted(marks[:, 1][place], step)]
    last = np.full(len(marks), np.iinfo(np.int64).min)
    np.maximum.at(last, of, end)
    return np.maximum(np.maximum.accumulate(last)[:-1] - marks[1:, 0], 0)


def step_rows(steps: OfDevices, span: Span, capture: int, host: str, collector: str) -> Iterator[Rows]:
    """Rows of `steps`."""
    if steps:
        n = len(steps)
        columns = {
            "step": [number for _, _, number, _ in steps],
            "host": [host] * n,
            "device": [device for *_, device in steps],
            "start_ns": [start + span.shift_ns for start, *_ in steps],
            "dur_ns": [end - start for start, end, *_ in steps],
            "capture": [capture] * n,
            "order": list(range(n)),
            "source": [collector] * n,
        }
        yield Rows("steps", batch("steps", columns))


def fetch_rows(
    gathered: Gathered, span: Span, owner: np.ndarray, driven: dict[int, list[int]], host: str, collector: str
) -> Iterator[Rows]:
    """Rows of `lifecycle`: the training loop waiting for its loader; of several processes in one file each that of the
    devices that it drives. One that launches nothing where others do is no training loop: a loader's workers fetch
    ahead of it. `owner`: see `owners_of`."""
    process, launching = gathered.threads.rows[:, 0], set(np.unique(owner[owner >= 0]).tolist())
    fetches = [(start, dur, int(process[thread])) for start, dur, thread in gathered.fetches]
    own = [f for f in fetches if f[2] in launching] if launching else fetches
    gathered.lost["fetches: their process launches nothing, as a loader's workers do that fetch ahead"] += len(
        fetches
    ) - len(own)
    told = {(start, dur, device) for start, dur, one in own for device in driven.get(one, [None])}
    spans = sorted(told, key=lambda f: (*f[:2], -1 if f[2] is None else f[2]))
    spans = [f for f in spans if span.near(np.array([f[0]]), np.array([f[1]]))[0]]
    if spans:
        n = len(spans)
        columns = {
            "kind": ["data_loading"] * n,
            "start_ns": [start + span.shift_ns for start, *_ in spans],
            "end_ns": [start + dur + span.shift_ns for start, dur, _ in spans],
            "device": [device for *_, device in spans],
            "host": [host] * n,
            "order": list(range(n)),
            "source": [collector] * n,
        }
        yield Rows("lifecycle", batch("lifecycle", columns))


def memory_rows(
    gathered: Gathered, beside: dict[str, Any], devices: list[int], span: Span, capture: int, host: str
) -> Iterator[Rows]:
    """Rows of `memory`: what PyTorch's allocator had handed out at each event, and what the device had left then, where
    the trace tells how much it has."""
    seen: set[int] = set()
    limits: dict[int, int] = {}
    for rows in gathered.memory.pieces():
        near = span.near(rows["start"], np.zeros(len(rows), np.int64))
        gathered.seen["memory"] -= int((~near).sum())
        gathered.lost["memory events: their time is far from all others"] += int((~near).sum())
        rows = rows[near][np.argsort(rows["start"][near], kind="stable")]
        numbered = (rows["type"] != _ON_HOST) & (rows["device"] >= 0) & (rows["device"] < _MOST_DEVICES)
        seen |= set(rows["device"][numbered].tolist())
        # ROCm numbers devices in kernels and in memory apart: where each has one, they are the same
        only = devices[0] if len(seen) == 1 and len(devices) == 1 else rows["device"]
        device = np.where(numbered, only, -1)
        for number in set(device.tolist()) - set(limits):
            limits[number] = memory_limit(beside, number) or -1 if number >= 0 else -1
        left = np.array([limits[d] for d in device.tolist()], np.int64) - rows["allocated"]
        yield from _samples("bytes_in_use", rows, device, rows["allocated"], span, capture, host)
        told = left >= 0
        yield from _samples("bytes_available", rows[told], device[told], left[told], span, capture, host)


def _samples(
    kind: str, rows: np.ndarray, device: np.ndarray, amount: np.ndarray, span: Span, capture: int, host: str
) -> Iterator[Rows]:
    for at in range(0, len(rows), _BATCH):
        part = slice(at, at + _BATCH)
        n = len(rows[part])
        on_host = (rows["type"][part] == _ON_HOST).astype(np.int32)
        columns = {
            "capture": [capture] * n,
            "host": [host] * n,
            "device": over(pa.int32(), device[part].astype(np.int32), device[part] >= 0),
            "ts_ns": over(pa.int64(), rows["start"][part] + span.shift_ns),
            "kind": [kind] * n,
            "bytes": over(pa.int64(), np.ascontiguousarray(amount[part])),
            "name": coded(on_host, ["PyTorch", "PyTorch, host"]),
        }
        yield Rows("memory", batch("memory", columns))


def memory_limit(beside: dict[str, Any], device: int) -> int | None:
    """Bytes of memory that a device has, as the trace tells."""
    total = of_device(properties(beside), device).get("totalGlobalMem")
    return total if isinstance(total, int) and 0 < total < 1 << 60 else None
