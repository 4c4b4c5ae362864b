"""Requests that are carried along together are served as when the scheduler sees to each, to the last bit.

Gaps are kept request by request, so that asking for them has the scheduler see to each.
"""

from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import closed, gamma, poisson

ONE = Setup(model=model("llama3.1-8b"), chip=chip("h100"))
WINDOWS = Setup(model=model("gpt-oss-20b"), chip=chip("h100"))  # half of its layers look back 128 tokens
COMMON = gamma(10, 2, 400, 1000, 100, 600)


def mixed(requests, rate):
    rng = np.random.default_rng(3)
    return replace(
        poisson(rate, requests, 10, 10), prompt=rng.integers(5, 3000, requests), output=rng.integers(1, 600, requests)
    )


CASES = {
    "mixed": (ONE, mixed(400, 8)),
    "windows": (WINDOWS, mixed(400, 8)),
    "too many": (WINDOWS, mixed(400, 80)),
    "little cache": (replace(ONE, cache_tokens=12_000), mixed(300, 20)),
    "little cache, windows": (replace(WINDOWS, cache_tokens=12_000), mixed(300, 20)),
    "pages of one token, few seats": (
        replace(WINDOWS, cache_tokens=9000, page_tokens=1, max_sequences=40, token_budget=300),
        mixed(200, 20),
    ),
    "not asynchronous": (replace(ONE, chips=3, replicas=3, tensor=1, asynchronous=False), mixed(400, 30)),
    "prefix": (replace(ONE, token_budget=512), COMMON),
    "caches sent along": (ONE, replace(COMMON, own_cache=True, cached=COMMON.prompt - 1)),
    "in flight": (ONE, closed(64, 300, 500, 200)),
    "in flight over replicas": (replace(ONE, chips=3, replicas=3, tensor=1), closed(10, 200, 500, 200)),
    "in flight over replicas, not alike": (
        replace(WINDOWS, chips=2, replicas=2, tensor=1, asynchronous=False),
        replace(mixed(200, 8), concurrency=5),
    ),
    "one token": (ONE, gamma(20, 2, 300, 1000, 1)),
    "tokens that no client sees": (replace(WINDOWS, silent_tokens=3), mixed(300, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_together_as_one_by_one(name):
    setup, traffic = CASES[name]
    routing = "least_loaded" if setup.replicas > 1 else "round_robin"
    each = simulate(setup, traffic, routing=routing, gaps=True)
    recorded, plain = (simulate(setup, traffic, routing=routing, record=r) for r in (True, False))
    assert recorded.requests.equals(each.requests) and plain.requests.equals(each.requests)
    assert recorded.steps.equals(each.steps)
    assert np.array_equal(np.sort(plain.late_gaps_s), np.sort(each.late_gaps_s))
    assert plain.part_s == pytest.approx(each.part_s, rel=1e-9)
    if "cache" in name and "sent" not in name:
        assert each.requests["preemptions"].sum() > 50
