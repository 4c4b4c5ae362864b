"""The input pipeline: English text as bytes, cut into sequences, one batch per blocking `next()`."""

import time
from collections.abc import Callable
from pydoc_data.topics import topics  # 700 kB of English that every Python carries, so no file need be fetched

import numpy as np

from reference.train.plan import ModelDims


class TextPipeline:
    """Yields `(inputs, targets)`, int32 `[rows, seq_len]`, for this process's `rows` of the job's batch.

    Nothing is prefetched: each `next()` reads, cuts and stacks its batch while the caller waits. Batch `n` depends
    on `(seed, n)` alone, so a restarted job sees what the first would have seen. `stall_s(step)` is how long the
    storage hangs before a read; `on_stall(step, start_ns, end_ns)` hears of each such wait.
    """

    def __init__(
        self,
        dims: ModelDims,
        *,
        seed: int,
        rows: slice,
        first_step: int,
        stall_s: Callable[[int], float],
        on_stall: Callable[[int, int, int], None],
    ):
        text = "\n".join(topics[name] for name in sorted(topics))
        self._bytes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
        self._dims, self._seed, self._rows, self._step = dims, seed, rows, first_step
        self._stall_s, self._on_stall = stall_s, on_stall

    def __iter__(self):
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        step, dims = self._step, self._dims
        self._step += 1
        if (wait := self._stall_s(step)) > 0:
            start_ns = time.time_ns()
            time.sleep(wait)
            self._on_stall(step, start_ns, time.time_ns())
        rng = np.random.default_rng((self._seed, step))
        starts = rng.integers(0, len(self._bytes) - dims.seq_len - 1, dims.batch_size)[self._rows]
        window = np.stack([self._bytes[s : s + dims.seq_len + 1] for s in starts]).astype(np.int32)
        return window[:, :-1], window[:, 1:]
