"""Samples in bursts, lines of one second, and gaps of which nothing is known."""

import pytest

from analyzers.serving import engine
from analyzers.serving.in_engine import presence, told_of
from analyzers.serving.load import _engine_level
from analyzers.serving.speculation import _batch
from app.questions.ledger import words as said
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask
from tests.analyzers.test_serving_ledger import ask as ask_ledger

S = 10**9


def sglang(whole_seconds: bool) -> MemoryTables:
    """24 times 5 s: 8 batches of 500 prompt tokens 20 ms apart, then 4 lines of decoding at 1,000 tokens/s."""
    lines, prompt = [], 0
    for n in range(24):
        for i in range(8):
            prompt += 500
            lines.append((5 * n + 0.02 * i, 20, 7 - i, prompt, None))
        lines += [(5 * n + 1.2 * j, 28, 0, prompt, 1000.0) for j in range(1, 5)]
    at, running, waiting, tokens, rate = zip(*lines, strict=True)
    return MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + (int(t) * S if whole_seconds else round(t * S)) for t in at],
                "order": range(len(at)),
                "running": running,
                "waiting": waiting,
                "prompt_tokens": tokens,
                "output_tokens_per_s": rate,
                "source": ["sglang.log"] * len(at),
            }
        }
    )


@pytest.mark.parametrize("whole_seconds", [False, True])
def test_a_log_with_bursts_of_prompts_tells_its_rates(whole_seconds):
    result = ask(engine, sglang(whole_seconds))
    assert result.figures["generated_tokens_per_s"] == pytest.approx(1000)
    assert result.figures["prefilled_tokens_per_s"] == pytest.approx(800, rel=0.01)
    w = result.windows
    prompt = (w["prompt_tokens_per_s"] * w["dt_s"]).sum()
    assert prompt == pytest.approx(500 * 8 * 24, rel=0.05)  # those of the first moment are of no known time
    assert not any("is not known" in n and "between samples" in n for n in result.notes)


def steady_sglang(every: int, pause_s: int = 0) -> MemoryTables:
    """300 s in lines of whole seconds: a batch of 100 prompt tokens each second, behind it each `every` seconds a line
    of decoding at 1,000 tokens/s. After 100 s a pause."""
    lines = []
    for t in range(1, 301):
        lines.append((t, 4, 100 * t, None))
        lines += [(t, 20, 100 * t, 1000.0)] if t % every == 0 else []
    at, running, tokens, rate = zip(*lines, strict=True)
    return MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + (t + pause_s * (t > 100)) * S for t in at],
                "order": range(len(at)),
                "running": running,
                "waiting": [0] * len(at),
                "prompt_tokens": tokens,
                "output_tokens_per_s": rate,
                "source": ["sglang.log"] * len(at),
            }
        }
    )


@pytest.mark.parametrize("every", [1, 3, 10])
def test_a_rate_is_of_the_time_since_it_was_last_printed(every):
    """Lines of prompts stand between, and in the second of the line that prints it."""
    result = ask(engine, steady_sglang(every))
    assert result.figures["generated_tokens_per_s"] == pytest.approx(1000)
    assert result.figures["prefilled_share"] == pytest.approx(100 / 1100, rel=0.03)
    assert result.windows["prompt_share"].mean() == pytest.approx(100 / 1100, rel=0.03)
    assert result.figures["prefill_heavy_share"] == 0


def test_a_rate_is_not_of_the_time_before_a_gap():
    result = ask(engine, steady_sglang(300, pause_s=100_000))
    assert result.windows["output_tokens_per_s"].notna().sum() == 199  # those after the pause but its first


def test_lines_that_stand_for_no_time_count_for_none():
    """Of the load's level and of the batch that drafts are judged by: a line of prompts says 4 run, and half of all
    lines are one."""
    tables = steady_sglang(1)
    assert _engine_level(tables) == pytest.approx(4, abs=0.1) and _batch(tables) == pytest.approx(4, abs=0.1)


def test_waiting_in_bursts_is_waiting_for_their_time_alone():
    assert ask(engine, sglang(False)).figures["waiting_share"] == pytest.approx(0.07, abs=0.01)


def test_a_rate_after_a_long_gap_is_not_spread_over_it():
    at = [0, 10, 20, 30, 1000, 1010]
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + s * S for s in at],
                "order": range(6),
                "running": [1] * 6,
                "waiting": [0] * 6,
                "preemptions": [0] * 6,
                "prompt_tokens_per_s": [5.0] * 6,
                "output_tokens_per_s": [100.0] * 6,
            }
        }
    )
    assert ask(engine, tables).figures["generated_tokens_per_s"] == pytest.approx(
        100
    )  # a counter of preemptions or not


def scraped_with_a_gap() -> MemoryTables:
    """Every 10 s for 100 s, idle at the end; nothing for an hour, in which 360,000 tokens came; 100 s more."""
    at = [*range(0, 101, 10), *range(3700, 3801, 10)]
    return MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + t * S for t in at],
                "order": range(22),
                "waiting": [0] * 22,
                "running": [10] * 6 + [0] * 5 + [10] * 11,
                "source": ["a.prom"] * 22,
                "output_tokens": [1000 * min(n, 5) + (n > 10) * (360_000 + 1000 * (n - 11)) for n in range(22)],
            }
        }
    )


def test_an_hour_without_scrapes_is_no_idle_hour():
    tables = scraped_with_a_gap()
    result = ask_ledger(
        {
            "engine": {
                k: tables.arrow("engine", [k])[k].to_pylist()
                for k in ("ts_ns", "order", "waiting", "running", "source", "output_tokens")
            }
        },
        {"chips": 1},
    )
    assert result.ledger.amount("no_requests") == pytest.approx(50)
    assert result.ledger.amount("unattributed") == pytest.approx(3750)
    text = said.verdict(result)
    assert "nothing tells whether requests were in the engine" in text
    assert any("gaps of 3,590 s in all" in n for n in result.notes)


def test_a_gap_is_seen_of_neither_server_nor_its_requests():
    found = presence(None, scraped_with_a_gap(), EPOCH_NS, EPOCH_NS + 3800 * S, [])
    assert [int(x) for x in (found["engine"].seen.end - found["engine"].seen.start) // S] == [110, 100]
    assert len(told_of(found)) == 1


def test_the_silence_of_an_idle_log_is_idle():
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + t * S for t in (0, 10, 20, 3600, 3610)],
                "order": range(5),
                "waiting": [0] * 5,
                "running": [1, 1, 0, 1, 1],
                "prompt_tokens_per_s": [5.0, 5.0, 0.0, 5.0, 5.0],
                "output_tokens_per_s": [9.0, 9.0, 0.0, 9.0, 9.0],
                "source": ["vllm.log"] * 5,
            }
        }
    )
    found = presence(None, tables, EPOCH_NS, EPOCH_NS + 3610 * S, [])["engine"]
    assert (found.seen.end - found.seen.start).sum() == 3610 * S and not len(found.unsampled.start)
    assert (found.busy.end - found.busy.start).sum() == 30 * S


def test_lines_of_a_log_from_before_and_after_scrapes_tell_no_usual_gap():
    """Of a log in lines of 10 s one is left before and one after five minutes of scrapes: 100 tokens/s, 4 at a time."""
    log, scraped = range(0, 320, 10), range(5, 310, 15)
    tables = MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + t * S for t in (*log, *scraped)],
                "order": [*range(len(log)), *range(len(scraped))],
                "running": [4] * (len(log) + len(scraped)),
                "waiting": [0] * (len(log) + len(scraped)),
                "output_tokens": [None] * len(log) + [100 * t for t in scraped],
                "output_tokens_per_s": [100.0] * len(log) + [None] * len(scraped),
                "source": ["vllm.log"] * len(log) + ["m.prom"] * len(scraped),
            }
        }
    )
    result = ask(engine, tables)
    assert result.replicas == ("m.prom",) and result.span_s == pytest.approx(310 + 15)
    assert result.figures["generated_tokens_per_s"] == pytest.approx(100, rel=0.06)
