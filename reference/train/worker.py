"""One process of the job: `python -m reference.train.worker PLAN ATTEMPT PROCESS PORT`, in the job's folder.

A synchronous training loop, instrumented as such loops are: goodput entries and MaxText's log from process 0,
an XPlane profile of every process, Orbax checkpoints. `plan` says what harm to do; the harm done is written,
as measured, to `truth/attempt_<a>.process_<p>.jsonl`, which no analyzer sees.
"""

import hashlib
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jaxlib
import numpy as np
import orbax.checkpoint as ocp
from jax._src import compiler, distributed, xla_bridge  # for what the public API cannot say, see `connect`
from jax.sharding import AxisType, Mesh, NamedSharding
from jaxlib import _jax

from reference.train.benchmark import matmul_rounds
from reference.train.data import TextPipeline
from reference.train.metric_logger import MetricLogger
from reference.train.model import BATCH, abstract_state, compiled_step, init_state
from reference.train.plan import Plan
from reference.train.recorders import EventLog, GoodputLog, OrbaxLogger, ProfileWindows, Silence

HOST = "127.0.0.1"


def die_with_launcher() -> None:
    """Ends this process when its standard input closes: the launcher is gone, however it went."""

    def watch():
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def connect(process: int, processes: int, port: int, bind: int | None = None) -> None:
    """Joins the job. Coordinator and Gloo listen on the loopback address only; every process has a compile cache.

    `bind`: where the coordinator itself listens, where something stands between it and the processes.
    """
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_compilation_cache_dir", "compile_cache")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # Programs carry the paths of their source: keep what follows the checkout's or the environment's folder.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?=reference/train/|site-packages/)")
    jax.distributed.initialize(
        f"{HOST}:{port}",
        processes,
        process,
        coordinator_bind_address=f"{HOST}:{bind or port}",
        heartbeat_timeout_seconds=10,
    )
    # Gloo's thread spins on its sockets while the thread it woke holds their lock. Where processes outnumber cores
    # each such spin lasts a whole time slice; as a batch thread it no longer pushes the lock's holder off its core.
    before = thread_ids()
    gloo = _jax.make_gloo_tcp_collectives(distributed_client=distributed.global_state.client, hostname=HOST)
    xla_bridge.register_backend_factory("cpu", partial(xla_bridge.make_cpu_client, gloo), fail_quietly=False)
    for thread in thread_ids() - before:  # none where the system cannot tell
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
    # On CPU the key of a cached program differs from process to process, yet only process 0 writes the cache:
    # let the module that asks for the process number hear 0, so that the others find theirs on a restart too.
    compiler.distributed = SimpleNamespace(global_state=SimpleNamespace(process_id=0, client=None))


def thread_ids() -> set[int]:
    """This process's threads, where the system can tell (Linux)."""
    tasks = Path("/proc/self/task")
    return {int(t.name) for t in tasks.iterdir()} if tasks.exists() else set()


def record_compiles(events: EventLog) -> None:
    """Writes JAX's own tracing, compilation and compile-cache events to the truth."""

    def duration(name: str, seconds: float, **_):
        if "/compile/" in name or "/compilation_cache/" in name:
            events.write("compile", name=name.rsplit("/", 1)[1], seconds=seconds)

    def count(name: str, **_):
        if name.endswith(("/cache_hits", "/cache_misses")):
            events.write("compile_cache", name=name.rsplit("/", 1)[1])

    jax.monitoring.register_event_duration_secs_listener(duration)
    jax.monitoring.register_event_listener(count)


def busy(seconds: float) -> tuple[int, int]:
    """Hashes on one core for `seconds` of wall-clock time: (start, end), ns since the epoch."""
    start_ns, block = time.time_ns(), bytes(65536)
    while time.time_ns() - start_ns < seconds * 1e9:
        block = hashlib.sha256(block).digest() * 2048
    return start_ns, time.time_ns()


def started(name: str, attempt: int, process: int) -> tuple[EventLog, GoodputLog | Silence]:
    """The recorders of a process that has just begun and will end with its launcher."""
    die_with_launcher()
    events = EventLog(Path(f"truth/attempt_{attempt}.process_{process}.jsonl"))
    goodput = GoodputLog(Path("goodput.jsonl"), name, attempt) if process == 0 else Silence()
    record_compiles(events)
    events.write("job_start", pid=os.getpid())
    goodput.now("job_start_time")
    return events, goodput


def meshed(plan: Plan, process: int, goodput: GoodputLog | Silence) -> tuple[Mesh, MetricLogger]:
    """The mesh over all processes, which have joined, and MaxText's log, which process 0 alone shows."""
    mesh = jax.make_mesh(plan.mesh, ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    goodput.now("tpu_init_end_time")
    log = MetricLogger(plan) if process == 0 else MetricLogger(plan, os.open(os.devnull, os.O_WRONLY))
    log.configuration(jax.__version__, jaxlib.__version__, jax.default_backend())
    return mesh, log


def main(argv: list[str]) -> None:
    plan = Plan.load(Path(argv[0]))
    attempt, process, port = (int(a) for a in argv[1:])
    events, goodput = started(plan.name, attempt, process)
    goodput.now("tpu_init_start_time")
    connect(process, plan.processes, port)
    mesh, log = meshed(plan, process, goodput)

    if attempt == 0:
        client = distributed.global_state.client
        goodput.now("custom_badput_event_start_time", custom_badput_event_type="peak_benchmark")
        for record in matmul_rounds(
            process, plan.processes, plan.benchmark_round_s, lambda name: client.wait_at_barrier(name, 60_000)
        ):
            events.write("peak_round", **record)
        goodput.now("custom_badput_event_end_time", custom_badput_event_type="peak_benchmark")

    goodput.now("training_prep_start_time")
    manager = ocp.CheckpointManager(
        Path("checkpoints").absolute(),
        logger=OrbaxLogger(goodput),
        options=ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False),
    )
    restored = manager.latest_step()
    if restored is None:
        log.line("No existing checkpoints found, not restoring checkpoint.")
        state, first = init_state(plan.dims, plan.seed, mesh), 0
    else:
        log.line(f"restoring from this run's directory step {restored}")
        target = ocp.args.StandardRestore(abstract_state(plan.dims, mesh))
        state, first = manager.restore(restored, args=target), restored + 1
    events.write("ready", restored_step=restored, first_step=first)
    pipeline = make_pipeline(plan, attempt, process, first, events)
    goodput.now("training_prep_end_time")

    train(plan, attempt, process, first, state, mesh, pipeline, manager, log, goodput, events)
    manager.close()
    goodput.now("job_end_time")
    events.write("job_end")
    jax.distributed.shutdown()


def make_pipeline(plan: Plan, attempt: int, process: int, first: int, events: EventLog) -> TextPipeline:
    data, model = plan.mesh
    rows, part = plan.dims.batch_size // data, process // model

    def stall_s(step: int) -> float:
        return sum(s.stall_s for s in plan.stalls if s.attempt == attempt and s.first <= step <= s.last)

    def on_stall(step: int, start_ns: int, end_ns: int) -> None:
        events.write("stall", step=step, start_ns=start_ns, end_ns=end_ns)

    return TextPipeline(
        plan.dims,
        seed=plan.seed,
        rows=slice(part * rows, (part + 1) * rows),
        first_step=first,
        stall_s=stall_s,
        on_stall=on_stall,
    )


def train(plan, attempt, process, first, state, mesh, pipeline, manager, log, goodput, events) -> None:
    """The training loop from step `first` to the last."""
    step_fn, sharding = compiled_step(plan.dims, mesh, plan.learning_rate), NamedSharding(mesh, BATCH)
    extra = [s for s in plan.stragglers if s.attempt == attempt and s.process == process]
    windows = ProfileWindows(Path(f"profiles/attempt_{attempt}"), process, events)
    completed_ns = time.time_ns()
    for step in range(first, plan.steps):
        events.write("step_start", step=step)
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            goodput.now("data_loading_start_time")
            with jax.profiler.TraceAnnotation("data_loading"):
                batch = [jax.make_array_from_process_local_data(sharding, rows) for rows in next(pipeline)]
            goodput.now("data_loading_end_time")
            for straggler in extra:
                if straggler.first <= step <= straggler.last:
                    start_ns, end_ns = busy(straggler.busy_s)
                    events.write("straggle", step=step, start_ns=start_ns, end_ns=end_ns)
            goodput.now("step_start_time", step_count=step)
            state, loss = step_fn(state, *batch)
            loss = float(np.asarray(loss))
        before_ns, completed_ns = completed_ns, time.time_ns()  # one reading for truth and log
        events.write("step_end", step=step, loss=loss, ns=completed_ns)
        log.step(step, (completed_ns - before_ns) / 1e9, loss)

        save = step == plan.steps - 1 or (step > 0 and step % plan.checkpoint_every == 0)
        if save:
            manager.save(step, args=ocp.args.StandardSave(state))
            events.write("saved", step=step)
            log.line(f"saved a checkpoint at step {step}")
            goodput.now("custom_badput_event_start_time", custom_badput_event_type="profile_export")
            windows.stop(step)
            goodput.now("custom_badput_event_end_time", custom_badput_event_type="profile_export")
        if (save or step == first) and step < plan.steps - 1:
            windows.start(step)


if __name__ == "__main__":
    main(sys.argv[1:])
