"""Iterations that two logs of one server hold count once, whoever reads them."""

import numpy as np
import pytest

from analyzers.serving import engine
from analyzers.serving.engine.iterations import iterations
from analyzers.serving.kv_cache.run import measured
from analyzers.serving.recorded import recorded
from analyzers.serving.speculation.data import observed
from analyzers.serving.work import passes
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

RNG = np.random.default_rng(7)
COUNT = 300
DURATIONS = RNG.integers(20, 60, COUNT) * 10**6


def passed(source: str, first: int, last: int, durations: np.ndarray = DURATIONS, **more) -> dict[str, list]:
    """Iterations of one log, `first` to before `last`, back to back."""
    some = slice(first, last)
    n = last - first
    start = EPOCH_NS + np.cumsum(durations) - durations
    rows = {
        "order": range(first, last),
        "replica": ["0"] * n,
        "start_ns": start[some],
        "dur_ns": durations[some],
        "prefill_tokens": [0] * n,
        "decode_requests": [32] * n,
        "decode_tokens": [32] * n,
        "drafted_tokens": [10] * n,
        "accepted_tokens": [5] * n,
        "preempted": [1] * n,
        "source": [source] * n,
    }
    return {k: [v if isinstance(v, str) else int(v) for v in values] for k, values in rows.items()} | more


def tables(*logs: dict[str, list]) -> MemoryTables:
    return MemoryTables({"iterations": {k: [v for log in logs for v in log[k]] for k in logs[0]}})


@pytest.mark.parametrize(
    "logs",
    [
        (passed("a", 0, 150), passed("b", 0, 300)),
        (passed("a", 0, 300), passed("b", 0, 300)),
        (passed("a", 0, 200), passed("b", 100, 300)),
        (passed("a", 0, 300), passed("b", 100, 200)),
        (passed("a", 0, 100), passed("b", 0, 200), passed("c", 0, 300)),
        (passed("a", 0, 150, start_ns=[None] * 150), passed("b", 0, 300, start_ns=[None] * 300)),
    ],
    ids=["fetched twice", "copied", "rotated", "a part", "fetched three times", "without times"],
)
def test_passes_that_two_logs_hold_count_once(logs):
    run = tables(*logs)
    rows, notes = recorded(run, ["preempted"])
    assert len(rows) == rows["order"].nunique() == COUNT and rows["replica"].nunique() == 1
    assert all("count once" in note for note in notes) and len(notes) == len(logs) - 1
    seen = observed(run, None, None)
    assert len(iterations(run, None)[0]) == COUNT
    assert seen is not None and (seen.drafted, seen.accepted) == (3000, 1500)
    assert measured(run, {}).preemptions == COUNT
    result = ask(engine, run)
    assert result.samples == COUNT and set(notes) <= set(result.notes)


def test_the_time_of_a_server_is_not_shared_with_its_copy():
    whole, twice = (
        passes(tables(*logs)) for logs in ((passed("b", 0, 300),), (passed("a", 0, 150), passed("b", 0, 300)))
    )
    assert [len(p.start) for p in twice] == [len(p.start) for p in whole] == [COUNT]


def test_two_servers_are_two():
    """Of one name, at once; also where both hold one pace, so that each pass of one is like one of the other."""
    steady = np.full(COUNT, 30 * 10**6)
    for other in (RNG.integers(20, 60, COUNT) * 10**6, steady):
        mine = DURATIONS if other is not steady else steady
        rows, notes = recorded(tables(passed("a", 0, 300, mine), passed("b", 0, 300, other)), [])
        assert len(rows) == 2 * COUNT and not notes and rows["replica"].nunique() == 2


def test_a_server_that_started_again_counts_its_passes_from_zero():
    later = [n + 10**12 for n in passed("b", 0, 300)["start_ns"]]
    rows, notes = recorded(tables(passed("a", 0, 300), passed("b", 0, 300, start_ns=later)), [])
    assert len(rows) == 2 * COUNT and not notes and rows["replica"].nunique() == 1
