"""One process of a training job: `main([case, attempt, process, port, bind])`, in the job's folder.

The loop of `reference.train.worker` with its recorders, and with places where harms are done. What is done is written,
as measured, to `truth/attempt_<a>.process_<p>.jsonl`, which no tool is given.
"""

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax._src import distributed  # for what the public API cannot say, see `plainly`
from jax.sharding import NamedSharding

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.training import hooks, programs
from benchmarks.diagnosis.training.sizes import MESHES, RATE, SIZES
from reference.train.data import TextPipeline
from reference.train.metric_logger import MetricLogger
from reference.train.model import BATCH, abstract_state
from reference.train.plan import Plan
from reference.train.recorders import OrbaxLogger, ProfileWindows
from reference.train.worker import connect, meshed, started

DEADLY = ("restart_loop", "kill", "out_of_memory", "hang", "preemption")
BAD_LOSS = 3  # steps with a loss that is no number until the job gives up


def plan_of(case: Case) -> Plan:
    """What the job says of itself: the sizes that it means to have, not those that a fault gave it."""
    every = case.checkpoint_every or case.steps
    return Plan(
        name=case.name,
        steps=case.steps,
        checkpoint_every=every,
        dims=SIZES[case.sizes],
        processes=case.processes,
        mesh=MESHES[case.processes],
        learning_rate=RATE,
        seed=case.seed % 1000,
    )


def storage(scene: hooks.Scene) -> ocp.StandardCheckpointHandler:
    """Checkpoints on a storage that takes its time: the job waits inside Orbax's own save and restore."""
    handler = ocp.StandardCheckpointHandler()
    save, restore = handler.async_save, handler.restore

    def wait(cause: str) -> None:
        for p in (*scene.case.planted, *scene.case.context):
            if p.cause == cause:
                with scene.measured(cause, -1):
                    time.sleep(p.seconds)

    async def slow_save(*args, **kwargs):
        wait("slow_checkpoint")
        return await save(*args, **kwargs)

    def slow_restore(*args, **kwargs):
        wait("slow_restore")
        return restore(*args, **kwargs)

    # its class stays what it is, by which Orbax knows the arguments that it takes
    handler.async_save, handler.restore = slow_save, slow_restore
    return handler


def main(argv: list) -> None:
    case = Case.load(Path(argv[0]))
    attempt, process, port, bind = (int(a) for a in argv[1:])
    plan = plan_of(case)
    events, goodput = started(plan.name, attempt, process)
    goodput.now("tpu_init_start_time")
    jax.config.update("jax_enable_x64", programs.wide(case))
    plainly()
    connect(process, case.processes, port, bind)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?=reference/|benchmarks/|site-packages/)")
    mesh, log = meshed(plan, process, goodput)
    scene = hooks.Scene(case, attempt, process, events, goodput, lambda text: log.line(text))

    goodput.now("training_prep_start_time")
    manager = ocp.CheckpointManager(
        Path("checkpoints").absolute(),
        item_handlers=storage(scene),
        logger=OrbaxLogger(goodput),
        options=ocp.CheckpointManagerOptions(max_to_keep=3, enable_async_checkpointing=False),
    )
    restored = manager.latest_step()
    if restored is None:
        log.line("No existing checkpoints found, not restoring checkpoint.")
        state, first = programs.initial(case, mesh), 0
    else:
        log.line(f"restoring from this run's directory step {restored}")
        target = ocp.args.StandardRestore(abstract_state(programs.dims_of(case), mesh))
        state, first = manager.restore(restored, args=target), restored + 1
    events.write("ready", restored_step=restored, first_step=first)
    data, model = plan.mesh
    rows, part = plan.dims.batch_size // data, process // model
    pipeline = TextPipeline(
        plan.dims,
        seed=plan.seed,
        rows=slice(part * rows, (part + 1) * rows),
        first_step=first,
        stall_s=lambda step: 0.0,
        on_stall=lambda *_: None,
    )
    goodput.now("training_prep_end_time")
    _train(scene, log, first, state, mesh, pipeline, manager)
    manager.close()
    goodput.now("job_end_time")
    events.write("job_end")
    jax.distributed.shutdown()


def plainly() -> None:
    """Talk to the coordinator without compression, in every job alike: a slow network is made by what it is told."""
    client = distributed._jax.get_distributed_runtime_client
    distributed._jax = SimpleNamespace(
        **{**vars(distributed._jax), "get_distributed_runtime_client": _uncompressed(client)}
    )


def _uncompressed(client: Callable) -> Callable:
    return lambda *args, **kwargs: client(*args, **{**kwargs, "use_compression": False})


CALLING, MOST_OF_CALLS = ("python_overhead", "device_to_host"), 10
"""Faults that are little but calls of Python, and of how many such steps a profile may hold them: some MB a step."""


def window_of(case: Case, attempt: int, first: int) -> tuple[int, int] | None:
    """After which steps of an attempt its profile starts and stops: nearly all of them, well before it dies."""
    if any(p.cause == "profiler_inside" for p in case.planted):
        return None
    for p in case.companions:
        if p.cause == "few_profiled_steps":
            return (p.first - 1, p.last) if attempt == 0 or p.first > first else None
    stop = case.steps - 1
    for p in (*case.planted, *case.context):
        dies = p.cause in DEADLY and attempt < (p.amount if p.cause == "restart_loop" else 1)
        if dies or (p.cause == "nan_rollback" and attempt == 0):
            stop = min(stop, p.first - 2)
    if case.frames and any(p.cause in CALLING for p in case.planted):
        stop = min(stop, first + MOST_OF_CALLS)
    return (first, stop) if stop > first + 1 else None


def _batch(case: Case, step: int, local: np.ndarray) -> np.ndarray:
    """This process's rows as the program gets them: with more of them, or with empty ones."""
    if more := programs.rows_of(case, step):
        return np.concatenate([local, local[np.arange(more) % len(local)]])
    if empty := programs.padding_of(case):
        return np.concatenate([local, np.zeros((empty * len(local), local.shape[1]), local.dtype)])
    return local


def _saves(case: Case, step: int) -> bool:
    every = next((p.every for p in case.planted if p.cause == "frequent_checkpoints"), case.checkpoint_every)
    return bool(every) and step > 0 and step % every == 0


def _train(scene: hooks.Scene, log: MetricLogger, first: int, state, mesh, pipeline, manager) -> None:
    """The training loop from step `first` to the last."""
    case, events, goodput = scene.case, scene.events, scene.goodput
    program_of, sharding = programs.steps_of(case, mesh), NamedSharding(mesh, BATCH)
    folder = Path(f"profiles/attempt_{scene.attempt}")
    windows = ProfileWindows(folder, scene.process, events, frames=case.frames)
    window, bad = window_of(case, scene.attempt, first), 0
    poison = next((p for p in case.planted if p.cause == "nan_rollback" and scene.attempt == 0), None)
    read = list(itertools.islice(pipeline, case.steps - first))  # what a job waits for then is planted
    completed_ns = time.time_ns()
    for step in range(first, case.steps):
        events.write("step_start", step=step)
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            goodput.now("data_loading_start_time")
            with jax.profiler.TraceAnnotation("data_loading"):
                hooks.do(hooks.INPUT, scene, step)
                batch = [
                    jax.make_array_from_process_local_data(sharding, _batch(case, step, rows))
                    for rows in read[step - first]
                ]
            goodput.now("data_loading_end_time")
            hooks.do(hooks.BEFORE, scene, step)
            goodput.now("step_start_time", step_count=step)
            state, loss = program_of(step)(state, *batch)
            loss = float(np.asarray(loss))
            hooks.do(hooks.INSIDE, scene, step, state)
        if poison and step == poison.first:
            state = state | {"params": jax.tree.map(lambda x: x * np.float32("nan"), state["params"])}
        before_ns, completed_ns = completed_ns, time.time_ns()  # one reading for truth and log
        events.write("step_end", step=step, loss=loss, ns=completed_ns)
        log.step(step, (completed_ns - before_ns) / 1e9, loss)
        bad = bad + 1 if loss != loss else 0
        if bad == BAD_LOSS:
            log.line(f"loss is NaN for {BAD_LOSS} steps, stopping: roll back to the last good checkpoint")
            events.write("gave_up", step=step)
            os._exit(1)
        hooks.do(hooks.AFTER, scene, step, state)
        if _saves(case, step) and not bad and not (poison and step == poison.first):
            start_ns = time.time_ns()
            manager.save(step, args=ocp.args.StandardSave(state))
            events.write("saved", step=step, start_ns=start_ns)
            log.line(f"saved a checkpoint at step {step}")
        if window and step == window[1]:
            goodput.now("custom_badput_event_start_time", custom_badput_event_type="profile_export")
            windows.stop(step)
            goodput.now("custom_badput_event_end_time", custom_badput_event_type="profile_export")
        elif window and step == window[0]:
            windows.start(step)
