"""/metrics saved before a load and after it, without times: what came between the two."""

import math

import pytest

from analyzers.serving import engine, latency, prefix_cache
from analyzers.serving.histograms import observed
from analyzers.serving.prefix_cache.measured import measured_prefix
from analyzers.serving.untimed import SINCE_START
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask

TTFT = "vllm:time_to_first_token_seconds"
BEFORE = {"counts": (900, 1000, 1000), "tokens": 100_000, "queries": 1_000_000, "hits": 900_000}
AFTER = {"counts": (900, 1050, 1500), "tokens": 150_000, "queries": 1_500_000, "hits": 900_000}


def saved(files: dict[str, dict], starts: dict[str, float]) -> MemoryTables:
    """One scrape a file, none with a time."""
    each = [
        {"order": 0, "replica": "0", "name": TTFT, "le": le, "count": n, "total": 0.4 * f["counts"][-1], "source": name}
        for name, f in files.items()
        for le, n in zip((0.1, 0.5, math.inf), f["counts"], strict=True)
    ]
    return MemoryTables(
        {
            "engine": {
                "order": [0] * len(files),
                "replica": ["0"] * len(files),
                "running": [0] * len(files),
                "waiting": [0] * len(files),
                "output_tokens": [f["tokens"] for f in files.values()],
                "prefix_queries": [f["queries"] for f in files.values()],
                "prefix_hits": [f["hits"] for f in files.values()],
                "source": list(files),
            },
            "histograms": {c: [row[c] for row in each] for c in each[0]},
            "scalars": {
                "name": ["process_start_time_seconds"] * len(starts),
                "value": list(starts.values()),
                "source": list(starts),
            },
        }
    )


@pytest.mark.parametrize(("first", "second"), [("before.txt", "later.txt"), ("metrics_start.txt", "metrics_end.txt")])
def test_what_came_between_two_scrapes_is_subtracted(first, second):
    run = saved({second: AFTER, first: BEFORE}, {first: 1.7e9, second: 1.7e9})
    found = observed(run, TTFT)
    assert found is not None and found.count.tolist() == [0, 50, 500] and found.total == pytest.approx(200)
    assert (measured_prefix(run).hit_rate, measured_prefix(run).tokens) == (0.0, 500_000)
    said = ask(latency, run).to_dict()
    assert (said["requests"], said["output_tokens"]) == (500, 50_000)
    assert ask(engine, run).replicas == ("0",)
    assert SINCE_START not in [*ask(latency, run).notes, *ask(prefix_cache, run).notes]


def test_three_scrapes_are_put_in_order():
    between = {"counts": (900, 1010, 1100), "tokens": 110_000, "queries": 1_100_000, "hits": 900_000}
    run = saved({"1": AFTER, "2": BEFORE, "3": between}, {"1": 1.7e9, "2": 1.7e9, "3": 1.7e9})
    found = observed(run, TTFT)
    assert found is not None and found.count.tolist() == [0, 50, 500]
    assert ask(engine, run).samples == 3


@pytest.mark.parametrize(
    ("starts", "after"),
    [
        ({"a": 1.7e9, "b": 1.8e9}, AFTER),  # it was started again, or is another
        ({}, AFTER),
        ({"a": 1.7e9, "b": 1.7e9}, {**AFTER, "hits": 800_000}),  # two that were started at once
    ],
)
def test_scrapes_of_two_servers_are_added_up(starts, after):
    run = saved({"a": BEFORE, "b": after}, starts)
    found = observed(run, TTFT)
    assert found is not None and found.count.tolist() == [1800, 2050, 2500]
    assert ask(engine, run).replicas == ("a 0", "b 0")
    assert SINCE_START in ask(latency, run).notes and SINCE_START in ask(prefix_cache, run).notes
