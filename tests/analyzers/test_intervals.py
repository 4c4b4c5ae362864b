"""Interval algebra against a second-by-second count."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from analyzers.intervals import Spans, common, idle, joined, length, outside, overlap_with, paint, spans, union
from analyzers.intervals import pairs as listed

pairs = st.lists(st.tuples(st.integers(-20, 60), st.integers(-20, 60)), max_size=12)


def build(list_of_pairs):
    return spans([a for a, _ in list_of_pairs], [b for _, b in list_of_pairs])


def instants(list_of_pairs):
    return {t for a, b in list_of_pairs for t in range(a, b)}


@example([(0, 5), (5, 9)])
@given(pairs)
def test_union_covers_the_same_instants_in_disjoint_order(p):
    u = union(build(p))
    assert instants(zip(u.start.tolist(), u.end.tolist(), strict=True)) == instants(p)
    assert (u.start[1:] > u.end[:-1]).all()
    assert length(build(p)) == len(instants(p))


@given(st.lists(st.tuples(st.integers(1, 4), pairs), max_size=5))
def test_painting_closes_and_the_last_layer_wins(layers):
    painting = paint(0, 40, [(label, build(p)) for label, p in layers])
    expected = dict.fromkeys(range(40), 0)
    for label, p in layers:
        for t in instants(p) & set(expected):
            expected[t] = label
    amounts = painting.amounts(5)
    assert amounts.sum() == 40
    assert [list(expected.values()).count(label) for label in range(5)] == amounts.tolist()
    for label in range(5):
        found = painting.spans(label)
        here = {t for t, value in expected.items() if value == label}
        assert instants(zip(found.start.tolist(), found.end.tolist(), strict=True)) == here


@example([(0, 5), (7, 9)], [(0, 20), (8, 20)])
@given(pairs, pairs)
def test_overlap_with_windows(p, windows):
    w = build(windows)
    expected = [len(instants(p) & set(range(a, b))) for a, b in zip(w.start.tolist(), w.end.tolist(), strict=True)]
    assert overlap_with(build(p), w).tolist() == expected


def test_empty_span_and_no_layers():
    assert paint(5, 5, []).amounts(1).sum() == 0
    assert (paint(5, 5, [], ground=3).edges.tolist(), paint(5, 5, [], ground=3).label.tolist()) == ([5, 5], [3])
    assert paint(0, 7, []).amounts(1).tolist() == [7]
    assert length(joined([])) == 0


def test_nanoseconds_of_today_stay_exact():
    start = 1_767_571_200_000_000_000
    painting = paint(start, start + 10**15 + 1, [(1, spans([start + 3], [start + 4]))])
    assert painting.amounts(2).tolist() == [10**15, 1]
    assert painting.edges.dtype == np.int64


def test_intervals_without_length_are_left_out():
    kept = spans([1, 5, 9], [1, 4, 10])
    assert (kept.start.tolist(), kept.end.tolist()) == ([9], [10])


@example([(5, 9)], [(0, 5), (9, 12)])  # they touch: nothing lies in both
@given(pairs, pairs)
def test_what_lies_in_both_is_told_piece_by_piece_with_its_owner(p, q):
    x, y = union(build(p)), union(build(q))
    expected = [
        (max(a, c), min(b, d), i)
        for i, (a, b) in enumerate(zip(x.start.tolist(), x.end.tolist(), strict=True))
        for c, d in zip(y.start.tolist(), y.end.tolist(), strict=True)
        if max(a, c) < min(b, d)
    ]
    found, owner = common(x, y)
    assert list(zip(found.start.tolist(), found.end.tolist(), owner.tolist(), strict=True)) == expected


@given(pairs)
def test_pairs_are_every_place_from_the_first_on_in_order(p):
    i, j = listed(np.array([a for a, _ in p], dtype=np.int64), np.array([b for _, b in p], dtype=np.int64))
    expected = [(k, at) for k, (a, b) in enumerate(p) for at in range(a, b)]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected


@given(pairs, pairs)
def test_what_lies_in_one_and_not_in_the_other_is_every_such_instant(p, q):
    left = outside(build(p), build(q))
    assert instants(zip(left.start.tolist(), left.end.tolist(), strict=True)) == instants(p) - instants(q)
    assert (left.start[1:] >= left.end[:-1]).all()


@example([(0, 5), (5, 9)], [0, 4, 12])
@given(pairs, st.lists(st.integers(-20, 60), max_size=8, unique=True))
def test_idle_is_told_window_by_window(p, edges):
    edges = sorted(edges)
    windows = Spans(np.array(edges[:-1], dtype=np.int64), np.array(edges[1:], dtype=np.int64))
    free = idle(build(p), windows)
    expected = []
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        lacking = sorted(set(range(start, end)) - instants(p))
        expected += [t for t in lacking if t == start or t - 1 not in lacking]
    assert free.start.tolist() == expected
    whole = set(range(edges[0], edges[-1])) - instants(p) if edges else set()
    assert instants(zip(free.start.tolist(), free.end.tolist(), strict=True)) == whole
    assert int((free.end - free.start).sum()) == len(whole)


def test_spans_without_empty_ones_are_the_arrays_that_are_given():
    start, end = np.array([1, 5]), np.array([3, 9])
    assert spans(start, end).start is start
    assert spans(start, np.array([3, 5])).end.tolist() == [3]
