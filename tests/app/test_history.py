"""The history of a metric on the command line: which runs, in which order, and between which two it changed."""

import json

import numpy as np
import pytest

from app.comparing import sides
from app.history.metrics import metric
from app.history.told import Asked, _mixed, tell
from app.mcp.calling import call
from app.mcp.tools import tool
from app.pages.history.figure import over_runs
from app.pages.history.page import point_rows
from app.workspace import STORE_VARIABLE, workspace
from errors import QuestionError
from errors import format as fmt
from tests.analyzers.worlds import World
from tests.analyzers.worlds import _append as joined
from tests.app.commands import out
from tests.app.made_runs import PEAK, START_NS, S, step_columns, write
from tests.app.serving import get, serving
from tests.app.test_pages import opened, words

PAGE = "pages/history/page.py"
ODD = "<img src=x onerror=alert(1)> *x*"
DAY_NS = 86_400 * 10**9


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of 24 runs, and these in order: one a day, two of each commit; from the fifteenth on their steps take 5 %
    longer. Stored in no order. Tests ask, and change nothing."""
    place = workspace(str(tmp_path_factory.mktemp("nightly") / "store"))
    rng, runs = np.random.default_rng(0), {}
    for n in [*range(12, 24), *range(12)]:
        pace = (1.0 if n < 14 else 1.05) * (1 + 0.004 * rng.normal())
        took = (pace * 1e9 * (1 + 0.01 * rng.normal(size=40))).astype(int)
        columns = step_columns(took, START_NS + n * DAY_NS)
        facts = {"chip": "TPU v5p", "chips": 4, "n": n}
        runs[n] = write(place.store, "nightly", {"steps": columns}, facts, tags={"commit": f"c{n // 2:02d}"})
    return place, runs


@pytest.fixture
def kept(stored, monkeypatch):
    """The store of these runs, in which commands and pages of this process work."""
    monkeypatch.setenv(STORE_VARIABLE, str(stored[0].store.root))
    return stored[0]


@pytest.fixture
def nightly(kept, stored):
    return stored[1]


def test_a_shift_is_told_between_two_commits_and_leads_to_their_comparison(nightly, capsys):
    code, text, _ = out(capsys, "history", "step_time", "--name", "nightly", "--by", "commit", "--json")
    told = json.loads(text)
    (change,) = told["changes"]
    assert code == 0 and (change["last_before"], change["first_after"]) == ("c06", "c07")
    assert change["low"] < 0.05 < change["high"] and told["judged"] and told["mixed"] == []
    assert (change["run_before"], change["run_after"]) == (nightly[13].run_id, nightly[14].run_id)
    assert [p["label"] for p in told["points"]] == [f"c{n:02d}" for n in range(12)]
    said = out(capsys, "history", "step_time", "--by", "commit")[1]
    assert "rose by" in said and "for the worse" in said
    assert out(capsys, "compare", change["run_before"], change["run_after"], "--fail-if", "step_time>+1%")[0] == 3


def test_runs_stand_in_order_of_their_own_time_each_with_its_range(nightly, capsys):
    told = json.loads(out(capsys, "history", "step_time", "--json")[1])
    assert [p["runs"] for p in told["points"]] == [[nightly[n].run_id] for n in range(24)]
    assert all(p["low"] < p["value"] < p["high"] for p in told["points"])
    assert told["changes"][0]["first_after"] == f"nightly ({nightly[14].run_id[:12]})"


def test_what_drifts_is_said_and_what_runs_are_of_two_kinds(place, capsys, monkeypatch):
    monkeypatch.setattr(sides, "_looked_at", None)  # nobody waits for the ledgers and all figures of thirty runs
    for n in range(30):
        took, first = [int(1e9 * (1 + n / 29))] * 40, START_NS + n * DAY_NS
        columns = step_columns(took, first)
        kind = "simulated" if n == 7 else "training"
        write(place.store, f"r{n}", {"steps": columns}, {"chip": "TPU v5p", "chips": 4}, kind=kind)
    told = json.loads(out(capsys, "history", "step_time", "--json")[1])
    assert told["changes"] == [] and told["drift"]["change"] > 0.4 and told["mixed"] == ["kind"]
    said = out(capsys, "history", "step_time")[1]
    assert "drifts, for the worse: no single change is sure, but it rose from 1.1" in said
    assert "These runs differ in kind" in said


def test_steps_of_another_batch_are_not_the_same_work_and_it_is_said(place):
    for n in range(24):
        facts = {"chip": "TPU v5p", "chips": 4, "global_batch_size": 64 if n < 12 else 128}
        took = [(10**9 if n < 12 else 2 * 10**9) + 10**6 * (i % 5) for i in range(60)]
        write(place.store, "n", {"steps": step_columns(took, START_NS + n * DAY_NS)}, {**facts, "n": n})
    found = tell(Asked(metric="step_time", name="n"), place)
    assert "rose by 100 %" in found.sentences[0] and found.mixed == ("batch",)
    assert any("These runs differ in batch" in note for note in found.notes)


@pytest.mark.parametrize(("kind", "told"), [("training", ("kind",)), ("compiled", ()), ("simulated", ())])
def test_simulated_runs_are_of_another_kind_than_measured_ones(place, kind, told):
    """A compiled program is never measured, and what is simulated by its kind is simulated anyhow."""
    for n in range(2):
        facts = {"chip": "TPU v5p", "chips": 4} | ({"simulated": True} if n else {})
        write(place.store, f"r{n}", {"steps": step_columns([10**9] * 40, START_NS + n * DAY_NS)}, facts, kind=kind)
    assert _mixed(place.store.runs()) == told


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("step_tim",), 2, "Did you mean 'step_time'?"),
        (("x" * 10_000,), 2, "no metric"),
        (("step_time", "--name", "nobody"), 2, "no run is meant"),
        (("step_time", "--by", "branch"), 2, "has a tag 'branch'"),
        (("ttft_p50",), 2, "none tells p50 TTFT"),
        (("step_time", "--search", "mfu<<"), 2, "error:"),
        (("step_time", "--search", "commit:c01"), 0, "told: 2 runs are too few to tell a change: 12 are needed"),
    ],
)
def test_what_cannot_be_told_is_said(nightly, capsys, given, code, said):
    given = tuple("tag:commit=c01" if g == "commit:c01" else g for g in given)
    found, text, error = out(capsys, "history", *given)
    assert found == code and said in text + error and error.count("\n") <= 1


def nightly_saves(place, tables):
    """Twelve nights; from the seventh on a minute is saved after the second step."""
    for n in range(12):
        first = START_NS + n * DAY_NS
        begins = [first + (20 * k + (60 if k > 1 and n >= 6 else 0)) * 10**9 for k in range(20)]
        life = [("job", first, begins[-1] + 20 * 10**9), ("checkpoint_save", begins[1] + 20 * 10**9, begins[2])]
        kind, start, end = zip(*life[: 1 + (n >= 6)], strict=True)
        steps = {"step": list(range(20)), "start_ns": begins, "order": list(range(20))}
        told = {
            "steps": steps,
            "lifecycle": {"kind": kind, "start_ns": start, "end_ns": end, "order": list(range(len(kind)))},
        }
        write(place.store, "nightly", {name: told[name] for name in tables}, {"chip": "TPU v5p", "chips": 4, "n": n})


def test_none_of_an_account_is_told_as_none_where_the_calendar_holds_steps(place):
    nightly_saves(place, ("steps", "lifecycle"))
    found = tell(Asked(metric="checkpoint_save", name="nightly"), place)
    assert found.left_out == {} and [p.value for p in found.result.points[:6]] == [0.0] * 6
    assert len(found.result.changes) == 1 and found.places == (6,)
    with pytest.raises(QuestionError, match="none tells"):  # no profile shows whether anything waited
        tell(Asked(metric="input_wait", name="nightly"), place)


def test_none_of_an_account_is_not_known_where_no_step_was_read(place):
    nightly_saves(place, ("lifecycle",))
    assert tell(Asked(metric="checkpoint_save", name="nightly"), place).left_out == {"do not tell it": 6}


def profiled_nights(place, hosts):
    """A night each: the same job of four hosts, of which so many were profiled."""
    kept = {"captures": ("start_ns", "stop_ns"), "collectives": ("start_ns", "end_ns"), "steps": ("start_ns",)}
    kept |= {"lifecycle": ("start_ns", "end_ns"), "ops": (), "op_events": ()}
    for n, count in enumerate(hosts):
        world = World(seed=n, jitter_ms=2.0, profiled=tuple(range(count))).tables()
        tables = {name: world.arrow(name).to_pydict() for name in kept}
        for name, times in kept.items():
            moved = {c: [None if at is None else at + n * DAY_NS for at in tables[name][c]] for c in times}
            tables[name] |= moved
        write(place.store, "nightly", tables, {"chip": "TPU v5p", "chips": 4, "n": n})


def test_a_job_of_which_fewer_hosts_are_profiled_changed_in_nothing(place):
    profiled_nights(place, [4] * 8 + [2] * 8)
    for name in ("below_roofline", "device_idle", "input_wait", "straggler_wait"):
        found = tell(Asked(metric=name, name="nightly"), place)
        assert found.result.changes == () and found.result.drift is None, found.verdict
        assert len(found.result.points) == 16 and "step time that profiles cover" in str(found.verdict)
    waits = [p.unknown for p in found.result.points]
    assert max(waits[:8]) < 0.01 < 0.1 < min(waits[8:])  # most collectives were not compared there
    whole = tell(Asked(metric="useful_maths", name="nightly"), place)
    assert whole.result.changes == () and "share of the chip time" in str(whole.verdict)


def test_waits_that_a_log_tells_are_told_though_a_profile_of_few_steps_saw_none(place):
    """The same job three times, of which its own log tells that ten steps waited for data: of no, one and all hosts a
    profile of the steps before."""
    stalls, found = dict.fromkeys(range(10, 60, 5), 400.0), []
    for n, hosts in enumerate(((), (0,), (0, 1, 2, 3))):
        job = World(steps=60, stall_ms=stalls, profiled=()).tables()
        seen = World(steps=9, profiled=hosts).tables(goodput=False)
        tables = {name: seen.arrow(name).to_pydict() for name in ("captures", "collectives", "ops", "op_events")}
        tables |= {name: job.arrow(name).to_pydict() for name in ("steps", "lifecycle")}
        begun = [at for at in tables["steps"]["start_ns"] if at]
        ended = [at + int((2 + stalls.get(k, 0)) * 1e6) for k, at in enumerate(begun)]
        fetches = {"kind": ["data_loading"] * 60, "start_ns": begun, "end_ns": ended}
        joined(tables["lifecycle"], fetches)
        joined(tables["steps"], seen.arrow("steps").to_pydict())
        tables = {name: columns for name, columns in tables.items() if any(map(len, columns.values()))}
        run = write(place.store, f"night {n}", tables, {"chip": "TPU v5p", "chips": 4, "n": n})
        found.append(metric("input_wait").of(run, place))
    assert [value for value, *_ in found] == pytest.approx([found[0][0]] * 3) and found[0][0] > 0.4


def test_load_tests_stand_in_the_order_in_which_they_ran(place):
    """24 nights, stored in no order, in which answers become slower for good; requests tell when, and no step does."""
    rng = np.random.default_rng(3)
    for n in rng.permutation(24).tolist():
        at = [START_NS + n * DAY_NS + k * 10**8 for k in range(30)]
        first = (1e8 * (1.0 if n < 14 else 1.1) * (1 + 0.004 * rng.normal(size=30))).astype(int).tolist()
        last = [t + ns + 10**9 for t, ns in zip(at, first, strict=True)]
        requests = {
            "id": [str(k) for k in range(30)],
            "arrival_ns": at,
            "last_token_ns": last,
            "output_tokens": [9] * 30,
        }
        requests |= {"first_token_ns": [t + ns for t, ns in zip(at, first, strict=True)], "status": ["completed"] * 30}
        write(place.store, "load", {"requests": requests}, {"n": n}, kind="serving")
    found = tell(Asked(metric="ttft_p50", name="load"), place).result
    nights = [place.store.get(p.runs[0]).manifest.fact("n") for p in found.points]
    assert nights == list(range(24)) and [p.at_ns // DAY_NS - START_NS // DAY_NS for p in found.points] == nights
    (change,) = found.changes
    assert (change.last, change.first) == tuple(found.points[13:15]) and change.low < 0.1 < change.high


def test_the_api_agents_and_the_page_tell_what_the_command_tells(nightly, kept, capsys):
    told = json.loads(out(capsys, "history", "step_time", "--by", "commit", "--search", "nightly", "--json")[1])
    with serving(kept.store.root) as address:
        asked = f"{address}/api/history?metric=step_time&by=commit&search=nightly"
        assert get(asked) == (200, told)
        for query in ("", "?metric=", "?metric=speed", "?metric=step_time&by=branch", "?metric=step_time&when=now"):
            assert get(f"{address}/api/history{query}")[0] == 400, query
    agent = json.loads(call(tool("runs"), {"history": "step_time", "by": "commit", "search": "nightly"}, kept))
    assert agent["says"] == told["verdict"]
    assert agent["answer"]["changes"] == told["changes"]
    assert agent["links"]["page"] == "/history?metric=step_time&search=nightly&by=commit"
    at = opened(PAGE, metric="step_time", by="commit", search="nightly")
    assert not at.exception and told["verdict"].split(". ")[0] in words(at)
    (change,) = told["changes"]
    assert f"from {fmt.duration(change['before'])} to {fmt.duration(change['after'])}" in words(at)


def test_the_page_begins_with_step_time_and_says_what_cannot_be(nightly, kept):
    at = opened(PAGE)
    assert not at.exception and "Settled step time rose by" in words(at)
    assert "Whiskers are the range of a run by its own scatter" in words(at)
    for odd in ({"metric": "x" * 10_000}, {"search": "mfu<<"}, {"name": "<b>nobody</b>"}, {"by": "branch"}):
        at = opened(PAGE, **odd)
        assert not at.exception and at.warning and {s.label for s in at.selectbox} >= {"Metric", "Runs called"}


def test_the_picture_holds_every_run_every_change_and_the_levels_between(nightly, kept):
    found = tell(Asked(metric="step_time", name="nightly"), kept)
    line, levels, marks = over_runs(found).data
    assert list(line.y) == pytest.approx([p.value for p in found.result.points])
    assert all(low > 0 and high > 0 for low, high in zip(line.error_y.arrayminus, line.error_y.array, strict=True))
    assert found.places == (14,) and list(marks.x) == [13.5] and marks.marker.symbol == ("triangle-up",)
    assert marks.text[0].startswith("1: +") and found.sentences[0] in marks.hovertext[0]
    before, after = (np.mean([p.value for p in part]) for part in (found.result.points[:14], found.result.points[14:]))
    drawn = [y for y in levels.y if y is not None]
    assert drawn == pytest.approx([before, before, after, after], rel=0.002)
    assert len(point_rows(found)) == 24 and sum(r["changed_by_share"] is not None for r in point_rows(found)) == 1


def test_a_share_that_changes_does_so_by_points_in_the_picture_as_in_its_sentence(place):
    for n in range(24):
        took = [10**9 + 10**6 * (i % 5) for i in range(60)]
        flops = [(0.40 if n < 12 else 0.38) * PEAK * seconds / 1e9 for seconds in took]
        columns = {"steps": step_columns(took, START_NS + n * 86_400 * S, model_flops_per_chip=flops)}
        write(place.store, "n", columns, {"chip": "TPU v5p", "chips": 4, "peak_flops_per_s": PEAK, "n": n})
    found = tell(Asked(metric="mfu", name="n"), place)
    assert "2.0 points" in found.sentences[0]
    assert list(over_runs(found).data[-1].text) == ["1: −2.0 points"]


def test_names_of_runs_are_no_markup_in_the_picture_or_its_words(place):
    for n in range(12):
        columns = {"steps": step_columns([10**9, 10**9 + n])}
        write(place.store, ODD, columns, {"chip": "TPU v5p", "chips": 4, "n": n}, tags={"commit": f"{ODD}{n}"})
    found = tell(Asked(metric="step_time", by="commit"), place)
    figure = over_runs(found)
    texts = [*figure.data[0].hovertext, *figure.layout.xaxis.ticktext]
    assert texts and not any("<img" in text for text in texts)
    assert not opened(PAGE, by="commit").exception


@pytest.mark.parametrize(("metric", "pace"), [("step_time", 1.28 / 1.2), ("tokens_per_s", 1.2 / 1.28)])
def test_stalls_are_steps_in_all_runs_or_in_none(tmp_path, metric, pace):
    """Of 300 steps 30, and from the tenth run on 42, take three times as long: set apart run by run, a history told a
    step of 28 % where steps took 6.7 % longer."""
    place, rng = workspace(str(tmp_path / "store")), np.random.default_rng(1)
    for n in range(18):
        took = 1e9 * (1 + 0.01 * rng.normal(size=300))
        took[rng.choice(np.arange(1, 300), 30 if n < 9 else 42, replace=False)] = 3e9
        took = took.astype(int)
        rate = [1e12 / t for t in took]
        columns = step_columns(took, START_NS + n * DAY_NS, tokens_per_s_per_chip=rate, format=["maxtext"] * 300)
        write(place.store, "nightly", {"steps": columns}, {"chip": "TPU v5p", "chips": 4, "n": n})
    told = tell(Asked(metric=metric), place)
    (change,) = told.result.changes
    assert 1 + change.low < pace < 1 + change.high and change.high - change.low < 0.02
    assert any("in 9 of them more than 12 %" in note for note in told.notes)
