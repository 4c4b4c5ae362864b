"""MLPerf logs in any order and behind any prefix: intervals, steps of three ways of counting, what was submitted."""

import json
import random

import pytest

from collectors import mllog
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
T0 = 1744812015000  # ms


def entry(second, key, value=None, prefix="", event="POINT_IN_TIME", **metadata):
    body = {"namespace": "", "time_ms": T0 + round(second * 1000), "event_type": event, "key": key, "value": value,
            "metadata": {"file": "a.py", "lineno": 1, **metadata}}  # fmt: skip
    return f"{prefix}:::MLLOG {json.dumps(body)}\n"


SUBMITTED = (
    entry(0, "cache_clear", True) + entry(1, "init_start") + entry(2, "init_start", prefix="7: ")
    + entry(3, "submission_benchmark", "llama31_405b") + entry(3, "submission_org", "Someone")
    + entry(3, "global_batch_size", 8) + entry(3, "max_sequence_length", 4)
    + entry(3, "number_of_nodes", 4) + entry(3, "accelerators_per_node", 8) + entry(50, "init_stop")
    + entry(50, "run_start")
)  # fmt: skip
STEPPED = "".join(
    entry(60 + 10 * n, "tracked_stats", {"train_step_time": 9.5, "reduced_train_loss": 3.0 - n, "lr": 1}, step=8.0 + s)
    for n, s in enumerate((0, 8, 16))
)
END = entry(100, "run_stop", status="success")
EVALUATED = entry(81, "eval_start", samples_count=24) + entry(90, "eval_accuracy", 0.5) + entry(91, "eval_stop")


def log(folder, text):
    return read(mllog, source_of(folder, text, "result_0.txt"))


def seconds(ns):
    return None if ns is None else (ns - T0 * 10**6) / S


def test_intervals(tmp_path):
    got = log(tmp_path, SUBMITTED + STEPPED + EVALUATED + END)
    rows = [(r["kind"], seconds(r["start_ns"]), seconds(r["end_ns"]), r["attempt"]) for r in got.rows["lifecycle"]]
    assert rows == [("job", 0, 100, 0), ("training_preparation", 1, 50, 0), ("eval", 81, 91, 0)]
    assert json.loads(got.rows["lifecycle"][0]["detail"]) == {"status": "success"}
    assert got.facts == {
        "submission_benchmark": "llama31_405b", "model": "llama3.1-405b", "submission_org": "Someone",
        "global_batch": 8, "sequence_length": 4, "number_of_nodes": 4, "accelerators_per_node": 8, "chips": 32,
        "run_status": "success",
    }  # fmt: skip


def test_step_times_by_samples(tmp_path):
    block = entry(81, "tracked_stats", {"train_step_time": 9.5, "throughput": 0.8}, step=0)
    got = log(tmp_path, SUBMITTED + STEPPED + block + END)
    rows = [(r["step"], seconds(r["start_ns"]), r["dur_ns"], r["loss"]) for r in got.rows["steps"]]
    assert rows == [(n + 1, 50.5 + 10 * n, 9.5 * S, 3.0 - n) for n in range(3)]
    assert seconds(got.rows["steps"][0]["logged_ns"]) == 60
    names = sorted({r["name"] for r in got.rows["scalars"]})
    assert names == ["tracked_stats/lr", "tracked_stats/throughput", "tracked_stats/train_step_time"]


def test_step_times_by_steps(tmp_path):
    """Step numbers that a batch divides, told from samples by the time between them."""
    text = "".join(entry(10 * n, "tracked_stats", {"train_step_time": 1.25}, step=8 * n) for n in range(1, 4))
    got = log(tmp_path, entry(0, "global_batch_size", 8) + text)
    assert got.column("steps", "step") == [8, 16, 24]


def test_the_order_of_lines_does_not_matter(tmp_path):
    shuffled = (SUBMITTED + STEPPED + EVALUATED + END).splitlines(keepends=True)
    random.Random(4).shuffle(shuffled)
    first, second = log(tmp_path, SUBMITTED + STEPPED + EVALUATED + END), log(tmp_path, "".join(shuffled))
    assert first.rows["lifecycle"] == second.rows["lifecycle"] and first.rows["steps"] == second.rows["steps"]


@pytest.mark.parametrize(
    ("blocks", "steps"),
    [
        # samples at both ends
        (entry(50, "block_start", samples_count=0) + entry(70, "block_stop", samples_count=32), [1, 2, 3, 4]),
        # tokens: 8 sequences of 4 a step, the stop repeats where the block began
        (entry(50, "block_start", first_epoch_num=32, epoch_count=64) + entry(70, "block_stop"), [2, 3]),
        # samples with a count
        (entry(50, "block_start", first_epoch_num=0, epoch_count=24) + entry(70, "block_stop"), [1, 2, 3]),
    ],
    ids=["samples", "tokens", "counted samples"],
)
def test_blocks_of_steps(tmp_path, blocks, steps):
    got = log(tmp_path, SUBMITTED + blocks + END)
    assert got.column("steps", "step") == steps
    assert got.rows["steps"][0]["dur_ns"] == 20 * S // len(steps)
    assert seconds(got.rows["steps"][0]["start_ns"]) == 50
    assert got.facts["steps_averaged_over"] == len(steps) and "mean over a block" in got.reasons()


def test_blocks_that_do_not_say_what_they_took(tmp_path):
    text = entry(50, "block_start") + entry(70, "block_stop") + entry(71, "block_start", samples_count=5)
    got = log(tmp_path, SUBMITTED + text)
    assert "steps" not in got.rows
    assert "how many samples" in got.reasons() and "without its other side" in got.reasons()


def test_a_run_that_never_stopped_and_why(tmp_path):
    got = log(tmp_path, SUBMITTED + "[rank3]: torch.OutOfMemoryError: CUDA out of memory\n")
    assert got.rows["lifecycle"][0]["end_ns"] is None
    assert [r["cause"] for r in got.rows["evidence"]] == ["device_memory"]


def test_broken_lines_are_counted(tmp_path):
    text = (
        ':::MLLOG {"namespace": "", "time_ms": 17448\n:::MLLOG\n:::MLLOG []\n:::MLLOG {"time_ms": 1e400, "key": "x"}\n'
        + SUBMITTED.replace("\n", "\r\n") + entry(60, "run_stop", status=5)[:-20]
    )  # fmt: skip
    got = log(tmp_path, text)
    assert any(lost.what == "MLLOG lines (5)" for lost in got.lost)
    assert got.rows["lifecycle"][0]["end_ns"] is None


def test_a_file_without_entries(tmp_path):
    with pytest.raises(InputError, match="no MLLOG line"):
        log(tmp_path, ":::MLLOG nothing\n")


@pytest.mark.parametrize(
    ("text", "mine"),
    [(SUBMITTED, True), ("x\n" * 100_000 + SUBMITTED, True), (":::MLPv0.5.0 gnmt", False), ("", False)],
)
def test_sniff(tmp_path, text, mine):
    assert (mllog.sniff(source_of(tmp_path, text)) >= 0.5) == mine
