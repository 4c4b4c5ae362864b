"""Damaged files that broke a reader once, each as small as it still did: found by `benchmarks/faults/fuzz`."""

import contextlib
import gzip
import json
import pickle
import re
import sqlite3
import tempfile

import pytest

from collectors.base import Lost
from collectors.device import memory_snapshot, nsys, viewer, xplane
from collectors.device.rocm import rocpd, rocprofv3
from collectors.ingesting.items import items_of
from collectors.ingesting.unpack import SafeSource
from collectors.serving import request_trace
from collectors.training import nanotron, pipeline_trace, trainer_state, verl
from errors import InputError
from tests.collectors import nsys_exports, snapshots, test_nanotron
from tests.collectors.rocm_files import rocpd_bytes
from tests.collectors.rocprofv3_files import whole_tool
from tests.collectors.traces import PlaneBuilder, XSpace


def without_segments(**changed) -> bytes:
    """A memory snapshot whose blocks lie in no segment."""
    told = pickle.loads(snapshots.small())
    blocks = [{**block, **changed} for segment in told["segments"] for block in segment["blocks"]]
    return snapshots.dumped({**told, "segments": [{"blocks": blocks}]})


def began_at_the_end_of_time() -> bytes:
    """An export of Nsight Systems whose session started where 64 bits end."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(nsys_exports.as_bytes())
        db.execute("update TARGET_INFO_SESSION_START_TIME set utcEpochNs = ?", ((1 << 63) - 1,))
        db.commit()
        return db.serialize()


def wordless() -> bytes:
    space = XSpace(errors=[b""])
    PlaneBuilder(space, "/host:CPU").line("python", [("train", 0, 900, {"step_num": 3, "_r": 1})])
    return space.SerializeToString()


def with_half_a_letter(kind: str, text: str) -> bytes:
    """JSON of rocprofv3 in which each text under this key begins with half of a letter beyond 16 bits."""
    told = whole_tool().text()
    found = re.sub(rf'("{kind}": ?)"{text}', r'\1"\\ud800', told)
    assert found != told
    return found.encode()


VIEWED = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 10**400, "dur": 1, "name": "step"},
]

FOUND = {
    "a length with more digits than a float holds": (
        request_trace,
        b'{"timestamp": 0, "input_length": 7, "output_length": %s}\n' % (b"9" * 400)
        + b'{"timestamp": 9, "input_length": 5, "output_length": 4}',
    ),
    "a time with more digits than a float holds": (viewer, json.dumps({"traceEvents": VIEWED}).encode()),
    "losses that add up to more than a float holds": (
        trainer_state,
        json.dumps(
            {
                "global_step": 2,
                "log_history": [
                    *({"step": step, "loss": 1e308} for step in (1, 2)),
                    {"step": 2, "train_runtime": 10.0, "train_loss": 1.0},
                ],
            }
        ).encode(),
    ),
    "a rate of one device of which more would be than a float holds": (
        nanotron,
        test_nanotron.step(1, rates="1e17 | tokens_per_sec_per_gpu: 1e-320").encode(),
    ),
    "a rate so small that a step made no token": (
        verl,
        b"step:1 - perf/total_num_tokens:5 - perf/throughput:1e-320 - timing_s/step:1e-9\n",
    ),
    "a key of JSON that is no text": (rocprofv3, b'{"rocprofiler-sdk-tool": [{"\\x": 1}]}'),
    "a table of operations without what they are": (
        pipeline_trace,
        b"dp_rank,stage,rank,step,start_ts,duration\n0,0,0,1,0.1,0.2\n",
    ),
    "a fault that a profiler noted without a word": (xplane, wordless()),
    "blocks of memory in no segment": (memory_snapshot, without_segments()),
    "blocks of memory in no segment and nowhere": (memory_snapshot, without_segments(address=None)),
    "a session that started where 64 bits end": (nsys, began_at_the_end_of_time()),
    **{
        f"half a letter in a {kind} of rocprofv3": (rocprofv3, with_half_a_letter(kind, text))
        for kind, text in (
            ("formatted_kernel_name", ""),
            ("kind", ""),
            ("value", ""),
            ("hostname", ""),
            ("name", "gfx"),
        )
    },
    "a database that is packed and cut": (rocpd, gzip.compress(rocpd_bytes())[:-9]),
}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_read_in_part_or_refused_in_a_sentence_and_leaves_nothing(name, tmp_path, monkeypatch):
    reader, data = FOUND[name]
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    path = tmp_path / "input"
    path.write_bytes(data)
    try:
        items = list(items_of(SafeSource(path, "input"), reader))
    except InputError as refused:
        assert "input" in str(refused) and "\n" not in str(refused)
        items = []
        assert not list(elsewhere.iterdir()), "while the error is at hand"
    assert not list(elsewhere.iterdir())
    assert all(item.what and item.reason for item in items if isinstance(item, Lost))
