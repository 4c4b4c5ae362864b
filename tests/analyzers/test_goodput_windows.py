"""Goodput of a part of the time, of one attempt, and over time: each is a cut of the whole."""

import math

import pytest

from analyzers.lost.goodput.buckets import BUCKET, leaves
from analyzers.time import ledger
from errors import QuestionError
from runs.run import facts_of
from tests.analyzers.goodput_asked import ask, at, even, job


@pytest.fixture(scope="module")
def restarted():
    life = [("job", 0, None), ("accelerator_initialization", 1, 9), ("job", 100, 160), ("custom", 125, 127, "sdc")]
    return job(even(0, 10, 20) + even(15, 110, 25), life)


def test_a_window_is_a_cut_of_the_whole(restarted):
    cuts = [0, 13.5, 40, 101, 126, 160]
    parts = [ask(restarted, start=a, end=b) for a, b in zip(at(*cuts), at(*cuts[1:]), strict=False)]
    whole = ask(restarted)
    assert math.fsum(p.productive_s for p in parts) == pytest.approx(whole.productive_s, abs=1e-9)
    for bucket, s in leaves(whole.badput_s).items():
        assert math.fsum(leaves(p.badput_s).get(bucket, 0) for p in parts) == pytest.approx(s, abs=1e-9)
    last = ask(restarted, window_s=20.0)
    assert (last.total_s, last.productive_s) == (20, 20)
    assert ask(restarted, window_s=20.0, now=at(150)[0]).total_s == 20
    assert sum(p.disruptions for p in parts) == whole.disruptions == 1


def test_excluded_times_leave_total_and_buckets(restarted):
    whole = ask(restarted)
    result = ask(restarted, exclude="/".join(at(48, 90)) + "," + "/".join(at(80, 100)) + "," + "/".join(at(9, 5)))
    assert result.excluded_s == 52
    assert result.total_s == whole.total_s - 52
    assert result.badput_s["infrastructure_recovery_from_disruption"] == 0
    assert result.productive_s == whole.productive_s
    assert any("1 excluded time ends before it begins" in note for note in result.notes)


def test_attempts_alone_sum_to_the_whole(restarted):
    whole, parts = ask(restarted), [ask(restarted, attempt=k) for k in (0, 1)]
    assert math.fsum(p.total_s for p in parts) == whole.total_s
    assert [p.disruptions for p in parts] == [1, 0]
    assert whole.attempts["productive_s"].tolist() == [p.productive_s for p in parts]
    assert whole.attempts[["first_step", "last_step"]].to_numpy().tolist() == [[0, 19], [15, 39]]
    with pytest.raises(QuestionError, match="no attempt 2"):
        ask(restarted, attempt=2)


def test_goodput_over_time_is_the_same_time_once_more(restarted):
    result = ask(restarted, bins=7, rolling_s=40.0)
    table = result.over_time
    assert len(table) == 7
    assert table["productive"].sum() == pytest.approx(result.productive_s)
    last = ask(restarted, start=at(120)[0], end=at(160)[0])
    assert table["rolling_share"].iloc[-1] == pytest.approx(last.goodput_share)


def test_it_is_the_painting_of_the_ledger(restarted):
    result, book = ask(restarted), ledger.analyze(restarted, facts_of({"chips": 3}), {}).ledger
    assert book.amount("productive") == pytest.approx(3 * result.productive_s)
    for heading, bucket in BUCKET.items():
        theirs = result.badput_s[bucket]
        theirs = sum(theirs.values()) if isinstance(theirs, dict) else theirs
        assert book.amount(heading) == pytest.approx(3 * theirs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"now": "yesterday"}, "option now='yesterday'; expected ISO 8601"),
        ({"start": "2026-01-05T00:30:00Z", "end": "2026-01-05T00:10:00Z"}, "expected a start before its end"),
        ({"exclude": "2026-01-05T00:30:00Z"}, "expected START/END"),
        ({"window_s": -4.0}, "a number of seconds above 0"),
        ({"window_s": 4.0, "start": "1767571200"}, "expected one of the two"),
        ({"attempt": -1}, "0 for the first start"),
        ({"bins": 99_999}, "1 to 5,000"),
        ({"start": "1000", "end": "2000"}, "held no chips"),
        ({"exclude": "1000/2000000000"}, "excluded"),
    ],
)
def test_what_cannot_be_asked_is_told(restarted, options, said):
    with pytest.raises(QuestionError, match=said.replace("(", r"\(")):
        ask(restarted, **options)
