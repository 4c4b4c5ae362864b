"""DeepSpeed's standard output; every line here was written for these tests."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from collectors.training import deepspeed
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
BEGIN = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
CONFIG = "[2026-03-04 05:05:00,000] [INFO] [config.py:957:print]   {} {}\n"
SET = CONFIG.format("train_batch_size .............", 64) + CONFIG.format("world_size ...................", 8)


def dated(second: float, text: str) -> str:
    at = BEGIN + timedelta(seconds=second)
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] [INFO] {text}\n"


def step(second: float, n: int, skipped: int = 0) -> str:
    return dated(second, f"[logging.py:96:log_dist] [Rank 0] step={n}, skipped={skipped}, lr=[1e-05, 1e-05], mom=[0.9]")


def timer(second: float, n: int, rate: float) -> str:
    speed = f"RunningAvgSamplesPerSec=60.5, CurrSamplesPerSec={rate}, MemAllocated=3.96GB, MaxMemAllocated=22.95GB"
    return dated(second, f"[timer.py:199:stop] epoch=0/micro_step={n}/global_step={n}, {speed}")


RUN = (
    SET
    + step(10, 10, 2)
    + timer(10.01, 10, 64.0)
    + step(20.5, 20, 3)
    + timer(20.51, 20, 64.0)
    + step(130, 30, 3)
    + timer(130.01, 30, 32.0)
)


def log(tmp_path, text, name="train.log"):
    return read(deepspeed, source_of(tmp_path, text, name))


def test_a_run(tmp_path):
    assert deepspeed.sniff(source_of(tmp_path, RUN)) == 0.7
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == list(range(1, 31))
    took = [ns / S for ns in got.column("steps", "dur_ns")]
    # of the first line its own last step; of the second the mean since; of the third again, for something lay between
    assert took == pytest.approx([1.0] * 10 + [1.05] * 10 + [2.0] * 10)
    ends = [
        (start + dur) / S - BEGIN.timestamp()
        for start, dur in zip(got.column("steps", "start_ns"), got.column("steps", "dur_ns"), strict=True)
    ]
    assert [ends[n] for n in (9, 10, 19, 29)] == pytest.approx([10, 11.05, 20.5, 130])
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["skipped", 20] == (3.0, None) and values["MaxMemAllocated", 30] == (22.95, "GB")
    assert values["samples per second", 30] == (32.0, None)
    assert got.facts == {"global_batch": 64, "chips": 8}


def test_of_two_engines_that_name_the_same_step_it_is_entered_once(tmp_path):
    text = "".join(step(10 * n, 10 * n) + timer(10 * n, 10 * n, 64.0) + step(10 * n + 0.2, 10 * n) for n in (1, 2, 3))
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(10, 31)) and set(got.column("steps", "attempt")) == {0}
    assert got.column("steps", "dur_ns") == [None] + [S] * 20


def test_without_a_batch_steps_take_the_time_between_their_lines(tmp_path):
    got = log(tmp_path, step(0, 100) + step(20, 110) + timer(20, 110, 1.0) + step(5, 100))
    assert got.column("steps", "step") == [*range(100, 111), 100] and got.column("steps", "attempt")[-1] == 1
    assert got.column("steps", "dur_ns") == [None] + [2 * S] * 10 + [None]


def test_the_timer_of_the_first_versions(tmp_path):
    old = "[timer.py:189:stop] 0/40, SamplesPerSec=64.0, MemAllocated=0.26GB, MaxMemAllocated=9.02GB"
    got = log(tmp_path, SET + step(0, 30) + step(10, 40) + dated(10, old))
    assert {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}["samples per second", 40] == 64.0


def test_a_log_without_steps(tmp_path):
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, "[2026-03-04 05:05:00,000] [INFO] [runner.py:1:main] deepspeed\n")


def test_a_log_of_megatron_on_deepspeed_is_megatrons(tmp_path):
    line = " iteration 10/ 100 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.0E+00 |\n"
    assert deepspeed.sniff(source_of(tmp_path, step(0, 10) + line)) == 0.0


def test_timers_that_stand_before_the_line_of_their_step(tmp_path):
    text = SET + "".join(timer(10 * n, 10 * n, 64.0 / n) + step(10 * n, 10 * n) for n in (1, 2, 3))
    got = log(tmp_path, text)
    rates = {r["step"]: r["value"] for r in got.rows["scalars"] if r["name"] == "samples per second"}
    assert rates == {10: 64.0, 20: 32.0, 30: 64.0 / 3}


def test_processes_that_ended_by_themselves_are_the_end_of_the_job(tmp_path):
    ends = "".join(dated(300 + n, f"[launch.py:460:main] Process {70 + n} exits successfully.") for n in range(3))
    got = log(tmp_path, RUN + ends)
    assert [(r["kind"], r["start_ns"]) for r in got.rows["lifecycle"]] == [("job", None)] * 3
    apart = [b - a for a, b in pairwise(got.column("lifecycle", "end_ns"))]
    assert apart == [S, S] and got.rows["steps"] == log(tmp_path, RUN).rows["steps"]
