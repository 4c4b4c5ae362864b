"""A timeline as a file for Perfetto: read back packet by packet, it is the timeline, event by event."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.timeline import timeline
from analyzers.timeline.lanes import CODES, NONE
from app.cli import main
from app.timeline.perfetto.choosing import choose
from app.timeline.perfetto.options import MOST
from app.timeline.perfetto.tracks import ROWS
from app.timeline.perfetto.writing import AT_ONCE, pieces
from errors import QuestionError
from runs.store import Store
from runs.tables import MemoryTables
from tests.app import made_runs
from tests.app.perfetto_trace import read
from tests.app.serving import serving

T0 = 1_760_000_000 * 1_000_000_000
HOSTILE = ("<script>alert(1)</script>", "x" * 10_000, "a\0b", "", "名前")


def profile(starts, durs, names=("dot",), start_ns=T0, **more) -> MemoryTables:
    """One line of a device, and of `more` the columns of its operations, by their number."""
    ops = {
        "capture": [0] * len(names),
        "op_id": list(range(len(names))),
        "host": ["0"] * len(names),
        "device": [3] * len(names),
        "line": ["XLA Ops"] * len(names),
        "role": ["compute"] * len(names),
        "op": list(names),
        "category": ["matmul"] * len(names),
    } | more
    events = {
        "capture": [0] * len(starts),
        "event": list(range(len(starts))),
        "device": [3] * len(starts),
        "op_id": [n % len(names) for n in range(len(starts))],
        "start_ps": list(starts),
        "dur_ps": list(durs),
    }
    captures = {"capture": [0], "host": ["0"], "start_ns": [start_ns]}
    return MemoryTables({"captures": captures, "ops": ops, "op_events": events})


def shown(text: str) -> str:
    return text.replace("\0", "\u2400").encode("utf-8", "replace").decode()


def written(tables: MemoryTables, name: str = "a run", **asked):
    of = timeline(tables, {})
    chosen = choose(of, asked)
    return of, chosen, read(b"".join(pieces(of, chosen, tables, name)))


def expected(of, start: int, end: int, rows=None) -> list[tuple]:
    """Every event that a window meets, by looking at each."""
    per_ns, begun, found = 1000 // of.tick_ps, of.origin_ns if of.dated else 0, []
    row = np.repeat(np.arange(of.tiles.rows), np.diff(of.tiles.first))
    for n in range(of.events):
        at, dur = int(of.tiles.start[n]), int(of.tiles.dur[n])
        if at < end and (at >= start or at + dur > start) and (rows is None or row[n] in rows):
            ns = begun + at // per_ns, begun + (at + dur) // per_ns
            found.append((ROWS + int(row[n]), *ns, dur == 0, shown(of.names[of.name[n]]), CODES[of.tiles.code[n]]))
    return sorted(found)


def told(trace) -> list[tuple]:
    return sorted((s.track, s.start_ns, s.end_ns, s.instant, s.name, s.category) for s in trace.slices)


EVENTS = st.lists(st.tuples(st.integers(-3_000, 30_000), st.integers(-5, 9_000) | st.just(0)), min_size=1, max_size=30)


@settings(max_examples=50, deadline=None)
@given(EVENTS, st.integers(-4_000, 45_000), st.integers(1, 45_000))
def test_what_a_window_meets_is_read_back_whole_whatever_overlaps(events, start, wide):
    starts, durs = zip(*events, strict=True)
    of, chosen, trace = written(profile(starts, durs, HOSTILE), start=start, end=start + wide)
    assert told(trace) == expected(of, start, start + wide)
    assert chosen.events == len(trace.slices)


def test_of_a_whole_run_nothing_is_dropped_and_what_is_finer_than_a_nanosecond_stands_beside():
    draw = np.random.default_rng(3)
    starts, durs = draw.integers(0, 10**9, AT_ONCE + 500), draw.lognormal(11, 2, AT_ONCE + 500).astype(np.int64)
    durs[::50] = 0
    of, chosen, trace = written(profile(starts.tolist(), durs.tolist(), ("dot", "add", "copy")))
    assert told(trace) == expected(of, 0, of.span + 1) and len(trace.slices) == of.events == chosen.events
    exact = sorted(
        (s.notes["start_ps"], s.notes["dur_ps"]) if "start_ps" in s.notes else
        ((s.start_ns - of.origin_ns) * 1000, (s.end_ns - s.start_ns) * 1000)
        for s in trace.slices
    )  # fmt: skip
    assert exact == sorted(zip(of.tiles.start.tolist(), of.tiles.dur.tolist(), strict=True))


def test_pieces_are_of_one_file_and_small():
    starts = list(range(0, 3 * AT_ONCE * 10, 10))
    tables = profile(starts, [10] * len(starts))
    of = timeline(tables, {})
    sizes = [len(piece) for piece in pieces(of, choose(of, {}), tables, "a run")]
    assert len(sizes) > 4 and max(sizes) < 200 * AT_ONCE


def test_each_row_has_a_track_below_its_place_in_the_timelines_order():
    of, _, trace = written(profile([0, 5_000, 40_000], [30_000, 30_000, 5_000]), name="<b>a run</b>")
    leaves = sorted({s.track for s in trace.slices})
    lanes = [lane for lane in of.lanes for _ in range(lane.rows)]
    assert leaves == [ROWS + n for n in range(of.tiles.rows)] and len(leaves) == 3
    assert [trace.path(n) for n in leaves] == [
        ("<b>a run</b>", "device 0/3", "accounts" if lane.lane.role == "account" else "operations") for lane in lanes
    ]
    ranks = [trace.tracks[n].sibling_order_rank for n in leaves]
    assert ranks == sorted(ranks) and len(set(ranks)) == len(ranks)
    keys = {n: trace.tracks[n].sibling_merge_key_int for n in leaves}
    assert len(set(keys.values())) == len(of.lanes)  # rows of a lane are drawn as one
    assert all(one.child_ordering == 3 for one in trace.tracks.values() if one.uuid not in leaves)


def test_lanes_of_one_name_are_told_apart_by_their_lines():
    lines = {"names": ("a", "b"), "line": ["XLA Ops", "Sparse"], "role": ["compute", "compute"]}
    _, _, trace = written(profile([0, 5, 40], [30, 30, 5], **lines))
    called = {trace.path(s.track)[-1] for s in trace.slices}
    assert called == {"operations (XLA Ops)", "operations (Sparse)"}


def test_a_time_of_day_is_told_as_one_and_other_times_count_from_nought():
    of, _, dated = written(profile([5_000], [1_000]))
    [clock] = dated.clocks
    assert dated.clock == clock.primary_trace_clock == 1
    assert {c.clock_id: c.timestamp for c in clock.clocks} == {1: of.origin_ns, 6: of.origin_ns}
    assert [s.start_ns for s in dated.slices if s.name == "dot"] == [T0 + 5]
    _, _, undated = written(profile([5_000, 7_000], [1_000, 0], start_ns=0))
    assert not undated.clocks and undated.clock is None
    assert "Times count from the first event" in undated.tracks[1].description.decode()
    assert min(s.start_ns for s in undated.slices) == 0


def test_operations_are_told_by_their_own_device_and_each_text_once():
    names, shape = ("dot", "add"), ["f32[8]<b>", None]
    more = {"flops": [1e30, 12.0], "bytes": [0.5, float("nan")], "shape": shape, "source": ["a.py:3", "a.py:3"]}
    _, _, trace = written(profile([0, 100, 200, 300], [50] * 4, names, **more))
    notes = {s.name: s.notes for s in trace.slices if s.name in names}
    kept = {"category": "matmul", "source": "a.py:3"}
    exact = {"dot": {"start_ps": 200_000 // 1000, "dur_ps": 50}, "add": {"start_ps": 300, "dur_ps": 50}}
    assert notes["dot"] == kept | exact["dot"] | {"shape": "f32[8]<b>", "flops": 1e30, "bytes": 0.5}
    assert notes["add"] == kept | exact["add"] | {"flops": 12}


def test_devices_that_number_their_operations_alike_are_told_apart():
    ops = {
        "capture": [0, 0], "op_id": [7, 7], "host": ["0", "0"], "device": [0, 1], "line": ["XLA Ops"] * 2,
        "role": ["compute"] * 2, "op": ["dot", "add"], "category": ["matmul", "other"], "flops": [8.0, 2.0],
    }  # fmt: skip
    events = {"capture": [0, 0], "event": [0, 1], "device": [0, 1], "op_id": [7, 7]}
    events |= {"start_ps": [0, 0], "dur_ps": [1_000, 1_000]}
    captures = {"capture": [0], "host": ["0"], "start_ns": [T0]}
    _, _, trace = written(MemoryTables({"captures": captures, "ops": ops, "op_events": events}))
    assert {s.name: s.notes["flops"] for s in trace.slices if "flops" in s.notes} == {"dot": 8, "add": 2}


def test_steps_and_requests_keep_their_numbers():
    requests = {
        "replica": ["r"] * 2, "arrival_ns": [T0, T0 + 5], "scheduled_ns": [T0 + 2, T0 + 6],
        "first_token_ns": [T0 + 4, T0 + 9], "last_token_ns": [T0 + 8, T0 + 20],
    }  # fmt: skip
    of, _, trace = written(MemoryTables({"requests": requests}))
    assert of.events == len(trace.slices) == 6 and {s.notes["request"] for s in trace.slices} == {0, 1}
    assert {trace.path(s.track)[1:] for s in trace.slices} == {("serving r", "requests")}
    assert NONE not in {s.notes["request"] for s in trace.slices}


def test_rows_and_lanes_are_chosen_by_number_and_by_name():
    tables = profile([0, 5, 40], [30, 30, 5])
    of, _, trace = written(tables, rows="1")
    assert told(trace) == expected(of, 0, of.span + 1, {1})
    of, chosen, trace = written(tables, lanes=("OPERATIONS",))
    lane = next(lane for lane in of.lanes if lane.lane.role == "compute")
    mine = set(range(lane.first_row, lane.first_row + lane.rows))
    assert set(chosen.rows.tolist()) == mine and told(trace) == expected(of, 0, of.span + 1, mine)
    assert choose(of, {"lanes": ("0/3",)}).events == choose(of, {"rows": f"0-{of.tiles.rows - 1}"}).events == of.events


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"start": 5, "end": 5}, "an end after the start"),
        ({"start": 1 << 62}, "an end after the start"),
        ({"rows": ""}, "rows such as"),
        ({"rows": "3-1"}, "rows from 0 to"),
        ({"rows": "99999999999999999999"}, "rows from 0 to"),
        ({"lanes": ("none" * 4_000,)}, "part of a lane's title"),
        ({"lanes": ("",)}, "part of a lane's title"),
        ({"lanes": ("0/2",)}, "Did you mean '0/3'"),
    ],
)
def test_what_cannot_be_chosen_is_one_sentence(asked, said):
    of = timeline(profile([0, 5, 40], [30, 30, 5]), {})
    with pytest.raises(QuestionError) as refused:
        choose(of, asked)
    assert said in str(refused.value) and len(str(refused.value)) < 400


def test_too_much_is_refused_with_an_end_that_would_do():
    starts = list(range(0, 100_000, 10))
    of = timeline(profile(starts, [7] * len(starts)), {})
    with pytest.raises(QuestionError, match=r"To .* s \(end=\d+\)") as refused:
        choose(of, {MOST.name: 600})
    end = int(str(refused.value).split("end=")[1].split(")")[0])
    assert 500 < choose(of, {MOST.name: 600, "end": end}).events <= 600
    assert f"{MOST.name}={of.events}" in str(refused.value) and choose(of, {MOST.name: of.events}).events == of.events
    many = timeline(profile([5] * 50, [7] * 50), {})
    with pytest.raises(QuestionError) as refused:
        choose(many, {MOST.name: 10})
    assert "end=" not in str(refused.value)


def test_a_window_without_events_is_a_file_that_opens():
    of, chosen, trace = written(profile([0, 10**9], [1, 1]), rows="0", start=10, end=20)
    assert chosen.events <= 1 and told(trace) == expected(of, 10, 20, {0})
    assert trace.path(1) == ("a run",)


def test_a_runs_name_may_be_anything():
    for name in (*HOSTILE, "half \ud800 a letter"):
        assert written(profile([0], [1]), name)[2].path(1) == (shown(name),)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    kept = Store(folder)
    return folder, made_runs.interrupted(kept), made_runs.write(kept, "nothing", {}, {})


def test_the_command_line_and_the_api_write_the_same_file(store, tmp_path, capsys):
    folder, run, empty = store
    of = timeline(run.tables, run.manifest.facts)
    path = tmp_path / "a.pftrace"
    begin = ["--store", str(folder), "timeline", run.run_id]
    assert main([*begin, "-o", str(path), "--to", "5000", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    trace = read(path.read_bytes())
    assert answer["bytes"] == path.stat().st_size and answer["to_s"] == 5000
    assert answer["events"] == len(trace.slices) and told(trace) == expected(of, 0, 5000 * 10**12 // of.tick_ps)
    assert {"step"} <= {name for s in trace.slices for name in s.notes}
    assert main([*begin, "-o", str(path)]) == 2 and "--force" in capsys.readouterr().err
    assert main([*begin, "--from", "nan"]) == 2 and "--from 'nan'" in capsys.readouterr().err
    assert main([*begin, "-o", "-", "--json"]) == 2
    with serving(folder) as address:
        where = f"{address}/api/runs/{run.run_id}/timeline/perfetto"
        with urllib.request.urlopen(f"{where}?end={5000 * 10**12 // of.tick_ps}", timeout=60) as given:
            assert given.read() == path.read_bytes()
            assert given.headers["Content-Disposition"].endswith(".pftrace")
        for asked, said in ((f"{where}?rows=x", "rows such as"), (f"{where}?most=3", "at most 3"), (where[:-1], "")):
            with pytest.raises(urllib.error.HTTPError, match="40[04]") as refused:
                urllib.request.urlopen(asked, timeout=60)
            assert said in json.loads(refused.value.read())["error"]
        nowhere = f"{address}/api/runs/{empty.run_id}/timeline/perfetto"
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(nowhere, timeout=60)
