"""The JAX job: `python -m reference.gpu.jax_worker PLAN 0 PORT`, in the job's folder, one process on one device.

The same plan as the PyTorch job, with the decoder of the bundled training run. Its profile lies below `profile/`, what
was done to it in `truth/rank-0.jsonl`.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

from reference.gpu.harm import Events, late
from reference.gpu.plan import Plan, within
from reference.train.data import TextPipeline
from reference.train.model import compiled_step, init_state
from reference.train.plan import ModelDims

PEAK_SIZES, PEAK_GPU_SIZES = (256, 512, 1024), (2048, 4096, 8192)


def peak(kind: jnp.dtype, sizes: tuple[int, ...], events: Events) -> None:
    """The best rate of matrix products of several sizes."""
    product = jax.jit(jnp.matmul)
    for size in sizes:
        a = jnp.ones((size, size), kind)
        product(a, a).block_until_ready()
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.5:
            product(a, a).block_until_ready()
            done += 1
        events.write("peak", size=size, flops_per_s=2.0 * size**3 * done / (time.perf_counter() - start))


def small_calls(plan: Plan, events: Events, step: int) -> None:
    """Many programs on a few numbers: a device waits for each to be launched."""
    start, x = time.time_ns(), jnp.ones(8)
    for _ in range(plan.small_calls // 2):
        x = x * 1.0001 + 1e-6
    x.block_until_ready()
    events.write("small_calls", step=step, start_ns=start, end_ns=time.time_ns(), calls=plan.small_calls)


def main(argv: list[str]) -> None:
    plan, events = Plan.load(Path(argv[0])), Events(Path("truth/rank-0.jsonl"))
    device = jax.devices()[0]
    gpus = sum(d.platform == "gpu" for d in jax.devices())
    peak(jnp.bfloat16 if gpus else jnp.float32, PEAK_GPU_SIZES if gpus else PEAK_SIZES, events)
    d = plan.dims
    dims = ModelDims(d.layers, d.emb_dim, d.heads, d.head_dim, d.mlp_dim, d.vocab_size, d.seq_len, d.batch_size)
    mesh = jax.make_mesh((1, 1), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto), devices=[device])
    state, step_of = init_state(dims, plan.seed, mesh), compiled_step(dims, mesh, plan.learning_rate)
    batches = TextPipeline(
        dims,
        seed=plan.seed,
        rows=slice(None),
        first_step=0,
        stall_s=lambda step: plan.stall_s if within(step, plan.stalled) else 0.0,
        on_stall=lambda step, start_ns, end_ns: events.write("stall", step=step, start_ns=start_ns, end_ns=end_ns),
    )
    events.write("ready", device=device.device_kind, gpus=gpus, jax=jax.__version__)
    for step in range(plan.steps):
        if step == plan.profiled[0]:
            jax.profiler.start_trace("profile")
        start = time.time_ns()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            with jax.profiler.TraceAnnotation("data_loading"):
                inputs, targets = (np.minimum(rows, dims.vocab_size - 1) for rows in next(batches))
            if within(step, plan.straggler):
                late(plan, events, step)
            state, loss = step_of(state, inputs, targets)
            if within(step, plan.launch_bound):
                small_calls(plan, events, step)
            told = float(loss)
        events.write("step", step=step, start_ns=start, end_ns=time.time_ns(), loss=told)
        if step == plan.profiled[1]:
            jax.profiler.stop_trace()


if __name__ == "__main__":
    main(sys.argv[1:])
