"""The prefix cache page: of a trace, of an engine that only counts, of a run that tells nothing."""

import pytest

from analyzers.serving.prefix_cache import ENOUGH
from app.questions.prefix_cache.figure import by_size, over_time, reuse, tenants
from app.questions.prefix_cache.words import table, verdict
from tests.analyzers.test_prefix import S, asked
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

PAGE = "questions/prefix_cache/page.py"
PROMPTS = [[1, 2, 3], [4, 5, 6], [1, 2, 7], [4, 5, 6], [1, 2, 3]]
TRACE = {
    "requests": {
        "id": list("abcde"),
        "hash_ids": PROMPTS,
        "arrival_ns": [i * 7 * S for i in range(5)],
        "prompt_tokens": [1536, 1500, 1530, 1500, 1536],
        "tenant": ["x", "y", "x", "y", ODD],
    }
}
COUNTED = {
    "engine": {"ts_ns": [1, 2, 3], "order": [0, 1, 2], "prefix_hits": [0, 40, 90], "prefix_queries": [0, 100, 200]}
}


def test_verdicts():
    text = verdict(asked(TRACE, {"model": "llama-3.1-8b"}, blocks=4)).whole
    assert "Of the tokens of 5 prompts, 53.38 % could be found by a cache without end" in text
    assert f"reach {ENOUGH * 100:.0f} % of that. A cache of 268 MB (4 blocks), asked for, would find 20.2 %." in text
    assert "of the FLOPs of reading prompts" in text
    assert verdict(asked(COUNTED)) == "The engine's prefix cache found 45.0 % of the prompt tokens."
    once = {"requests": {"id": ["a"], "hash_ids": [[1, 2]]}}
    assert verdict(asked(once)) == "No block of 1 request comes twice: no prefix cache would find anything."


def test_figures_hold_the_numbers():
    result = asked(TRACE, {"model": "llama-3.1-8b"}, blocks=4)
    line = by_size(result).data[0]
    found = 2 * 512 + 1499 + 1535  # of 7,602 tokens: two blocks, and two prompts whole but for their last token
    assert line.y[-1] == pytest.approx(found / 7602 * 100)
    assert line.x[-1] == pytest.approx(7 * 512 * 131072 / 1e6)
    assert sum(reuse(result).data[0].y) == pytest.approx(100)
    found, more = tenants(result).data
    assert [f + m for f, m in zip(found.x, more.x, strict=True)] == pytest.approx(
        [100 * r for r in result.tenants["infinite_hit_rate"]]
    )
    assert "<" not in "".join(found.y).replace("&lt;", "")
    assert list(over_time(asked(COUNTED)).data[0].y) == pytest.approx([40, 50])
    assert reuse(asked(COUNTED)) is None and over_time(result) is None and tenants(asked(COUNTED)) is None


def test_tables():
    assert table(asked(TRACE)).head == ("blocks", "size", "tokens found")
    assert table(asked(COUNTED)).rows[0] == ("0 s", "40.0 %")


def test_the_page_of_a_trace(place):
    run = made_runs.write(place.store, "trace", TRACE, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "53.38 % could be found" in words(at)
    at.number_input(key="pick_blocks").set_value(3).run()
    assert at.query_params["blocks"] == "3" and "3 blocks, asked for, would find" in words(at)
    at.selectbox(key="pick_model").set_value("llama3.1-8b").run()
    assert not at.exception and "201 MB (3 blocks)" in words(at)


def test_replicas_can_be_asked_as_one(place):
    tables = {"requests": TRACE["requests"] | {"replica": ["r0", "r1", "r1", "r0", "r1"]}}
    run = made_runs.write(place.store, "two replicas", tables, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert "Each of 2 replicas has a cache of its own" in words(at) and "13.47 %" in words(at)
    at = opened(PAGE, run=run.run_id, caches="shared")
    assert not at.exception and "53.38 %" in words(at)


def test_the_page_of_counters_alone_says_what_would_bring_the_rest(place):
    run = made_runs.write(place.store, "counted", COUNTED, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception
    assert "found 45.0 % of the prompt tokens" in words(at) and "hash_ids" in words(at)


def test_a_run_that_tells_nothing_is_told_kindly(place):
    run = made_runs.write(place.store, "empty", {"requests": {"id": ["a"]}}, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "tells nothing of a prefix cache" in words(at)


@pytest.mark.parametrize("address", [{"blocks": "0"}, {"blocks": "x"}, {"model": "no-such"}, {"caches": "many"}])
def test_an_address_that_cannot_be_falls_back(place, address):
    run = made_runs.write(place.store, "trace", TRACE, {}, kind="serving")
    at = opened(PAGE, run=run.run_id, **address)
    assert not at.exception and not at.warning
