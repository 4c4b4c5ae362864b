"""Damaged traces of the PyTorch profiler: whatever the bytes, what is whole is kept and the rest named, or refused.

In the suite a few hundred examples run. For a long hunt, with real traces as a start:

    python -m tests.fuzz.test_kineto_fuzz SECONDS [TRACE...]

It writes each input that broke the reader to the current folder.
"""

import contextlib
import gzip
import random
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Lost, Rows, Source
from collectors.device import kineto
from collectors.ingesting.plausible import plausible
from errors import InputError
from runs.schema import SCHEMAS
from tests.collectors.kineto_traces import collective, event, frame, kernel, launch, op, step, trace
from tests.fuzz.damage import FOREIGN, damaged


def original() -> bytes:
    """A small trace with something of everything."""
    mm = {"dims": [[128, 64], [64, 32]], "types": ["c10::BFloat16", "c10::BFloat16"]}
    memory = (
        '{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5.0, '
        '"args": {"Total Allocated": 4096, "Bytes": 4096, "Device Id": 0, "Device Type": 1}}'
    )
    events = [
        step(1, 0, 100),
        frame("train.py(12): step", 0, 99),
        frame("nn.Module: Linear_0", 1, 60),
        op("aten::mm", 5, 20, Sequence_number=3, External_id=9, **mm),
        launch(7, 1, 3),
        kernel("gemm", 50, 5.125, 3, External_id=9),
        op("autograd::MmBackward0", 70, 9, tid=2, Sequence_number=3),
        launch(40, 1, 20, "cudaStreamBeginCapture", tid=3),
        *(launch(41 + n, 1, 21 + n, tid=3) | {"args": {"correlation": 21 + n, "kernel": "k"}} for n in range(2)),
        launch(44, 1, 24, "cudaStreamEndCapture", tid=3),
        launch(72, 1, 4, "cudaGraphLaunch", tid=2),
        kernel("k", 80, 1, 4),
        kernel("k", 81, 1, 4),
        collective("allreduce", 90, 9, 5, Seq=4),
        event("gpu_memcpy", "Memcpy HtoD", 95, 1, 0, 7, device=0, stream=7, correlation=6, bytes=64),
        memory,
        '{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}',
        '{"ph": "s", "id": 3, "pid": 1, "tid": 1, "ts": 7, "cat": "ac2g", "name": "ac2g"}',
    ]
    info = {"rank": 0, "world_size": 2, "backend": "nccl", "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}
    properties = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "numSms": 132}]
    return trace(events, distributedInfo=info, deviceProperties=properties)


ORIGINALS = [original(), gzip.compress(original()), original().replace(b", ", b",\n  ")]


def check(path: Path) -> None:
    """Reads a file to its end; raises where the reader fails in any other way than it may."""
    source = Source(path, path.name)
    kineto.sniff(source)
    stored = 0
    with contextlib.suppress(InputError):
        for item in plausible(kineto.read(source)):
            if isinstance(item, Rows):
                assert item.batch.schema.equals(SCHEMAS[item.table].arrow)
                item.batch.validate(full=True)
                stored += item.batch.num_rows if item.table == "op_events" else 0
            elif isinstance(item, Lost):
                assert item.what and item.reason


@given(damaged(ORIGINALS))
@settings(max_examples=400, deadline=None)
def test_no_damage_breaks_the_reader(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank-0.pt.trace.json"
        path.write_bytes(data)
        check(path)


@given(
    st.lists(st.sampled_from([*FOREIGN, b'{"ph":"X"', b'"ts":', b'"args":{', b"1e15", b'"cat":"kernel"']), max_size=12)
)
@settings(max_examples=200, deadline=None)
def test_pieces_of_json_in_any_order_break_nothing(pieces):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(b'{"schemaVersion": 1, "traceEvents": [' + b",".join(pieces))
        check(path)


def hunt(seconds: float, traces: list[bytes]) -> int:
    """Damages traces at random for a time; returns how many broke the reader."""
    chance, end, broken, tried = random.Random(time.time()), time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        while time.monotonic() < end:
            data = bytearray(chance.choice(traces))
            for _ in range(chance.randint(1, 6)):
                at = chance.randrange(len(data))
                match chance.randrange(4):
                    case 0:
                        data[at] ^= 1 << chance.randrange(8)
                    case 1:
                        del data[at : at + chance.randrange(1, 60)]
                    case 2:
                        data[at:at] = chance.choice(FOREIGN)
                    case _:
                        data[at : at + chance.randrange(1, 9)] = str(chance.choice((0, -1, 2**63, 10**19))).encode()
            path.write_bytes(data)
            tried += 1
            try:
                check(path)
            except Exception as error:
                broken += 1
                Path(f"broken-{broken}.json").write_bytes(data)
                print(type(error).__name__, error)
    print(f"{tried:,} tried, {broken} broke the reader")
    return broken


if __name__ == "__main__":
    given_traces = [Path(p).read_bytes() for p in sys.argv[2:]]
    unpacked = [gzip.decompress(t) if t[:2] == b"\x1f\x8b" else t for t in given_traces]
    sys.exit(bool(hunt(float(sys.argv[1]), [*ORIGINALS, *unpacked])))
