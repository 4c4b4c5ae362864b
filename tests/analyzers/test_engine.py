"""The engine over time: what a sample stands for, what held requests back, and the line through its iterations."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import engine
from analyzers.serving.engine import windows as engine_windows
from analyzers.serving.engine.bounds import BOUNDS
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9


def sampled(running, waiting, kv=None, every_s=10, **more) -> MemoryTables:
    n = len(running)
    return MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + i * every_s * S for i in range(n)],
                "order": list(range(n)),
                "running": running,
                "waiting": waiting,
                "kv_usage": kv or [None] * n,
                **more,
            }
        }
    )


def iterated(rows: list[dict]) -> MemoryTables:
    keys = dict.fromkeys(k for r in rows for k in r)
    return MemoryTables(
        {"iterations": {"order": list(range(len(rows))), **{k: [r.get(k) for r in rows] for k in keys}}}
    )


def test_each_bound_by_its_definition():
    tables = sampled(
        running=[10, 10, 10, 64, 10, 0, 5],
        waiting=[0, 4, 4, 4, 4, 0, 0],
        kv=[0.2, 0.95, 0.9, 0.5, 0.5, 0.0, 0.99],
        every_s=1,
    )
    result = ask(engine, tables, {"max_num_seqs": 64})
    words = [max(BOUNDS, key=lambda b, r=r: r[f"share_{b}"]) for _, r in result.windows.iterrows()]
    assert words == ["none", "kv", "kv", "seats", "tokens", "idle", "none"]
    assert result.bound == pytest.approx({b: words.count(b) / 7 for b in BOUNDS})
    assert sum(result.bound.values()) == pytest.approx(1)


def test_a_preemption_is_want_of_memory():
    tables = sampled([8, 8, 8], [2, 2, 2], kv=[0.5] * 3, preemptions=[0, 0, 3])
    result = ask(engine, tables, max_running=100)
    assert result.bound["kv"] == pytest.approx(1 / 3) and result.bound["tokens"] == pytest.approx(2 / 3)
    assert result.figures["preemptions"] == 3 and result.burst_count == 1


def test_seats_are_seen_where_others_wait_at_the_same_number():
    waits = [0] + [5] * 9
    result = ask(engine, sampled([20] + [32] * 8 + [31], waits, kv=[0.4] * 10))
    assert result.seats == 32 and any("32 is taken for the most" in n for n in result.notes)
    assert result.bound["seats"] == pytest.approx(0.8) and result.bound["tokens"] == pytest.approx(0.1)
    unsure = ask(engine, sampled([20, 25, 31, 28, 30], [3] * 5, kv=[0.4] * 5))
    assert unsure.seats is None and unsure.bound["unknown"] == 1
    full = ask(engine, sampled([32] * 6, [3] * 6, kv=[0.97] * 6))
    assert full.seats is None and full.bound["kv"] == 1  # memory, not seats, kept it there


def test_unknown_cache_and_queue_are_unknown():
    result = ask(engine, sampled([4, 4], [3, 3], kv=[0.0, 0.0]), {"max_num_seqs": 64})
    assert result.figures["kv_usage"] == {"mean": None, "max": None} and result.bound["unknown"] == 1
    assert any("not measured" in n for n in result.notes)
    silent = ask(engine, sampled([4, 4], [None, None], kv=[0.1, 0.2]))
    assert silent.bound["untold"] == 1 and silent.figures["waiting_share"] is None
    assert silent.figures["waiting"]["mean"] is None


def test_counters_are_what_they_grew_by_through_a_restart():
    tables = sampled(
        [1] * 4,
        [0] * 4,
        prompt_tokens=[1000, 1500, 200, 900],
        output_tokens=[10, 110, 50, 60],
        prefix_hits=[0, 100, 30, 90],
        prefix_queries=[0, 400, 60, 160],
        drafted=[0, 30, 60, 90],
        accepted=[0, 15, 33, 60],
        drafts=[0, 10, 20, 30],
    )
    result = ask(engine, tables)
    f = result.figures
    assert f["prefilled_tokens_per_s"] == pytest.approx((500 + 200 + 700 - 100 - 30 - 60) / 30)  # found is not read
    assert f["generated_tokens_per_s"] == pytest.approx((100 + 50 + 10) / 30)
    assert f["prefix_hit_rate"] == pytest.approx((100 + 30 + 60) / (400 + 60 + 100))
    assert f["acceptance_rate"] == pytest.approx(60 / 90)
    rows = result.windows
    assert rows["prompt_tokens_per_s"].iloc[1:].tolist() == pytest.approx([40, 17, 64])
    assert rows["acceptance_length"].iloc[1:].tolist() == pytest.approx([2.5, 2.8, 3.7])
    assert rows["prefix_hit_rate"].iloc[1:].tolist() == pytest.approx([0.25, 0.5, 0.6])


def test_printed_rates_hold_where_nothing_is_counted():
    tables = sampled(
        [1] * 3,
        [0] * 3,
        every_s=5,
        prompt_tokens_per_s=[100.0, 300.0, 0.0],
        output_tokens_per_s=[10.0, 30.0, 50.0],
        prefix_hit_rate=[0.1, 0.2, 0.3],
        acceptance_length=[1.5, 2.0, 2.5],
    )
    result = ask(engine, tables)
    assert result.figures["prefilled_tokens_per_s"] == pytest.approx(400 / 3)
    assert result.figures["prefilled_share"] == pytest.approx(400 / 490)
    assert result.figures["prefill_heavy_share"] == pytest.approx(2 / 3)
    assert result.figures["prefix_hit_rate"] == 0.3  # the last, of recent requests
    assert result.windows["acceptance_length"].tolist() == [1.5, 2.0, 2.5]
    assert result.span_s == pytest.approx(15)


def test_a_gap_counts_for_one_usual_sample():
    at = [0, 10, 20, 30, 1000, 1010]
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + s * S for s in at],
                "order": range(6),
                "running": [1] * 6,
                "waiting": [0, 0, 0, 0, 5, 0],
            }
        }
    )
    result = ask(engine, tables)
    assert result.figures["waiting_share"] == pytest.approx(1 / 6)
    assert any("1 gap between samples" in n for n in result.notes)


def test_without_times_samples_count_alike():
    tables = MemoryTables({"engine": {"order": [2, 0, 1], "running": [4, 1, 2], "waiting": [0, 0, 7]}})
    result = ask(engine, tables)
    assert not result.timed and result.span_s is None and result.origin_ns is None
    assert result.windows["running"].tolist() == [1, 2, 4]
    assert result.figures["waiting_share"] == pytest.approx(1 / 3)
    since = sampled([1, 2], [0, 0])
    assert ask(engine, since, {"engine_times": "since start"}).origin_ns is None
    assert ask(engine, since).origin_ns == EPOCH_NS - 10 * S


def test_replicas_are_summed_or_chosen():
    n = 50
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + (i // 2) * 10 * S + (i % 2) * 3 * S for i in range(2 * n)],
                "order": list(range(2 * n)),
                "replica": ["a", "b"] * n,
                "running": [10, 4] * n,
                "waiting": [0, 6] * n,
                "kv_usage": [0.2, 0.95] * n,
                "output_tokens": [v for i in range(n) for v in (100 * i, 40 * i)],
            }
        }
    )
    both = ask(engine, tables)
    assert both.replicas == ("a", "b")
    assert both.figures["running"]["mean"] == pytest.approx(14, rel=0.02)
    assert both.figures["waiting"]["mean"] == pytest.approx(6, rel=0.02)
    assert both.bound["kv"] == pytest.approx(0.5) and both.bound["none"] == pytest.approx(0.5)
    assert both.figures["generated_tokens_per_s"] == pytest.approx(14 * (n - 1) / n, rel=0.05)
    one = ask(engine, tables, replica="b")
    assert one.figures["running"]["mean"] == pytest.approx(4) and one.bound["kv"] == 1
    with pytest.raises(QuestionError, match="no replica 'c'"):
        ask(engine, tables, replica="c")


def test_an_iteration_lasts_until_the_next_and_pauses_are_idle():
    rows, at = [], EPOCH_NS
    for n in range(40):
        rows.append(
            {
                "start_ns": at,
                "dur_ns": 8_000_000,
                "prefill_tokens": 100 * (n % 4 == 0),
                "decode_tokens": 10,
                "padded_tokens": 22,
                "running": 10,
                "waiting": 0,
                "kv_usage": 0.3,
                "preempted": 0,
            }
        )
        at += 10_000_000 if n != 19 else 1_008_000_000
    result = ask(engine, iterated(rows))
    span = 39 * 0.010 + 0.998 + 0.008
    assert result.span_s == pytest.approx(span)
    assert result.bound["idle"] == pytest.approx(1.0 / span)
    assert result.figures["running"]["mean"] == pytest.approx(10 * (span - 1.0) / span)
    assert result.figures["prefilled_share"] == pytest.approx(1000 / 1400)
    assert result.figures["padded_share"] == pytest.approx(880 / 2280)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(400 / span)


def test_a_pause_with_requests_waiting_is_no_idleness():
    rows = [
        {
            "start_ns": EPOCH_NS + at * S,
            "dur_ns": S // 2,
            "running": 3,
            "waiting": waiting,
            "kv_usage": 0.1,
            "decode_tokens": 3,
        }
        for at, waiting in ((0, 0), (2, 7), (4, 0))
    ]
    result = ask(engine, iterated(rows), max_running=8)
    assert result.samples == 3 and result.span_s == 4.5
    assert result.bound == pytest.approx(
        {"kv": 0, "seats": 0, "tokens": 0.5 / 4.5, "unknown": 1.5 / 4.5, "none": 1 / 4.5, "idle": 1.5 / 4.5}
        | {"untold": 0}
    )
    assert result.figures["waiting_share"] == pytest.approx(2 / 4.5)


def test_windows_hold_all_tokens_however_many_samples():
    rng = np.random.default_rng(2)
    n = 5000
    rows = [
        {
            "start_ns": EPOCH_NS + i * 5_000_000,
            "dur_ns": 4_000_000,
            "prefill_tokens": int(p),
            "decode_tokens": int(d),
            "running": int(d),
            "waiting": 0,
        }
        for i, (p, d) in enumerate(zip(rng.integers(0, 900, n), rng.integers(1, 60, n), strict=True))
    ]
    result = ask(engine, iterated(rows))
    windows = result.windows
    assert len(windows) <= engine_windows.MOST
    for column, key in (("prompt_tokens_per_s", "prefill_tokens"), ("output_tokens_per_s", "decode_tokens")):
        total = (windows[column] * windows["dt_s"]).sum()
        assert total == pytest.approx(sum(r[key] for r in rows), rel=1e-9)
    decode = np.array([r["decode_tokens"] for r in rows])
    assert result.figures["running"]["mean"] == pytest.approx(decode.mean(), rel=1e-3)
    assert result.batch["share"].sum() == pytest.approx(1)
    bar = result.batch.iloc[10]
    assert bar["share"] == pytest.approx(((decode >= bar["running"]) & (decode <= bar["to"])).mean(), rel=1e-3)


def test_samples_longer_than_a_window_are_spread_over_several():
    rows, at = [], EPOCH_NS
    for n in range(2000):
        lasts = 400_000_000 if n % 100 == 0 else 2_000_000
        rows.append({"start_ns": at, "dur_ns": lasts, "decode_tokens": 50, "running": 9, "waiting": 0, "preempted": 0})
        at += lasts
    rows[500]["preempted"] = 2
    result = ask(engine, iterated(rows))
    windows = result.windows
    assert windows["running"].tolist() == pytest.approx([9.0] * len(windows))
    assert windows["dt_s"].sum() == pytest.approx(result.span_s)
    assert (windows["output_tokens_per_s"] * windows["dt_s"]).sum() == pytest.approx(100_000)
    assert windows["preemptions"].sum() == 2
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100_000 / result.span_s)


def test_bursts_of_preemptions():
    rows = [
        {
            "start_ns": EPOCH_NS + i * 10_000_000,
            "dur_ns": 9_000_000,
            "decode_tokens": 5,
            "running": 5,
            "waiting": 1,
            "kv_usage": 0.95,
            "preempted": int(i in (100, 130, 131, 900)),
        }
        for i in range(1200)
    ]
    result = ask(engine, iterated(rows))
    assert result.burst_count == 2 and result.bursts["amount"].tolist() == [3.0, 1.0]
    assert result.bursts["start_s"].tolist() == pytest.approx([1.0, 9.0])
    assert result.bursts["end_s"].iloc[0] == pytest.approx(1.32)


def test_the_line_through_iterations_withstands_stalls():
    rng = np.random.default_rng(4)
    tokens = rng.integers(1, 2048, 4000)
    dur = (3e-3 + 6e-6 * tokens) * rng.lognormal(0, 0.03, 4000)
    dur[rng.random(4000) < 0.05] += 0.4  # compilations, stalls
    rows = [
        {"start_ns": EPOCH_NS + i * S, "dur_ns": int(d * 1e9), "prefill_tokens": int(t), "running": 1, "waiting": 0}
        for i, (t, d) in enumerate(zip(tokens, dur, strict=True))
    ]
    result = ask(engine, iterated(rows))
    assert result.fit.overhead_s == pytest.approx(3e-3, rel=0.06)
    assert result.fit.per_token_s == pytest.approx(6e-6, rel=0.03)
    assert result.fit.iterations == 4000 and len(result.drawn) <= 1500
    assert result.fit.spread < 0.05


def test_engine_samples_tell_what_iterations_lack():
    rows = [
        {"start_ns": EPOCH_NS + i * 100_000_000, "dur_ns": 90_000_000, "decode_tokens": 5, "running": 5, "waiting": 0}
        for i in range(100)
    ]
    samples = {
        "ts_ns": [EPOCH_NS + s * S for s in range(1, 10)],
        "order": range(9),
        "running": [5] * 9,
        "prefix_hits": [10 * i for i in range(9)],
        "prefix_queries": [40 * i for i in range(9)],
    }
    tables = MemoryTables({"engine": samples, "iterations": iterated(rows).arrow("iterations").to_pydict()})
    result = ask(engine, tables)
    assert result.source == "iterations" and result.figures["prefix_hit_rate"] == pytest.approx(0.25)
    assert set(result.windows["prefix_hit_rate"].dropna()) == {0.25}


def test_a_run_without_an_engine():
    with pytest.raises(QuestionError, match="no samples of a serving engine"):
        ask(engine, MemoryTables({}))
    with pytest.raises(QuestionError, match="max_running"):
        ask(engine, sampled([1], [0]), max_running=0)


def test_the_answer_is_json():
    said = ask(engine, sampled([1, 2], [0, 1], kv=[0.1, 0.95], preemptions=[0, 1])).to_dict()
    assert {"samples", "span_s", "running", "waiting", "kv_usage", "preemptions", "prefix_hit_rate", "bound"} <= set(
        said
    )
    json.dumps(said, allow_nan=False)
    json.dumps(ask(engine, MemoryTables({"engine": {"order": [0]}})).to_dict(), allow_nan=False)


cell = st.one_of(st.none(), st.integers(0, 100))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(cell, cell, st.one_of(st.none(), st.floats(0, 1)), cell, cell, st.integers(0, 50)),
        min_size=1,
        max_size=20,
    )
)
def test_any_samples_have_an_answer_whose_shares_close(rows):
    running, waiting, kv, preempted, prompt, at = zip(*rows, strict=True)
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + t * S for t in at],
                "order": list(range(len(rows))),
                "running": running,
                "waiting": waiting,
                "kv_usage": kv,
                "preemptions": preempted,
                "prompt_tokens": prompt,
            }
        }
    )
    said = ask(engine, tables).to_dict()
    assert sum(said["bound"].values()) == pytest.approx(1)
    json.dumps(said, allow_nan=False)
