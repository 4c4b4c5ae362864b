"""What is done to a worker, at which place of its loop. Every harm is measured by the clock of the one who does it."""

import contextlib
import gc
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.diagnosis.case import Case, Planted
from reference.train.recorders import EventLog, GoodputLog, Silence

FOREVER_S = 600.0


@dataclass
class Scene:
    """What harms see of the worker they are in."""

    case: Case
    attempt: int
    process: int
    events: EventLog
    goodput: GoodputLog | Silence
    say: Callable[[str], None]  # into the job's log
    kept: list[Any] = field(default_factory=list)  # what a leak holds on to

    @contextlib.contextmanager
    def measured(self, cause: str, step: int) -> Iterator[None]:
        start_ns = time.time_ns()
        yield
        self.events.write("harm", cause=cause, step=step, start_ns=start_ns, end_ns=time.time_ns())

    def mine(self, planted: Planted) -> bool:
        return not planted.ranks or self.process in planted.ranks


def hash_for(seconds: float) -> None:
    """Work of one core outside Python's lock."""
    end, block = time.perf_counter() + seconds, bytes(65536)
    while time.perf_counter() < end:
        block = hashlib.sha256(block).digest() * 2048


def python_for(seconds: float) -> None:
    """Work of Python itself: small objects, dictionaries and calls, as in a loop that flattens trees by hand."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        tree = {f"layer_{i}": {"kernel": (i, i + 1), "bias": (i,)} for i in range(64)}
        sorted((path, len(leaf)) for path, node in tree.items() for leaf in node.values())


Harm = Callable[[Scene, Planted, int, Any], None]
"""(scene, planted, step, state)"""


def _wait(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    time.sleep(planted.seconds)


def _busy(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    hash_for(planted.seconds)


def _python(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    python_for(planted.seconds)


def _jitter(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """One rank of each step, drawn anew."""
    if np.random.default_rng((scene.case.seed, step)).integers(scene.case.processes) == scene.process:
        hash_for(planted.seconds)


def _leak(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """Goes through all that it kept: `seconds` in the last step, growing from nothing."""
    scene.kept.append([float(step)] * 256)
    hash_for(planted.seconds * (step - planted.first + 1) / (planted.last - planted.first + 1))


def _collect(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """A real collection over a heap of so many objects that it takes about `seconds`."""
    if not scene.kept:
        gc.freeze()  # what was imported costs nothing from here on
        trial, objects = 0.0, 50_000
        while trial < planted.seconds and objects < 20_000_000:
            scene.kept += [[] for _ in range(objects)]
            begun = time.perf_counter()
            gc.collect()
            trial = time.perf_counter() - begun
            objects = int(len(scene.kept) * max(planted.seconds / max(trial, 1e-4) - 1, 0.05)) + 1000
    with jax.profiler.TraceAnnotation("gc.collect") if planted.told else contextlib.nullcontext():
        gc.collect()


def _copy_out(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """Takes the whole state to the host, as often as `seconds` allow: on a CPU the calls take longer than the bytes."""
    end = time.perf_counter() + planted.seconds
    here = [shard.data for leaf in jax.tree.leaves(state) for shard in leaf.addressable_shards]
    while time.perf_counter() < end:
        jax.device_get(here)


def _tiny(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """`amount` programs of a few numbers each, one after another."""
    x = jnp.zeros(8)
    for _ in range(planted.amount):
        x = _scale(x)
    x.block_until_ready()


_scale = jax.jit(lambda x: x * 1.0001 + 1.0)


def _evaluate(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """Forward passes of this process's own for `seconds`."""
    kind = {"custom_badput_event_type": "eval_step"}
    if planted.told:
        scene.goodput.now("custom_badput_event_start_time", **kind)
    with jax.profiler.TraceAnnotation("evaluation"):
        x, end = jnp.ones((256, 256)) / 256, time.perf_counter() + planted.seconds
        while time.perf_counter() < end:
            _forward(x, x).block_until_ready()
    if planted.told:
        scene.goodput.now("custom_badput_event_end_time", **kind)


_forward = jax.jit(lambda a, b: jnp.tanh(a @ b) @ b)


def _send_metrics(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    with jax.profiler.TraceAnnotation("log_metrics") if planted.told else contextlib.nullcontext():
        np.asarray(state["step"])
        time.sleep(planted.seconds)


def _trace(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """A profile that starts and stops inside the step."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, 1
    folder = Path(f"profiles/attempt_{scene.attempt}/window_{step}/process_{scene.process}")
    jax.profiler.start_trace(folder, profiler_options=options)
    _forward(jnp.ones((256, 256)), jnp.ones((256, 256))).block_until_ready()
    jax.profiler.stop_trace()


def _crash(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    """Dies at its step, `amount` times over."""
    if scene.attempt < planted.amount:
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(FOREVER_S)


def _killed(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    if scene.attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(FOREVER_S)


def _silent(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    if scene.attempt == 0:
        time.sleep(FOREVER_S)


def _preempted(scene: Scene, planted: Planted, step: int, state: Any) -> None:
    if scene.attempt == 0:
        scene.say("SIGTERM received: this spot instance was preempted, exiting")
        os._exit(143)


INPUT: dict[str, Harm] = {"slow_loader": _wait, "uneven_loader": _wait, "loader_spikes": _wait}
"""Inside `data_loading`."""

BEFORE: dict[str, Harm] = {
    "slow_host": _busy,
    "garbage_collection": _collect,
    "jitter": _jitter,
    "python_overhead": _python,
    "leak": _leak,
    "step_up": _busy,
    "restart_loop": _crash,
    "kill": _killed,
    "out_of_memory": _killed,
    "hang": _silent,
    "preemption": _preempted,
}
"""Between the input and the dispatch of the step."""

INSIDE: dict[str, Harm] = {"device_to_host": _copy_out, "tiny_operations": _tiny, "profiler_inside": _trace}
"""After the step's loss is known, before the step counts as completed."""

AFTER: dict[str, Harm] = {"evaluation": _evaluate, "metrics_sync": _send_metrics}
"""Between steps."""


def do(place: dict[str, Harm], scene: Scene, step: int, state: Any = None) -> None:
    """All that is planted at this place of the loop in this step."""
    for planted in (*scene.case.planted, *scene.case.context):
        harm = place.get(planted.cause)
        if harm and planted.hits(step) and scene.mine(planted):
            with scene.measured(planted.cause, step):
                harm(scene, planted, step, state)
