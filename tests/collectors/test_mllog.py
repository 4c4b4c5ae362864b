"""MLPerf logs in any order and behind any prefix: intervals, steps of three ways of counting, what was submitted."""

import json
import random

import pytest

from collectors.training import mllog
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
T0 = 1744812015000  # ms


def entry(second, key, value=None, prefix="", event="POINT_IN_TIME", **metadata):
    body = {
        "namespace": "",
        "time_ms": T0 + round(second * 1000),
        "event_type": event,
        "key": key,
        "value": value,
        "metadata": {"file": "a.py", "lineno": 1, **metadata},
    }
    return f"{prefix}:::MLLOG {json.dumps(body)}\n"


SUBMITTED = (
    entry(0, "cache_clear", True)
    + entry(1, "init_start")
    + entry(2, "init_start", prefix="7: ")
    + entry(3, "submission_benchmark", "llama31_405b")
    + entry(3, "submission_org", "Someone")
    + entry(3, "global_batch_size", 8)
    + entry(3, "max_sequence_length", 4)
    + entry(3, "number_of_nodes", 4)
    + entry(3, "accelerators_per_node", 8)
    + entry(50, "init_stop")
    + entry(50, "run_start")
)
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
        "submission_benchmark": "llama31_405b",
        "model": "llama3.1-405b",
        "submission_org": "Someone",
        "global_batch": 8,
        "sequence_length": 4,
        "number_of_nodes": 4,
        "accelerators_per_node": 8,
        "chips": 32,
        "run_status": "success",
    }


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


def started(at):
    """A program that starts: four ranks of it say so."""
    ranks = "".join(entry(at + n / 10, "init_start", prefix=f"{n}: ") for n in range(4))
    return entry(at - 1, "cache_clear", True) + ranks + entry(at + 10, "init_stop") + entry(at + 10, "run_start")


FACTS = entry(1, "global_batch_size", 8) + entry(1, "submission_benchmark", "llama2_70b_lora")


def taken(got):
    return [(r["attempt"], r["step"], seconds(r["start_ns"]), r["dur_ns"] / S) for r in got.rows.get("steps", [])]


def test_a_job_that_was_queued_again(tmp_path):
    """The first start is cut off in its second block, the second goes on from the evaluation's checkpoint."""
    text = (
        FACTS
        + started(10)
        + entry(20, "block_start", samples_count=0)
        + entry(60, "block_stop", samples_count=32)
        + entry(60, "eval_start", samples_count=32)
        + entry(70, "eval_stop", samples_count=32)
        + entry(70, "block_start", samples_count=32)
        + entry(80, "train_loss", 2.0, samples_count=40)
        + entry(90, "train_loss", 1.9, samples_count=48)
        + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n"
        + started(300)
        + entry(310, "block_start", samples_count=32)
        + entry(350, "block_stop", samples_count=64)
        + "NVRM: Xid (PCI:0000:c6:00): 79, GPU has fallen off the bus.\n"
        + entry(351, "run_stop", samples_count=64, status="success")
    )
    for shuffled in (False, True):
        lines = text.splitlines(keepends=True)
        if shuffled:
            random.Random(1).shuffle(lines)
        got = log(tmp_path, "".join(lines))
        jobs = [
            (r["attempt"], seconds(r["start_ns"]), seconds(r["end_ns"]))
            for r in got.rows["lifecycle"]
            if r["kind"] == "job"
        ]
        assert jobs == [(0, 1, None), (1, 299, 351)]
        assert taken(got) == [
            *((0, n + 1, 20 + 10 * n, 10) for n in range(4)),
            (0, 5, 70, 10),
            (0, 6, 80, 10),
            *((1, n + 5, 310 + 10 * n, 10) for n in range(4)),
        ]
        preparations = [
            (r["attempt"], seconds(r["start_ns"]), seconds(r["end_ns"]))
            for r in got.rows["lifecycle"]
            if r["kind"] == "training_preparation"
        ]
        assert preparations == [(0, 10, 20), (1, 300, 310)]
    got = log(tmp_path, text)
    assert [(r["cause"], r["attempt"]) for r in got.rows["evidence"]] == [("preemption", 0), ("accelerator", 1)]


def test_many_ranks_that_start_are_one_start(tmp_path):
    got = log(tmp_path, FACTS + started(10) + entry(21, "run_start") + entry(22, "block_start", samples_count=0))
    assert [r["attempt"] for r in got.rows["lifecycle"]] == [0, 0]


@pytest.mark.parametrize(
    "behind",
    [
        entry(60, "eval_start", samples_count=32),
        entry(60, "block_start", samples_count=32),
        entry(61, "run_stop", samples_count=32, status="success"),
    ],
    ids=["evaluation", "next block", "the end"],
)
def test_a_block_whose_stop_repeats_where_it_began(tmp_path, behind):
    block = entry(20, "block_start", samples_count=0) + entry(60, "block_stop", samples_count=0)
    got = log(tmp_path, FACTS + started(10) + block + behind)
    assert taken(got) == [(0, n + 1, 20 + 10 * n, 10) for n in range(4)]


@pytest.mark.parametrize("stats", [{"throughput": 0.8}, {"throughput": 0.8, "train_step_time": 10.0}])
def test_a_block_of_which_only_the_rate_is_told(tmp_path, stats):
    block = entry(20, "block_start", samples_count=0) + entry(60, "tracked_stats", stats) + entry(60, "block_stop")
    assert len(taken(log(tmp_path, FACTS + started(10) + block))) == 4


def test_epochs_that_are_epochs(tmp_path):
    """Positions that no batch of samples reaches, and so many samples in an epoch."""
    block = entry(20, "block_start", first_epoch_num=0, epoch_count=2) + entry(60, "block_stop", first_epoch_num=0)
    got = log(tmp_path, entry(1, "global_batch_size", 100) + entry(1, "train_samples", 1000) + started(10) + block)
    assert len(taken(got)) == 20


def test_positions_that_are_steps(tmp_path):
    stats = entry(60, "tracked_stats", {"throughput": 3.2}, step=16)
    block = entry(20, "block_start", step=0) + stats + entry(60, "block_stop", step=16)
    assert len(taken(log(tmp_path, FACTS + started(10) + block))) == 16
    assert len(taken(log(tmp_path, FACTS + started(10) + block.replace("3.2", "0.4")))) == 2


def test_evaluations_after_the_run_are_offline(tmp_path):
    offline = entry(101, "eval_start") + entry(130, "eval_accuracy", 0.9) + entry(131, "eval_stop")
    got = log(tmp_path, SUBMITTED + STEPPED + EVALUATED + END + offline)
    assert [r["kind"] for r in got.rows["lifecycle"]] == ["job", "training_preparation", "eval"]
    assert "evaluations (1): done offline, after run_stop" in got.reasons()
    assert seconds(got.rows["lifecycle"][0]["end_ns"]) == 100


def test_results_of_evaluations_nobody_timed(tmp_path):
    got = log(tmp_path, SUBMITTED + STEPPED + entry(90, "eval_accuracy", 0.5) + END)
    assert "evaluations (1): results without a start and a stop: done offline, or inside the blocks" in got.reasons()


def test_tokens_follow_from_batch_length_and_chips(tmp_path):
    got = log(tmp_path, SUBMITTED + STEPPED + END)
    assert got.column("steps", "tokens_per_s_per_chip") == [pytest.approx(8 * 4 / 32 / 9.5)] * 3


def test_what_the_benchmark_prescribes_and_its_ranks_tell(tmp_path):
    text = FACTS + entry(1, "submission_platform", "2xSomething") + started(10) + STEPPED
    got = log(tmp_path, text)
    assert got.facts["sequence_length"] == 8192 and got.facts["chips"] == 4
    assert "chips" not in log(tmp_path, text.replace("2xSome", "3xSome")).facts


def test_a_run_that_never_stopped_and_why(tmp_path):
    got = log(tmp_path, SUBMITTED + "[rank3]: torch.OutOfMemoryError: CUDA out of memory\n")
    assert got.rows["lifecycle"][0]["end_ns"] is None
    assert [r["cause"] for r in got.rows["evidence"]] == ["device_memory"]


def test_broken_lines_are_counted(tmp_path):
    text = (
        ':::MLLOG {"namespace": "", "time_ms": 17448\n:::MLLOG\n:::MLLOG []\n:::MLLOG {"time_ms": 1e400, "key": "x"}\n'
        + SUBMITTED.replace("\n", "\r\n")
        + entry(60, "run_stop", status=5)[:-20]
    )
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


@pytest.mark.parametrize("position", [-1e30, -1, 1e30, 2.0**53])
def test_a_position_that_no_run_reaches_is_none(tmp_path, position):
    stats = {"train_step_time": 9.5, "reduced_train_loss": 3.0}
    odd = entry(61, "tracked_stats", stats, step=position)
    assert (
        log(tmp_path, SUBMITTED + STEPPED + odd + END).rows["steps"]
        == log(tmp_path, SUBMITTED + STEPPED + END).rows["steps"]
    )
