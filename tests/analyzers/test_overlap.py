"""Computing, communication, copies and idle time: unions that close, by HTA's definitions."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.device import overlap
from analyzers.device.activity import activities
from analyzers.ranks.waits import waits
from analyzers.time.device_time import device_traces
from app.questions.overlap import OVERLAP
from errors import QuestionError
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.analyzers.device_rows import collective_rows, device_tables
from tests.analyzers.worlds import World


def ask(tables, **options):
    return overlap.analyze(tables, {}, parse_options(overlap.OPTIONS, options))


def ns(value):
    return round(float(value) * 1e9)


def one(work, **more):
    rows = ask(device_tables(work, **more)).devices
    assert len(rows) == 1
    return {c: ns(rows[c].iloc[0]) for c in overlap.SECONDS}


GPU = [
    ("h", 0, "compute", "matmul", [(0, 100), (50, 120), (300, 400)]),  # two streams at once: counted once
    ("h", 0, "async", "collective", [(80, 200), (350, 450)]),
    ("h", 0, "async", "copy", [(190, 260), (440, 460)]),
]


def test_known_intervals():
    assert one(GPU) == {
        "window_s": 460,
        "compute_s": 220,
        "communication_s": 220,
        "overlapped_s": 90,
        "exposed_s": 130,
        "memory_s": 90,
        "copies_s": 70,
        "idle_s": 40,
    }


def test_hta_terms_follow_from_them():
    result = ask(device_tables(GPU))
    assert result.devices["overlap_share"].iloc[0] == pytest.approx(90 / 220)
    assert result.totals["overlap_share"] == pytest.approx(90 / 220)
    assert result.totals["compute_share"] == pytest.approx(220 / 460)
    assert result.totals["non_compute_share"] == pytest.approx(200 / 460)
    assert result.totals["idle_share"] == pytest.approx(40 / 460)


def test_what_only_contains_others_or_waits_for_the_host_is_no_work():
    work = [
        ("h", 0, "compute", "control", [(0, 1000)]),
        ("h", 0, "compute", "infeed", [(0, 300)]),
        ("h", 0, "compute", "fusion", [(300, 400)]),
        ("h", 0, "module", "other", [(0, 1000)]),
        ("h", 0, "async", "fusion", [(0, 500)]),
    ]
    got = one(work)
    assert (got["window_s"], got["compute_s"], got["idle_s"]) == (400, 100, 300)


def test_a_split_collective_lasts_from_its_start_to_its_done():
    work = [
        ("h", 0, "compute", "collective", [(0, 5), (90, 100)]),
        ("h", 0, "compute", "fusion", [(5, 90)]),
    ]
    alone = one(work)
    assert (alone["communication_s"], alone["overlapped_s"], alone["exposed_s"]) == (15, 0, 15)
    joined = one(work, extra=collective_rows([(0, "h", 0, "all-reduce", None, 8, 0, 100)]))
    assert (joined["communication_s"], joined["overlapped_s"], joined["exposed_s"]) == (100, 85, 15)


def test_windows():
    tables = device_tables(GPU, steps=[("h", 3, 50, 150), ("h", 4, 160, 300)], stop_ns=1000)
    assert {w: ns(ask(tables, window=w).totals["window_s"]) for w in ("steps", "operations", "capture")} == {
        "steps": 250,
        "operations": 460,
        "capture": 1000,
    }
    assert ask(tables).window == "steps"
    assert ask(device_tables(GPU)).window == "operations"


def test_each_step_on_its_own():
    tables = device_tables(GPU, steps=[("h", 3, 50, 150), ("h", 4, 150, 300)])
    rows = ask(tables).steps.set_index("step")
    assert [ns(rows.loc[3, c]) for c in ("compute_s", "overlapped_s", "exposed_s", "copies_s", "idle_s")] == [
        70,
        40,
        30,
        0,
        0,
    ]
    assert [ns(rows.loc[4, c]) for c in ("compute_s", "overlapped_s", "exposed_s", "copies_s", "idle_s")] == [
        0,
        0,
        50,
        60,
        40,
    ]
    assert rows.loc[4, "overlap_share"] == 0


def test_a_step_taken_twice_is_two_rows():
    steps = [("h", 3, 0, 100), ("h", 4, 100, 200), ("h", 3, 200, 300)]
    rows = ask(device_tables(GPU, steps=steps)).steps
    assert rows[["step", "taken"]].values.tolist() == [[3, 0], [4, 0], [3, 1]]


def test_a_world_with_steps_gives_back_what_it_was_made_of():
    world = World(steps=12, extra_ms={(2, 5): 40.0}, clock_ns=(0, 7_000_000, -3_000_000, 1_000))
    rows = ask(world.tables()).steps.set_index("step")
    assert (rows["devices"] == 4).all()
    assert rows.loc[3, "compute_s"] == pytest.approx(0.060)
    assert rows.loc[3, "exposed_s"] == pytest.approx(0.010)
    assert rows.loc[3, "idle_s"] == pytest.approx(0.007)
    assert rows.loc[5, "exposed_s"] == pytest.approx(0.010 + 0.040 * 3 / 4)  # three wait for the one that is late
    assert rows.loc[5, "idle_s"] == pytest.approx(0.007 + 0.040 / 4)


def test_the_timeline_covers_the_step_on_every_device():
    world = World(steps=12)
    result = ask(world.tables(), step=7)
    assert result.timeline_step == 7
    step = result.steps.set_index("step").loc[7]
    rows = result.timeline
    assert rows.groupby(["host", "device"])["dur_s"].sum().to_numpy() == pytest.approx(step["window_s"])
    by_kind = rows.groupby("kind")["dur_s"].sum() / 4
    cell = step["window_s"] / 600
    assert by_kind["compute"] == pytest.approx(step["compute_s"], abs=2 * cell)
    assert by_kind["exposed"] == pytest.approx(step["exposed_s"], abs=2 * cell)
    assert len(rows) <= overlap.TIMELINE_CELLS


def test_the_timeline_shows_the_step_of_median_duration_but_for_the_first_of_a_capture():
    """Of 100, 40, 20 and 30 the first is left out, for it was cut or warms up; of the others 30 is in the middle."""
    edges = [0, 100, 140, 160, 190]
    steps = [("h", 5 + k, start, end) for k, (start, end) in enumerate(zip(edges, edges[1:], strict=False))]
    work = [("h", 0, "compute", "fusion", [(start, end) for _, _, start, end in steps])]
    assert ask(device_tables(work, steps=steps)).timeline_step == 8
    assert ask(device_tables(work, steps=steps[:1])).timeline_step == 5  # there is no other
    assert ask(device_tables(work, steps=steps), step=5).timeline_step == 5


def test_the_timeline_stays_small_however_much_runs():
    starts = range(0, 2_000_000, 200)
    work = [("h", d, "compute", "fusion", [(s, s + 10) for s in starts]) for d in range(60)]
    result = ask(device_tables(work))
    assert len(result.devices) == 60
    assert result.timeline["device"].nunique() == overlap.TIMELINE_DEVICES
    assert len(result.timeline) <= overlap.TIMELINE_CELLS


def test_a_step_that_no_profile_saw():
    with pytest.raises(QuestionError, match="no profile saw step 99"):
        ask(World(steps=4).tables(), step=99)


def test_without_a_profile_the_answer_says_what_would_bring_it():
    with pytest.raises(QuestionError, match=r"xplane\.pb"):
        ask(device_tables([]))
    with pytest.raises(QuestionError, match="has steps"):
        ask(device_tables(GPU), window="steps")


spans = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)


hosts = st.tuples(spans, spans, spans, st.integers(0, 300), st.integers(1, 200))


@settings(deadline=None, max_examples=30)  # of some five hosts each, which have nothing to do with one another
@given(st.lists(hosts, min_size=1, max_size=10))
def test_every_nanosecond_is_one_thing(told):
    work, steps = [], []
    for n, (computing, talking, copying, start, width) in enumerate(told):
        work += [
            (f"h{n}", 0, "compute", "fusion", [*computing, (0, 1)]),
            (f"h{n}", 0, "async", "collective", talking),
            (f"h{n}", 0, "async", "copy", copying),
        ]
        steps.append((f"h{n}", 0, start, start + width))
    rows = ask(device_tables(work, steps=steps)).devices.set_index("host")
    assert sorted(rows.index) == sorted({host for host, *_ in steps})
    for host, (computing, talking, copying, start, width) in zip((s[0] for s in steps), told, strict=True):
        got = {c: ns(rows.loc[host, c]) for c in overlap.SECONDS}
        on = np.zeros((3, 1000), dtype=bool)  # one flag per nanosecond: nothing of the interval algebra
        for row, some in zip(on, ([*computing, (0, 1)], talking, copying), strict=True):
            for a, b in some:
                row[a:b] = True
        c, t, m = on[:, start : start + width]
        assert got == {
            "window_s": width,
            "compute_s": c.sum(),
            "communication_s": t.sum(),
            "overlapped_s": (c & t).sum(),
            "exposed_s": (t & ~c).sum(),
            "memory_s": m.sum(),
            "copies_s": (m & ~c & ~t).sum(),
            "idle_s": (~c & ~t & ~m).sum(),
        }
        assert got["compute_s"] + got["exposed_s"] + got["copies_s"] + got["idle_s"] == got["window_s"]


def test_the_answer_as_json_has_no_nan():
    work = [("h", 0, "compute", "fusion", [(0, 10)]), ("h", 1, "async", "collective", [(0, 10)])]
    said = json.loads(json.dumps(ask(device_tables(work)).to_dict(), allow_nan=False))
    assert (
        said["devices"][0]
        | {
            "host": "h",
            "device": 0,
            "window_s": 1e-8,
            "exposed_s": 0.0,
            "overlap_share": None,
        }
        == said["devices"][0]
    )
    assert said["devices"][1]["overlap_share"] == 0.0
    assert set(said) >= {"devices", "totals", "steps", "notes"}


@pytest.mark.parametrize("column", ["op_id", "start_ps", "dur_ps"])
def test_executions_of_which_something_is_not_known_are_left_out(column):
    """Not taken to have run at the start of the capture, in no time, or as the first operation."""
    tables = device_tables([("h", 0, "compute", "matmul", [(100, 200)]), ("h", 0, "async", "copy", [(300, 350)])])
    rows = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    more = {"capture": 0, "device": 0, "op_id": 0, "start_ps": 900_000, "dur_ps": 50_000, column: None}
    rows["op_events"] = {name: [*values, more.get(name)] for name, values in rows["op_events"].items()}
    expected, got = (ask(t).devices for t in (tables, MemoryTables(rows)))
    assert got.equals(expected)
    waited, facts = waits(MemoryTables(rows)), [next(device_traces(t, waits(t))) for t in (tables, MemoryTables(rows))]
    assert not len(waited.rows) and facts[0].compute.start.tolist() == facts[1].compute.start.tolist()
    assert facts[0].windows.end.tolist() == facts[1].windows.end.tolist()


@pytest.mark.parametrize(("table", "column"), [("ops", "host"), ("ops", "op_id"), ("captures", "capture")])
def test_without_what_places_an_operation_no_device_is_made_up(table, column):
    rows = {name: device_tables(GPU).arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    rows[table][column] = [None] * len(rows[table][column])
    with pytest.raises(QuestionError, match="no profile of this run shows what a device did"):
        ask(MemoryTables(rows))


def cells(result):
    rows = result.timeline
    return [(k, ns(a), ns(d)) for k, a, d in zip(rows["kind"], rows["start_s"], rows["dur_s"], strict=True)]


def test_the_timeline_by_hand():
    assert cells(ask(device_tables(GPU))) == [
        ("compute", 0, 80),
        ("overlapped", 80, 40),
        ("exposed", 120, 80),
        ("copies", 200, 60),
        ("idle", 260, 40),
        ("compute", 300, 50),
        ("overlapped", 350, 50),
        ("exposed", 400, 50),
        ("copies", 450, 10),
    ]


def test_the_timeline_of_a_step_taken_twice_is_of_the_last_time():
    steps = [("h", 3, 0, 100), ("h", 4, 100, 200), ("h", 3, 200, 300)]
    assert cells(ask(device_tables(GPU, steps=steps), step=3)) == [("copies", 0, 60), ("idle", 60, 40)]


def test_a_host_that_lacks_the_step_has_no_row_in_the_timeline():
    work = [*GPU, ("g", 0, "compute", "matmul", [(0, 100)])]
    result = ask(device_tables(work, steps=[("h", 3, 0, 100), ("h", 4, 100, 200), ("g", 3, 0, 100)]), step=4)
    assert set(result.timeline["host"]) == {"h"} and set(result.devices["host"]) == {"g", "h"}


def test_of_an_even_number_of_steps_the_timeline_shows_the_longer_of_the_two_in_the_middle():
    steps = [("h", 1, 0, 100), ("h", 2, 100, 140), ("h", 3, 140, 160)]
    work = [("h", 0, "compute", "fusion", [(0, 160)])]
    assert ask(device_tables(work, steps=steps)).timeline_step == 2


def test_a_step_is_the_mean_of_its_devices_from_the_earliest_start():
    work = [("h", 0, "compute", "matmul", [(0, 100)]), ("g", 0, "compute", "matmul", [(20, 60)])]
    rows = ask(device_tables(work, steps=[("h", 3, 0, 100), ("g", 3, 20, 120)])).steps
    assert [ns(rows[c].iloc[0]) for c in ("window_s", "compute_s", "idle_s")] == [100, 70, 30]
    assert rows["devices"].tolist() == [2]
    alone = ask(device_tables([work[0]], steps=[("h", 3, 0, 100)])).steps
    assert rows["start_ns"].tolist() == alone["start_ns"].tolist()


def test_a_device_without_steps_hides_none_of_those_after_it():
    work = [("a", 0, "compute", "matmul", [(0, 10)]), ("h", 0, "compute", "matmul", [(0, 100)])]
    assert ask(device_tables(work, steps=[("h", 3, 0, 100)]), window="steps").devices["host"].tolist() == ["h"]


def test_the_answer_names_its_window_and_shares():
    said = ask(device_tables(GPU)).to_dict()
    assert said["window"] == "operations"
    assert said["totals"]["exposed_share"] == pytest.approx(130 / 460)
    assert said["totals"]["copies_share"] == pytest.approx(70 / 460)
    assert any("first to the last operation" in note for note in said["notes"])
    assert any("has no steps" in note for note in said["notes"])
    assert not any("No collective ran" in note for note in said["notes"])
    alone = ask(device_tables([GPU[0]], steps=[("h", 3, 0, 400)])).to_dict()
    assert alone["totals"]["overlap_share"] is None
    assert any("No collective ran" in note for note in alone["notes"])
    assert not any("has no steps" in note for note in alone["notes"])


def test_a_capture_is_a_window_as_a_whole_though_nothing_ran_at_its_beginning():
    work = [("h", 0, "compute", "fusion", [(100, 200)])]
    totals = ask(device_tables(work, stop_ns=1000), window="capture").totals
    assert (ns(totals["window_s"]), ns(totals["idle_s"])) == (1000, 900)


def test_an_operation_is_of_the_kind_that_it_has_on_its_own_device():
    """Both devices number their operations from 0."""
    work = [("h", 0, "compute", "fusion", [(0, 100)]), ("h", 1, "compute", "copy", [(0, 70)])]
    rows = {name: device_tables(work).arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    rows["ops"]["op_id"] = [0, 0]
    rows["op_events"]["op_id"] = [0, 0]
    rows["collectives"] = collective_rows([(0, "h", 1, "all-reduce", None, 8, 70, 90)])["collectives"]
    found = ask(MemoryTables(rows)).devices.set_index("device")
    assert [ns(found.loc[0, c]) for c in ("compute_s", "memory_s", "communication_s")] == [100, 0, 0]
    assert [ns(found.loc[1, c]) for c in ("compute_s", "memory_s", "communication_s")] == [0, 70, 20]


def test_steps_that_one_device_took_alone_are_not_those_of_another():
    work = [("h", d, "compute", "fusion", [(0, 300)]) for d in (0, 1)]
    tables = device_tables(work, steps=[("h", 3, 0, 100), ("h", 3, 0, 40), ("h", 4, 100, 150)])
    rows = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events", "steps")}
    rows["steps"]["device"] = [0, 1, None]  # the last one is every device's
    found = ask(MemoryTables(rows), window="steps")
    assert [ns(x) for x in found.devices["window_s"]] == [150, 150]
    step = found.steps.set_index("step")
    assert [ns(step.loc[n, "window_s"]) for n in (3, 4)] == [70, 50] and step["devices"].tolist() == [2, 2]
    rows["steps"]["device"] = [0, 1, 1]
    assert [ns(x) for x in ask(MemoryTables(rows), window="steps").devices["window_s"]] == [100, 150]


def test_a_capture_in_which_a_device_did_nothing_hides_none_of_the_next():
    tables = device_tables([("h", 0, "compute", "fusion", [(0, 100)])])
    rows = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    for name in ("ops", "op_events"):
        rows[name]["capture"] = [1]
    begun = rows["captures"]["start_ns"][0]
    rows["captures"] = {"capture": [0, 1], "host": ["h", "h"], "start_ns": [begun - 5000, begun]}
    assert [ns(x) for x in ask(MemoryTables(rows)).devices["compute_s"]] == [100]


def test_an_execution_of_an_operation_that_is_no_work_counts_as_none_though_its_number_is_the_highest():
    work = [
        ("h", 0, "compute", "fusion", [(0, 100)]),
        ("h", 0, "async", "copy", [(100, 150)]),
        ("h", 0, "module", "other", [(0, 1000)]),
    ]
    got = one(work)
    assert (got["window_s"], got["compute_s"], got["memory_s"], got["idle_s"]) == (150, 100, 50, 0)


@pytest.mark.parametrize("column", ["op_id", "start_ps", "dur_ps"])
def test_an_execution_of_which_something_is_not_known_takes_no_time_of_its_device(column):
    tables = device_tables([("h", 0, "compute", "matmul", [(100, 200)]), ("h", 0, "async", "copy", [(300, 350)])])
    rows = {name: tables.arrow(name).to_pydict() for name in ("captures", "ops", "op_events")}
    more = {"capture": 0, "device": 0, "op_id": 0, "start_ps": 900_000, "dur_ps": 50_000, column: None}
    rows["op_events"] = {name: [*values, more.get(name)] for name, values in rows["op_events"].items()}
    (device,) = activities(MemoryTables(rows))
    assert (device.operations.end - device.operations.start).tolist() == [250]
    assert [(x.end - x.start).tolist() for x in (device.computation, device.memory)] == [[100], [50]]


def test_waiting_is_split_as_the_ledger_splits_it_and_stands_beside_what_that_books():
    """Host 2 is 80 ms late in each of four steps; the transfer takes 10 ms. Of the first step nobody knows."""
    tables = World(steps=4, extra_ms={(2, n): 80.0 for n in range(4)}).tables(goodput=False)
    t = ask(tables).totals
    assert t["exposed_communication_s"] == pytest.approx(4 * 4 * 0.010)
    assert t["communication_or_wait_s"] == pytest.approx(3 * 0.080)
    assert t["straggler_wait_s"] == pytest.approx(3 * 3 * 0.080)
    parts = ("exposed_communication_s", "communication_or_wait_s", "straggler_wait_s")
    assert sum(t[part] for part in parts) == pytest.approx(t["exposed_s"], rel=1e-12)
    assert t["input_wait_s"] + t["device_idle_s"] == pytest.approx(t["idle_s"], rel=1e-12)
    books = ask(tables).ledger
    assert books.straggler_wait == pytest.approx(t["straggler_wait_s"])
    assert books.exposed_communication == pytest.approx(t["exposed_communication_s"])


def test_the_sentence_takes_waiting_out_of_communication_and_names_both_numbers():
    tables = World(steps=4, extra_ms={(2, n): 80.0 for n in range(4)}).tables(goodput=False)
    verdict = OVERLAP.verdict(ask(tables))
    assert "it costs" in verdict
    said = verdict.whole
    assert "it costs" in said and "0.160 device-seconds" in said
    assert "Devices wait for other ranks for" in said
    assert "holds waiting; the ledger, of kept steps, books" in said
