"""NeMo's logs, which print one step in so many and time that one alone."""

from datetime import UTC, datetime, timedelta

import pytest

from collectors.training import megatron
from collectors.training.unprinted import stood_for
from tests.collectors.reading import read, source_of

S = 10**9


def nemo(steps, dated=True, took_s=3.0, pauses=(), printed_s=None):
    """Lines of these steps of a run whose steps follow one another, but for `pauses` seconds before some of them."""
    now, out, waits = datetime(2026, 3, 4, 5), [], dict(pauses)
    for step in range(max(steps) + 1):
        now += timedelta(seconds=took_s + waits.get(step, 0))
        if step in steps:
            out.append(
                (f"{now:%Y-%m-%dT%H:%M:%S.%f}Z " if dated else "")
                + f"[default0]:Training epoch 0, iteration {step}/499 | lr: 1e-05 | global_step: "
                f"{step} | reduced_train_loss: 10.3 | train_step_timing in s: {printed_s or took_s}\n"
            )
    return "".join(out)


def told(folder, text):
    return read(megatron, source_of(folder, text, "nemo.log"))


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("first", [0, 9])
def test_steps_without_a_line_of_their_own_are_steps(tmp_path, dated, first):
    got = told(tmp_path, nemo(range(first, 500, 10), dated))
    assert got.column("steps", "step") == [*range(500 - (9 - first))]
    assert set(got.column("steps", "dur_ns")) == {3 * S} and got.facts["steps_averaged_over"] == 10
    assert sum(loss is not None for loss in got.column("steps", "loss")) == 50
    assert "not each has a line" in got.reasons()
    if dated:
        start = got.column("steps", "start_ns")
        assert {b - a for a, b in zip(start, start[1:], strict=False)} == {3 * S}


def test_between_dated_lines_steps_took_the_mean_unless_that_shows_a_pause(tmp_path):
    got = told(tmp_path, nemo(range(9, 60, 10), pauses=[(45, 60)], printed_s=2.8))
    took = got.column("steps", "dur_ns")
    assert set(took[10:40]) == set(took[50:]) == {3 * S}
    assert set(took[40:50]) == {28 * S // 10}
    start = got.column("steps", "start_ns")
    assert start[40] - (start[39] + took[39]) == 62 * S


def test_a_step_each_stays_as_it_was_printed(tmp_path):
    got = told(tmp_path, nemo(range(20), printed_s=2.5))
    assert set(got.column("steps", "dur_ns")) == {5 * S // 2} and "steps_averaged_over" not in got.facts
    assert got.column("steps", "step") == [*range(20)]


def test_lines_that_are_missing_are_a_gap(tmp_path):
    """Undated, no more steps than lie between two lines elsewhere; after a pause no more either."""
    undated = told(tmp_path, nemo([*range(9, 100, 10), *range(399, 500, 10)], dated=False))
    assert undated.column("steps", "step") == [*range(100), *range(390, 500)]
    (tmp_path / "b").mkdir()
    dated = told(tmp_path / "b", nemo([*range(9, 100, 10), *range(399, 500, 10)], pauses=[(200, 3600)]))
    assert dated.column("steps", "step") == [*range(100), *range(390, 500)]


def test_a_restart_begins_anew(tmp_path):
    again = nemo(range(9, 100, 10), dated=False) + nemo(range(59, 160, 10), dated=False)
    got = told(tmp_path, again)
    assert got.column("steps", "step") == [*range(100), *range(50, 160)]
    assert got.column("steps", "attempt") == [0] * 100 + [1] * 110


def test_how_many_steps_a_line_stands_for():
    assert stood_for(9, None, 0, S, None) == (1, S)
    assert stood_for(1009, None, 10, S, None) == (10, S)
    assert stood_for(1004, None, 10, S, None) == (1, S)
    assert stood_for(20, 10, 0, S, 11 * S) == (10, 11 * S // 10)
    assert stood_for(20, 10, 0, S, 0) == (10, S)
    assert stood_for(10**6, 10, 10, S, None) == (1, S)


TWO = (
    "Training epoch {}, iteration {}/99 | lr: 1e-05 | global_batch_size: 128 | global_step: {} | max_memory_allocated: "
    "62777982976 | reduced_train_loss: 11.25 | train_step_timing in s: 8.0 | TFLOPS_per_GPU: 1.25e+03 | "
    "tokens_per_sec_per_gpu: 1.5e+04 | consumed_samples: 640 | val_loss: 2.5\n"
)
BEGUN_S = 1_772_625_600  # 2026-03-04 12:00:00 UTC
SAVED = "[NeMo I 2026-03-04 {} nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 4 : Start time: "
SAVED += "{}s : Save duration: 4.5s\n"
LOADED = "Global Checkpoint Load : Rank : 0 : Start time : {}s : Time spent in load_checkpoint: 9.5s\n"


def test_all_numbers_of_a_line(tmp_path):
    got = told(tmp_path, "All distributed processes registered. Starting with 16 processes\n" + TWO.format(0, 4, 4))
    [row] = got.rows["steps"]
    assert (row["dur_ns"], row["loss"], row["tokens_per_s_per_chip"]) == (8 * S, 11.25, 15_000)
    assert row["model_flops_per_chip"] == pytest.approx(1250e12 * 8)
    values = {r["name"]: (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values == {
        "lr": (1e-05, None),
        "global_batch_size": (128, None),
        "max_memory_allocated": (62777982976, "bytes"),
        "consumed_samples": (640, None),
        "val_loss": (2.5, None),
    }
    assert got.facts == {"chips": 16, "global_batch": 128}


def test_a_save_dates_the_steps_about_it(tmp_path):
    text = TWO.format(0, 4, 4) + SAVED.format("12:00:04", f"{BEGUN_S}.125") + TWO.format(1, 0, 5) + TWO.format(1, 1, 6)
    got = told(tmp_path, text)
    [save] = got.rows["lifecycle"]
    begun = BEGUN_S * S + S // 8
    assert (save["kind"], save["step"], save["start_ns"]) == ("checkpoint_save", 4, begun)
    assert save["end_ns"] == begun + 9 * S // 2
    assert got.column("steps", "start_ns") == [begun - 8 * S, save["end_ns"], save["end_ns"] + 8 * S]
    assert set(got.column("steps", "dur_ns")) == {8 * S}


def test_a_save_lies_by_the_clock_of_the_lines(tmp_path):
    """The line is dated seven hours behind UTC, as are those of failures."""
    [save] = told(tmp_path, TWO.format(0, 4, 4) + SAVED.format("05:00:04", f"{BEGUN_S}.125")).rows["lifecycle"]
    assert save["start_ns"] == (BEGUN_S - 7 * 3600) * S + S // 8


def test_a_restore_begins_an_attempt(tmp_path):
    load = LOADED.format(f"{BEGUN_S + 100}.0")
    got = told(tmp_path, load + TWO.format(0, 4, 4) + load.replace("725", "726") + TWO.format(0, 5, 5))
    assert got.column("steps", "attempt") == [0, 1] and got.column("lifecycle", "attempt") == [0, 1]
    assert got.column("lifecycle", "kind") == ["checkpoint_restore"] * 2


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("saved", [19, 15])
def test_a_save_between_two_lines_is_no_time_of_the_steps_about_it(tmp_path, dated, saved):
    """A line for one step in ten, of 8 s each, and a save of 4.5 s behind step 19 or 15."""
    lines, now = [], float(BEGUN_S)
    for n in range(40):
        now += 8
        if n % 10 == 9:
            at = datetime.fromtimestamp(now, UTC)
            lines.append((f"{at:%Y-%m-%dT%H:%M:%S.%f}Z " if dated else "") + TWO.format(0, n, n))
        if n == saved:
            at = datetime.fromtimestamp(now + 5, UTC)
            lines.append(SAVED.format(f"{at:%H:%M:%S}", f"{now:.3f}").replace("Iteration: 4", f"Iteration: {n}"))
            now += 4.5
    got = told(tmp_path, "".join(lines))
    assert got.column("steps", "step") == list(range(40)) and set(got.column("steps", "dur_ns")) == {8 * S}
    starts = [(ns - BEGUN_S * S) / S for ns in got.column("steps", "start_ns")]
    assert starts == pytest.approx([8 * n + 4.5 * (n > saved) for n in range(40)])
    assert [(r["start_ns"] / S - BEGUN_S, r["step"]) for r in got.rows["lifecycle"]] == [(8 * (saved + 1), saved)]
