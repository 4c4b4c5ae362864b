"""MaxText's metrics files: JSON lines with full precision and no time of day."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.training import maxtext_metrics
from errors import InputError
from tests.collectors.reading import read, source_of

NUMBERED = "metrics/metrics_step_000100_to_step_000199.txt"


def record(step, **more):
    return {
        "learning/loss": 2.5,
        "perf/step_time_seconds": 0.1234567,
        "perf/per_device_tflops": 12.5,
        "perf/per_device_tflops_per_sec": 100.0,
        "perf/per_device_tokens_per_sec": 4096.5,
        "learning/total_weights": 1024.0,
        "step": float(step),
        "run_name": "night-run",
        **more,
    }


def lines(*records):
    return "".join(json.dumps(r) + "\n" for r in records)


def metrics(tmp_path, text, name="metrics.txt"):
    return read(maxtext_metrics, source_of(tmp_path, text, name))


def test_a_record_is_a_step_and_its_other_numbers_are_scalars(tmp_path):
    got = metrics(tmp_path, lines(record(7)))
    [step] = got.rows["steps"]
    assert (step["step"], step["attempt"], step["dur_ns"], step["loss"]) == (7, 0, 123_456_700, 2.5)
    assert (step["tokens_per_s_per_chip"], step["model_flops_per_chip"]) == (4096.5, 12.5e12)
    assert step["start_ns"] is None
    assert {(r["name"], r["value"], r["unit"]) for r in got.rows["scalars"]} == {
        ("learning/total_weights", 1024.0, None),
        ("perf/per_device_tflops", 12.5, "TFLOP"),
    }
    assert got.facts == {"job_name": "night-run"}


def test_without_the_flops_of_a_step_they_follow_from_rate_and_time(tmp_path):
    bare = record(0)
    del bare["perf/per_device_tflops"]
    [step] = metrics(tmp_path, lines(bare)).rows["steps"]
    assert step["model_flops_per_chip"] == pytest.approx(100e12 * 0.1234567)


def test_attempts_count_from_the_start_of_a_whole_file_only(tmp_path):
    text = lines(*(record(n) for n in (0, 1, 2, 1, 2)))
    assert metrics(tmp_path, text).column("steps", "attempt") == [0, 0, 0, 1, 1]
    assert metrics(tmp_path, text, NUMBERED).column("steps", "attempt") == [None] * 5


def test_evaluations_are_scalars_and_no_steps(tmp_path):
    evaluation = {"eval/avg_loss": 3.5, "eval/total_weights": 64.0, "step": 9.0, "run_name": "night-run"}
    got = metrics(tmp_path, lines(record(9), evaluation))
    assert got.column("steps", "step") == [9]
    assert {"eval/avg_loss", "eval/total_weights"} < set(got.column("scalars", "name"))


def test_what_is_no_record_is_counted(tmp_path):
    broken = 'half a {"learning/loss": 1\n\n[1, 2]\n{"step": "four"}\n{"step": 1.5}\n{"step": true}\n'
    got = metrics(tmp_path, lines(record(1)) + broken + lines(record(2))[:-20])
    assert got.column("steps", "step") == [1]
    [lost] = got.lost
    assert lost.what == "lines (6)" and lost.offset == len(lines(record(1)))


def test_numbers_that_are_none(tmp_path):
    worst = {"learning/loss": math.nan, "perf/step_time_seconds": math.inf, "perf/per_device_tflops": math.nan}
    text = lines(record(1, **worst), record(2, **{"perf/step_time_seconds": -1.0, "perf/step": 10**400}))
    got = metrics(tmp_path, text)
    assert math.isnan(got.column("steps", "loss")[0])
    assert got.column("steps", "dur_ns") == [None, None]
    assert got.column("steps", "model_flops_per_chip") == [None, 12.5e12]


def test_two_runs_in_one_file_are_noticed(tmp_path):
    got = metrics(tmp_path, lines(record(1), record(2, run_name="other")))
    assert got.facts == {"job_name": "night-run"} and "'other'" in got.reasons()


def test_nothing_usable_is_refused(tmp_path):
    with pytest.raises(InputError, match="no metrics record"):
        metrics(tmp_path, "[]\n" * 3 + "[" * 100_000)


@pytest.mark.parametrize(
    ("text", "name", "score"),
    [
        (lines(record(100)), NUMBERED, 0.95),
        ("\n" + lines(record(0)), "m.jsonl", 0.9),
        ('{"step": 1, "loss": 2}\n', NUMBERED, 0.0),
        ("completed step: 1, seconds: 2.000\n", NUMBERED, 0.0),
        ("", NUMBERED, 0.0),
    ],
)
def test_sniff(tmp_path, text, name, score):
    assert maxtext_metrics.sniff(source_of(tmp_path, text, name)) == score


@given(st.lists(st.tuples(st.integers(0, 10**12), st.floats(0, 1e6), st.floats(-1e99, 1e99)), min_size=1, max_size=20))
def test_what_is_written_is_what_is_read(tmp_path_factory, values):
    records = [record(n, **{"perf/step_time_seconds": s, "learning/loss": loss}) for n, s, loss in values]
    got = metrics(tmp_path_factory.getbasetemp(), lines(*records))
    assert got.column("steps", "step") == [v[0] for v in values]
    assert got.column("steps", "loss") == [v[2] for v in values]
    for read_ns, (_, seconds, _) in zip(got.column("steps", "dur_ns"), values, strict=True):
        assert read_ns == pytest.approx(seconds * 1e9, rel=1e-12, abs=0.5)
