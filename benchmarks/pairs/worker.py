"""One process of a job of a pair: `main([job, process, port, bind, mine, next])`, in the job's folder.

The loop of `reference.train.worker` with its recorders and without checkpoints. The jobs of a pair take turns of a few
steps, so that whatever the machine does meets all of them alike: a byte in the pipe `mine` gives the turn, a byte in
`next` hands it on. Pauses lie between steps and are in none. Its clocks, which no analyzer reads, are in
`truth/attempt_0.process_<p>.jsonl`.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from benchmarks.diagnosis.training.worker import plainly
from benchmarks.pairs.jobs import PROFILED, Job
from reference.train import model
from reference.train.data import TextPipeline
from reference.train.metric_logger import MetricLogger
from reference.train.model import BATCH
from reference.train.plan import ModelDims, Plan
from reference.train.recorders import ProfileWindows
from reference.train.worker import busy, connect, meshed, started

RATE = 1e-3
TURN = 5  # steps


class Turns:
    """Whose turn it is. Both pipes are opened for reading and writing, so that no one waits for the other to open."""

    def __init__(self, mine: str, after: str):
        self._mine, self._after = (os.open(path, os.O_RDWR) for path in (mine, after))

    def wait(self) -> None:
        os.read(self._mine, 1)

    def hand_on(self) -> None:
        os.write(self._after, b"x")


def plan_of(job: Job) -> Plan:
    return Plan("job", job.steps, job.steps, job.dims, job.processes, job.mesh, RATE, job.seed)


def loss_of(job: Job) -> Callable:
    """The reference's loss, with layers that are computed again in the backward pass, or with barriers and a loop that
    keep the compiler from fusing what lies on both sides of them."""
    hold = jax.lax.optimization_barrier if job.barrier else lambda x: x

    def loss(params: dict, inputs: Any, targets: Any, dims: ModelDims) -> Any:
        causal = jnp.tril(jnp.ones((dims.seq_len, dims.seq_len), bool))

        def norm(x: Any) -> Any:
            square = hold(x * x)
            return hold(x * hold(jax.lax.rsqrt(jnp.mean(square, axis=-1, keepdims=True) + 1e-6)))

        def layer(x: Any, qkv: Any, out: Any, wi: Any, wo: Any) -> Any:
            q, k, v = jnp.moveaxis(jnp.einsum("btd,dshe->btshe", norm(x), qkv), 2, 0)
            scores = hold(hold(jnp.einsum("bqhe,bkhe->bhqk", q, k)) / dims.head_dim**0.5)
            masked = hold(jnp.where(causal, scores, -1e9))
            powers = hold(jnp.exp(hold(masked - masked.max(-1, keepdims=True))))
            weights = hold(powers / powers.sum(-1, keepdims=True))
            x = hold(x + jnp.einsum("bqhe,hed->bqd", jnp.einsum("bhqk,bkhe->bqhe", weights, v), out))
            inner = norm(x) @ wi
            gate = hold(jnp.tanh(hold(0.79788456 * hold(inner + hold(0.044715 * hold(inner * hold(inner * inner)))))))
            inner = hold(0.5 * hold(inner * hold(1 + gate)))
            scale = jax.lax.stop_gradient(inner)  # so that none of them is kept for the backward pass
            if job.barrier:  # a loop that is not unrolled: XLA removes barriers on CPU before it fuses, but not this
                scale = jax.lax.fori_loop(0, job.chain, lambda _, s: s * (1 - 0.001 * s), scale)
            else:
                for _ in range(job.chain):
                    scale = scale * (1 - 0.001 * scale)
            return hold(x + (inner * (1 + 0.001 * scale) if job.chain else inner) @ wo)

        again = jax.checkpoint(layer) if job.remat == "full" else layer
        x = params["embedding"][inputs] + params["position"]
        for n in range(dims.layers):
            x = again(x, *(params[name][n] for name in ("qkv", "out", "wi", "wo")))
        logits = norm(x) @ params["unembedding"]
        hit = jnp.sum(logits * jax.nn.one_hot(targets, dims.vocab_size, dtype=logits.dtype), axis=-1)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - hit)

    return loss


def initial(job: Job, mesh: Mesh) -> dict:
    state = model.init_state(job.dims, job.seed % 1000, mesh)
    if job.precision == "float32":
        return state
    widen = jax.jit(lambda tree: jax.tree.map(lambda x: x.astype(jnp.float64), tree))
    return {"step": state["step"]} | widen({k: v for k, v in state.items() if k != "step"})


def batches(job: Job, pipeline: TextPipeline) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read ahead by so many workers, each of which waits `read_s` for its storage."""

    def read(rows: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        time.sleep(job.read_s)
        return rows

    if not job.read_s:
        yield from pipeline
    with ThreadPoolExecutor(job.workers) as pool:
        ahead: deque[Future] = deque(pool.submit(read, next(pipeline)) for _ in range(job.workers))
        while True:
            ahead.append(pool.submit(read, next(pipeline)))
            yield ahead.popleft().result()


def write_metrics(out: Path, step: int, state: dict) -> None:
    """A histogram of every weight and moment, as a metrics writer keeps it."""
    with jax.profiler.TraceAnnotation("log_metrics"), out.open("a") as f:
        for name in ("params", "m", "v"):
            for leaf in jax.tree.leaves(state[name]):
                for shard in leaf.addressable_shards:
                    counts, _ = np.histogram(np.asarray(shard.data), 64)
                    f.write(f"{step} {name} {counts.tolist()}\n")


def main(argv: list) -> None:
    job = Job.of(Path(argv[0]).read_text())
    process, port, bind = (int(a) for a in argv[1:4])
    turns = Turns(*argv[4:])
    plan = plan_of(job)
    events, goodput = started(plan.name, 0, process)
    goodput.now("tpu_init_start_time")
    jax.config.update("jax_enable_x64", job.precision == "float64")
    plainly()
    connect(process, job.processes, port, bind)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?=reference/|benchmarks/|site-packages/)")
    mesh, log = meshed(plan, process, goodput)
    for name, value in job.settings.items():
        log.line(f"Config param {name}: {value}")
    goodput.now("training_prep_start_time")
    state = initial(job, mesh)
    data, along = plan.mesh
    rows, part = plan.dims.batch_size // data, process // along
    mine = slice(part * rows, (part + 1) * rows)
    text = TextPipeline(
        plan.dims, seed=plan.seed, rows=mine, first_step=0, stall_s=lambda step: 0.0, on_stall=lambda *_: None
    )
    goodput.now("training_prep_end_time")
    _train(job, process, state, mesh, batches(job, text), log, events, goodput, turns)
    goodput.now("job_end_time")
    events.write("job_end")
    jax.distributed.shutdown()


def _train(
    job: Job,
    process: int,
    state: dict,
    mesh: Mesh,
    pipeline: Iterator,
    log: MetricLogger,
    events: Any,
    goodput: Any,
    turns: Turns,
) -> None:
    program, sharding = model.compiled_step(job.dims, mesh, RATE, loss_of(job)), NamedSharding(mesh, BATCH)
    windows = ProfileWindows(Path("profiles/attempt_0"), process, events)
    slow = job.slow_host_s if process == job.processes - 1 else 0.0
    for step in range(job.steps):
        if step % TURN == 0:
            turns.wait()
        if step == PROFILED[0]:
            windows.start(step)
        began_ns, began_cpu = time.time_ns(), time.process_time()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            goodput.now("data_loading_start_time")
            with jax.profiler.TraceAnnotation("data_loading"):
                batch = [jax.make_array_from_process_local_data(sharding, rows) for rows in next(pipeline)]
            goodput.now("data_loading_end_time")
            if slow:
                busy(slow)
            goodput.now("step_start_time", step_count=step)
            state, loss = program(state, *batch)
            loss = float(np.asarray(loss))
            if step and step % job.log_period == 0:
                write_metrics(Path(f"metrics_{process}.txt"), step, state)
        ended_ns = time.time_ns()
        events.write("step_end", step=step, start_ns=began_ns, ns=ended_ns, cpu_s=time.process_time() - began_cpu)
        log.step(step, (ended_ns - began_ns) / 1e9, loss)
        if step == PROFILED[1]:
            goodput.now("custom_badput_event_start_time", custom_badput_event_type="profile_export")
            windows.stop(step)
            goodput.now("custom_badput_event_end_time", custom_badput_event_type="profile_export")
        if step % TURN == TURN - 1 or step == job.steps - 1:
            turns.hand_on()
