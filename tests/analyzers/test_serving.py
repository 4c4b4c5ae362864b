"""Latency and rates: recomputed from single requests against the engine that made them, else as printed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import latency as serving
from analyzers.serving import load
from analyzers.serving.latency.anatomy import cumulative
from analyzers.time import ledger
from app.questions.latency import words
from errors import QuestionError
from errors.options import parse_options
from runs.run import FactValue
from runs.tables import MemoryTables
from tests.analyzers.served_worlds import START_NS, World, world

S = 1_000_000_000


def ask(tables, **options):
    return serving.analyze(tables, {}, parse_options(serving.OPTIONS, options))


@pytest.fixture(scope="module")
def made() -> World:
    return world(n=240, rate=9, seed=3, fail_every=40, preempt_every=60)


@pytest.fixture(scope="module")
def result(made):
    return ask(made.tables)


def _good(made: World) -> list[int]:
    return [i for i in range(240) if not made.truth["fails"][i]]


def test_counts_and_rates_are_those_of_vllm(made, result):
    good, truth = _good(made), made.truth
    said = result.to_dict()
    assert (said["requests"], said["failed"]) == (240, 6)
    seconds = max(truth["times"][i][-1] for i in good) - truth["arrival"].min()
    tokens, prompts = sum(int(truth["output"][i]) for i in good), sum(int(truth["prompt"][i]) for i in good)
    assert said["duration_s"] == pytest.approx(seconds, abs=1e-8)
    assert said["request_rate_per_s"] == pytest.approx(len(good) / seconds)
    assert said["output_tokens_per_s"] == pytest.approx(tokens / seconds)
    assert said["total_tokens_per_s"] == pytest.approx((tokens + prompts) / seconds)
    assert (said["input_tokens"], said["output_tokens"]) == (prompts, tokens)


def test_latencies_are_those_of_the_requests(made, result):
    truth, good = made.truth, _good(made)
    first = np.array([truth["times"][i][0] - truth["arrival"][i] for i in good])
    whole = np.array([truth["times"][i][-1] - truth["arrival"][i] for i in good])
    tpot = [np.diff(truth["times"][i]).mean() for i in good if truth["output"][i] > 1]
    gaps = np.concatenate([np.diff(truth["times"][i]) for i in good])
    queue = np.array([truth["scheduled"][i] - truth["arrival"][i] for i in good])
    said = result.to_dict()
    for name, values in (("ttft_s", first), ("e2e_s", whole), ("tpot_s", tpot), ("itl_s", gaps), ("queue_s", queue)):
        want = (np.mean(values), *np.percentile(values, [50, 99]))
        assert [said[name][s] for s in ("mean", "p50", "p99")] == pytest.approx(want, rel=1e-6), name
        assert said["basis"][name] == "derived"


def test_the_answer_is_json_without_gaps(result):
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert json.loads(text)["stages"][0]["requests"] == 240


def test_queue_and_prefill_make_up_the_first_token(result):
    rows = result.split
    assert (rows["queue_s"] + rows["prefill_s"]).to_numpy() == pytest.approx(rows["ttft_s"].to_numpy())
    assert rows["requests"].sum() == 234 and rows["share"].iloc[-1] == 1
    assert np.average(rows["ttft_s"], weights=rows["requests"]) == pytest.approx(
        result.load.statistic("ttft_s", "mean")
    )
    assert (np.diff(rows["ttft_s"]) >= 0).all()
    means = [result.load.statistic(n, "mean") for n in ("queue_s", "ttft_s")]
    assert result.queue_share == pytest.approx(means[0] / means[1])


def test_windows_hold_every_request(made, result):
    table = result.windows
    assert table["requests"].sum() == 234 and (table["start_s"].to_numpy()[1:] >= table["end_s"].to_numpy()[:-1]).all()
    last = table.iloc[-1]
    truth = made.truth
    arrived = truth["arrival"] - truth["arrival"].min()
    mine = [truth["times"][i][0] - truth["arrival"][i] for i in _good(made) if arrived[i] >= last["start_s"]]
    assert last["ttft_s_p50"] == pytest.approx(np.median(mine), rel=1e-6)


def test_failures_count_alike_and_lose_their_tokens(made, result):
    table = result.failures
    assert table["error"].tolist() == ["TimeoutError: after # s"] and table["requests"].tolist() == [6]
    lost = int(made.truth["prompt"][made.truth["fails"]].sum())
    assert result.lost_tokens == lost
    every = made.truth["prompt"].sum() + made.truth["output"][~made.truth["fails"]].sum()
    assert result.lost_token_share == pytest.approx(lost / every)


def test_tenants_are_told_apart(made, result):
    table = result.tenants.set_index("tenant")
    assert table["requests"].to_dict() == {"batch": 120, "chat": 120}
    chat = [made.truth["times"][i][0] - made.truth["arrival"][i] for i in _good(made) if i % 2]
    assert table.loc["chat", "ttft_p99_s"] == pytest.approx(np.percentile(chat, 99), rel=1e-6)
    assert not len(ask(world(n=30, tenants=("one",)).tables).tenants)


def test_preempted_requests_stall_and_say_so(made, result):
    causes = result.gaps.causes.set_index("cause")
    assert causes.loc["preempted", "stalls"] == made.truth["preempted"].sum() > 0
    back = set(np.flatnonzero(made.truth["preempted"]).astype(str))
    longest = result.gaps.longest
    assert set(longest.loc[longest["cause"] == "preempted", "id"].str[1:]) == back
    assert (longest.loc[longest["gap_s"] > 0.2, "cause"] == "preempted").all()


def test_a_stall_by_the_prompts_of_others_is_seen_in_the_passes():
    made = world(n=60, rate=1.5, seed=4, chunk=4096)
    found = ask(made.tables).gaps
    passes = made.truth["passes"]
    by_end = {round(s + length, 6): read for s, length, read in passes[:, :3]}
    gaps = [(t, after - t) for times in made.truth["times"] for t, after in zip(times, times[1:], strict=False)]
    far = [by_end[round(t + gap, 6)] > 0 for t, gap in gaps if gap > found.threshold_s]
    assert all(far) and len(far) == found.stalls > 3
    assert found.causes["cause"].tolist() == ["prefill"] and found.causes["stalls"].tolist() == [len(far)]
    tail = [by_end[round(t + gap, 6)] > 0 for t, gap in gaps if gap >= found.p99_s]
    assert found.p99_prefill_share == pytest.approx(np.mean(tail))
    without = [gap for t, gap in gaps if by_end[round(t + gap, 6)] == 0]
    assert found.p99_without_prefill_s == pytest.approx(np.percentile(without, 99), rel=1e-6)
    assert found.prefill_share == pytest.approx(1 - len(without) / len(gaps))


def test_without_passes_no_cause_is_made_up(made):
    found = ask(made.without_passes).gaps
    assert set(found.causes["cause"]) == {"unknown"} and found.p99_prefill_share is None
    assert any("what caused a stall is not told" in n for n in ask(made.without_passes).notes)


def test_the_heat_map_holds_every_gap(made, result):
    heat = result.gaps.heat
    assert heat.counts.sum() == result.gaps.count == sum(max(len(t) - 1, 0) for t in made.truth["times"])
    ends = np.concatenate([np.array(t[1:]) for t in made.truth["times"]]) - made.truth["arrival"].min()
    assert heat.counts.sum(axis=1) == pytest.approx(np.histogram(ends, heat.time_edges_s)[0], abs=1)


def _stages(**columns):
    rows = {
        "stage": ["slow", "fast"],
        "tool": ["vllm_bench"] * 2,
        "order": [0, 1],
        "duration_s": [100.0, 50.0],
        "completed": [100, 200],
        "failed": [1, 0],
        "input_tokens": [1000, 2000],
        "output_tokens": [4000, 9000],
        "request_rate_per_s": [1.0, 4.0],
        "output_tokens_per_s": [40.0, 180.0],
        "outcome": ["measured"] * 2,
        "source": ["a.txt"] * 2,
    } | columns
    stats = [
        ("slow", "ttft", "mean", 0.5),
        ("slow", "ttft", "p50", 0.4),
        ("slow", "ttft", "p99", 2.0),
        ("fast", "ttft", "mean", 0.7),
        ("fast", "tpot", "p99", 0.03),
    ]
    return {
        "stages": rows,
        "stage_stats": dict(
            zip(("stage", "metric", "statistic", "value"), map(list, zip(*stats, strict=True)), strict=True)
        ),
    }


def test_printed_loads_are_not_merged():
    tables = MemoryTables(_stages())
    said = ask(tables).to_dict()
    assert (said["stage"], said["requests"], said["ttft_s"]["mean"], said["tpot_s"]["p99"]) == ("fast", 200, 0.7, 0.03)
    assert said["ttft_s"]["p99"] is None and said["basis"]["ttft_s"] == "measured"
    assert said["total_tokens_per_s"] == pytest.approx(220)
    assert any("cannot be merged" in n and n.endswith(f" {serving.STAGE.chosen}.") for n in said["notes"])
    assert [s["stage"] for s in said["stages"]] == ["slow", "fast"]
    slow = ask(tables, stage="slow").to_dict()
    assert (slow["requests"], slow["failed"], slow["ttft_s"]["p99"]) == (101, 1, 2.0)


def test_an_unknown_load_is_told():
    with pytest.raises(QuestionError, match="slow, fast"):
        ask(MemoryTables(_stages()), stage="none")


def test_a_load_that_answered_nothing_has_no_latency():
    tables = _stages(completed=[0, 200], failed=[50, 0], outcome=["failed", "measured"])
    said = ask(MemoryTables(tables), stage="slow").to_dict()
    assert said["ttft_s"] == {"mean": None, "p50": None, "p99": None} and said["output_tokens_per_s"] is None
    assert (said["requests"], said["failed"]) == (50, 50)


def test_where_how_many_failed_is_not_told_requests_are_those_answered():
    tables = _stages(failed=[None, 0])
    for column, cell in zip(tables["stage_stats"].values(), ("slow", "to_send", "total", 150.0), strict=True):
        column.append(cell)
    slow, fast = (ask(MemoryTables(tables), stage=name) for name in ("slow", "fast"))
    assert (slow.load.requests, slow.load.failed, slow.load.to_send, fast.load.to_send) == (100, None, 150, None)
    assert "Requests are those that were answered, as how many failed is not told" in slow.notes[0]
    assert any("of 150 requests that were to be sent 100 were answered" in note for note in slow.notes)
    assert "all that were sent" in fast.notes[0] and not any("to be sent" in note for note in fast.notes)


def _requests(**more):
    columns = {
        "id": ["a", "b", "c"],
        "arrival_ns": [START_NS, START_NS + S, START_NS + 2 * S],
        "ttft_ns": [S // 2, S // 4, S],
        "e2e_ns": [2 * S, 3 * S, 2 * S],
        "prompt_tokens": [10, 20, 30],
        "output_tokens": [4, 12, 2],
        "status": ["completed"] * 3,
        "stage": ["only"] * 3,
    }
    return columns | more


def test_rates_rest_on_the_printed_duration_unless_requests_span_more():
    stage = {"stage": ["only"], "duration_s": [5.0], "completed": [3], "source": ["x"], "order": [0], "tool": ["t"]}
    said = ask(MemoryTables({"requests": _requests(), "stages": stage})).to_dict()
    assert said["duration_s"] == 5.0 and said["request_rate_per_s"] == pytest.approx(0.6)
    assert said["basis"]["duration_s"] == "measured"
    short = ask(MemoryTables({"requests": _requests(), "stages": stage | {"duration_s": [3.0]}})).to_dict()
    assert short["duration_s"] == pytest.approx(4.0) and short["basis"]["duration_s"] == "derived"


def test_what_requests_do_not_tell_is_taken_as_printed():
    stage = {"stage": ["only"], "duration_s": [5.0], "completed": [3], "source": ["x"], "order": [0], "tool": ["t"]}
    stats = {"stage": ["only"] * 2, "metric": ["itl", "ttft"], "statistic": ["p99"] * 2, "value": [0.25, 9.0]}
    result = ask(MemoryTables({"requests": _requests(stage=[None] * 3), "stages": stage, "stage_stats": stats}))
    said = result.to_dict()
    assert said["itl_s"]["p99"] == 0.25 and said["basis"]["itl_s"] == "measured"
    assert said["ttft_s"]["p99"] == pytest.approx(np.percentile([0.5, 0.25, 1.0], 99))
    assert any("As t printed it" in n and "itl" in n for n in result.notes)


def test_loads_with_single_requests_are_taken_together_without_the_time_between():
    columns = _requests(stage=["one", "one", "two"], arrival_ns=[START_NS, START_NS + S, START_NS + 1000 * S])
    result = ask(MemoryTables({"requests": columns}))
    assert result.load.stage is None and result.load.requests == 3
    assert f"2 loads are taken together, request by request; one of them can be asked for {serving.STAGE.chosen}." in (
        result.notes
    )
    assert result.load.duration_s == pytest.approx(4 + 2)
    assert ask(MemoryTables({"requests": columns}), stage="two").load.requests == 1


def test_times_that_cannot_be_are_named_and_left_out():
    result = ask(MemoryTables({"requests": _requests(e2e_ns=[2 * S, -S, 2 * S])}))
    assert result.load.requests == 3 and result.load.statistic("e2e_s", "mean") == pytest.approx(2.0)
    assert any("its answer took no time" in n and "(b)" in n for n in result.notes)


def test_times_that_cannot_be_are_left_out_also_where_no_request_has_a_name():
    result = ask(MemoryTables({"requests": _requests(id=[None] * 3, e2e_ns=[2 * S, -S, 2 * S])}))
    assert result.load.statistic("e2e_s", "mean") == pytest.approx(2.0)
    assert "1 of 3 requests are left out of the statistics of time: its answer took no time, or less." in result.notes


def test_requests_that_all_failed_have_no_latency():
    result = ask(MemoryTables({"requests": _requests(status=["failed"] * 3)}))
    said = result.to_dict()
    assert said["failed"] == 3 and said["ttft_s"]["mean"] is None and said["output_tokens_per_s"] in (None, 0.0)
    assert any("No request was answered" in n for n in said["notes"])


def test_durations_without_times_of_day_give_latencies_and_no_rates():
    said = ask(MemoryTables({"requests": _requests(arrival_ns=[None] * 3)})).to_dict()
    assert said["ttft_s"]["mean"] == pytest.approx(1.75 / 3) and said["duration_s"] is None
    assert said["request_rate_per_s"] is None


def test_a_trace_of_traffic_and_an_empty_run_are_told():
    with pytest.raises(QuestionError, match="trace of traffic"):
        ask(MemoryTables({"requests": _requests(status=[None] * 3)}))
    with pytest.raises(QuestionError, match="no record of requests"):
        ask(MemoryTables({}))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=1500))
def test_a_reduced_distribution_is_true_at_every_point(values):
    table = cumulative(values)
    known = np.sort(values)
    assert len(table) <= 400 and table["share"].iloc[-1] == 1 and table["value"].iloc[-1] == known[-1]
    for value, share in zip(table["value"], table["share"], strict=True):
        assert (known < value).mean() < share <= (known <= value).mean() + 1e-12


def test_requests_and_loads_without_a_name_are_told_as_such(made):
    """Beside loads that are named; neither "nan" nor "None" is the name of a load."""
    names = [("a", "b", None)[n % 3] for n in range(240)]
    result = ask(MemoryTables({"requests": {**made.requests, "stage": names}}))
    said = [row[0] for row in words.table(result).rows]
    assert {"load a", "load b", "load without a name"} <= set(said)
    rates = {"duration_s": [2.0, 2.0], "output_tokens_per_s": [50.0, 90.0]}
    summed = {"stage": ["a", None], "completed": [10, 20], **rates}
    result = ask(MemoryTables({"stages": summed}))
    assert [load.stage for load in result.loads] == ["a", None] and "load without a name" in str(words.table(result))
    assert any("those of one without a name," in note for note in result.notes)


def test_of_a_sample_of_requests_the_tools_own_totals_stand():
    """46 were answered and one is kept: its numbers are not the load's, but tell what the tool did not print."""
    tables = MemoryTables(
        {
            "requests": {
                "id": ["a"],
                "stage": ["x"],
                "arrival_ns": [0],
                "first_token_ns": [S // 4],
                "last_token_ns": [S],
                "prompt_tokens": [256],
                "output_tokens": [4],
                "status": ["completed"],
            },
            "stages": {
                "stage": ["x"],
                "tool": ["guidellm"],
                "order": [0],
                "duration_s": [30.0],
                "completed": [46],
                "failed": [0],
                "input_tokens": [46 * 256],
                "output_tokens": [46 * 128],
                "outcome": ["measured"],
                "source": ["x"],
            },
            "stage_stats": {
                "stage": ["x"] * 2,
                "metric": ["ttft"] * 2,
                "statistic": ["mean", "p50"],
                "value": [0.0168, 0.0164],
            },
        }
    )
    said = ask(tables).to_dict()
    assert (said["requests"], said["failed"]) == (46, 0)
    assert said["request_rate_per_s"] == pytest.approx(46 / 30)
    assert said["output_tokens_per_s"] == pytest.approx(46 * 128 / 30)
    assert (said["ttft_s"]["mean"], said["ttft_s"]["p50"], said["ttft_s"]["p99"]) == (0.0168, 0.0164, None)
    assert said["tpot_s"]["mean"] == pytest.approx(0.25) and said["basis"]["tpot_s"] == "derived"
    assert any("1 of 46 completed requests are kept" in note for note in said["notes"])
    drawn = load.analyze(tables, {}, parse_options(load.OPTIONS, {})).to_dict()["loads"][0]
    assert drawn["completed"] == 46 and drawn["request_rate_per_s"] == pytest.approx(46 / 30)
    assert drawn["ttft_s"]["mean"] == 0.0168
    held = ledger.analyze(tables, {"chips": FactValue(2, "declared", "x")}, parse_options(ledger.OPTIONS, {})).ledger
    assert held.chip_seconds == pytest.approx(60)  # not the second of the request that is kept


def test_tokens_of_tenants_that_none_tells_are_not_known_to_be_none():
    tables = world(n=30, tenants=("one", "two")).tables
    columns = tables.arrow("requests").drop_columns(["prompt_tokens"]).to_pydict()
    told = ask(MemoryTables({"requests": columns})).to_dict()["tenants"]
    assert [t["prompt_tokens"] for t in told] == [None, None] and all(t["output_tokens"] > 0 for t in told)
