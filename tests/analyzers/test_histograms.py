"""Quantiles from buckets, and what fell into them between two scrapes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving.histograms import UNKNOWN, observed, quantile
from runs.tables import MemoryTables

LE = [0.1, 0.5, 1.0, math.inf]


@pytest.mark.parametrize(
    ("count", "q", "expected"),
    [
        ([0, 10, 20, 20], 0.5, (0.5, 0.1, 0.5)),
        ([0, 10, 20, 20], 0.75, (0.75, 0.5, 1.0)),
        ([0, 10, 20, 20], 0.25, (0.3, 0.1, 0.5)),
        ([10, 10, 20, 20], 0.5, (None, 0.0, 0.1)),
        ([10, 10, 20, 40], 0.99, (None, 1.0, None)),
        ([0, 0, 0, 0], 0.5, UNKNOWN),
        ([5, 4, 6, 6], 0.5, UNKNOWN),
        ([-1, 0, 1, 1], 0.5, UNKNOWN),
    ],
)
def test_quantile(count, q, expected):
    found = quantile(LE, count, q)
    assert (found.value, found.low, found.high) == pytest.approx(expected)


def test_quantiles_of_few_buckets():
    assert quantile([], [], 0.5) == UNKNOWN
    assert quantile([math.inf], [4], 0.5) == (None, None, None)
    assert quantile([-1.0, 1.0], [4, 8], 0.25) == (None, None, -1.0)


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 50), min_size=1, max_size=200), st.floats(0.01, 0.99))
def test_the_true_quantile_lies_between_the_bounds(values, q):
    le = np.array([0.01, 0.1, 1.0, 2.5, 10.0, math.inf])
    count = [(np.array(values) <= b).sum() for b in le]
    found = quantile(le, count, q)
    true = float(np.quantile(values, q, method="inverted_cdf"))
    assert (found.low or 0) <= true and true <= (found.high or math.inf)
    if found.value is not None:
        assert found.low <= found.value <= found.high


def scrapes(*rows, name="x", replica=None):
    """A table from (order, replica, {bound: count}, sum)."""
    flat = [(order, r, le, n, total) for order, r, counts, total in rows for le, n in counts.items()]
    columns = dict(zip(("order", "replica", "le", "count", "total"), zip(*flat, strict=True), strict=True))
    return MemoryTables({"histograms": {**columns, "name": [name] * len(flat), "source": ["a"] * len(flat)}})


def test_what_was_observed_between_scrapes():
    tables = scrapes((0, "0", {1.0: 5, math.inf: 6}, 4.0), (1, "0", {1.0: 9, math.inf: 12}, 10.0))
    found = observed(tables, "old", "x")
    assert (found.name, found.count.tolist(), found.total, found.since_start) == ("x", [4, 6], 6.0, False)
    assert found.mean == 1.0 and found.observations == 6


def test_one_scrape_counts_since_the_process_started():
    found = observed(scrapes((0, None, {1.0: 5, math.inf: 6}, None)), "x")
    assert found.count.tolist() == [5, 6] and found.since_start and found.mean is None


def test_a_restart_begins_all_buckets_anew():
    """After the restart one bucket holds more than before it: only the others show that it began anew."""
    tables = scrapes(
        (0, "0", {1.0: 1, math.inf: 90}, 90.0),
        (1, "0", {1.0: 7, math.inf: 8}, 6.0),
        (2, "0", {1.0: 8, math.inf: 10}, 9.0),
    )
    found = observed(tables, "x")
    assert found.count.tolist() == [8, 10] and found.total == 9.0
    assert "began anew once" in found.notes[0]


def test_replicas_are_added_up_and_bounds_that_differ_left_out():
    tables = scrapes((0, "0", {1.0: 1, 2.0: 2, math.inf: 3}, 1.0), (0, "1", {1.0: 10, 5.0: 20, math.inf: 30}, 10.0))
    found = observed(tables, "x")
    assert found.le.tolist() == [1.0, math.inf] and found.count.tolist() == [11, 33] and found.total == 11.0
    assert "not the same in all scrapes" in found.notes[0]
    assert observed(tables, "x", replica="1").le.tolist() == [1.0, 5.0, math.inf]


def test_bounds_that_change_between_scrapes():
    tables = scrapes((0, "0", {1.0: 1, 2.0: 2, math.inf: 3}, 1.0), (1, "0", {1.0: 4, 3.0: 6, math.inf: 8}, 5.0))
    found = observed(tables, "x")
    assert found.le.tolist() == [1.0, math.inf] and found.count.tolist() == [3, 5] and "2 bounds" in found.notes[0]


def test_none_of_the_names():
    assert observed(MemoryTables({}), "x") is None
    assert observed(scrapes((0, "0", {1.0: 1}, 1.0)), "x", replica="7") is None


def test_a_server_that_was_scraped_once_among_others_that_were_watched_is_left_out():
    twice = scrapes(
        (0, "0", {1.0: 5, math.inf: 6}, 4.0),
        (1, "0", {1.0: 9, math.inf: 12}, 10.0),
        (0, "1", {1.0: 400_000, math.inf: 500_000}, 3e5),
    )
    found = observed(twice, "x")
    assert (found.observations, found.total, found.since_start) == (6, 6.0, False)
    assert any("Scraped once" in n and n.endswith("since their process began.") for n in found.notes)


def test_labels_that_appear_with_their_first_observation_began_from_nothing():
    rows = [
        (0, 'x{reason="a"}', 10),
        (1, 'x{reason="a"}', 14),
        (1, 'x{reason="b"}', 7),
        (2, 'x{reason="a"}', 14),
        (2, 'x{reason="b"}', 9),
    ]
    flat = [(order, name, le, n, float(n)) for order, name, n in rows for le in (1.0, math.inf)]
    columns = dict(zip(("order", "name", "le", "count", "total"), zip(*flat, strict=True), strict=True))
    tables = MemoryTables({"histograms": {**columns, "replica": ["0"] * len(flat), "source": ["a"] * len(flat)}})
    found = observed(tables, "x")
    assert (found.observations, found.total) == (4 + 9, 13.0)
