"""Goodput by the exact rules: everything that the library gets wrong, right; and shares that sum to the whole."""

import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.lost import goodput
from analyzers.lost.goodput.buckets import leaves
from analyzers.time import ledger
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.goodput_asked import S, ask, even, job, ns
from tests.analyzers.worlds import EPOCH


def test_a_plain_job_is_told_to_the_second():
    life = [
        ("job", 0, 60),
        ("accelerator_initialization", 1, 11),
        ("training_preparation", 11, 20),
        ("data_loading", 20, 25),
        ("data_loading", 40.5, 41),
    ]
    result = ask(job([(0, 26), *even(1, 40, 10)], life), {"chips": 8})
    assert result.total_s == 60
    assert result.productive_s == pytest.approx(22)
    assert {b: s for b, s in leaves(result.badput_s).items() if s} == {
        "tpu_initialization": 10,
        "training_prep": 9,
        "data_loading_sync": 5,
        "program_startup": 12,
        "other": 2,
    }
    assert result.data_loading_async_s == 0.5
    assert (result.disruptions, result.max_step, result.ideal_step_s, result.chips) == (0, 10, 2.0, 8)
    answer = result.to_dict()
    assert answer["step_deviation_s"]["0"] == 12 and answer["step_deviation_s"]["5"] == 0
    assert result.steps["spike"].tolist() == [True] + [False] * 9


def test_a_restart_at_the_next_step_is_seen_though_no_step_is_repeated():
    result = ask(job(even(0, 10, 10) + even(10, 240, 10), [("job", 0, None), ("job", 230, 260)]))
    assert result.badput_s["infrastructure_recovery_from_disruption"] == 200
    assert result.productive_s == 40 and result.disruptions == 1 and result.badput_s["other"] == 20
    assert any("missed 1 of 1" in text for text in result.differences)


def test_a_job_run_again_after_it_ended_holds_nothing_between_and_keeps_both_runs():
    life = [("job", 0, 30), ("job", 5000, 5030)]
    result = ask(job(even(0, 10, 10) + even(0, 5010, 10), life))
    assert (result.total_s, result.productive_s, result.disruptions) == (60, 40, 0)
    assert result.badput_s["wasted_progress_from_disruption"] == 0
    assert any("run again" in t or "started again" in t for t in result.notes)
    assert result.attempts["outcome"].tolist() == ["finished", "finished"]


def test_a_job_that_ended_and_went_on_from_a_checkpoint_wasted_what_it_repeats():
    result = ask(job(even(0, 10, 10) + even(8, 5010, 10), [("job", 0, 30), ("job", 5000, 5030)]))
    assert result.badput_s["wasted_progress_from_disruption"] == 4
    assert result.productive_s == 36


def test_entries_told_twice_are_no_disruption():
    steps = even(0, 10, 10)
    again = [steps[4], (6, steps[6][1] + 0.01), *steps[8:]]  # sent again, and once from another process
    result = ask(job(sorted(steps + again, key=lambda x: x[1]), [("job", 0, 30)]))
    assert (result.disruptions, result.productive_s) == (0, 20)
    assert any("told twice" in note for note in result.notes)
    library = goodput.analyze(
        job(sorted(steps + again, key=lambda x: x[1]), [("job", 0, 30)]), {}, {"rules": "ml-goodput"}
    )
    assert library.disruptions == 4


def test_a_run_restarted_from_step_0_wasted_all_it_had_done():
    result = ask(job(even(0, 10, 10) + even(0, 110, 20), [("job", 0, None), ("job", 100, 150)]))
    assert result.badput_s["wasted_progress_from_disruption"] == 18  # the last was under way when it died
    assert result.badput_s["infrastructure_recovery_from_disruption"] == 72
    assert result.badput_s["other"] == 20 and result.productive_s == 40
    assert any("step 0" in t for t in result.differences)


def test_a_blocking_load_counts_once_and_loads_inside_steps_are_told_beside():
    loads = [
        ("data_loading", 2, 8),
        *[("data_loading", 10 + 2 * i, 10.5 + 2 * i) for i in range(10)],
        ("data_loading", 102, 106),
    ]
    life = [("job", 0, None), ("job", 100, 150), *loads]
    result = ask(job(even(0, 10, 10) + even(5, 110, 20), life))
    assert result.badput_s["data_loading_sync"] == 10
    assert result.data_loading_async_s == pytest.approx(5.0)
    assert any("no badput" in note for note in result.notes)


def test_saves_of_one_step_by_several_hosts_block_as_long_as_any_of_them():
    saves = [("checkpoint_save", 20, 24), ("checkpoint_save", 21, 26), ("checkpoint_save", 40, 41)]
    steps = [*even(0, 10, 5), (5, 26), *even(6, 28, 10)]
    result = ask(job(steps, [("job", 0, 48), *saves]))
    assert result.badput_s["unproductive_checkpoint_save_time"] == 7
    assert result.badput_s["program_startup"] == 0  # pauses make no step a slow first one


def test_saves_told_by_hosts_one_by_one_count_too():
    tables = MemoryTables(
        {
            "steps": {"step": range(5), "start_ns": [ns(10 + 4 * i) for i in range(5)]},
            "lifecycle": {
                "kind": ["job", "checkpoint_save", "checkpoint_save"],
                "host": [None, "a", "b"],
                "start_ns": [ns(0), ns(12), ns(12.5)],
                "end_ns": [ns(30), ns(13), ns(14)],
            },
        }
    )
    assert ask(tables).badput_s["unproductive_checkpoint_save_time"] == 2


def test_a_custom_event_that_crosses_steps_is_badput_all_the_same():
    life = [("job", 0, 30), ("custom", 15, 21, "sdc"), ("custom", 19, 25, "Eval"), ("eval", 26, 27)]
    result = ask(job(even(0, 10, 10), life))
    assert result.badput_s["custom_badput_events"] == {"SDC": 6, "EVAL": 5}
    assert result.productive_s == 9


def test_waiting_for_slices_to_join_is_not_productive():
    life = [
        ("job", 0, 60),
        ("elastic_slice_down", 20, 24),
        ("elastic_scale_up", 30, 36),
        ("elastic_reinitialization", 36, 39),
    ]
    result = ask(job([*even(0, 10, 10), (10, 39), *even(11, 41, 9)], life))
    assert (result.badput_s["elastic_slice_down"], result.badput_s["elastic_scale_up"]) == (4, 6)
    assert result.badput_s["elastic_reinitialization"] == 3


def test_steps_under_a_second_have_an_ideal_too():
    steps = [(0, 10), *even(1, 12, 40, 0.25)]
    result = ask(job(steps, [("job", 0, 22)]))
    assert result.ideal_step_s == 0.25
    library = goodput.analyze(job(steps, [("job", 0, 22)]), {}, {"rules": "ml-goodput"})
    assert library.ideal_step_s == 2.0  # of the one step that takes a second or more


def test_a_job_of_weeks_is_told_from_its_first_day_on():
    day = 86_400
    result = ask(job(even(0, 100, 30 * 24, 3600.0), [("job", 0, 30 * day + 100)]))
    assert result.total_s == 30 * day + 100 and result.productive_s == 30 * day
    library = goodput.analyze(job(even(0, 100, 720, 3600.0), [("job", 0, 30 * day + 100)]), {}, {"rules": "ml-goodput"})
    assert any("7 days" in note for note in library.notes)


def test_saves_and_events_without_an_end_are_named_and_take_nothing():
    life = [("job", 0, 30), ("checkpoint_save", 15, None), ("custom", 17, None, "x"), ("training_preparation", 2, None)]
    result = ask(job(even(0, 10, 10), life))
    assert result.badput_s["unproductive_checkpoint_save_time"] == 0
    assert result.badput_s["custom_badput_events"] == {}
    assert result.badput_s["training_prep"] == 8  # up to the next event
    assert any("3 recorded intervals have no end" in note for note in result.notes)
    assert any("1 recorded interval has" in n for n in ask(job(even(0, 10, 10), life[:2])).notes)


def test_a_phase_that_an_interruption_cut_off_is_not_charged_for_the_downtime():
    life = [("job", 0, None), ("accelerator_initialization", 5, None), ("job", 100, 130)]
    result = ask(job(even(0, 110, 10), life))
    assert result.badput_s["tpu_initialization"] == 0
    assert result.badput_s["infrastructure_recovery_from_disruption"] == 95


def test_the_order_in_which_entries_were_written_changes_nothing():
    steps, life = even(0, 10, 20) + even(15, 110, 20), [("job", 0, None), ("job", 100, 150)]
    rng = np.random.default_rng(5)
    mixed = [steps[i] for i in rng.permutation(len(steps))]
    a, b = ask(job(steps, life)).to_dict(), ask(job(mixed, life[::-1])).to_dict()
    a.pop("differences"), b.pop("differences")
    assert a == b


def test_times_later_than_their_own_entry_are_left_out():
    steps = [*even(0, 10, 10), (10, 9_000_000)]
    logged = [t + 1 for _, t in steps[:-1]] + [31]
    result = ask(job(steps, [("job", 0, 40)], logged))
    assert result.total_s == 40 and result.max_step == 9
    assert any("more than a minute after" in note for note in result.notes)
    ahead = [t - 300 for _, t in even(0, 1000, 10)]  # a clock that is ahead as a whole is no reason to drop anything
    assert ask(job(even(0, 1000, 10), [("job", 990, 1020)], ahead)).max_step == 9


def test_waiting_for_machines_is_no_sign_of_life_and_is_not_held():
    life = [("job", 0, None), ("queued", 40, 90), ("job", 100, 150), ("queued", 200, 300)]
    with_queue = ask(job(even(0, 10, 10) + even(8, 110, 20), life))
    without = ask(job(even(0, 10, 10) + even(8, 110, 20), [row for row in life if row[0] != "queued"]))
    assert with_queue.to_dict() == without.to_dict()
    assert with_queue.total_s == 150


def test_now_extends_a_job_that_has_not_ended_and_hides_what_comes_later():
    tables = job(even(0, 10, 10), [("job", 0, None)])
    now = f"{EPOCH / S + 100:.3f}"
    result = ask(tables, now=now)
    assert result.total_s == 100 and result.productive_s == 18 and result.badput_s["other"] == 10 + 72
    assert any("72.0 s after its last sign of life" in n for n in result.notes)
    assert ask(tables).total_s == 28 and ask(tables).max_step == 8  # the last step is not proven
    early = ask(job(even(0, 10, 10), [("job", 0, 60)]), now=f"{EPOCH / S + 21}")
    assert (early.total_s, early.productive_s, early.finished) == (21, 10, False)


def test_slices_are_counted_where_they_are_known():
    counts = [json.dumps({"active": a, "total": 4, "available": b}) for a, b in ((4, 4), (0, 3), (3, 3))]
    life = [("job", 0, 100), *[("slices", t, None, c) for t, c in zip((20, 40, 50), counts, strict=True)]]
    result = ask(job(even(0, 10, 45), life))
    assert result.slice_efficiency.stepping == pytest.approx((20 * 1 + 10 * 0 + 50 * 0.75) / 80)
    assert result.slice_efficiency.available == pytest.approx((20 * 1 + 60 * 0.75) / 80)
    assert result.slice_efficiency.known_s == 80


def test_step_lines_alone_tell_of_steps_only():
    tables = MemoryTables(
        {
            "steps": {
                "step": [0, 1, 2, 1, 2],
                "attempt": [0, 0, 0, 1, 1],
                "dur_ns": [2 * S] * 5,
                "order": range(5),
                "source": ["a.log"] * 5,
            }
        }
    )
    result = ask(tables)
    assert (result.total_s, result.productive_s, result.disruptions, result.max_step) == (10, 6, 1, 2)
    assert result.badput_s["wasted_progress_from_disruption"] == 4
    assert any("Only step lines" in note for note in result.notes)
    with pytest.raises(QuestionError, match="carry none"):
        ask(tables, window_s=5.0)


def test_a_profile_or_nothing_cannot_tell():
    with pytest.raises(QuestionError, match="goodput log"):
        ask(MemoryTables({}))


times = st.none() | st.integers(0, 400).map(lambda x: x / 4)
kinds = st.sampled_from(
    [
        "job",
        "job",
        "custom",
        "checkpoint_save",
        "data_loading",
        "training_preparation",
        "slices",
        "eval",
        "queued",
        "elastic_scale_up",
    ]
)


@given(
    st.lists(st.tuples(kinds, times, times, st.sampled_from([None, "x", "Y", "y"])), max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 400).map(lambda x: x / 4)), min_size=1, max_size=14),
    st.sampled_from(
        [
            {},
            {"window_s": 20.0},
            {"attempt": 0},
            {"now": str(EPOCH / S + 77)},
            {"exclude": f"{EPOCH / S + 10}/{EPOCH / S + 33}"},
            {"start": str(EPOCH / S + 20)},
        ]
    ),
)
@settings(max_examples=150, deadline=None)
def test_whatever_the_log_says_the_shares_sum_to_the_whole(life, steps, options):
    with contextlib.suppress(QuestionError):
        ask(job(steps, life), **options)


def test_without_a_step_no_share_is_told():
    here = job([], [("job", 0, 1000), ("training_preparation", 0, 300), ("eval", 400, 500)])
    result = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert math.isclose(result.badput_total_s, result.total_s)
    assert result.goodput_share is None and not result.steps_read
    assert result.to_dict()["goodput_share"] is None
    assert result.badput_s["other"] == pytest.approx(600) and result.badput_s["training_prep"] == pytest.approx(300)
    assert result.attempts["goodput_share"].isna().all() and result.over_time["cumulative_share"].isna().all()
    assert any("No step was read" in note for note in result.notes)
    book = ledger.analyze(here, facts_of({"chips": 1}), {})
    assert book.ledger.amount("unattributed") == pytest.approx(600) and book.ledger.amount("other") == 0
    assert not book.steps_read and any("No step was read" in note for note in book.notes)


def test_steps_without_times_beside_a_job_with_times_are_not_none():
    here = MemoryTables(
        {
            "steps": {"step": range(9), "dur_ns": [S] * 9, "order": range(9), "source": ["a.log"] * 9},
            "lifecycle": {"kind": ["job"], "start_ns": [ns(0)], "end_ns": [ns(100)], "source": ["events"]},
        }
    )
    result = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert result.goodput_share is None
    assert any("carry no times of day" in note for note in result.notes)


def test_a_window_without_a_step_of_a_job_that_took_some_kept_none():
    result = ask(job(even(0, 100, 50), [("job", 0, 300)]), window_s=50.0, end=str(EPOCH / S + 60))
    assert result.goodput_share == 0 and result.steps_read


@pytest.mark.parametrize("rules", ["exact", "ml-goodput"])
def test_a_server_is_not_asked_for_the_goodput_of_training(rules):
    here = MemoryTables(
        {
            "iterations": {"start_ns": [ns(10), ns(11)], "dur_ns": [S, S]},
            "lifecycle": {"kind": ["training_preparation"], "start_ns": [ns(0)], "end_ns": [ns(9)]},
        }
    )
    with pytest.raises(QuestionError, match="served requests"):
        goodput.analyze(here, facts_of({}), {"rules": rules})


def test_evaluations_beside_training_and_after_it_lose_no_time():
    steps = even(0, 10, 40)
    beside = [("job", 0, 100), ("eval", 20.5, 33.5), ("eval", 120, 200)]
    result = ask(job(steps, beside))
    assert result.badput_s["custom_badput_events"] == {} and result.productive_s == pytest.approx(80)
    assert any("2 evaluations ran offline" in note and "93.0 s" in note for note in result.notes)
    between = [(n, t if n < 20 else t + 30) for n, t in steps]
    paused = ask(job(between, [("job", 0, 130), ("eval", 50, 80)]))
    assert paused.badput_s["custom_badput_events"] == {"EVAL": pytest.approx(30)}
    assert not any("offline" in note for note in paused.notes)


def test_hosts_that_mark_the_same_steps_are_no_disruptions_by_either_rules():
    columns = {"step": [], "start_ns": [], "dur_ns": [], "source": [], "order": []}
    for host in range(2):
        for n in range(30):
            for name, value in zip(columns, (n, ns(2 * n + 0.3 * host), 2 * S, f"h{host}.log", n), strict=True):
                columns[name].append(value)
    life = {"kind": ["job"], "start_ns": [ns(-5)], "end_ns": [ns(61)]}
    for rules in ("exact", "ml-goodput"):
        result = goodput.analyze(MemoryTables({"steps": columns, "lifecycle": life}), facts_of({}), {"rules": rules})
        assert result.disruptions == 0, rules
        assert result.goodput_share > 0.85, rules
