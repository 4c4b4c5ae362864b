"""Jobs of real PyTorch, captured through the module that is copied beside them. A Python that has torch is named in
$CHIPLEDGER_TORCH_PYTHON, since the product itself needs none; without one these tests skip."""

import contextlib
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app.capture.addresses import addresses
from app.capture.options import Asked
from app.cli.commands.capture import captured
from app.workspace import workspace
from tests.app.capture_jobs import AGENT_FILE, TOKEN, as_token
from tests.app.serving import free_port

PYTHON = os.environ.get("CHIPLEDGER_TORCH_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="no Python with torch is named in $CHIPLEDGER_TORCH_PYTHON")
TRAIN = """
import os, sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
parent, until, steps = os.getppid(), time.monotonic() + float(sys.argv[1]), 0
print("ready", flush=True)
while os.getppid() == parent and time.monotonic() < until:
    optimizer.zero_grad()
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
    time.sleep(0.02)
    steps += 1
print("ended", steps, flush=True)
"""


@contextlib.contextmanager
def training(folder: Path, seconds: float = 600.0, port: int = 0, rank: int = 0):
    """A job that was not changed, run by the module; its address and its process."""
    script = folder / "train.py"
    script.write_text(TRAIN)
    port = port or free_port()
    env = {**os.environ, "CHIPLEDGER_CAPTURE": f"127.0.0.1:{port}", "LOCAL_RANK": str(rank)}
    process = subprocess.Popen(
        [PYTHON, str(AGENT_FILE), str(script), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield f"agent://127.0.0.1:{port + rank}", process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def place(tmp_path, monkeypatch):
    as_token(monkeypatch)
    return workspace(str(tmp_path / "store"))


def rows(place, run_id, table):
    folder = place.store.runs_folder / run_id / "tables"
    return [r for f in folder.glob(f"{table}*.parquet") for r in pq.read_table(f).to_pylist()]


def test_two_ranks_record_steps_at_the_optimizer(place, tmp_path):
    port = free_port()
    with training(tmp_path, port=port) as (first, _), training(tmp_path, port=port, rank=1) as (second, _):
        told = captured(place, addresses([first, second]), Asked(steps=6, timeout_s=60))
    assert [h["problem"] for h in told["hosts"]] == [None, None]
    steps = rows(place, told["run_id"], "steps")
    assert len(steps) == 12 and len({s["host"] for s in steps}) == 2
    assert all(0.02 < s["dur_ns"] / 1e9 < 1 for s in steps)
    for host in {s["host"] for s in steps}:
        numbers = sorted(s["step"] for s in steps if s["host"] == host)
        assert numbers == list(range(numbers[0], numbers[0] + 6))
    assert "aten::addmm" in {o["op"] for o in rows(place, told["run_id"], "ops")}


def test_seconds_record_the_thread_that_trains(place, tmp_path):
    with training(tmp_path) as (where, process):
        for _ in range(3):
            told = captured(place, addresses([where]), Asked(duration_s=0.5, timeout_s=60))
            assert "aten::addmm" in {o["op"] for o in rows(place, told["run_id"], "ops")}
            assert 3 < len(rows(place, told["run_id"], "steps")) < 60
        assert process.poll() is None


@pytest.mark.parametrize("asked", [Asked(duration_s=60, timeout_s=30), Asked(steps=1000, timeout_s=30)])
def test_a_job_that_ends_while_it_is_recorded_ends_as_it_would(place, tmp_path, asked):
    with training(tmp_path, seconds=3) as (where, process):
        with pytest.raises(Exception, match="the job ended meanwhile"):
            captured(place, addresses([where]), asked)
        assert process.wait(30) == 0 and process.stdout.read().startswith("ended ")


def test_the_token_is_asked_for(place, tmp_path, monkeypatch):
    with training(tmp_path) as (where, _):
        monkeypatch.setenv("CHIPLEDGER_CAPTURE_TOKEN", "y" * len(TOKEN))
        with pytest.raises(Exception, match="the token is another"):
            captured(place, addresses([where]), Asked(steps=1))
