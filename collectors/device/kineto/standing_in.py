"""A trace of a machine without an accelerator: its CPU is the device, its threads the streams.

What such a device executes are the innermost operators of the host's threads, those that only make or view a tensor
left out, and the messages of its library of collectives. An operator of ATen that within itself fills or copies alone
is one whole: `addmm` copies its bias and then multiplies, a sum fills its result and then adds. Between them the device
is idle: the framework and Python run then, as they do between the launches of a GPU's job. Only traces that say of
themselves that they saw no device are told so.
"""

import re
from collections.abc import Iterator

import numpy as np

from collectors.device.kineto.gather import DEVICE, HOST, Gathered
from collectors.device.kineto.kernels import is_collective
from collectors.device.kineto.kinds import KERNEL
from collectors.device.kineto.nesting import CALL, NOTE
from collectors.device.kineto.tokens import NONE

# Operators that compute nothing: they make, name or view a tensor, hand on a number, or queue a message.
_NO_WORK = re.compile(
    r"^(aten::)?(new_)?(empty|as_strided|view|reshape|_reshape_alias|_unsafe_view|t|mT|numpy_T|transpose|"
    r"permute|movedim|swapaxes|expand|slice|select|narrow|split|split_with_sizes|chunk|unbind|squeeze|unsqueeze|detach|"
    r"alias|resize|resolve_conj|resolve_neg|result_type|to|lift|lift_fresh|set|contiguous|flatten|unflatten|diagonal|"
    r"unfold|real|imag|item|is_nonzero|_local_scalar_dense|broadcast_to|broadcast_tensors|is_pinned)"
    r"(_|_as|_like|_strided)?$|^c10d::|^record_param_comms$"
    r"|^autograd::engine::|^torch::autograd::\w+$|^\w+Backward\d+$"  # nodes of a graph: operators do their work
)
# Operators that others call to prepare what they compute with.
_PREPARES = re.compile(r"^aten::(new_)?(copy|_to_copy|clone|fill|full|zero|zeros|ones|scalar_tensor)(_|_like)?$")

_WHOLE = re.compile(r"^aten::")


def stand_in(gathered: Gathered) -> np.ndarray:
    """Enters what a CPU executed as executions of device 0, numbered beyond all events; the events that did, sorted.
    The correlation number of each is its event's number plus one."""
    if gathered.calls is None or gathered.device or gathered.on_runtime:
        return np.zeros(0, np.int64)
    parts = list(_innermost(gathered))
    if not any((rows["kind"] == CALL).any() for rows in parts):
        return np.zeros(0, np.int64)  # it only sent messages: no device of a job does
    event = gathered.read
    for rows in parts:
        gathered.device.append(_executions(gathered, rows, event))
        event += len(rows)
    return np.sort(np.concatenate([rows["event"] for rows in parts]))


def _executions(gathered: Gathered, rows: np.ndarray, event: int) -> np.ndarray:
    out, nothing = np.zeros(len(rows), DEVICE), np.full(len(rows), NONE)
    for name in ("start", "dur", "name"):
        out[name] = rows[name]
    out["event"] = event + np.arange(len(rows))
    out["kind"], out["collective"], out["external"] = KERNEL, -1, NONE
    out["correlation"], out["shape"] = rows["event"] + 1, gathered.shapes.of(nothing, nothing)
    pid, tid = gathered.threads.rows[rows["thread"]].T
    out["row"] = gathered.rows.of(nothing * 0, nothing, nothing, pid, tid)
    return out


def _innermost(gathered: Gathered) -> Iterator[np.ndarray]:
    """Calls that compute and within which no other does, and messages, in pieces."""
    assert gathered.calls is not None  # asked before
    wanted, prepares, whole = _Wanted(gathered), _Named(gathered, _PREPARES), _Named(gathered, _WHOLE)
    before = np.zeros(0, HOST)
    for piece in gathered.calls.pieces():
        rows = np.concatenate([before, wanted.of(piece)])
        calls = rows[rows["kind"] == CALL]
        helps = prepares.of(calls)
        order = np.lexsort((helps, -calls["dur"], calls["start"], calls["thread"]))
        calls, helps = calls[order], helps[order]
        runs, open_ = _runs(calls, helps, whole.of(calls))
        before = calls[open_]  # whether another lies within them only the next piece tells
        yield np.concatenate([calls[runs & ~open_], rows[rows["kind"] == NOTE]])
    helps = prepares.of(before)
    yield before[_runs(before, helps, whole.of(before))[0]]


def _runs(calls: np.ndarray, helps: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(which of calls are executions as far as these tell, which of them later ones may still tell otherwise), of calls
    by thread and start. `helps`: those that prepare; `whole`: those that are one with what prepares them."""
    n = len(calls)
    if not n:
        return np.zeros(0, bool), np.zeros(0, bool)
    main = np.flatnonzero(~helps)
    whole = whole & ~helps
    whole[main] &= _alone(calls[main])
    around = np.maximum.accumulate(np.where(helps, -1, np.arange(n)))  # the last before it that does not prepare
    at = np.maximum(around, 0)
    within = (around >= 0) & (calls["thread"][at] == calls["thread"])
    within &= calls["start"] < calls["start"][at] + calls["dur"][at]
    last = np.flatnonzero(np.append(calls["thread"][1:] != calls["thread"][:-1], True))
    threads = np.searchsorted(last, np.arange(n))
    still = within[last]
    open_ = np.where(still[threads], np.arange(n) >= around[last][threads], np.arange(n) == last[threads])
    return whole | (_alone(calls) & ~(helps & within & whole[at])), open_


def _alone(calls: np.ndarray) -> np.ndarray:
    """Which of calls, by thread and start, hold no other."""
    if not len(calls):
        return np.zeros(0, bool)
    other = calls["thread"][1:] != calls["thread"][:-1]
    return np.append(other | (calls["start"][1:] >= calls["start"][:-1] + calls["dur"][:-1]), True)


class _Named:
    """Which rows have a name of a pattern."""

    def __init__(self, gathered: Gathered, pattern: re.Pattern[str]) -> None:
        self._texts, self._pattern = gathered.texts, pattern

    def of(self, rows: np.ndarray) -> np.ndarray:
        names, place = np.unique(rows["name"], return_inverse=True)
        known = [name >= 0 and bool(self._pattern.match(self._texts[name])) for name in names.tolist()]
        return np.array(known, bool)[place.reshape(-1)]


class _Wanted:
    """Which of them compute something or send something."""

    def __init__(self, gathered: Gathered) -> None:
        self._texts = gathered.texts
        self._known: dict[int, bool] = {}

    def of(self, rows: np.ndarray) -> np.ndarray:
        names, place = np.unique(np.stack([rows["name"], rows["kind"]]), axis=1, return_inverse=True)
        keep = np.array([self._is(name, kind) for name, kind in names.T.tolist()], bool)
        return rows[keep[place.reshape(-1)] & (rows["dur"] > 0)]

    def _is(self, name: int, kind: int) -> bool:
        text = self._texts[name] if name >= 0 else ""
        return is_collective(text) if kind == NOTE else not _NO_WORK.match(text)
