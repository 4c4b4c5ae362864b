"""What a server tells at /metrics alone: latencies in ranges, tokens in all, waiting by reason."""

import json
import math

import pytest

from analyzers.serving import engine
from analyzers.serving import latency as serving
from analyzers.serving import objectives as slo
from analyzers.serving.exposed import exposed
from app.questions.engine import words as engine_words
from app.questions.latency import words as serving_words
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9
LE = [0.1, 0.25, 0.5, 1.0, math.inf]


def scraped(*names: str, before=(0, 0, 0, 0, 0), after=(10, 50, 90, 99, 100), total=(0.0, 30.0)) -> MemoryTables:
    """Two scrapes ten seconds apart."""
    rows = [
        (EPOCH_NS + 10 * S * at, at, "0", name, le, n, total[at], "m")
        for name in names
        for at, counts in enumerate((before, after))
        for le, n in zip(LE, counts, strict=True)
    ]
    columns = ("ts_ns", "order", "replica", "name", "le", "count", "total", "source")
    times = [EPOCH_NS, EPOCH_NS + 10 * S]
    return MemoryTables(
        {
            "histograms": dict(zip(columns, zip(*rows, strict=True), strict=True)),
            "engine": {
                "ts_ns": times,
                "order": [0, 1],
                "replica": ["0", "0"],
                "running": [3, 3],
                "waiting": [1, 3],
                "prompt_tokens": [100, 900],
                "output_tokens": [0, 400],
                "source": ["m", "m"],
            },
            "scalars": {
                "ts_ns": times * 2,
                "value": [1.0, 2.0, 0.0, 1.0],
                "source": ["m"] * 4,
                "name": [
                    f'vllm:num_requests_waiting_by_reason{{reason="{r}",engine="0"}}'
                    for r in ("capacity", "deferred")
                    for _ in times
                ],
            },
        }
    )


def test_serving_answers_in_ranges():
    tables = scraped("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds")
    result = ask(serving, tables)
    said = result.to_dict()
    assert said["requests"] == 100 and said["ttft_s"]["mean"] == pytest.approx(0.3) and said["ttft_s"]["p50"] is None
    told = said["metrics"]["latency"]["ttft_s"]
    assert (told["p50"], told["p99"]) == ({"low": 0.1, "high": 0.25}, {"low": 0.5, "high": 1.0})
    assert (said["input_tokens"], said["output_tokens"]) == (800, 400)
    assert "TTFT p50 100 ms to 250 ms, p99 500 ms to 1.00 s" in serving_words.verdict(result)
    assert any("250 ms" in str(cell) for row in serving_words.table(result).rows for cell in row)
    json.dumps(said, allow_nan=False)


def test_the_engine_tells_waiting_by_reason():
    result = ask(engine, scraped("sglang:time_to_first_token_seconds"))
    assert result.to_dict()["metrics"]["waiting_by_reason"] == {
        "capacity": {"mean": 1.5, "max": 2.0},
        "deferred": {"mean": 0.5, "max": 1.0},
    }
    rows = dict(engine_words.table(result).rows)
    assert rows["waiting: capacity, mean (most)"] == "1.50 (2)"
    assert rows["TTFT p50, p99 at the server"] == "100 ms to 250 ms, 500 ms to 1.00 s"


def test_histograms_split_by_a_label_are_added_up():
    name = "sglang:time_to_first_token_seconds"
    split = scraped(f'{name}{{is_streaming="true"}}', f'{name}{{is_streaming="false"}}')
    assert exposed(split).latencies["ttft_s"].observations == 200
    of_all = scraped(f'{name}{{priority=""}}', f'{name}{{priority="0"}}')
    assert exposed(of_all).latencies["ttft_s"].observations == 100


def test_histograms_of_engines_of_two_kinds_are_added_up():
    """A vLLM that also tells its older metric, and an SGLang."""
    itl = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
    one = scraped("vllm:e2e_request_latency_seconds", *itl)
    other = scraped("sglang:e2e_request_latency_seconds", after=(0, 0, 0, 150, 200), total=(0.0, 170.0))
    lists, more = (t.arrow("histograms").to_pydict() for t in (one, other))
    more |= {"source": ["sglang"] * len(more["le"]), "replica": [None] * len(more["le"])}
    found = exposed(MemoryTables({"histograms": {n: [*lists[n], *more[n]] for n in lists}}))
    whole = found.latencies["e2e_s"]
    assert found.requests == whole.observations == 300 and whole.mean == pytest.approx(200 / 300)
    assert whole.count.tolist() == [10, 50, 90, 249, 300] and found.latencies["itl_s"].observations == 100
    assert whole.name == "vllm:e2e_request_latency_seconds and sglang:e2e_request_latency_seconds"


def test_objectives_are_kept_by_a_share_between_bounds():
    tables = scraped("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds")
    at_bound = ask(slo, tables, ttft_s=0.5)
    assert (at_bound.attainment, at_bound.attainment_high) == (0.9, 0.9)
    inside = ask(slo, tables, ttft_s=0.3)
    assert (inside.attainment, inside.attainment_high) == (0.5, 0.9)
    both = ask(slo, tables, ttft_s=0.5, e2e_s=0.5)
    assert both.attainment == pytest.approx(0.8) and both.attainment_high == pytest.approx(0.9)
    with pytest.raises(QuestionError, match="no objective"):
        ask(slo, tables)
    with pytest.raises(QuestionError, match="TPOT"):
        ask(slo, tables, tpot_s=0.1)


def test_answers_of_one_token_keep_any_objective_of_the_time_per_token():
    """Of which the histogram of it observes nothing: 900 of 1,000 requests, and half of the others missed it."""
    all_ = scraped("sglang:time_to_first_token_seconds", "sglang:e2e_request_latency_seconds", after=[1000] * 5)
    few = scraped("sglang:time_per_output_token_seconds", after=(0, 50, 50, 99, 100))
    lists, more = (t.arrow("histograms").to_pydict() for t in (all_, few))
    tables = MemoryTables({"histograms": {n: [*lists[n], *more[n]] for n in lists}})
    found = ask(slo, tables, ttft_s=0.1, tpot_s=0.25)
    assert (found.attainment, found.attainment_high) == (pytest.approx(0.95), pytest.approx(0.95))
    assert found.each == {"ttft_s": 1.0, "tpot_s": pytest.approx(0.95)} and found.misses == {"unknown": 50}
    drawn = found.curves[found.curves["objective"] == "tpot_s"]
    assert list(drawn["attainment"]) == pytest.approx([0.9, 0.95, 0.95, 0.999])


def test_engines_that_wait_in_turn_never_wait_together():
    names = [f'vllm:num_requests_waiting_by_reason{{reason="capacity",engine="{e}"}}' for e in (0, 1)]
    times = [EPOCH_NS, EPOCH_NS + 10 * S]
    for ts in (times, [None, None]):
        tables = MemoryTables(
            {
                "scalars": {
                    "ts_ns": [*ts, *ts],
                    "name": [names[0]] * 2 + [names[1]] * 2,
                    "value": [5.0, 0.0, 0.0, 5.0],
                    "source": ["m"] * 4,
                }
            }
        )
        assert exposed(tables).waiting == {"capacity": {"mean": 5.0, "max": 5.0}}


def test_servers_whose_scrapes_lie_in_one_file_wait_together():
    names = [f'vllm:num_requests_waiting_by_reason{{server="server {s}",reason="capacity",engine="0"}}' for s in (1, 2)]
    scalars = {
        "ts_ns": [EPOCH_NS + S * n for n in range(4)],
        "name": names * 2,
        "value": [5.0] * 4,
        "source": ["m"] * 4,
    }
    assert exposed(MemoryTables({"scalars": scalars})).waiting == {"capacity": {"mean": 10.0, "max": 10.0}}
