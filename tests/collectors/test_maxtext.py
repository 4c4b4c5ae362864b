"""MaxText's standard output, in the words of each era; every line here was written for these tests."""

import gzip
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import Source
from collectors.reading import textlog
from collectors.training import maxtext
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.test_attempts import attempts

S = 1_000_000_000


def ns(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp()) * S


def log(tmp_path, text, name="train.log"):
    return read(maxtext, source_of(tmp_path, text, name))


ERAS = {
    "2023: loss only": (
        "completed step: 3, seconds: 0.250, loss: 7.125",
        {"step": 3, "dur_ns": 250_000_000, "loss": 7.125, "tokens_per_s_per_chip": None, "model_flops_per_chip": None},
        {},
    ),
    "2023: TFLOP/s": (
        "completed step: 4, seconds: 0.500, TFLOP/s: 80.000, loss: 6.500",
        {"step": 4, "dur_ns": 500_000_000, "model_flops_per_chip": 40e12, "loss": 6.5},
        {},
    ),
    "2024: per device": (
        "completed step: 5, seconds: 2.000, TFLOP/s/device: 150.500, loss: 3.250",
        {"step": 5, "dur_ns": 2 * S, "model_flops_per_chip": 301e12},
        {},
    ),
    "2024: tokens and weights": (
        "completed step: 6, seconds: 4.000, TFLOP/s/device: 100.000, Tokens/s/device: 2048.000, "
        "total_weights: 65536, loss: 2.000",
        {"step": 6, "tokens_per_s_per_chip": 2048.0, "model_flops_per_chip": 400e12},
        {"total_weights": 65536.0},
    ),
    "2025: glog, more losses": (
        "I0102 03:04:05.678901 140737 metric_logger.py:196] completed step: 7, seconds: 1.000, TFLOP/s/device: 90.000, "
        "Tokens/s/device: 512.000, total_weights: 1024, loss: 2.500, lm_loss: 2.250, perplexity: 9.488, "
        "moe_lb_loss: 0.125, main_model_loss: 2.375, mtp_loss: 0.125",
        {"step": 7, "loss": 2.5, "start_ns": None, "logged_ns": None},
        {
            "total_weights": 1024.0,
            "lm_loss": 2.25,
            "perplexity": 9.488,
            "moe_lb_loss": 0.125,
            "main_model_loss": 2.375,
            "mtp_loss": 0.125,
        },
    ),
    "2025: ramp-up of the batch size": (
        "[Rampup Batch Size Phase], completed step: 8, seconds: 1.500, total_weights: 128, loss: 9.000, lm_loss: 9.000",
        {"step": 8, "dur_ns": 1_500_000_000, "tokens_per_s_per_chip": None, "model_flops_per_chip": None},
        {"total_weights": 128.0, "lm_loss": 9.0},
    ),
    "2025: a step that starts the profiler": (
        "completed profiler activation/deactivation step: 9, total_weights: 128, loss: 8.500",
        {"step": 9, "dur_ns": None, "loss": 8.5},
        {"total_weights": 128.0},
    ),
    "2026: elastic": (
        "completed step: 10, seconds: 1.000, live slice count: 3, TFLOP/s/device: 50.000, loss: 8.250",
        {"step": 10, "model_flops_per_chip": 50e12},
        {"live slice count": 3.0},
    ),
}


@pytest.mark.parametrize("era", ERAS)
def test_each_era(tmp_path, era):
    line, expected, scalars = ERAS[era]
    got = log(tmp_path, line + "\n")
    [step] = got.rows["steps"]
    for column, value in expected.items():
        assert step[column] == (pytest.approx(value) if isinstance(value, float) else value), column
    assert step["attempt"] == 0 and step["order"] == 0 and step["source"] == "train.log" and step["host"] is None
    assert {r["name"]: r["value"] for r in got.rows.get("scalars", [])} == scalars
    assert {r["step"] for r in got.rows.get("scalars", [])} <= {step["step"]}


def test_a_template_is_no_step(tmp_path):
    got = log(tmp_path, "completed step: 101, ...\ncompleted step: 1, seconds: 1.000, loss: 1.000\n")
    assert got.column("steps", "step") == [1]
    assert "give no number" in got.reasons() and got.lost[0].offset == 0


def test_a_log_without_steps_is_refused(tmp_path):
    with pytest.raises(InputError, match="no training step"):
        log(tmp_path, "nothing to see\ncompleted step: 101, ...\n")


def steps(*numbers):
    return "".join(f"completed step: {n}, seconds: 1.00{i % 10}, loss: 2.000\n" for i, n in enumerate(numbers))


STEP = "completed step: 1, seconds: 2.000, loss: 1.000\n"


@pytest.mark.parametrize(
    ("prefix", "logged", "zone_named"),
    [
        ("2026-03-04T05:06:07.125Z ", ns(2026, 3, 4, 5, 6, 7) + 125_000_000, True),
        ("2026-03-04T05:06:07.123456789Z I0304 05:06:07.1 99 m.py:1] ", ns(2026, 3, 4, 5, 6, 7) + 123_456_789, True),
        ("2026-03-04T07:06:07+02:00 ", ns(2026, 3, 4, 5, 6, 7), True),
        ("2026-03-04 00:06:07.5 -0500 ", ns(2026, 3, 4, 5, 6, 7) + 500_000_000, True),
        ("2026-03-04 05:06:07,250 - INFO - ", ns(2026, 3, 4, 5, 6, 7) + 250_000_000, False),
        ("[20260304 05:06:07][rank-0/1][INFO] ", ns(2026, 3, 4, 5, 6, 7), False),
        ("I20260304 05:06:07.5 42 metric_logger.py:1] ", ns(2026, 3, 4, 5, 6, 7) + 500_000_000, False),
        ("[pod/a-0/c] 2026-03-04T05:06:07Z ", ns(2026, 3, 4, 5, 6, 7), True),
        ("2026-02-30T05:06:07Z ", None, True),
    ],
)
def test_a_full_date_on_the_line_gives_the_time(tmp_path, prefix, logged, zone_named):
    got = log(tmp_path, prefix + STEP)
    [step] = got.rows["steps"]
    assert step["logged_ns"] == logged
    assert step["start_ns"] == (None if logged is None else logged - 2 * S)
    assert ("no time zone" in got.reasons()) == (not zone_named)


def test_a_glog_date_alone_has_no_year_so_no_time(tmp_path):
    got = log(tmp_path, "I0304 05:06:07.000000 9 metric_logger.py:1] " + STEP)
    assert got.column("steps", "start_ns") == [None] and got.column("steps", "logged_ns") == [None]
    assert "year" in got.reasons()


@pytest.mark.parametrize("name", ["run-2026-03-04.log", "logs/20260304_1200/worker0.txt", "a.2026_03_04.INFO"])
def test_the_year_may_stand_in_the_files_name(tmp_path, name):
    got = log(tmp_path, "I0304 05:06:07.000000 9 metric_logger.py:1] " + STEP, name)
    assert got.column("steps", "logged_ns") == [ns(2026, 3, 4, 5, 6, 7)]


@pytest.mark.parametrize("name", ["run-12345678.log", "seed-20261345.log", "ckpt_20480101999.txt"])
def test_other_digits_in_a_name_are_no_date(tmp_path, name):
    assert log(tmp_path, "I0304 05:06:07.000000 9 m.py:1] " + STEP, name).column("steps", "logged_ns") == [None]


def test_the_year_may_stand_in_another_line_and_turns_with_the_calendar(tmp_path):
    text = (
        "2026-12-31 23:59:00 starting\n"
        "I1231 23:59:58.000000 9 metric_logger.py:1] completed step: 1, seconds: 2.000, loss: 1.000\n"
        "I0101 00:00:02.000000 9 metric_logger.py:1] completed step: 2, seconds: 2.000, loss: 1.000\n"
    )
    got = log(tmp_path, text)
    assert got.column("steps", "logged_ns") == [ns(2026, 12, 31, 23, 59, 58), ns(2027, 1, 1, 0, 0, 2)]


def test_evaluations_with_a_time_are_lifecycle(tmp_path):
    text = (
        "2026-03-04T05:06:00Z "
        + STEP
        + "2026-03-04T05:06:03Z Completed eval step: 0, seconds: 1.250, running loss=3.000\n"
        + "2026-03-04T05:06:04Z Completed eval step: 1, seconds: 0.750, running loss=3.000\n"
        + "2026-03-04T05:06:05Z Completed eval after train step 1, loss=3.125, perplexity=22.760, total_weights=64.0\n"
    )
    got = log(tmp_path, text)
    [row] = got.rows["lifecycle"]
    end = ns(2026, 3, 4, 5, 6, 5)
    assert (row["kind"], row["start_ns"], row["end_ns"], row["step"]) == ("eval", end - 2 * S, end, 1)
    values = {r["name"]: r["value"] for r in got.rows["scalars"]}
    assert values == {"eval/loss": 3.125, "eval/perplexity": 22.76, "eval/total_weights": 64.0, "eval/seconds": 2.0}


EVAL_STEPS = "2026-03-04T05:06:03Z Completed eval step 0\n2026-03-04T05:06:05Z Completed eval step 1\n"
EVALUATED = "2026-03-04T05:06:06Z eval metrics after step: 1, loss=3.125, total_weights=64.0\n"


@pytest.mark.parametrize(
    ("before", "begun_s"),
    [
        ("2026-03-04T05:06:00Z " + STEP, 0),  # it goes on since the step of training
        ("", 3),
        ("2026-03-04T05:05:00Z " + STEP + "2026-03-04T05:05:30Z Restoring checkpoint from /ckpt\n", 3),
        ("2026-03-04T05:06:00Z " + STEP + "[pod/b/m] 2026-03-04T05:06:02Z " + STEP, 0),  # another host's is not its own
    ],
)
def test_evaluations_whose_steps_say_no_seconds_begin_by_the_lines_before(tmp_path, before, begun_s):
    got = log(tmp_path, before + EVAL_STEPS + EVALUATED)
    [row] = got.rows["lifecycle"]
    assert (row["start_ns"], row["end_ns"]) == (ns(2026, 3, 4, 5, 6, begun_s), ns(2026, 3, 4, 5, 6, 6))
    assert "eval/seconds" not in got.column("scalars", "name")


def test_an_evaluation_that_was_cut_off_is_no_part_of_the_next(tmp_path):
    at = "2026-03-04T05:{}:00Z ".format
    text = at("05") + STEP + EVAL_STEPS + at("30") + "Restoring checkpoint from /ckpt\n" + at("40") + STEP
    got = log(tmp_path, text + at("41") + EVALUATED.partition(" ")[2])
    assert got.column("lifecycle", "start_ns") == [None]


@pytest.mark.parametrize(
    "line",
    [
        "Completed eval after train step 1, loss=3.125, total_weights=64.0, avg_z_loss=0.000",
        "eval metrics after step: 1, loss=3.125, total_weights=64.0, avg_z_loss=0.000",
        "average loss after step=1: eval_loss=3.125, total_weights=64.0, avg_z_loss=0.000",
    ],
)
def test_evaluations_without_a_time_are_counted_and_their_numbers_kept(tmp_path, line):
    got = log(tmp_path, STEP + line + "\n")
    assert "lifecycle" not in got.rows
    assert got.lost[0].what == "evaluations (1)"
    assert {r["name"]: r["value"] for r in got.rows["scalars"]} == {
        "eval/loss": 3.125,
        "eval/total_weights": 64.0,
        "eval/avg_z_loss": 0.0,
    }


def test_configuration_becomes_facts(tmp_path):
    text = (
        "Config param model_name: llama2-7b\nConfig param run_name: 0042\nConfig param per_device_batch_size: 1.5\n"
        "I0101 00:00:00.1 1 pyconfig.py:413] Config param max_target_length: 2048 \nConfig param num_slices: 2\n"
        "Config param quantization: \nConfig param remat_policy: None\nConfig param hardware: tpu\n"
        "Config param ici_fsdp_parallelism: 16\nConfig param dcn_data_parallelism: -1\n"
        "Config param ici_tensor_parallelism: 1\nConfig param steps: many\nConfig param dtype: bfloat16\n"
        "Num_devices: 32, shape (1, 2, 16)\nnumber parameters: 6.738 billion\nTFRT TPU v5 lite\n" + STEP
    )
    assert log(tmp_path, text).facts == {
        "model": "llama2-7b",
        "job_name": "0042",
        "per_device_batch_size": 1.5,
        "max_target_length": 2048,
        "num_slices": 2,
        "hardware": "tpu",
        "precision": "bfloat16",
        "devices": 32,
        "parameters": 6.738e9,
        "chip": "TPU v5 lite",
        "parallelism": {"ici_fsdp": 16, "dcn_data": -1},
    }


def test_a_log_that_ends_before_the_first_step_still_has_its_configuration(tmp_path):
    got = log(tmp_path, "Config param model_name: gemma-7b\nTraceback (most recent call last):\n")
    assert got.facts == {"model": "gemma-7b"} and got.rows.keys() == {"evidence"}


def test_lines_that_tell_why_stand_where_they_were_written(tmp_path):
    died = (
        "[pod/w-3/train] 2026-03-04T05:06:07Z ERROR: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes on TPU 2\n"
        "Traceback (most recent call last):\n"
    )
    again = "Restoring checkpoint from gs://b/c\n" + steps(0, 1, 2) + "Timeout (0:10:00)!\n"
    got = log(tmp_path, steps(0, 1) + died + again)
    told = [(r["cause"], r["attempt"], r["step"], r["severity"]) for r in got.rows["evidence"]]
    assert told == [("device_memory", 0, 1, "error"), ("process_exit", 0, 1, None), ("hang", 1, 2, None)]
    first = got.rows["evidence"][0]
    assert (first["host"], first["device"], first["ts_ns"]) == ("w-3", 2, ns(2026, 3, 4, 5, 6, 7))
    assert first["offset"] == len(steps(0, 1)) and first["order"] == 2 and first["source"] == "train.log"
    assert first["text"] == died.splitlines()[0]


def test_a_number_cut_off_by_the_end_of_the_file_is_left_out(tmp_path):
    text = STEP + "completed step: 2, seconds: 12.345, TFLOP/s/device: 17"
    assert log(tmp_path, text).rows["steps"][1]["model_flops_per_chip"] is None
    text = STEP + "completed step: 2, seconds: 12.345, TFLOP/s/device: 17.000"
    assert log(tmp_path, text).rows["steps"][1]["model_flops_per_chip"] == pytest.approx(17e12 * 12.345)


def test_colours_line_ends_and_bytes_that_are_no_text_do_not_matter(tmp_path):
    text = b"\x1b[1;32mcompleted step: 1, \x1b[0mseconds: 2.000,\xff\xfe loss: 1.500\x1b[0m\r\n"
    [step] = log(tmp_path, text).rows["steps"]
    assert (step["dur_ns"], step["step"]) == (2 * S, 1)


def test_numbers_that_are_none(tmp_path):
    text = (
        "completed step: 1, seconds: 1.000, TFLOP/s/device: nan, Tokens/s/device: inf, loss: nan\n"
        "completed step: 2, seconds: 0.000, TFLOP/s/device: 917.000, loss: inf\n"
        "completed step: 3, seconds: -1.000, loss: 1.000\n"
        "completed step: 4, seconds: 99999999999999999999.000, loss: 1.000\n"
        "completed step: 9999999999999999999, seconds: 1.000, loss: 1.000\n"
    )
    got = log(tmp_path, text)
    assert got.column("steps", "model_flops_per_chip") == [None] * 4
    assert got.column("steps", "tokens_per_s_per_chip")[0] is None
    assert math.isnan(got.column("steps", "loss")[0]) and got.column("steps", "loss")[1] == math.inf
    assert got.column("steps", "dur_ns") == [S, 0, None, None]
    assert got.lost[0].what == "step lines (1)"


def test_a_long_log_comes_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(textlog, "BATCH_ROWS", 10)
    got = log(tmp_path, steps(*range(95)))
    assert got.batches == 10 and got.column("steps", "step") == list(range(95))


def test_gzipped_logs_read_alike(tmp_path):
    assert log(tmp_path, gzip.compress(steps(*range(50)).encode())).rows == log(tmp_path, steps(*range(50))).rows


@pytest.mark.parametrize(
    ("text", "mine"),
    [
        (STEP, True),
        ("Config param per_device_batch_size: 4.0\n", True),
        ("completed step: 101, ...\n", False),
        ("step: 2  loss: 8.5  grad_norm: 0.5\n", False),
        ("completed step: 1, seconds: 1.000\0\0", False),
        ("", False),
    ],
)
def test_sniff(tmp_path, text, mine):
    assert (maxtext.sniff(source_of(tmp_path, text)) >= 0.5) == mine


def test_sniff_of_a_file_that_is_gone(tmp_path):
    assert maxtext.sniff(Source(tmp_path / "gone", "gone")) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(1, 10**7), st.integers(0, 10**6), st.integers(-(10**6), 10**6)),
        min_size=1,
        max_size=30,
    )
)
def test_what_is_printed_is_what_is_read(tmp_path_factory, values):
    lines = [
        f"completed step: {n}, seconds: {ms / 1000:.3f}, TFLOP/s/device: {rate / 1000:.3f}, loss: {loss / 1000:.3f}\n"
        for n, ms, rate, loss in values
    ]
    unique = [v for i, v in enumerate(values) if i == 0 or lines[i] != lines[i - 1]]
    got = log(tmp_path_factory.getbasetemp(), "".join(lines))
    assert got.column("steps", "step") == [v[0] for v in unique]
    assert got.column("steps", "dur_ns") == [v[1] * 1_000_000 for v in unique]
    assert got.column("steps", "loss") == [pytest.approx(v[3] / 1000) for v in unique]
    assert got.column("steps", "model_flops_per_chip") == [pytest.approx(v[1] * v[2] * 1e6, rel=1e-9) for v in unique]
    # A drop is a restart unless the numbers look like those of two hosts: test_attempts says when, independently.
    assert got.column("steps", "attempt") == attempts(*(v[0] for v in unique))


def test_a_negative_step_is_refused(tmp_path):
    got = log(tmp_path, steps(0, 1) + steps(2).replace("step: 2", "step: -2"))
    assert got.column("steps", "step") == [0, 1] and "below zero: refused" in got.reasons()
