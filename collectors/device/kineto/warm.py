"""Compiles every kernel of the reader, so that the first trace need not."""

import tempfile
from pathlib import Path

import numpy as np

from collectors.base import Source
from collectors.device.kineto import read
from collectors.device.kineto.nesting import Numbered, chained, new_chains, with_room
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import nested

_SAMPLE = (
    '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, '
    '"dur": 1, "args": {"correlation": 1, "x": 1.5, "grid": [1, 1]}}, {"ph": "X", "cat": "cuda_runtime", "name": "l", '
    '"pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 1}}]}'
)


def warm() -> None:
    """Reads a trace of two events, makes tables grow, and does what else is asked by itself."""
    with tempfile.TemporaryDirectory(prefix="chipledger-") as folder:
        file = Path(folder) / "sample.json"
        file.write_text(_SAMPLE)
        for _ in read(Source(file, file.name)):
            pass
    texts, rows = Texts(rows=2), Numbered(1, room=2)
    for n in range(4):
        texts.of(str(n))
    rows._grow()
    chained(with_room(new_chains(1), 2), np.int64(-1), np.int64(0))
    nested(np.frombuffer(b"{}", np.uint8), 0, 2)
