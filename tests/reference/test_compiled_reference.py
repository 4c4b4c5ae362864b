"""The bundled compiled runs: small, complete, and without a trace of the machine that made them."""

import base64
import json
import re

import pyarrow as pa
import pytest

from reference.compiled import ASKED, BATCH, RUNS, request

LEAK = re.compile(rb"/(home|root|tmp|work|Users|mnt|opt|usr|var|private)/")


def made(name: str) -> dict:
    return json.loads((RUNS / name / "train_step.compiled.json").read_text())


def test_they_are_small():
    assert sum(f.stat().st_size for name in ASKED for f in (RUNS / name).iterdir()) < 1_500_000
    assert {p.name for p in RUNS.glob("compiled-*")} == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_each_is_what_was_asked(name):
    asked, said = request(name), made(name)
    facts, (program,) = said["facts"], said["programs"]
    assert (facts["model"], facts["topology"], facts["global_batch"]) == (asked.subject, asked.topology.text, BATCH)
    assert facts["parallelism"] == dict(asked.mesh.axes) and facts["chips"] == len(said["devices"]) == 16
    assert said["outcome"] == ("out_of_memory" if name.endswith("too-large") else "compiled")
    assert (program["hlo"] is None) == (said["outcome"] == "out_of_memory")
    # weights, mean and square of 4 bytes, over the axes that shard them, are most of what a device is given
    assert sum(a["bytes"] for a in program["arguments"]) > 12 * 8e9 / 16


@pytest.mark.parametrize("name", [n for n in ASKED if not n.endswith("too-large")])
def test_no_path_of_a_machine_is_in_them(name):
    packed = base64.b64decode(made(name)["programs"][0]["hlo"])
    proto = pa.input_stream(pa.BufferReader(packed), compression="zstd").read()
    assert b"simulators/tpu_compile/program.py" in proto
    assert not LEAK.search(proto), LEAK.search(proto)
