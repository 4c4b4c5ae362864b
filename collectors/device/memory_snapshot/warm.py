"""Compiles every kernel of the reader, so that the first snapshot need not."""

import pickle
import tempfile
from pathlib import Path

from collectors.base import Source
from collectors.device.memory_snapshot import read


def sample() -> bytes:
    """A snapshot of one block, whose stack has one frame."""
    frames = [{"name": "f", "filename": "train.py", "line": 1}]
    block = {"address": 512, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": 512, "total_size": 1024, "blocks": [block]}
    event = {"action": "alloc", "addr": 512, "size": 512, "stream": 0, "time_us": 1_000_000, "frames": frames}
    return pickle.dumps({"segments": [segment], "device_traces": [[event, dict(event, action="oom")]]})


def warm() -> None:
    """Reads the sample."""
    with tempfile.TemporaryDirectory(prefix="chipledger-") as folder:
        file = Path(folder) / "sample.pickle"
        file.write_bytes(sample())
        for _ in read(Source(file, file.name)):
            pass
