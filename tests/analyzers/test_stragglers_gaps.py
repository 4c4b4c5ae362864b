"""Stragglers where traces are incomplete: missing columns, cut edges, sequences that do not agree, logs alone."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.rank_worlds import RankWorld
from tests.analyzers.straggling import ask, named


@pytest.mark.parametrize("missing", ["step", "group", "host", "rank", "bytes", "module"])
def test_columns_may_be_missing(missing):
    world = RankWorld(ranks=16, steps=40, segments=2, slow={6: 0.08}, clock_s=np.linspace(-1, 1, 16))
    rows = {
        n: c
        for n, c in zip(*(lambda t: (t.column_names, t.columns))(world.tables().arrow("collectives")), strict=True)
        if n != missing
    }
    if missing == "host":
        rows.pop("device")
    result = ask(MemoryTables({"collectives": {n: c.combine_chunks() for n, c in rows.items()}}))
    assert named(result) == ("persistent", ["6" if missing != "rank" else "host-0/6"])


def test_what_the_edges_of_captures_cut_off_is_left_out():
    """Ranks begin and stop at different steps: whole meetings remain, and the answer with them."""
    rows = RankWorld(ranks=8, steps=50, segments=2, slow={3: 0.06}).tables().arrow("collectives")
    step, rank, op = (rows[n].to_numpy(zero_copy_only=False) for n in ("step", "rank", "op"))
    late = np.array(["all-reduce.1" in str(o) for o in op])
    keep = (step > rank % 3) | ((step == rank % 3) & late)
    keep &= step < 50 - rank % 2
    result = ask(
        MemoryTables({"collectives": {n: rows.filter(pa.array(keep))[n].combine_chunks() for n in rows.column_names}})
    )
    assert named(result) == ("persistent", ["3"])
    assert any("not found on every rank" in n for n in result.notes)


def test_sequences_that_do_not_agree_are_not_compared():
    rows = RankWorld(ranks=8, steps=40).tables().arrow("collectives").to_pydict()
    rows["bytes"] = [1e8 + 1e6 * r for r in rows["rank"]]
    result = ask(MemoryTables({"collectives": rows}))
    assert result.verdict == "unknown" and "sequences of collectives differ" in result.why


def test_what_does_not_make_ranks_wait_is_not_compared():
    rows = RankWorld(ranks=8, steps=40, slow={2: 0.2}).tables().arrow("collectives").to_pydict()
    rows["kind"] = ["permute"] * len(rows["rank"])
    assert ask(MemoryTables({"collectives": rows})).verdict == "unknown"


def test_counters_that_began_elsewhere_give_no_wrong_name():
    """Without steps, two ranks that were captured from a later collective on: nobody else may be named."""
    for slow in ({}, {5: 0.06}):
        rows = RankWorld(ranks=8, steps=45, slow=slow, numbered=False).tables().arrow("collectives").to_pydict()
        keep = [not (r in (2, 6) and s < 3) for r, s in zip(rows["rank"], rows["seq"], strict=True)]
        rows = {n: [v for v, k in zip(c, keep, strict=True) if k] for n, c in rows.items()}
        rows["seq"] = [s - 3 if r in (2, 6) else s for r, s in zip(rows["rank"], rows["seq"], strict=True)]
        verdict, ranks = named(ask(MemoryTables({"collectives": rows})))
        assert verdict != "persistent" or ranks == ["5"]


def test_without_steps_and_counters_the_order_tells():
    rows = RankWorld(ranks=8, steps=40, segments=2, slow={5: 0.08}, numbered=False).tables().arrow("collectives")
    columns = {n: rows[n].combine_chunks() for n in rows.column_names if n != "seq"}
    assert named(ask(MemoryTables({"collectives": columns}))) == ("persistent", ["5"])


small = st.one_of(st.none(), st.integers(0, 3))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", None]),
            small,
            small,
            st.sampled_from(["0,1", "0,1,2", "0", "", None]),
            st.sampled_from(["all-reduce", "permute", None]),
            st.sampled_from([1.0, 2.0, None]),
            small,
            small,
            st.one_of(st.none(), st.integers(0, 2**62)),
            st.one_of(st.none(), st.integers(0, 2**62)),
            st.sampled_from(["x", None]),
        ),
        max_size=40,
    )
)
@settings(max_examples=150, deadline=None)
def test_no_table_breaks_it(rows):
    names = ("host", "rank", "device", "group", "kind", "bytes", "seq", "step", "start_ns", "end_ns", "role")
    tables = MemoryTables({"collectives": {n: [r[i] for r in rows] for i, n in enumerate(names)}})
    try:
        answer = ask(tables).to_dict()
    except QuestionError:
        return
    json.dumps(answer, allow_nan=False)
    assert answer["verdict"] == "unknown"  # nothing so short can be named


def test_step_logs_alone_tell_when_but_not_who():
    dur = [1.0] * 60 + [1.3] * 40
    logs = {"steps": {"step": [*range(100)], "dur_ns": [int(d * 1e9) for d in dur], "source": ["a.log"] * 100}}
    result = ask(MemoryTables(logs), {"chips": 8})
    assert result.verdict == "unknown" and "not who" in result.why
    stretches = result.to_dict()["step_time"]["stretches"]
    assert [(s["first_step"], s["last_step"]) for s in stretches] == [(1, 59), (60, 99)]
    assert result.slowdown_chip_seconds == pytest.approx(0.3 * 40 * 8)
    with pytest.raises(QuestionError, match="nothing tells who waited"):
        ask(MemoryTables({}))


def test_noisy_steps_have_no_change():
    dur = np.random.default_rng(0).lognormal(0, 0.1, 400)
    assert len(step_stretches(dur)) == 1


def test_a_stretch_too_short_to_move_a_median_is_told():
    """6 % in one in a hundred steps, and nothing in none."""
    dur = np.random.default_rng(0).normal(1, 0.02, 20_000)
    slow = dur.copy()
    slow[8_000:8_200] *= 1.06
    found = [step_stretches(d) for d in (dur, slow)]
    assert [len(f) for f in found] == [1, 3]
    assert found[1]["first_step"].tolist() == pytest.approx([0, 8_000, 8_200], abs=5)
    assert found[1]["median_s"].tolist() == pytest.approx([1, 1.06, 1], rel=0.003)


def step_stretches(dur):
    n = len(dur)
    logs = {"steps": {"step": [*range(n)], "dur_ns": (dur * 1e9).astype(int), "source": ["a.log"] * n}}
    return ask(MemoryTables(logs)).changes.stretches


def test_the_gain_reaches_over_steps_without_a_profile_by_the_jobs_own_step_times():
    """Late by 0.1 s of 1 s in steps 10 to 49 of 60, of which 20 to 44 were profiled: 4.0 s of 8 ranks."""
    world = RankWorld(ranks=8, steps=60, slow={3: 0.1}, slow_steps=range(10, 50), tail=0)
    rows = world.tables().arrow("collectives").to_pydict()
    seen = [i for i, step in enumerate(rows["step"]) if 20 <= step <= 44]
    end = world.timeline()[2][:, -1, 0]
    took = {"host": ["host-0"] * 59, "step": list(range(1, 60)), "dur_ns": (np.diff(end) * 1e9).astype(int).tolist()}
    result = ask(MemoryTables({"collectives": {n: [v[i] for i in seen] for n, v in rows.items()}, "steps": took}))
    row = result.ranks.iloc[0]
    assert result.gain.low == pytest.approx(row["blame_s"] * 8)
    assert result.gain.steps == 11 + 5, "10 to 20, as of the first step of a capture nothing is said, and 45 to 49"
    assert result.gain.likely == pytest.approx(40 * 0.1 * 8, rel=0.1)
    assert result.gain.low < result.gain.likely < result.gain.high


@pytest.mark.parametrize("absent, verdict, ranks", [(5, "persistent", ["3"]), (3, "unknown", [])])
def test_among_the_ranks_that_have_a_profile_the_late_one_is_told_and_nobody_for_one_that_has_none(
    absent, verdict, ranks
):
    rows = RankWorld(ranks=8, steps=40, slow={3: 0.1}).tables().arrow("collectives").to_pydict()
    seen = [i for i, rank in enumerate(rows["rank"]) if rank != absent]
    result = ask(MemoryTables({"collectives": {n: [v[i] for i in seen] for n, v in rows.items()}}))
    assert named(result) == (verdict, ranks)
    assert ranks or ("is not known" in result.why and result.cost_chip_seconds is None)
