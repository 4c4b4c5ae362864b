"""What the thread that feeds the devices did, from the host events of a profile: why a device that was not waiting for
input had nothing to run.

The thread is the one on which the profile shows the steps. An event of it is told by its name: those of JAX and XLA for
compiling, launching and copying, and annotations (`jax.profiler.TraceAnnotation`) or Python frames for what a job
itself calls evaluation, checkpoint, logging or collection of garbage; JAX also has Python's collector call it, before
and after, and shows by a frame of its own that Python reads an array, which is a copy from the device but for the time
in which it waits for what makes the array. Where several lie over one another, the kind further down in `KINDS` is
told. An event within which whole steps lie is the job's own loop and tells nothing.
"""

import functools
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analyzers.device.activity import WORK
from analyzers.device.launches.seen import launched
from analyzers.intervals import Spans, joined, outside, spans, union
from analyzers.shared import Shared
from runs.coded import numbers
from runs.held_columns import MOST_ROWS
from runs.tables import Tables, frame

HOST_CODE, WAITING, LAUNCHING, COMPILING = "host_code", "waiting", "launching", "compilation"
COLLECTING, COPYING = "garbage_collection", "device_to_host"
AT_ONCE_NS = 20_000  # from one copy to the next: within that Python does hardly more than ask for it
STEPS = ""
"""In place of a thread's name: the one on which the profile shows the steps."""


def _word(*words: str) -> str:
    return rf"(^|[\W_\d])({'|'.join(words)})([\W_\d]|$)"


_LOG = r"log(?!\d|_(?:soft|prob|sigmoid|likelihood|det|norm|sum|add|abs|std|var|scale|alpha|sigma|cosh|ndtr))"
"""No logarithm: what a loss is made of is no logging."""
_NO_MODEL = r"_(?:with_key|frame|expr|static_shape|guards|sym_|context)"
"""What compilers evaluate; no model is evaluated."""

KINDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (
        (
            WAITING,
            r"::Await|block_until_ready|BlockHostUntilReady|wait for completion|^(cuda|hip|cu)\w*Synchronize",
        ),
        (
            LAUNCHING,
            r"^PjitFunction|::Execute|ExecuteReplicated|DevicePut|^ParseArguments|cuda\w*Launch|hip\w*Launch|"
            r"^operator of a framework$",
        ),
        (COPYING, r"ToLiteral|CopyToHost|copy_to_host|DeviceToHost|TransferFrom|device_get|np\.asarray|\bD2H\b"),
        ("logging", _word(_LOG, "logs", "logging", "metrics", "summary", "tensorboard", "wandb")),
        ("checkpointing", r"checkpoint|orbax|" + _word("ckpt")),
        (
            "evaluation",
            _word(
                rf"(?<!partial_)(?<!time_)(?:eval|evaluate)(?!{_NO_MODEL})", "evaluation", "validate(?!_)", "validation"
            ),
        ),
        (COLLECTING, r"\bgc\.collect\b|garbage[ _]collect|^<built-in (?:function|method) collect"),
        ("profiling", r"(start|stop)_trace|ProfilerSession|profiler[ _.:]+(start|stop)"),
        (
            COMPILING,
            r"backend_compile|Client::Compile|lower_sharding_computation|trace_to_jaxpr|eval_shape|eval_jaxpr|"
            r"compile_or_get_cached|XlaCompil|torch[ _]?dynamo|inductor|triton.*compil",
        ),
    )
}
"""Kinds of host work by name of event, those that give way first."""

_COLLECTED = re.compile(r"PyRefManager::CollectGarbage|PythonRefManager::CollectGarbage")
"""What JAX has Python's collector call when it begins and when it is done."""
_OPERATOR = re.compile(
    r"^(?!(?:xla|tsl|jax|jaxlib|pjrt|tensorflow|stream_executor|std)::)[a-z]\w*::|^FSDP::"
    # what computes activations again is no saving, whatever it is called
    r"|(?i:CheckpointFunction|CheckpointImpl|checkpoint_?wrap|utils/checkpoint\.py|(activation|gradient)_checkpoint)"
)
_FRAME = re.compile(r"^[^\n]*\.py\(\d+\): ([^\n]*)$|^\$(?!(?!ad_)\w*checkpoint\w*\.py:)[^\n ]+ ([^\n]*)$")
"""As PyTorch and JAX write one; the latter tells no folder, so that a file of a library that saves is kept by name."""
_CALLED = rf"{_FRAME.pattern}|^\$"
_READS = re.compile(r"^\$array\.py:\d+ _value$")
"""Where JAX takes a whole array to the host, whatever asks for it: `float`, `np.asarray`, `device_get`, `print`."""
_READ = "an array is read"
_COLLECTS = re.compile(r"^\$gc collect$")  # the interpreter's own, of which no file is told
_CALL = re.compile(r"^PjitFunction")  # what traces, lowers, compiles and launches a function, whichever is needed


def host_work(tables: Tables, capture: int, start_ns: int) -> dict[str, Spans]:
    """Unions by kind, in ns since the epoch on the host's clock, in the order of `KINDS`; empty where the profile does
    not show on which thread steps were taken.

    A call in which a program was compiled is compilation as a whole: tracing and lowering come before. `HOST_CODE`
    comes first and is the thread's whole time from its first event to its last: where nothing else is told, it ran
    code that no event marks, such as Python of the job itself.
    """
    return ThreadWork(tables, capture, start_ns).of(STEPS)


class ThreadWork:
    """The same for each thread of a capture, by name; each is worked out once. `STEPS` is that of `host_work`."""

    def __init__(self, tables: Tables, capture: int, start_ns: int):
        self._at = tables, capture, start_ns
        self._shared = Shared(tables)
        self._found: dict[str, dict[str, Spans]] = {}

    def of(self, thread: str) -> dict[str, Spans]:
        """Empty of a thread without events."""
        if thread not in self._found:
            what = ("work of a thread", *self._at[1:], thread)
            self._found[thread] = self._shared.get(what, lambda: self._of(thread))
        return self._found[thread]

    def _of(self, thread: str) -> dict[str, Spans]:
        lines = self._lines(thread)
        if thread == STEPS and len(lines) == 1 and lines != {STEPS}:
            return self.of(*lines)
        return _work(*self._at, self._mine(lines)) if lines else {}

    def stepping(self) -> list[str]:
        """The threads on which the profile shows the steps: several where several processes lie in it."""
        return self._stepping

    def steps_of(self, threads: Collection[str]) -> str:
        """Of a device that these threads launch to: the one of them that takes the steps, or STEPS where that is not
        one alone. Of several processes in a profile each takes its own."""
        own = [thread for thread in self.stepping() if thread in threads]
        alone = len(own) == 1 and (len(self.stepping()) == 1 or self._each_launches)
        return own[0] if alone else STEPS

    def calls(self, thread: str) -> pd.DataFrame:
        """op (the name), start, end (ns since the epoch) of each call of Python on a thread but those within which
        whole steps lie."""
        mine = self._mine(self._lines(thread))
        called = mine["op"].astype(str).str.match(_CALLED)
        wanted = mine[called | _steps(mine)].set_index("op_id")["op"].astype(str)
        op, start, end = _events(*self._at, wanted.index.to_numpy(dtype=np.int64))
        step = np.isin(op, mine.loc[_steps(mine), "op_id"].to_numpy(dtype=np.int64))
        inner = ~_contains(start, end, start[step], end[step]) & ~step
        return pd.DataFrame({"op": wanted.loc[op[inner]].to_numpy(), "start": start[inner], "end": end[inner]})

    def _lines(self, thread: str) -> set[str]:
        return {thread} if thread != STEPS else _step_lines(self._ops)

    def _mine(self, lines: set[str]) -> pd.DataFrame:
        return self._ops[self._ops["line"].isin(lines)]

    @functools.cached_property
    def _each_launches(self) -> bool:
        """Whether all threads that show steps launch to devices. One that launches nothing takes the steps of its
        process, whose other threads launch what it hands to them, as those of XLA do."""
        tables, capture, start_ns = self._at
        ops = frame(tables, "ops", ["device", "role"], [("capture", "==", capture)])
        devices = ops["device"][ops["role"].isin(WORK)].dropna().unique()
        launching = {t for device in devices for t in launched(tables, capture, start_ns, int(device)).threads}
        return launching.issuperset(self.stepping())

    @functools.cached_property
    def _stepping(self) -> list[str]:
        return sorted(_step_lines(self._ops))

    @functools.cached_property
    def _ops(self) -> pd.DataFrame:
        return _host_ops(*self._at[:2])


def _host_ops(tables: Tables, capture: int) -> pd.DataFrame:
    ops = frame(tables, "ops", ["op_id", "line", "role", "category", "op"], [("capture", "==", capture)])
    return ops[(ops["role"] == "host") & ops["op_id"].notna() & ops["op"].notna()]


def _steps(ops: pd.DataFrame) -> pd.Series:
    return (ops["category"] == "annotation") & ~ops["op"].isin(("data_loading",))


def _step_lines(ops: pd.DataFrame) -> set[str]:
    """The threads on which steps are shown."""
    return set(ops.loc[_steps(ops), "line"].dropna())


def _work(tables: Tables, capture: int, start_ns: int, mine: pd.DataFrame) -> dict[str, Spans]:
    """Of threads of which `mine` are the operations."""
    names = mine["op"].astype(str).map(_judged).to_numpy()
    ids = mine["op_id"].to_numpy(dtype=np.int64)
    op, start, end = _events(tables, capture, start_ns, ids)
    if not len(op):
        return {}
    step = _among(op, ids[_steps(mine).to_numpy(dtype=bool)])
    inner = ~_contains(start, end, start[step], end[step])
    plain = inner & ~step
    found = {HOST_CODE: spans([int(start.min())], [int(end.max())])}
    for kind, pattern in KINDS.items():
        chosen = _those(op, ids[_told(names, pattern)], plain)
        found[kind] = union(spans(start[chosen], end[chosen]))
    collected = _collections(_among(op, ids[_told(names, _COLLECTED)]), start)
    found[COLLECTING] = union(joined([found[COLLECTING], collected]))
    read = _those(op, ids[names == _READ], plain)
    copied = outside(spans(start[read], end[read]), found[WAITING])
    found[COPYING] = _one_after_another(union(joined([found[COPYING], copied])))
    compiling = found[COMPILING]
    call = _those(op, ids[_told(names, _CALL)], inner)
    call = call[_contains(start[call], end[call], compiling.start, compiling.end)]
    found[COMPILING] = union(joined([compiling, spans(start[call], end[call])]))
    return found


def _one_after_another(x: Spans) -> Spans:
    """Copies that follow one another at once as one: what passes between them is asking for the next."""
    if not len(x.start):
        return x
    apart = x.start[1:] - x.end[:-1] >= AT_ONCE_NS
    return Spans(x.start[np.append(True, apart)], x.end[np.append(apart, True)])


def _told(names: np.ndarray, pattern: re.Pattern[str]) -> np.ndarray:
    return np.array([pattern.search(name) is not None for name in names], dtype=bool)


def _among(op: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Which of the numbers of operations are among `ids`."""
    if not len(ids):
        return np.zeros(len(op), dtype=bool)
    there = np.zeros(max(int(op.max(initial=0)), int(ids.max())) + 1, dtype=bool)
    there[ids] = True
    return there[op]


def _those(op: np.ndarray, ids: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """Which events are of these operations, of those that are `plain`."""
    return np.flatnonzero(_among(op, ids) & plain) if len(ids) else np.zeros(0, np.int64)


def _collections(mark: np.ndarray, start: np.ndarray) -> Spans:
    """Collections of garbage, from the calls that frame each: two after one another on the thread with nothing between.
    The same call is made at other times too, and is then followed by what it was made for."""
    if not mark.any():
        return spans()
    order = np.argsort(start, kind="stable")
    mark, start = mark[order], start[order]
    framed = np.flatnonzero(mark[:-1] & mark[1:])
    return spans(start[framed], start[framed + 1])


def _judged(name: str) -> str:
    """What an event is judged by: a frame of Python by its function, for files have names of all kinds.

    Operators of a framework, such as `aten::log_softmax` or `autograd::engine::evaluate_function`, launch work whatever
    words their names hold; so do its hooks and modules that keep activations (`_checkpoint_wrapped_module`).
    """
    if _OPERATOR.search(name):
        return "operator of a framework"
    if _READS.match(name):
        return _READ
    if _COLLECTS.match(name):
        return "gc.collect"
    frame = _FRAME.match(name)
    return frame[1] or frame[2] or "" if frame else name


def _events(tables: Tables, capture: int, start_ns: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(op_id, start, end) of the executions of these operations, ns since the epoch."""
    where: list[tuple[str, str, Any]] = [("capture", "==", capture)]
    if tables.rows("op_events") > MOST_ROWS:  # it is not held for others, so only what is asked for is read
        where.append(("op_id", "in", ids.tolist()))
    events = tables.arrow("op_events", ["op_id", "start_ps", "dur_ps"], where)
    if any(column.null_count for column in events.columns):
        events = events.drop_null()
    mine = np.flatnonzero(_among(numbers(events, "op_id"), ids))
    op, start, took = (numbers(events, name)[mine] for name in events.column_names)
    return op, start_ns + start // 1000, start_ns + (start + took) // 1000


def _contains(start: np.ndarray, end: np.ndarray, inner_start: np.ndarray, inner_end: np.ndarray) -> np.ndarray:
    """Of each interval, whether one of the inner ones (which do not overlap) lies in it as a whole."""
    order = np.argsort(inner_start, kind="stable")
    inner_start, inner_end = inner_start[order], inner_end[order]
    first = np.searchsorted(inner_start, start, side="left")
    known = first < len(inner_start)
    within = np.zeros(len(start), dtype=bool)
    within[known] = inner_end[first[known]] <= end[known]
    return within
