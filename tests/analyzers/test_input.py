"""Bound by input, stalled now and then, or not: from profiles, from the job's own log, and where neither tells."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.device import input as asked
from analyzers.device import input_stalls
from analyzers.device.job_fetches import add_job_fetches
from analyzers.intervals import Spans
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.device_rows import EPOCH, device_tables
from tests.analyzers.worlds import World

MS = 1_000_000


def ask(tables, **facts):
    return asked.analyze(tables, facts_of(facts), {})


def log(fetch_ms, step_ms, exposed=1.0, mark_first=True):
    """A goodput log: of each step the fetch, hidden by the step's own work but for `exposed` of it."""
    starts, fetches, now = [], [], EPOCH
    for n, fetch in enumerate(fetch_ms):
        rest = step_ms[n] if isinstance(step_ms, list) else step_ms
        begun = now
        if not mark_first:
            now += int(fetch * exposed * MS)
        starts.append(begun if mark_first else now)
        fetches.append((begun, begun + int(fetch * MS)))
        now = begun + int((rest + fetch * exposed) * MS)
    return MemoryTables(
        {
            "steps": {"step": list(range(len(starts))), "start_ns": starts},
            "lifecycle": {
                "kind": ["job", *["data_loading"] * len(fetches)],
                "start_ns": [EPOCH - MS, *[f[0] for f in fetches]],
                "end_ns": [now, *[f[1] for f in fetches]],
            },
        }
    )


def test_stalls_are_found_with_what_each_cost():
    result = ask(World(steps=30, jitter_ms=1.0, stall_ms={12: 80.0, 20: 120.0, 25: 60.0}).tables(), chips=4)
    assert result.verdict == "stalls" and result.input_bound is False
    assert result.stalls["step"].tolist() == [12, 20, 25]
    assert result.stalls["extra_s"].tolist() == pytest.approx([0.080, 0.120, 0.060], abs=0.004)
    assert result.stall_chip_seconds == pytest.approx(4 * 0.26, abs=0.03)
    assert result.waited_s == pytest.approx(4 * (30 * 0.002 + 0.26), rel=0.02)
    assert result.slope == pytest.approx(1.0, abs=0.1) and result.slope_low > 0.5


def test_a_run_that_waits_in_every_step_is_bound():
    result = ask(World(steps=20, fetch_ms=25.0).tables(), chips=4)
    assert result.input_bound is True
    assert result.usual_waited_share == pytest.approx(0.025 / 0.1)
    assert result.stalls.empty  # it is always so


def test_a_fetch_under_the_devices_work_costs_nothing():
    steps = [("h", n, n * 100, n * 100 + 100) for n in range(20)]
    work = [("h", 0, "compute", "fusion", [(n * 100, n * 100 + 99) for n in range(20)])]
    fetched = {
        "lifecycle": {
            "kind": ["data_loading"] * 20,
            "host": ["h"] * 20,
            "start_ns": [EPOCH + n * 100 for n in range(20)],
            "end_ns": [EPOCH + n * 100 + 90 for n in range(20)],
        }
    }
    result = ask(device_tables(work, steps=steps, extra=fetched))
    assert result.verdict == "hidden" and result.waited_s == 0
    assert result.median_fetch_s == pytest.approx(90e-9)


@pytest.mark.parametrize(("first", "second", "beyond"), [(40, 41, (0, 3)), (60, 20, (360, 0)), (40, 40, (0, 0))])
def test_a_host_that_a_step_does_not_show_fetched_for_as_long_as_it_usually_does(first, second, beyond):
    """Of nine usual steps the second host was profiled in three: in the others the first is held against its median."""
    shown = [("a", n, first) for n in range(10)] + [("b", n, second) for n in range(4)]
    work = [(h, 0, "compute", "fusion", [(n * 100 + 70, n * 100 + 99) for n in range(10)]) for h in "ab"]
    fetched = {
        "kind": ["data_loading"] * len(shown),
        "host": [host for host, *_ in shown],
        "start_ns": [EPOCH + n * 100 for _, n, _ in shown],
        "end_ns": [EPOCH + n * 100 + took for _, n, took in shown],
    }
    steps = [(host, n, n * 100, n * 100 + 100) for host, n, _ in shown]
    hosts = ask(device_tables(work, steps=steps, extra={"lifecycle": fetched})).hosts.set_index("host")
    assert hosts.loc[["a", "b"], "beyond_s"].tolist() == pytest.approx([ns * 1e-9 for ns in beyond], abs=1e-15)


def test_infeed_is_waiting_for_input():
    steps = [("h", n, n * 100, n * 100 + 100) for n in range(10)]
    work = [
        ("h", 0, "compute", "infeed", [(n * 100, n * 100 + 40) for n in range(10)]),
        ("h", 0, "compute", "fusion", [(n * 100 + 30, n * 100 + 100) for n in range(10)]),
    ]
    result = ask(device_tables(work, steps=steps))
    assert result.verdict == "bound"
    assert result.waited_share == pytest.approx(0.30)


def test_from_the_jobs_log_alone_stalls_have_the_step_whose_batch_was_late():
    fetch = [1.0] * 40
    fetch[17] = fetch[30] = 60.0
    for mark_first in (True, False):  # some loops mark a step before its fetch, some after
        result = ask(log(fetch, 100.0, mark_first=mark_first), chips=8)
        assert result.verdict == "stalls"
        assert result.stalls["step"].tolist() == [17, 30]
        assert result.waited_s == pytest.approx(8 * 2 * 0.059, rel=0.01)


@pytest.mark.parametrize("fetch_first", [True, False])
def test_profiled_steps_tell_where_a_fetch_far_from_either_mark_belongs(fetch_first):
    """Steps of 100 ms with 57 ms of code between the fetch and whichever mark is farther off; one batch is late."""
    begun = EPOCH + np.cumsum([0, *([100] * 13), 600, *([100] * 15)]) * MS  # the fourteenth fetch takes 500 ms more
    took = np.where(np.arange(30) == 13, 501, 1) * MS
    fetched, marked = (begun, begun + took + 57 * MS) if fetch_first else (begun + 30 * MS, begun)
    rows = pd.DataFrame({"step": range(30), "start_ns": marked, "dur_ns": np.append(np.diff(marked), 100 * MS)})
    out = pd.DataFrame({"fetch_s": pd.array([pd.NA] * 30, dtype="Float64"), "dur_s": 0.1})
    seen = pd.DataFrame({"step": range(3, 8), "start_ns": begun[3:8], "end_ns": begun[4:9]})
    add_job_fetches(out, rows, Spans(fetched, fetched + took), seen)
    assert out["fetch_s"].idxmax() == 13 and float(out["fetch_s"].max()) == pytest.approx(0.501)
    assert float(out["fetch_s"].drop(13).median()) == pytest.approx(0.001)


def test_from_the_jobs_log_alone_exposed_and_hidden_fetches_differ():
    fetch = [10.0 + (n * 7) % 31 for n in range(60)]
    exposed, hidden = ask(log(fetch, 100.0)), ask(log(fetch, 100.0, exposed=0.0))
    assert exposed.verdict == "bound" and exposed.slope == pytest.approx(1.0, abs=0.02)
    assert hidden.verdict == "hidden" and hidden.slope == pytest.approx(0.0, abs=0.02)
    assert exposed.slope_low <= exposed.slope <= exposed.slope_high


def test_equal_fetches_tell_nothing_without_a_profile():
    result = ask(log([20.0] * 30, 100.0))
    assert result.input_bound is None and result.slope is None


def test_a_short_fetch_cannot_bind_whatever_else_is_unknown():
    assert ask(log([1.0] * 30, 100.0)).verdict == "hidden"


def test_a_busy_device_cannot_have_waited_for_input():
    busy = [("h", 0, "compute", "fusion", [(0, 980), (990, 1000)])]
    idle = [("h", 0, "compute", "fusion", [(0, 400), (990, 1000)])]
    assert ask(device_tables(busy)).input_bound is False
    result = ask(device_tables(idle))
    assert result.input_bound is None and result.at_most_share == pytest.approx(0.59)
    assert any("data_loading" in n for n in result.notes)


def test_nothing_at_all_says_what_would_tell():
    with pytest.raises(QuestionError, match="data_loading"):
        ask(MemoryTables({}))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.1, 300), min_size=2, max_size=30), st.floats(1, 200), st.floats(0, 1), st.booleans())
def test_any_log_gives_an_answer_that_closes(fetch, step_ms, exposed, mark_first):
    result = ask(log(fetch, step_ms, exposed, mark_first), chips=4)
    said = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert said["input_bound"] in (True, False, None)
    assert result.waited_s is None or 0 <= result.waited_s <= 4 * float(result.rows["dur_s"].sum()) + 1e-9
    assert all(s["extra_s"] > 0 for s in said["stalls"])
    assert result.rows["extra_s"].sum() <= float(result.rows["fetch_s"].fillna(0).sum()) + 1e-9


def test_profiled_steps_are_found_among_many_as_one_by_one():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "step": pd.array(rng.integers(0, 40, 400), dtype="Int64"),
            "start_ns": pd.array(rng.permutation(4_000)[:400] * 7 + EPOCH, dtype="Int64"),
        }
    )
    rows.loc[[3, 9], "start_ns"] = pd.NA
    seen = pd.DataFrame({"step": rng.integers(0, 50, 60), "start_ns": rng.integers(0, 28_000, 60) + EPOCH})
    expected = []
    for step, at in zip(seen["step"], seen["start_ns"], strict=True):
        same = rows[(rows["step"] == step) & rows["start_ns"].notna()]
        expected.append(int((same["start_ns"] - at).abs().astype("int64").idxmin()) if len(same) else -1)
    assert asked._matched(rows, seen).tolist() == expected
    assert asked._matched(rows.head(0), seen).tolist() == [-1] * 60


def test_the_interval_of_very_many_steps_is_that_of_bootstraps(monkeypatch):
    rng = np.random.default_rng(1)
    fetch = rng.exponential(0.01, 4_000)
    usual = pd.DataFrame({"fetch_s": fetch, "dur_s": 0.1 + 0.7 * fetch + rng.normal(0, 0.002, 4_000)})
    step_s, fetch_s = float(usual["dur_s"].median()), float(usual["fetch_s"].median())
    drawn = input_stalls.slope_of(usual, step_s, fetch_s)
    monkeypatch.setattr(input_stalls, "MOST_RESAMPLED", 1_000)
    assert input_stalls.slope_of(usual, step_s, fetch_s) == pytest.approx(drawn, abs=0.1 * (drawn[2] - drawn[1]))
