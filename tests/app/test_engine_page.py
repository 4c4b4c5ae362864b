"""The engine page: what it says, what the address chooses, and what its figures draw."""

import numpy as np
import pytest

from analyzers.serving import engine
from app.questions.engine import figure as draw
from app.questions.engine import words as words_of
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask
from tests.analyzers.test_engine import S, iterated, sampled
from tests.app import made_runs
from tests.app.test_pages import opened, words

BUSY = dict(
    running=[2, 40, 64, 64, 64, 60, 50, 10, 0, 0],
    waiting=[0, 3, 9, 20, 15, 12, 8, 0, 0, 0],
    kv=[0.1, 0.5, 0.7, 0.7, 0.72, 0.95, 0.97, 0.2, 0.0, 0.0],
    preemptions=[0, 0, 0, 0, 0, 2, 5, 5, 5, 5],
    prompt_tokens_per_s=[100.0] * 10,
    output_tokens_per_s=[50.0] * 10,
    prefix_hit_rate=[0.25] * 10,
)


@pytest.fixture
def run(place):
    tables = {"engine": sampled(**BUSY).arrow("engine").to_pydict()}
    return made_runs.write(place.store, "busy", tables, {"max_num_seqs": 64}, kind="serving")


def test_what_limited_it_comes_first(place, run):
    at = opened("questions/engine/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    assert (
        "Requests waited 30 % of the time for a seat (at most 64 run), 20 % for KV cache and 10 % for the token budget"
    ) in words(at)
    assert "While they waited for a seat at most 72 % of the cache was in use." in words(
        at
    ) and "5 requests were preempted" in words(at)
    assert [m.value for m in at.metric] == ["35.4", "60.0 %", "97.0 %", "5", "25.0 %"]


def test_views_and_replicas_are_in_the_address(place, run):
    for view in ("timeline", "shares", "batch", "iterations", "no"):
        assert not opened("questions/engine/page.py", run=run.run_id, view=view).exception
    n = 6
    tables = {
        "engine": {
            "ts_ns": [EPOCH_NS + i * S for i in range(2 * n)],
            "order": list(range(2 * n)),
            "replica": ["a", "b"] * n,
            "running": [1, 3] * n,
            "waiting": [0, 0] * n,
        }
    }
    two = made_runs.write(place.store, "two", tables, {}, kind="serving")
    at = opened("questions/engine/page.py", run=two.run_id, replica="b")
    assert not at.exception and at.metric[0].value == "3.00"
    at.selectbox(key="pick_replica").set_value("all").run()
    assert "replica" not in at.query_params and at.metric[0].value == "4.00"
    assert "no replica 'c'" in words(opened("questions/engine/page.py", run=two.run_id, replica="c"))


def test_a_run_without_an_engine_is_told_what_would_bring_it(place):
    tables = {"requests": {"id": ["a"], "status": ["completed"]}}
    run = made_runs.write(place.store, "requests", tables, {}, kind="serving")
    at = opened("questions/engine/page.py", run=run.run_id)
    assert not at.exception and "no samples of a serving engine" in words(at)


def test_verdicts():
    calm = ask(engine, sampled([3] * 9 + [0], [0] * 10, kv=[0.1] * 9 + [0.0]))
    assert words_of.verdict(calm) == (
        "Requests hardly ever waited: the engine was not the limit, and it had nothing to do for 10 % of the time."
    )
    full = ask(engine, sampled([3] * 4, [2] * 4, kv=[0.99] * 4))
    assert words_of.verdict(full).startswith("Requests waited 100 % of the time for KV cache. More memory")
    silent = ask(engine, sampled([3] * 4, [None] * 4))
    assert "cannot be told" in words_of.verdict(silent)
    rows = dict(words_of.table(full).rows)
    assert rows["waiting for KV cache"] == "100 %" and rows["preemptions"] == "–"


def test_of_one_reading_no_share_of_the_time_is_told_and_nothing_is_drawn(place):
    tables = {"engine": {"order": [0], "running": [162], "waiting": [2826], "kv_usage": [0.28]}}
    once = made_runs.write(place.store, "once", tables, {}, kind="serving")
    at = opened("questions/engine/page.py", run=once.run_id)
    assert not at.exception and "When the engine was read, once, 162 ran and 2,826 waited for a cause" in words(at)
    assert "% of the time" not in words(at) and not at.get("plotly_chart")
    assert [m.value for m in at.metric][:2] == ["162", "2,826"]
    assert at.dataframe[0].value["figure"].tolist() == ["samples", "running", "waiting", "KV cache in use"]


def test_the_strip_joins_equal_neighbours_and_covers_the_time():
    result = ask(engine, sampled(**BUSY), {"max_num_seqs": 64})
    parts = draw.stretches(result)
    assert parts["bound"].tolist() == ["none", "tokens", "seats", "kv", "none", "idle"]
    assert (parts["end_s"] - parts["start_s"]).sum() == pytest.approx(result.span_s)
    figure = draw.timeline(result)
    patterned = {t.name.rsplit(" ", 2)[0] for t in figure.data if t.type == "bar" and t.marker.pattern.shape}
    assert patterned == {"waiting for KV cache", "waiting for a seat", "waiting for tokens of the budget"}
    assert any(t.name == "preemptions" and len(t.x) == 2 for t in figure.data)


def test_figures_of_long_runs_stay_small():
    rng = np.random.default_rng(1)
    rows = [
        {
            "start_ns": EPOCH_NS + i * 10_000_000,
            "dur_ns": 8_000_000 + int(d) * 10_000,
            "decode_tokens": int(d),
            "prefill_tokens": int(p),
            "padded_tokens": 5,
            "running": int(d),
            "waiting": int(w),
            "kv_usage": d / 64,
            "preempted": int(d > 62),
        }
        for i, (d, p, w) in enumerate(
            zip(rng.integers(1, 64, 20_000), rng.integers(0, 500, 20_000), rng.integers(0, 3, 20_000), strict=True)
        )
    ]
    result = ask(engine, iterated(rows))
    for figure in (draw.timeline(result), draw.shares(result), draw.batch(result), draw.iterations(result)):
        assert len(figure.to_json()) < 1_000_000
    assert len(draw.stretches(result)) <= draw.MAX_STRETCHES


def test_shares_are_drawn_by_the_tokens_in_them():
    rows = [
        {
            "start_ns": EPOCH_NS + i * 10_000_000,
            "dur_ns": 9_000_000,
            "decode_tokens": 10,
            "running": 1,
            "waiting": 0,
            "prefill_tokens": 990 * (i % 2),
        }
        for i in range(2000)
    ]
    result = ask(engine, iterated(rows))
    drawn = draw.smoothed(result.windows)
    assert len(drawn) == draw.SMOOTH
    assert drawn["prompt_share"].median() == pytest.approx(990 / 1010, abs=0.02)
    kept = draw.smoothed(result.windows.head(100))
    assert len(kept) == 100


def test_a_log_without_times_is_drawn_in_its_order():
    tables = sampled(**BUSY).arrow("engine").drop_columns("ts_ns").to_pydict()
    result = ask(engine, MemoryTables({"engine": tables}))
    assert draw.clock(result) == ("sample, in the order of the log", 1.0)
    assert draw.timeline(result).data
