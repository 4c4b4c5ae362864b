"""Prompt tokens read are those that were computed, whichever input tells of them; what is not told is said."""

import pytest

from analyzers.serving import engine
from analyzers.serving.exposed import exposed
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask
from tests.analyzers.test_engine import sampled
from tests.analyzers.test_exposed import scraped
from tests.collectors.scrapes import engine as engine_rows
from tests.collectors.scrapes import metrics

# Every 10 s: prompts of so many tokens were read, of which so many had been found.
WHOLE, FOUND = [1000, 3000, 0, 2000], [600, 2500, 0, 1400]
READ_PER_S = (sum(WHOLE) - sum(FOUND)) / 40


def so_far(amounts, begin=0):
    return [begin + sum(amounts[:n]) for n in range(len(amounts) + 1)]


def asked(facts=None, **columns):
    n = len(next(iter(columns.values())))
    return ask(engine, sampled([4] * n, [0] * n, **columns), facts or {})


SGLANG_LOG = {
    "prompt_tokens": so_far([w - f for w, f in zip(WHOLE, FOUND, strict=True)]),
    "prefix_hits": so_far(FOUND),
    "prefix_queries": so_far(WHOLE),
    "output_tokens_per_s": [10.0] * 5,
}
SCRAPES = {
    "prompt_tokens": so_far(WHOLE, 700),
    "prefix_hits": so_far(FOUND, 90),
    "output_tokens": so_far([5] * 4),
}
EARLY = {**SCRAPES, "prefix_hits": so_far([FOUND[0] + FOUND[1], 0, FOUND[2] + FOUND[3], 0], 90)}
BY_SOURCE = {
    **SCRAPES,
    "prefix_hits": so_far([30 * f for f in FOUND]),  # looked up anew at each turn while a request waits
    "computed_tokens": so_far([w - f for w, f in zip(WHOLE, FOUND, strict=True)], 55),
}


@pytest.mark.parametrize("columns", [SGLANG_LOG, SCRAPES, EARLY, BY_SOURCE], ids=["log", "scrapes", "early", "split"])
def test_one_load_is_read_alike_by_all_that_tell_of_it(columns):
    result = asked(**columns)
    given = 50 if columns is SGLANG_LOG else 40  # the first line of a log stands for a time of its own
    assert result.figures["prefilled_tokens_per_s"] == pytest.approx(READ_PER_S * 40 / given)
    assert not any("whole prompts" in note for note in result.notes)


def test_it_is_said_where_what_was_found_is_not_counted():
    result = asked(prompt_tokens=so_far(WHOLE), output_tokens=so_far([5] * 4))
    assert result.figures["prefilled_tokens_per_s"] == pytest.approx(sum(WHOLE) / 40)
    assert any("whole prompts" in n and "/metrics does not tell" in n for n in result.notes)
    more = asked(
        prompt_tokens=so_far(WHOLE), prefix_hits=so_far([30 * f for f in FOUND]), output_tokens=so_far([5] * 4)
    )
    assert more.figures["prefilled_tokens_per_s"] == pytest.approx(sum(WHOLE) / 40)
    assert any("/metrics does not tell" in n for n in more.notes)


@pytest.mark.parametrize(
    ("version", "rate", "said"),
    [
        ("0.15.1", 0.4, "vLLM 0.15.1 prints no other rate."),
        (None, 0.4, "the log does not tell its version"),
        ("0.22.1", 0.4, None),
        ("1.0.0", 0.4, None),
        ("0.15.1", 0.0, None),
    ],
)
def test_what_vllms_log_prints_is_said_by_its_version(version, rate, said):
    facts = {"engine": "vllm", **({"engine_version": version} if version else {})}
    columns = {"prompt_tokens_per_s": [100.0] * 4, "output_tokens_per_s": [5.0] * 4, "prefix_hit_rate": [rate] * 4}
    notes = [n for n in asked(facts, **columns).notes if "whole prompts" in n]
    assert [said in n for n in notes] == ([True] if said else [])


def test_metrics_tell_tokens_read_and_of_whole_prompts():
    tables = scraped("vllm:e2e_request_latency_seconds")
    there = {name: tables.arrow(name).to_pydict() for name in ("histograms", "engine", "scalars")}
    tables = MemoryTables({**there, "engine": {**there["engine"], "prefix_hits": [50, 350]}})
    told = exposed(tables)
    assert told is not None and (told.prompt_tokens, told.to_dict()["prefilled_tokens"]) == (800, 500)


def test_vllms_tokens_by_source(tmp_path):
    who = 'engine="0",model_name="m"'
    [row] = engine_rows(
        metrics(
            tmp_path,
            f"vllm:prompt_tokens_total{{{who}}} 900\n"
            f'vllm:prompt_tokens_by_source_total{{{who},source="local_compute"}} 300\n'
            f'vllm:prompt_tokens_by_source_total{{{who},source="local_cache_hit"}} 600\n',
        )
    )
    assert (row["prompt_tokens"], row["computed_tokens"]) == (900, 300)
