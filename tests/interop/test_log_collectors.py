"""Real Megatron and MLPerf logs beside the project, their numbers read by other means and compared."""

import json
import math
import re
from pathlib import Path

import pytest

from catalog.configs import from_config
from catalog.models import parameters
from collectors.base import Source
from collectors.ingest import ingest
from collectors.training import megatron, mllog
from runs.store import Store
from tests.collectors.reading import read

LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "logs"
MEGATRON = sorted((LOGS / "bigscience").rglob("*.out"))
MLPERF = sorted(LOGS.glob("mlperf_training_*/**/result_*.txt"))
S = 10**9

needs_megatron = pytest.mark.skipif(not MEGATRON, reason="no Megatron logs beside the project")
needs_mlperf = pytest.mark.skipif(not MLPERF, reason="no MLPerf logs beside the project")


def named(path):
    return str(path.relative_to(LOGS))


def got(collector, path):
    return read(collector, Source(path, path.name))


def dumped(text, name):
    return re.search(rf"^  {name} \.+ (\S+)", text, re.MULTILINE)[1]


@needs_megatron
@pytest.mark.parametrize("path", MEGATRON, ids=named)
def test_megatron_iterations(path):
    text = path.read_text(errors="replace")
    printed = [
        (int(line.split("/")[0].split()[1]), float(line.split("(ms):")[1].split("|")[0]), "lm" in line and line)
        for line in text.splitlines()
        if line.lstrip().startswith("iteration ")
    ]
    interval = int(dumped(text, "log_interval"))
    result = got(megatron, path)
    rows = result.rows["steps"]
    assert len(rows) == interval * len(printed) == printed[-1][0]
    assert [r["step"] for r in rows] == list(range(1, len(rows) + 1))
    total_ms = math.fsum(ms for _, ms, _ in printed) * interval
    assert math.fsum(r["dur_ns"] for r in rows) / 1e6 == pytest.approx(total_ms, rel=1e-12)
    for number, _, line in printed:
        told = re.search(r"lm.loss: (\S+)", line) if line else None
        assert rows[number - 1]["loss"] == (float(told[1]) if told else None)
    assert rows[-1]["start_ns"] + rows[-1]["dur_ns"] - rows[0]["start_ns"] == pytest.approx(total_ms * 1e6, rel=1e-9)
    skipped = sum(int(n) for n in re.findall(r"skipped iterations: +(\d+)", text))
    found = [r["value"] for r in result.rows["scalars"] if r["name"] == "number of skipped iterations"]
    assert sum(found) == skipped


@needs_megatron
@pytest.mark.parametrize("path", MEGATRON, ids=named)
def test_megatron_configuration(path):
    text = path.read_text(errors="replace")
    facts = got(megatron, path).facts
    assert facts["chips"] == int(dumped(text, "world_size"))
    assert math.prod(facts["parallelism"].values()) == facts["chips"]
    assert facts["sequence_length"] == int(dumped(text, "seq_length"))
    total = parameters(from_config(facts["model"])).total
    # what the ranks print of their own shares: the last stage holds a second copy of the embedding
    ranks = dict(re.findall(r"model parallel rank \((\d+, \d+)\): (\d+)", text))
    if ranks:
        copy = int(dumped(text, "hidden_size")) * 50688
        printed = sum(map(int, ranks.values())) - copy
        assert len(ranks) == facts["chips"] and total == pytest.approx(printed, rel=0.01)
    if unique := re.search(r"UNIQUE_PARAMS=(\d+)", text):
        assert total == pytest.approx(int(unique[1]), rel=0.01)


@needs_megatron
@pytest.mark.parametrize("path", MEGATRON, ids=named)
def test_megatron_ends(path):
    """The scheduler's own time of the end: after the last iteration, before another would have been printed."""
    text = path.read_text(errors="replace")
    result = got(megatron, path)
    causes = {r["cause"] for r in result.rows.get("evidence", [])}
    cancelled = re.search(r"JOB \d+ ON \S+ CANCELLED AT (\S+)", text)
    if not cancelled:
        assert causes == set()
        return
    ended_by = "time_limit" if "DUE TO TIME LIMIT" in text else "user"
    assert causes == {ended_by, "terminated", "process_exit"}
    told = next(r for r in result.rows["evidence"] if " JOB " in r["text"])
    last, interval = result.rows["steps"][-1], result.facts.get("steps_averaged_over", 1)
    end = last["start_ns"] + last["dur_ns"]
    assert end < told["ts_ns"] < end + interval * 1.2 * last["dur_ns"]
    assert (told["step"], told["attempt"]) == (last["step"], 0)


def entries(path):
    lines = path.read_text().splitlines()
    return [json.loads(line[line.index("{") :]) for line in lines if ":::MLLOG" in line]


def times(found, key):
    return [e["time_ms"] for e in found if e["key"] == key]


@needs_mlperf
@pytest.mark.parametrize("path", MLPERF, ids=named)
def test_mlperf_intervals(path):
    found, result = entries(path), got(mllog, path)
    by_kind = {}
    for row in result.rows["lifecycle"]:
        by_kind.setdefault(row["kind"], []).append((row["start_ns"] // 10**6, row["end_ns"] // 10**6))
    assert by_kind["job"] == [(min(e["time_ms"] for e in found), times(found, "run_stop")[0])]
    assert by_kind["training_preparation"] == [(min(times(found, "init_start")), times(found, "init_stop")[0])]
    evals = zip(sorted(times(found, "eval_start")), sorted(times(found, "eval_stop")), strict=True)
    assert by_kind.get("eval", []) == list(evals)
    assert result.facts["run_status"] == "success"
    assert sorted(r["value"] for r in result.rows["scalars"] if r["name"] == "eval_accuracy") == sorted(
        e["value"] for e in found if e["key"] == "eval_accuracy"
    )


@needs_mlperf
@pytest.mark.parametrize("path", MLPERF, ids=named)
def test_mlperf_steps(path):
    """Steps fill the blocks; their number is that of the samples trained on."""
    found, result = entries(path), got(mllog, path)
    rows = result.rows["steps"]
    assert [r["step"] for r in rows] == list(range(1, len(rows) + 1))
    blocks = sum(sorted(times(found, "block_stop"))) - sum(sorted(times(found, "block_start")))
    assert math.fsum(r["dur_ns"] for r in rows) / 1e6 == pytest.approx(blocks, rel=2e-3)
    batch, tokens = result.facts["global_batch"], result.facts.get("sequence_length", 1)
    seen = max(
        int(e["metadata"].get(name, 0)) for e in found for name in ("samples_count", "epoch_num")
    )  # the last evaluation's
    assert len(rows) == seen / batch or len(rows) == seen / batch / tokens


@needs_mlperf
@needs_megatron
@pytest.mark.parametrize("path", [MEGATRON[2:3], MLPERF[:1], MLPERF[-1:]], ids=lambda p: p[0].parent.name if p else "")
def test_ingested_as_runs(path, tmp_path):
    done = ingest(path, Store(tmp_path / "store"))
    assert {"steps", "lifecycle", "scalars"} <= done.tables.keys()


LORA = sorted((LOGS.parent / "more" / "corrections" / "mlperf").glob("*.gz"))


@pytest.mark.skipif(not LORA, reason="no MLPerf logs beside the project")
@pytest.mark.parametrize("path", LORA, ids=lambda path: path.name)
def test_steps_of_logs_whose_blocks_or_beginnings_told_nothing(path, tmp_path):
    """A first marker beyond the first 64 KiB, and stops of blocks that repeat where the block began."""
    store = Store(tmp_path / "store")
    run = store.get(ingest([path], store).run_id)
    assert run.manifest.tables["steps"] == 384 and run.manifest.facts["run_status"].value == "success"
    jobs = run.tables.arrow("lifecycle", ["kind", "end_ns"], [("kind", "==", "job")])
    assert jobs.num_rows == 1 and jobs["end_ns"].null_count == 0
