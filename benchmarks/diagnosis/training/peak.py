"""What a process can do at best while others do the same: `main([seconds, out])`, one file with FLOP/s."""

import time
from pathlib import Path

import jax
import jax.numpy as jnp

from reference.train.worker import die_with_launcher

SIZE = 512


def main(argv: list) -> None:
    seconds, out = float(argv[0]), Path(argv[1])
    die_with_launcher()
    multiply, a = jax.jit(lambda a, b: a @ b), jnp.full((SIZE, SIZE), 1.0 / SIZE)
    multiply(a, a).block_until_ready()
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        multiply(a, a).block_until_ready()
        count += 1
    out.write_text(str(2.0 * SIZE**3 * count / (time.perf_counter() - begun)))
