"""Real log files and independently computed numbers, where they lie beside the project."""

import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from collectors import COLLECTORS
from collectors.base import Source
from collectors.training import goodput_log, maxtext
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
ORACLES = SHARED / "oracles" / "goodput"
SCENARIOS = sorted(p.parent.name for p in ORACLES.glob("*/entries.jsonl"))
MAXTEXT = SHARED / "data" / "logs" / "maxtext" / "completed_steps.log"
OTHERS = sorted(p for p in (SHARED / "data" / "logs").rglob("*") if p.is_file() and p.parent.name != "maxtext")
S = 1_000_000_000

needs_oracles = pytest.mark.skipif(not SCENARIOS, reason="no goodput oracles beside the project")
needs_logs = pytest.mark.skipif(not MAXTEXT.exists(), reason="no log files beside the project")


def source(path):
    return Source(path, path.name)


@needs_logs
def test_maxtext_lines_quoted_in_its_documentation():
    assert maxtext.sniff(source(MAXTEXT)) >= 0.5
    got = read(maxtext, source(MAXTEXT))
    lines = [line.strip() for line in MAXTEXT.read_text().splitlines() if "seconds:" in line]
    lines = [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]
    assert len(got.rows["steps"]) == len(lines) == 21
    for row, line in zip(got.rows["steps"], lines, strict=True):
        assert f"completed step: {row['step']}, seconds: {row['dur_ns'] / S:.3f}," in line
        assert line.endswith(f"loss: {row['loss']:.3f}")
        tflops = row["model_flops_per_chip"] / 1e12 / (row["dur_ns"] / S)
        assert f"TFLOP/s/device: {tflops:.3f}" in line
    assert sorted({r["attempt"] for r in got.rows["steps"]}) == [0, 1, 2, 3]


@needs_logs
@pytest.mark.parametrize("path", OTHERS, ids=lambda p: str(p.relative_to(SHARED / "data" / "logs")))
def test_each_log_goes_to_the_collector_of_its_format(path):
    scores = {c.NAME: c.sniff(source(path)) for c in COLLECTORS}
    folder = path.relative_to(SHARED / "data" / "logs").parts[0]
    mine = "megatron" if folder == "bigscience" else "mllog" if path.name.startswith("result_") else None
    mine = "dllogger" if "dllogger" in folder and path.name != "LICENSE" else mine
    if folder == "modded_nanogpt":  # its first logs tell no time, in the form of llm.c's main.log
        mine = "nanogpt" if path.suffix == ".txt" else "llm_c" if path.suffix == ".log" else None
    assert all(score < 0.5 for name, score in scores.items() if name not in (mine, "job_log"))
    assert mine is None or scores[mine] > 0.5 >= scores["job_log"]
    assert mine is not None or scores["job_log"] == 0


@needs_oracles
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_rows_give_the_librarys_own_totals(scenario):
    """The sums that the library makes by walking its entries, made from our rows."""
    path = ORACLES / scenario / "entries.jsonl"
    assert goodput_log.sniff(source(path)) >= 0.9
    got = read(goodput_log, source(path))
    oracle = json.loads((ORACLES / scenario / "expected.json").read_text())
    assert got.facts["job_name"] == oracle["job_name"]
    expected = oracle["expected"]["cumulative"]
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    mine = [e for e in entries if e["severity"] == "INFO" and e["jsonPayload"]["job_name"] == oracle["job_name"]]
    assert len(got.rows.get("steps", [])) == sum("step_start_time" in e["jsonPayload"] for e in mine)
    if "total_elapsed_s" not in expected:
        return  # the library refuses this one

    spans = defaultdict(list)
    for row in got.rows["lifecycle"]:
        if row["start_ns"] is not None and row["end_ns"] is not None:
            spans[row["kind"]].append((row["start_ns"] / S, row["end_ns"] / S))
    total = {kind: math.fsum(end - start for start, end in found) for kind, found in spans.items()}
    unproductive = expected["unproductive_s"]
    if not oracle["elastic"]:  # there, time inside a reinitialisation is taken out again
        assert total.get("accelerator_initialization", 0) == pytest.approx(unproductive["TPU_INITIALIZATION"], abs=1e-6)
        assert total.get("training_preparation", 0) == pytest.approx(unproductive["TRAINING_PREP"], abs=1e-6)
    assert total.get("elastic_slice_down", 0) == pytest.approx(unproductive.get("ELASTIC_SLICE_DOWN", 0), abs=1e-6)
    assert total.get("elastic_scale_up", 0) == pytest.approx(unproductive.get("ELASTIC_SCALE_UP", 0), abs=1e-6)

    saves = defaultdict(list)
    for row in got.rows["lifecycle"]:
        if row["kind"] == "checkpoint_save":
            detail = json.loads(row["detail"])
            local = not detail["directory"].startswith("gs://")
            saves[row["step"], local].append(detail["checkpoint_manager_blocking_duration_secs"])
    saved = math.fsum(math.fsum(s) / len(s) for s in saves.values())
    assert saved == pytest.approx(unproductive["UNPRODUCTIVE_CHECKPOINT_SAVE_TIME"], abs=1e-9)

    jobs = [r for r in got.rows["lifecycle"] if r["kind"] == "job"]
    ends = [(r["end_logged_ns"], r["end_order"], r["end_ns"]) for r in jobs if r["end_ns"] is not None]
    if ends:
        first = min((r["logged_ns"], r["order"], r["start_ns"]) for r in jobs if r["start_ns"] is not None)[2]
        assert (max(ends)[2] - first) / S == pytest.approx(expected["total_elapsed_s"], abs=1e-6)


@needs_oracles
def test_disruptions_are_found_by_walking_the_rows_in_log_order():
    for scenario in SCENARIOS:
        rows = read(goodput_log, source(ORACLES / scenario / "entries.jsonl")).rows.get("steps", [])
        oracle = json.loads((ORACLES / scenario / "expected.json").read_text())["expected"]["cumulative"]
        seen, disruptions = set(), 0
        for row in sorted(rows, key=lambda r: (r["logged_ns"], r["order"])):
            if row["step"] in seen:
                seen, disruptions = set(), disruptions + 1
            seen.add(row["step"])
        assert disruptions == oracle.get("disruptions", 0), scenario
