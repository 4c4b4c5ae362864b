"""Real runs of W&B, and numbers that were computed from them independently."""

import gzip
import json
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.ingest import ingest
from collectors.reading.textlog import Tally
from collectors.training import hf_trainer, wandb_files, wandb_history, wandb_log
from collectors.training.wandb_console import Console
from collectors.training.wandb_records import records
from errors import InputError
from runs.store import Store
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLE = SHARED / "data" / "more", SHARED / "oracles" / "more" / "wandb.json"
ALPACA = "wandb/alpaca_9to82bfs/run-9to82bfs.wandb.gz"
OWN = {"_step", "_timestamp", "_runtime"}

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no runs of W&B beside the project")


def told():
    """Of each run file what it holds."""
    return {name: one for name, one in json.loads(ORACLE.read_text()).items() if ".wandb" in name}


def source(name):
    return Source(MORE / name, name)


def test_records_and_histories():
    for name, one in told().items():
        tally = Tally()
        assert len([*records(source(name), tally)]) == one["records"] and not [*tally.lost()]
        got = read(wandb_log, source(name))
        axis = "train/global_step"
        steps = [r for r in got.rows["scalars"] if r["name"] == "train/learning_rate"]
        summed = int("train/train_loss" in one["last_values"])  # the last row of a Trainer's run sums it up
        assert len(steps) == max(one["history_rows"] - summed, 0)
        last = {r["name"]: r["value"] for r in got.rows["scalars"] if r["step"] is not None}
        wanted = {k: float(v) for k, v in one["last_values"].items() if k not in OWN and k != axis}
        assert last == wanted
        if one["history_rows"]:
            first = one["first_row"]
            assert (steps[0]["step"], steps[0]["value"]) == (int(first[axis]), float(first["train/learning_rate"]))
            assert steps[0]["ts_ns"] == pytest.approx(float(first["_timestamp"]) * 1e9, abs=1_000)
            assert steps[-1]["step"] == int(one["last_values"][axis])


def test_the_run_of_the_trainer():
    """486 steps in 2,172 s of training by the Trainer's own count, on four of the machine's eight GPUs."""
    got = read(wandb_log, source(ALPACA))
    steps = got.rows["steps"]
    took = [r["dur_ns"] for r in steps if r["dur_ns"]]
    assert [r["step"] for r in steps] == list(range(1, 487)) and len(took) == 486
    assert took[0] / 1e9 == pytest.approx(5.91, abs=0.05)  # as the bar has it
    assert sum(took) / 1e9 == pytest.approx(2172.3535, rel=0.01)
    assert (steps[-1]["loss"], got.facts["chips"], got.facts["planned_steps"]) == (0.3315, 4, 486)
    (job,) = got.rows["lifecycle"]
    assert (job["end_ns"] - job["start_ns"]) == 2242 * 10**9 and "evidence" not in got.rows
    assert {r["device"] for r in got.rows["memory"]} == {4}


def test_a_run_that_died_has_no_end_and_one_that_is_cut_off_keeps_the_rest(tmp_path):
    died = read(wandb_log, source("wandb/alpaca_5qvjca60/run-5qvjca60.wandb.gz"))
    assert [r["end_ns"] for r in died.rows["lifecycle"]] == [None] and not any(died.column("steps", "dur_ns")[1:])
    whole = gzip.decompress((MORE / ALPACA).read_bytes())
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    half = read(wandb_log, Source(tmp_path / "half", "half.wandb"))
    assert 200 < len(half.rows["steps"]) < 300 and "the file ends in the middle" in half.reasons()


def test_a_history_as_parquet():
    name = "wandb/history.parquet"
    one = json.loads(ORACLE.read_text())[name]
    got = read(wandb_history, source(name))
    metrics = [column for column, _ in one["columns"] if column not in ("Unnamed: 0", "_step")]
    assert len(got.rows["scalars"]) == one["rows"] * len(metrics)
    for end, rows in (("first", got.rows["scalars"][: len(metrics)]), ("last", got.rows["scalars"][-len(metrics) :])):
        assert {r["name"]: r["value"] for r in rows} == {m: one[end][m] for m in metrics}
        assert {r["step"] for r in rows} == {one[end]["_step"]}
    assert wandb_history.sniff(source("wandb/empty.parquet")) == 0.9
    with pytest.raises(InputError, match="no row of metrics in it"):
        read(wandb_history, source("wandb/empty.parquet"))


def test_what_lies_beside_a_run(tmp_path):
    summary = read(wandb_files, source("wandb/alpaca_9to82bfs/wandb-summary.json"))
    one = json.loads(ORACLE.read_text())[ALPACA]["last_values"]
    wanted = {k: float(v) for k, v in one.items() if k not in OWN and k != "train/global_step"}
    assert {r["name"]: r["value"] for r in summary.rows["scalars"] if r["name"] != "train/global_step"} == wanted
    run = ingest([MORE / "wandb" / "alpaca_9to82bfs"], Store(tmp_path))
    assert [f.name for f in run.files if f.state == "left_out"] == ["wandb-summary.json"]
    assert run.tables["steps"] == 486 and not any(":" in w and " says " in w for w in run.warnings)


def test_the_console_is_read_like_the_jobs_own_log(tmp_path):
    lines = tmp_path / "console"
    with lines.open("wb") as out:
        console = Console(out, Tally())
        for _, data in records(source(ALPACA), Tally()):
            if (part := wandb_log.RECORD.FromString(data)).HasField("output_raw"):
                written = part.output_raw
                at = written.timestamp.seconds * 10**9 + written.timestamp.nanos
                console.add(written.output_type, at, written.line.decode())
        console.close()
    assert hf_trainer.sniff(Source(lines, "output.log")) == 0.85
    steps = read(hf_trainer, Source(lines, "output.log")).rows["steps"]
    assert [r["step"] for r in steps] == list(range(2, 487)) and steps[-1]["loss"] == 0.3315
    assert sum(r["dur_ns"] for r in steps) / 1e9 == pytest.approx(2172.3535, rel=0.01)
