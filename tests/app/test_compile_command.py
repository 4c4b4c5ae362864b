"""`chipledger compile`: exit codes, progress, cancelling, and the run that comes of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app import cli
from app.cli.commands.ingest import PROGRESS_VARIABLE
from tests.simulators.compiler import needs_compiler

ROOT = Path(__file__).resolve().parents[2]
FILE = """
import time
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def arguments(mesh):
    whole = NamedSharding(mesh, P())
    return tuple(jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=whole) for _ in range(2))

def multiply(x, w):
    return x @ w

def sleep(x, w):
    time.sleep(600)
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    "given, said",
    [
        (["llama3.1-8b", "--topology", "v6e:4x4", "--mesh", "data=4,model=3"], "multiplies to 12; expected 16"),
        (["llama9", "--topology", "v6e:4x4"], "llama9"),
        (["llama3.1-8b", "--topology", "v9:4x4"], "no chip is called 'v9'"),
        (["nowhere.py:step", "--topology", "v6e:4x4"], "no file 'nowhere.py'"),
        (["mine.py", "--topology", "v6e:4x4"], "which function of it?"),
        (["{config}", "--topology", "v6e:4x4"], "heads"),
        (["{broken}", "--topology", "v6e:4x4"], "cannot be read as JSON"),
        (
            ["llama3.1-8b", "--topology", "v6e:4x4", "--timeout", "0"],
            "--timeout 0; expected a number above 0 and up to 1,000,000,000",
        ),
    ],
)
def test_a_wrong_question_is_one_error_line(place, tmp_path, capsys, given, said):
    (tmp_path / "config.json").write_text(json.dumps({"layers": 2, "d_model": 64, "vocab": 100, "heads": 0, "d_ff": 9}))
    (tmp_path / "broken.json").write_text("{")
    names = {"config": str(tmp_path / "config.json"), "broken": str(tmp_path / "broken.json")}
    assert cli.main(["compile", *(text.format(**names) for text in given)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and said in error
    assert place.store.ids() == [] and not (place.store.root / "compiled-cache").exists()


@needs_compiler
def test_what_does_not_fit_is_an_answer(place, capsys):
    asked = ["compile", "llama3.1-8b", "--topology", "v5e:1x1", "--json"]
    assert cli.main(asked) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["fits"] is False and place.store.find(first["run_id"]).manifest.kind == "compiled"
    assert place.store.find(first["run_id"]).manifest.name == "llama3.1-8b v5e:1x1 fsdp=1"
    assert cli.main(asked) == 0  # from the cache: the same run
    assert json.loads(capsys.readouterr().out) == first and place.store.ids() == [first["run_id"]]


@needs_compiler
def test_a_function_becomes_a_run(place, file, capsys, monkeypatch):
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    assert cli.main(["compile", f"{file}:multiply", "--topology", "v6e:1x1", "--name", "mine", "--json"]) == 0
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert answer["fits"] is True and answer["flops_per_chip"] == 2 * 1024**3
    assert answer["bytes_per_chip"]["arguments"] == 2 * 1024 * 1024 * 2
    assert {"collectives", "padding", "estimated_cycles", "seconds_bound"} <= answer.keys()
    run = place.store.find("mine")
    assert run.run_id == answer["run_id"] and run.manifest.facts["function"].value == "mine.py:multiply"
    told = [json.loads(line)["progress"] for line in output.err.splitlines() if line.startswith('{"progress"')]
    assert told == sorted(told) and told[-1] == 1


@needs_compiler
def test_it_is_cancelled_by_the_signal_that_the_server_sends(tmp_path, file):
    store = tmp_path / "store"
    asked = ["compile", f"{file}:sleep", "--topology", "v6e:1x1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "--store", str(store), *asked],
        cwd=ROOT,
        env={**os.environ, PROGRESS_VARIABLE: "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert any("tracing" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 2 and "error: cancelled; nothing was stored" in said
    assert time.monotonic() - began < 10
    assert list((store / "runs").iterdir()) == [] and list((store / "compiled-cache").iterdir()) == []
