"""The load curve: points, knee, objectives, Pareto, price and Little's law, against arithmetic done here."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import load
from analyzers.serving.load.value import front
from catalog import chip, model
from catalog.inference import weights_bytes
from errors import QuestionError
from runs.tables import MemoryTables
from simulators.serving.engine import simulate
from simulators.serving.result import tables as made
from simulators.serving.setup import Setup
from simulators.serving.traffic import poisson
from tests.analyzers.load_tests import ask, closed_loop, open_loop, requests, summaries

RATES = [1.0, 20.0, 40.0, 60.0, 80.0, 120.0, 160.0]


def test_the_knee_lies_where_the_server_stops_keeping_up():
    result = ask(load, summaries(open_loop(RATES, capacity=90.0)))
    assert result.axis == "rate"
    assert (result.knee.low_load, result.knee.high_load, result.knee.sign) == (80.0, 120.0, "both")
    assert result.knee.capacity_per_s == pytest.approx((90.0, 90.0, 90.0))
    assert result.knee.capacity_output_tokens_per_s == pytest.approx(9000.0)
    assert result.best == "load 4" and result.best_words == "the heaviest load below the knee"


def test_order_of_the_inputs_does_not_matter():
    loads = open_loop(RATES, capacity=90.0)
    shuffled = [loads[i] for i in (4, 0, 6, 2, 5, 1, 3)]
    a, b = (ask(load, summaries(x)).knee for x in (loads, shuffled))
    assert (a.low_load, a.high_load, a.capacity_per_s) == (b.low_load, b.high_load, b.capacity_per_s)


def test_latency_alone_shows_a_knee_before_the_rate_does():
    loads = open_loop([10.0, 20.0, 40.0, 60.0], capacity=1000.0)
    loads[3]["e2e_mean"] *= 4  # and still all are answered in time
    knee = ask(load, summaries(loads)).knee
    assert (knee.low_load, knee.high_load, knee.sign, knee.capacity_per_s) == (40.0, 60.0, "latency", None)


def test_growth_in_proportion_is_no_knee():
    loads = open_loop([10.0, 20.0, 40.0], capacity=1e6)
    for one, factor in zip(loads, (1, 2, 4), strict=True):
        one["e2e_mean"] = 0.5 * factor * 1.04
    result = ask(load, summaries(loads))
    assert result.knee is None
    assert result.knee_words == "No knee was seen up to 40 requests/s offered."


def test_a_server_that_is_too_slow_for_every_load():
    knee = ask(load, summaries(open_loop([50.0, 100.0], capacity=20.0))).knee
    assert knee.low is None and knee.high == "load 0" and knee.sign == "rate"


def test_the_drain_of_a_short_load_is_no_falling_behind():
    loads = open_loop([1.0, 2.0], capacity=1e6, seconds=30.0, base_s=5.0)
    result = ask(load, summaries(loads))
    assert result.rows["request_rate_per_s"].iloc[0] < 0.95  # 30 requests in 35 s
    assert result.rows["keeping_up"].tolist() == pytest.approx([1.0, 1.0], abs=0.001)
    assert result.knee is None


def test_chance_in_few_arrivals_is_no_falling_behind():
    few, many = (
        {"requested_rate_per_s": 10.0, "completed": n, "duration_s": n / 8.6, "e2e_mean": 0.1} for n in (60, 6000)
    )
    assert not ask(load, summaries([few])).rows["falls_behind"].iloc[0]
    assert ask(load, summaries([many])).rows["falls_behind"].iloc[0]


def test_loads_of_other_requests_are_no_curve():
    loads = open_loop(RATES, capacity=90.0)
    loads[2]["output_tokens"] = 1000 * loads[2]["completed"]
    result = ask(load, summaries(loads))
    assert result.knee is None and "no one curve" in result.knee_words


def test_a_load_out_of_line_is_told():
    loads = open_loop(RATES[:5], capacity=1000.0)
    loads[2]["e2e_mean"] *= 5
    result = ask(load, summaries(loads))
    assert result.knee.high_load == 40.0 and "Signs are mixed" in result.knee_words


def test_a_load_that_answered_nothing_is_beyond_and_has_no_latency():
    loads = open_loop(RATES[:3], capacity=1000.0)
    loads.append(
        {
            "requested_rate_per_s": 500.0,
            "completed": 0,
            "failed": 900,
            "duration_s": 60.0,
            "e2e_mean": 0.0,
            "outcome": "failed",
        }
    )
    result = ask(load, summaries(loads))
    assert result.knee.high_load == 500.0
    assert result.to_dict()["loads"][3]["e2e_s"]["mean"] is None
    assert any("1 of 4 loads answered no request" in n for n in result.notes)


def test_concurrency_is_the_axis_where_all_is_sent_at_once():
    loads = [
        {
            "requested_rate_per_s": np.inf,
            "max_concurrency": n,
            "completed": 1000,
            "duration_s": 1000 / r,
            "e2e_mean": n / r,
        }
        for n, r in ((1, 1.0), (2, 1.9), (4, 3.4), (8, 3.5), (16, 3.6))
    ]
    result = ask(load, summaries(loads))
    assert result.axis == "concurrency"
    assert (result.knee.low_load, result.knee.high_load) == (4.0, 8.0)
    assert result.knee.capacity_per_s == pytest.approx((3.5, 3.55, 3.6), rel=0.001)


def test_objectives_choose_the_load_that_answers_most():
    tables = summaries(open_loop(RATES, capacity=90.0))
    result = ask(load, tables, ttft_s=0.085, tpot_s=0.01)
    p99 = [(one["ttft_p99"], one["tpot_p99"]) for one in open_loop(RATES, capacity=90.0)]
    kept = [t <= 0.085 and p <= 0.01 for t, p in p99]
    assert result.rows["keeps_objectives"].tolist() == kept and 0 < sum(kept) < len(kept)
    assert result.best == f"load {max(i for i, k in enumerate(kept) if k)}"
    assert ask(load, tables, ttft_s=0.001).best is None
    with pytest.raises(QuestionError, match="option ttft_s=-1.0; expected a number above 0"):
        ask(load, tables, ttft_s=-1.0)


def test_failed_requests_are_late_for_ever():
    loads = open_loop(RATES[:2], capacity=90.0)
    loads[1] |= {"failed": 30}
    assert ask(load, summaries(loads), ttft_s=10.0).rows["keeps_objectives"].tolist() == [True, False]
    assert ask(load, summaries(loads), ttft_s=10.0, statistic="mean").rows["keeps_objectives"].tolist() == [True] * 2


def test_requests_that_nobody_says_failed_or_not_leave_the_objective_open():
    """Results of vLLM until 2025 tell how many requests were to be sent, how many were answered, and no more."""
    loads = open_loop([20.0, 40.0, 60.0], capacity=90.0)
    for number, missing in enumerate((0, 24, 1_200)):
        loads[number] |= {"failed": None, "to_send": loads[number]["completed"] + missing}
    result = ask(load, summaries(loads), ttft_s=10.0)
    assert [one["keeps_objectives"] for one in result.to_dict()["loads"]] == [True, True, None]
    assert result.best == "load 1"
    assert any(note.startswith("load 2: of 4,800 requests that were to be sent 3,600") for note in result.notes)
    assert not any("load 0: of" in note for note in result.notes)
    only = ask(load, summaries(loads[2:]), ttft_s=10.0)
    assert only.best is None and only.best_words.startswith("no load is known to have")


def test_an_objective_of_what_is_not_measured_is_unknown():
    loads = [{"requested_rate_per_s": 5.0, "completed": 100, "duration_s": 20.0, "e2e_mean": 1.0}]
    assert ask(load, summaries(loads), ttft_s=1.0).to_dict()["loads"][0]["keeps_objectives"] is None


def test_price_and_speed():
    tables = summaries(open_loop([20.0], capacity=90.0))
    row = ask(load, tables, {"chips": 4}, usd_per_chip_hour=3.0).rows.iloc[0]
    assert row["output_tokens_per_s"] == pytest.approx(1200 * 100 / row["duration_s"])
    assert row["usd_per_m_output_tokens"] == pytest.approx(4 * 3.0 / (row["output_tokens_per_s"] * 3600) * 1e6)
    assert row["usd_per_m_tokens"] == pytest.approx(row["usd_per_m_output_tokens"] / 3)
    assert row["tokens_per_s_per_chip"] == pytest.approx(row["output_tokens_per_s"] / 4)
    unknown = ask(load, tables, usd_per_chip_hour=3.0)
    assert any("Chips unknown" in n for n in unknown.notes) and unknown.rows["usd_per_m_tokens"].isna().all()
    with pytest.raises(QuestionError, match="usd_per_chip_hour"):
        ask(load, tables, {"chips": 4}, usd_per_chip_hour=-1.0)


def test_the_roofline_of_a_decode_step():
    loads = [
        {
            "requested_rate_per_s": np.inf,
            "max_concurrency": 64,
            "completed": 3000,
            "duration_s": 1202.5,
            "input_tokens": 2_997_000,
            "output_tokens": 3_000_000,
            "ttft_mean": 0.25104,
            "tpot_mean": 0.02535,
        }
    ]
    facts = {"chips": 8, "chip": "v6e", "model": "llama-3.3-70b"}
    row = ask(load, summaries(loads), facts).rows.iloc[0]
    batch = 3000 / 1202.5 * 999 * 0.02535
    least = (70.554e9 * 2 + batch * (999 + 500) * 327_680) / (8 * 1638e9)
    assert row["step_roof_s"] == pytest.approx(least, rel=1e-4)
    assert row["roofline_share"] == pytest.approx(0.52, abs=0.005)


@pytest.mark.parametrize(
    "split", [{"tensor_parallel_size": 4, "data_parallel_size": 2}, {"parallelism": {"data": 2, "tensor": 4}}]
)
def test_each_copy_of_the_weights_reads_its_own(split):
    """Two copies on four chips each that bear a load each are as near their roofline as one with its load; the step was
    said to need half the time, as if each weight were read once for both."""
    one = {
        "requested_rate_per_s": np.inf,
        "max_concurrency": 8,
        "completed": 300,
        "duration_s": 600.0,
        "input_tokens": 300_000,
        "output_tokens": 150_000,
        "ttft_mean": 0.2,
        "tpot_mean": 0.02,
    }
    counts = ("max_concurrency", "completed", "input_tokens", "output_tokens")
    facts = {"chip": "h100", "model": "llama3.1-8b"}
    alone = ask(load, summaries([one]), facts | {"chips": 4, "tensor_parallel_size": 4})
    both = ask(load, summaries([one | {n: 2 * one[n] for n in counts}]), facts | {"chips": 8} | split)
    spread = ask(load, summaries([one]), facts | {"chips": 8, "enable_expert_parallel": True} | split)
    assert both.rows["step_roof_s"].iloc[0] == pytest.approx(alone.rows["step_roof_s"].iloc[0])
    assert any("all weights once in each of 2 copies" in n for n in both.notes)
    assert not any("copies" in n for n in (*alone.notes, *spread.notes))


@pytest.mark.parametrize("rate", [0.2, 4.0, 20.0])
def test_a_request_that_waits_is_in_no_decode_step(rate):
    """At 20 requests a second of an engine that bears 4.5 some 400 are in flight and 33 generate: its steps were said
    to run at 223 % of their roofline."""
    setup = Setup(model=model("llama3.1-8b"), chip=chip("v5e"), weights_precision="int8")
    outcome = simulate(setup, poisson(rate, 500, 1000, 200))
    facts = {"chips": 1, "chip": "v5e", "model": "llama3.1-8b", "precision": "int8", "kv_precision": "bf16"}
    row = ask(load, MemoryTables(made(outcome)), facts).rows.iloc[0]
    steps = outcome.steps[outcome.steps["decode_requests"] > 0]
    batch = np.average(steps["decode_requests"], weights=steps["dur_s"])
    least = (weights_bytes(setup.model, "int8") + batch * 1100 * 131_072) / 819e9
    assert row["step_roof_s"] == pytest.approx(least, rel=0.1) and 0.3 < row["roofline_share"] < 0.7
    assert row["in_flight"] > 5 * batch if rate > 10 else row["in_flight"] < 1.2 * batch


def test_the_roofline_of_a_model_that_is_handed_out_in_four_bits():
    """gpt-oss-120b at 64 in flight on 2 H100 was held against weights in bf16: faster than could be, by three times."""
    loads = [
        {
            "requested_rate_per_s": np.inf,
            "max_concurrency": 64,
            "completed": 1000,
            "duration_s": 100.0,
            "input_tokens": 1_000_000,
            "output_tokens": 1_000_000,
            "ttft_mean": 0.1,
            "tpot_mean": 0.012,
        }
    ]
    facts = {"chips": 2, "chip": "h100", "model": "gpt-oss-120b"}
    told, stated = (
        ask(load, summaries(loads), facts | more).rows["roofline_share"].iloc[0]
        for more in ({}, {"quantization": "mxfp4"})
    )
    assert told == stated and told < 1
    assert ask(load, summaries(loads), facts | {"precision": "bf16"}).rows["roofline_share"].iloc[0] > 2 * told


def test_littles_law_is_held_against_what_was_allowed_and_printed():
    fits = {
        "requested_rate_per_s": np.inf,
        "max_concurrency": 32,
        "completed": 3200,
        "duration_s": 100.0,
        "e2e_mean": 1.0,
    }
    below = {**fits, "max_concurrency": 64}  # a cap that was not reached: nothing is odd about it
    odd = {**fits, "max_concurrency": 16}
    printed = {
        "requested_rate_per_s": 5.0,
        "completed": 500,
        "duration_s": 100.0,
        "e2e_mean": 2.0,
        "concurrency_mean": 9.9,
    }
    result = ask(load, summaries([fits, below, odd, printed]))
    rows = result.rows.set_index("stage")
    assert rows.loc["load 0", "little_difference"] == pytest.approx(0)
    assert rows.loc["load 1", "little_difference"] == pytest.approx(-0.5)
    assert rows.loc["load 3", "in_flight_measured"] == 9.9
    assert [n for n in result.notes if "Little" in n] == [
        "Little's law does not hold for load 2: rate x latency gives 32 requests in flight, the most in flight that "
        "the tool allowed 16 (+100%)."
    ]


def test_little_against_the_engine():
    start, first, end = closed_loop(400, 8, 0.1, 0.01, 100)
    tables = requests(start, first, end, np.full(400, 100))
    engine = {"order": range(6), "running": [0, 8, 7, 8, 8, 0], "waiting": [0, 0, 1, 0, 0, 0]}
    both = MemoryTables({"requests": tables.arrow("requests").to_pydict(), "engine": engine})
    row = ask(load, both).rows.iloc[0]
    assert row["little_from"] == "engine's running and waiting" and row["in_flight_measured"] == 8.0
    assert row["in_flight"] == pytest.approx((end - start).sum() / end.max(), rel=1e-6)


def test_single_requests_are_recomputed_by_load():
    one, two = (closed_loop(200, c, 0.1, 0.01, 50, seed=c) for c in (4, 8))
    shift = 1000.0
    start, first, end = (np.concatenate((a, b + shift)) for a, b in zip(one, two, strict=True))
    tokens = np.full(400, 50)
    rows = ask(load, requests(start, first, end, tokens, stage=["four"] * 200 + ["eight"] * 200)).rows.set_index(
        "stage"
    )
    for name, (s, f, e) in (("four", one), ("eight", two)):
        row = rows.loc[name]
        assert row["ttft_p99_s"] == pytest.approx(np.percentile(f - s, 99), abs=1e-8)
        assert row["tpot_mean_s"] == pytest.approx(((e - f) / 49).mean(), abs=1e-9)
        assert row["e2e_p50_s"] == pytest.approx(np.median(e - s), abs=1e-8)
        assert row["request_rate_per_s"] == pytest.approx(200 / e.max(), abs=1e-6)
        assert row["output_tokens_per_s"] == pytest.approx(200 * 50 / e.max(), abs=1e-4)
        assert row["basis"] == "requests"


def test_the_statement_of_the_tool_counts_where_there_are_no_single_requests():
    tables = summaries(open_loop([20.0, 40.0], capacity=90.0))
    start, first, end = closed_loop(100, 4, 0.1, 0.01, 50)
    alone = requests(start, first, end, np.full(100, 50)).arrow("requests").to_pydict()
    both = MemoryTables({**{n: tables.arrow(n).to_pydict() for n in ("stages", "stage_stats")}, "requests": alone})
    result = ask(load, both)
    assert result.rows["basis"].tolist() == ["printed", "printed"]
    assert any("do not say which load" in n for n in result.notes)


def test_runs_without_loads():
    with pytest.raises(QuestionError, match="no record of single requests|no load test"):
        ask(load, MemoryTables({}))
    trace = MemoryTables({"requests": {"id": ["a"], "arrival_ns": [0], "prompt_tokens": [5]}})
    with pytest.raises(QuestionError, match="trace of traffic"):
        ask(load, trace)
    with pytest.raises(QuestionError, match="no load 'no'"):
        ask(load, summaries(open_loop([1.0], 9.0)), stage="no")


def test_the_answer_is_json():
    for options in ({}, {"ttft_s": 0.1, "usd_per_chip_hour": 2.0, "chips": 3}):
        said = ask(load, summaries(open_loop(RATES, capacity=90.0)), **options).to_dict()
        assert {"loads", "knee", "best", "steady", "notes"} <= set(json.loads(json.dumps(said, allow_nan=False)))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.one_of(st.integers(0, 6), st.none())), max_size=12))
def test_the_front_holds_what_nothing_beats(points):
    a = np.array([p[0] for p in points], dtype=float)
    b = np.array([np.nan if p[1] is None else p[1] for p in points], dtype=float)
    expected = [
        not np.isnan(b[i])
        and not any(
            a[j] <= a[i] and b[j] <= b[i] and (a[j] < a[i] or b[j] < b[i]) for j in range(len(a)) if not np.isnan(b[j])
        )
        for i in range(len(a))
    ]
    assert front(a, b).tolist() == expected


def test_a_load_test_that_answered_nothing_stands_nowhere_on_the_axis():
    lost = {
        "requested_rate_per_s": None,
        "request_rate_per_s": None,
        "duration_s": None,
        "completed": 0,
        "failed": 9,
        "outcome": "failed",
    }
    alone = ask(load, summaries([lost]))
    beside = ask(
        load,
        summaries(
            [{**lost, "completed": 40, "failed": 0, "outcome": "measured", "duration_s": 20.0, "e2e_mean": 0.5}, lost]
        ),
    )
    for result in (alone, beside):
        said = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert said["knee"]["high_load"] is None


def test_requests_that_name_no_load_are_one_beside_those_that_do():
    start, first, end = closed_loop(90, 4, 0.1, 0.01, 50)
    tables = requests(start, first, end, np.full(90, 50), stage=["tried"] * 40 + [None] * 50)
    rows = ask(load, tables).rows.set_index("stage")
    assert rows["completed"].to_dict() == {"tried": 40, "requests of no named load": 50}
