"""Where two timelines lie over one another: at a step of both, else at their first events."""

import pytest

from analyzers.timeline import timeline
from analyzers.timeline.beside import ASKED, BEGINNINGS, COMMON, SETTLED, Side, meeting
from errors import QuestionError
from runs.tables import MemoryTables

S = 1_000_000_000
T0 = 1_760_000_000 * S


def side(name: str, first: int, count: int, began: int = T0, took_s: float = 2.0, warm: int = 0) -> Side:
    """Steps one after the other; the first `warm` of them, and the first of all, take thrice as long."""
    took = [int((3 if n <= warm else 1) * took_s * S) for n in range(count)]
    start = [began + sum(took[:n]) for n in range(count)]
    steps = {"step": list(range(first, first + count)), "attempt": [0] * count, "start_ns": start, "dur_ns": took}
    tables = MemoryTables({"steps": {**steps, "order": list(range(count))}})
    return Side(name, timeline(tables, {}), tables, {})


def at(one: Side, tick: int) -> int:
    """In ns since 1970."""
    return one.of.origin_ns + tick * one.of.tick_ps // 1_000


def test_the_first_settled_step_of_both_is_where_they_lie_over_one_another():
    a, b = side("a", 0, 40), side("b", 5, 40, T0 + 9_999 * S, 0.5)
    met = meeting(a, b)
    assert (met.step, met.why) == (6, SETTLED)  # 5 is the first of b's attempt
    assert at(a, met.at) == T0 + (6 + 5 * 2 + 0) * S + 0 * S
    assert at(b, met.other_at) == T0 + 9_999 * S + int(1.5 * S)
    back = meeting(b, a)
    assert (back.at, back.other_at, back.step) == (met.other_at, met.at, 6)


def test_where_no_step_is_settled_in_both_the_first_of_both_is_taken_and_said():
    a, b = side("a", 0, 8), side("b", 7, 8)
    met = meeting(a, b)
    assert (met.step, met.why) == (7, COMMON)  # in b it is the first of its attempt


def test_a_step_that_is_asked_for_is_taken_and_one_that_is_not_in_both_refused_with_the_nearest():
    a, b = side("a", 0, 40), side("b", 10, 90)
    assert (meeting(a, b, 12).step, meeting(a, b, 12).why) == (12, ASKED)
    for asked, near in ((3, 10), (70, 39), (1 << 61, 39)):
        with pytest.raises(QuestionError, match=f"such as {near}, the nearest"):
            meeting(a, b, asked)


def test_without_a_step_in_common_they_lie_at_their_first_events():
    a, b = side("a", 0, 5), side("b", 100, 5)
    met = meeting(a, b)
    assert (met.at, met.other_at, met.step, met.why) == (0, 0, None, BEGINNINGS)
    with pytest.raises(QuestionError, match="a has steps from 0 to 4; b has steps from 100 to 104"):
        meeting(a, b, 3)
    job = MemoryTables({"lifecycle": {"kind": ["eval"], "start_ns": [T0], "end_ns": [T0 + S]}})
    alone = Side("c", timeline(job, {}), job, {})
    assert meeting(a, alone).step is None
    with pytest.raises(QuestionError, match="c tells of no steps with times"):
        meeting(a, alone, 3)
