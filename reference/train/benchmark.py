"""What a process can do at best: the peak that the run's utilisation is measured against."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

SIZES = (256, 512, 1024)


def matmul_rounds(process: int, processes: int, seconds: float, barrier: Callable[[str], None]) -> list[dict]:
    """Square float32 matmuls for `seconds` per size: {size, alone, flops, start_ns, end_ns} per round.

    First by all processes at the same time (`barrier` lines them up), then by each alone. The peak of a chip is the
    best common round's FLOP/s, as the mean of the processes: where they share cores, one alone would overstate what
    the job has. One operation may still beat that peak, up to the rate alone, while the other processes wait.
    """
    multiply = jax.jit(lambda a, b: a @ b)

    def measure(size: int, alone: bool) -> dict:
        a = jnp.full((size, size), 1.0 / size)
        multiply(a, a).block_until_ready()
        if not alone:
            barrier(f"peak_{size}")
        start_ns, count = time.time_ns(), 0
        while time.time_ns() - start_ns < seconds * 1e9:
            multiply(a, a).block_until_ready()
            count += 1
        return {
            "size": size,
            "alone": alone,
            "flops": 2.0 * size**3 * count,
            "start_ns": start_ns,
            "end_ns": time.time_ns(),
        }

    rounds = [measure(size, alone=False) for size in SIZES]
    for turn in range(processes):
        barrier(f"alone_{turn}")
        if turn == process:
            rounds.append(measure(SIZES[1], alone=True))
    barrier("alone_done")
    return rounds
