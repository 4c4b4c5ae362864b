"""The worker process: its limits, its cache, and what becomes of everything that goes wrong in it."""

import base64
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from math import prod
from pathlib import Path

import pyarrow as pa
import pytest

from catalog import model
from errors import InputError
from simulators.tpu_compile import launch
from simulators.tpu_compile.launch import Cancelled, Limits, compiled_file
from simulators.tpu_compile.request import make_request
from simulators.tpu_compile.topology import Topology
from tests.simulators import tiny
from tests.simulators.compiler import needs_compiler

pytestmark = needs_compiler
ROOT = Path(__file__).resolve().parents[2]
FILE = """
import os, subprocess, sys, time
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def arguments(mesh):
    rows = NamedSharding(mesh, P("data", None))
    columns = NamedSharding(mesh, P(None, "model"))
    return (jax.ShapeDtypeStruct((2000, 1000), jnp.bfloat16, sharding=rows),
            jax.ShapeDtypeStruct((1000, 2000), jnp.bfloat16, sharding=columns))

def step(x, w):
{body}
"""


def of_function(tmp_path, body, **given):
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    return make_request(function=f"{file}:step", **{"topology": "v6e:2x2", "mesh": "data=2,model=2", **given})


def of_model(m, **given):
    return make_request(model=m, subject=m.name, **{"topology": "v6e:2x2", "mesh": "data=2,model=2", **given})


def read(file: Path) -> dict:
    return json.loads(file.read_text())


def hlo(program: dict) -> str:
    from jaxlib import xla_client

    packed = base64.b64decode(program["hlo"])
    proto = pa.input_stream(pa.BufferReader(packed), compression="zstd").read()
    return xla_client.XlaComputation(proto).get_hlo_module().to_string()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not alive(pid)


def test_a_function(tmp_path):
    told = []
    request = of_function(tmp_path, 'print("hello")\nreturn jax.nn.relu(x @ w)')
    file = compiled_file(request, tmp_path / "cache", progress=lambda part, doing: told.append((part, doing)))
    made = read(file)
    (program,) = made["programs"]
    assert (made["format"], made["version"], made["outcome"]) == ("chipledger.compiled", 1, "compiled")
    assert made["facts"]["function"] == "mine.py:step" and made["facts"]["model"] is None
    assert program["matmuls"] == [{"name": "", "m": 2000, "k": 1000, "n": 2000, "batch": 1, "count": 1}]
    assert [a["shape"] for a in program["arguments"]] == [[1000, 1000], [1000, 1000]]
    assert [a["name"] for a in program["arguments"]] == ["x", "w"]
    assert program["memory"]["arguments"] == 2 * 2_048_000  # bf16[1000, 1000], one axis padded to 1024
    assert sorted(d["coords"] for d in made["devices"]) == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
    text = hlo(program)
    assert "bf16[1000,1000]" in text and "(8,128)(2,1)" in text
    assert str(tmp_path) not in text and str(ROOT) not in text
    parts = [part for part, _ in told]
    assert parts == sorted(parts) and parts[0] >= 0 and parts[-1] <= 1
    assert any("compiling" in doing for _, doing in told)  # what follows tells of itself where it takes seconds


@pytest.mark.slow
def test_a_step_and_its_cache(tmp_path):
    request = of_model(replace(tiny.MODELS["dense"], name="tiny"), seq=256, batch=4)
    file = compiled_file(request, tmp_path)
    made, stamp = read(file), file.stat().st_mtime_ns
    (program,) = made["programs"]
    facts = made["facts"]
    assert facts["parallelism"] == {"data": 2, "model": 2} and facts["global_batch"] == 4 and facts["layers"] == 2
    assert "full_dense x 2" in facts["rule"]
    text = hlo(program)
    assert "all-reduce" in text and f"simulators{os.sep}tpu_compile{os.sep}layers.py" in text
    assert str(ROOT) not in text
    logical = sum(a["bytes"] for a in program["arguments"])
    assert logical <= program["memory"]["arguments"] and program["memory"]["aliased"] > 0.9 * logical
    by_name = {a["name"]: a for a in program["arguments"]}
    wq = by_name["params/layers/full_dense/wq"]
    assert (wq["global_shape"], wq["shape"], wq["dtype"]) == ([2, 64, 4, 16], [2, 64, 2, 16], "float32")
    assert all(prod(a["shape"]) <= prod(a["global_shape"]) for a in program["arguments"])
    began = time.monotonic()
    assert compiled_file(request, tmp_path) == file and file.stat().st_mtime_ns == stamp
    assert time.monotonic() - began < 1
    assert [p.name for p in tmp_path.iterdir()] == [file.name]


def test_it_does_not_fit(tmp_path):
    made = read(compiled_file(of_model(model("llama3.1-8b"), topology="v5e:1x1", mesh="data=1"), tmp_path))
    assert made["outcome"] == "out_of_memory" and "RESOURCE_EXHAUSTED" in made["message"]
    (program,) = made["programs"]
    assert program["hlo"] is None and program["memory"] is None
    # 8.03e9 weights, mean and square of their gradients, four bytes each, on a chip of 16 GiB
    assert made["needed_bytes"] > 12 * 8.03e9 and 15 << 30 < made["limit_bytes"] < 16 << 30
    assert sum(a["bytes"] for a in program["arguments"]) == pytest.approx(12 * 8.03e9, rel=0.01)


@pytest.mark.parametrize(
    "body, said",
    [
        ('raise ValueError("no such\\nthing")', "mine.py, line 13: step failed with ValueError: no such thing"),
        ("return x @ x", "mine.py, line 13: step failed with TypeError"),
        ("return undefined", "mine.py, line 13: step failed with NameError"),
        ("sys.exit(0)", "mine.py, line 13: step failed with SystemExit"),
        ("return (", "mine.py, line 13: mine.py cannot be imported with SyntaxError"),
        ("os.abort()", "the compiler's process ended without an answer"),
        (
            'sys.stderr.write("F0101 00:00:00.0 1 a.cc:1] Check failed: a == b \\n"); os.abort()',
            "the TPU compiler gave up: Check failed: a == b",
        ),
        ("os._exit(0)", "the compiler's process ended without an answer"),
    ],
)
def test_a_function_that_fails_is_one_sentence(tmp_path, body, said):
    with pytest.raises(InputError) as error:
        compiled_file(of_function(tmp_path, body), tmp_path / "cache")
    assert said in str(error.value) and "\n" not in str(error.value)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "text, said",
    [
        ("def step(x): return x", "defines no function arguments"),
        ("def arguments(mesh): return ()", "defines no function step"),
        ("def step(x): return x\ndef arguments(mesh): return 3", "arguments(mesh) returned int"),
        ("def step(x): return x\ndef arguments(mesh): return mesh['a']", "arguments(mesh) failed with TypeError"),
    ],
)
def test_a_file_that_breaks_the_contract_is_one_sentence(tmp_path, text, said):
    file = tmp_path / "mine.py"
    file.write_text(text)
    request = make_request(function=f"{file}:step", topology="v6e:2x2")
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        compiled_file(request, tmp_path / "cache")


def test_a_topology_that_the_compiler_rejects(tmp_path):
    request = replace(of_function(tmp_path, "return x @ w"), topology=Topology("TPU v6e", (3, 5)))
    with pytest.raises(InputError, match=r"the TPU compiler rejects v6e:3x5: .*not divisible"):
        compiled_file(request, tmp_path / "cache")


ENDLESS = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({pids!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
{more}
while True: time.sleep(0.05)
""".strip()


def endless(tmp_path, more=""):
    pids = tmp_path / "pids"
    return of_function(tmp_path, ENDLESS.format(pids=str(pids), more=more)), pids


def all_gone(pids: Path) -> bool:
    return all(gone(int(pid)) for pid in pids.read_text().split())


def test_an_endless_compilation_is_ended(tmp_path):
    request, pids = endless(tmp_path)
    with pytest.raises(InputError, match="took longer than 8 s and was ended"):
        compiled_file(request, tmp_path / "cache", Limits(seconds=8))
    assert all_gone(pids) and list((tmp_path / "cache").iterdir()) == []


def test_a_long_compilation_is_ended_in_the_middle(tmp_path):
    """The compiler itself at work, which listens to nothing."""
    request = of_model(model("llama3.1-8b"), topology="v5p:4x4x4", mesh="fsdp=16,model=4")
    doing = []
    with pytest.raises(InputError, match="took longer than 6 s"):
        compiled_file(request, tmp_path, Limits(seconds=6), lambda part, what: doing.append(what))
    assert list(tmp_path.iterdir()) == []


def test_memory_is_limited(tmp_path):
    request, pids = endless(tmp_path, more="kept = [bytearray(os.urandom(1) * (32 << 20)) for _ in range(64)]")
    with pytest.raises(InputError, match=r"took [\d.]+ GB of memory and was ended; expected at most 1.5 GB"):
        compiled_file(request, tmp_path / "cache", Limits(seconds=60, memory_bytes=1_500_000_000))
    assert all_gone(pids)


def test_it_can_be_cancelled(tmp_path):
    request, pids = endless(tmp_path)
    stop = threading.Event()
    threading.Thread(target=lambda: (_until(pids.exists), stop.set())).start()
    with pytest.raises(Cancelled):
        compiled_file(request, tmp_path / "cache", Limits(seconds=60), cancel=stop.is_set)
    assert all_gone(pids)


def test_the_worker_dies_with_its_launcher(tmp_path):
    _, pids = endless(tmp_path)
    code = (
        "import sys; from pathlib import Path; from simulators.tpu_compile.launch import compiled_file;"
        "from simulators.tpu_compile.request import make_request;"
        f"compiled_file(make_request(function={str(tmp_path / 'mine.py')!r} + ':step', topology='v6e:2x2',"
        f"mesh='data=2,model=2'), Path({str(tmp_path / 'cache')!r}))"
    )
    launcher = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        _until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        launcher.send_signal(signal.SIGKILL)
        worker, child = map(int, pids.read_text().split())
        assert gone(worker)
    finally:
        launcher.kill()
        launcher.wait()
    os.kill(child, signal.SIGKILL)  # the user's own process is none of the worker's


def _until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_the_extra_it_says_how_to_get_it(tmp_path, monkeypatch):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(launch.importlib.metadata, "version", missing)
    with pytest.raises(InputError, match=r"the TPU compiler is not installed: pip install 'chipledger\[tpu\]'"):
        compiled_file(of_model(model("llama3.1-8b")), tmp_path)
