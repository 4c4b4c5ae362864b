"""The scorer of the benchmark of diagnosis against counting by hand."""

import itertools
import json
import math

import pytest

from benchmarks.diagnosis.score import load, same_place, score, steps_in, table
from benchmarks.diagnosis.wilson import Share
from errors import InputError


def fault(cause, chip_seconds, family="hosts", **place):
    return {"cause": cause, "family": family, "place": place, "chip_seconds": chip_seconds, "basis": "clocks"}


def truth(*causes, whole=100.0, dominates=True, both=()):
    told = {"causes": list(causes), "in_both": list(both), "not_to_accuse": []}
    return told | {"chip_seconds": whole, "dominates": dominates}


def said(cause, likely=None, low=None, high=None, **place):
    amount = None if likely is None else {"low": low, "likely": likely, "high": high}
    return {"cause": cause, "place": place, "chip_seconds": amount}


def only(truths, answers):
    (outcome,) = score({"a": truths}, {"a": answers}).outcomes
    return outcome


def test_a_fault_named_first_with_its_rank_and_amount_is_right_in_all():
    outcome = only(
        truth(fault("slow_host", 20.0, ranks=[1])), {"causes": [said("slow_host", 23.0, 15.0, 25.0, ranks=[1])]}
    )
    assert (outcome.top, outcome.named, outcome.place, outcome.amount, outcome.band) == (True, True, True, True, True)
    assert outcome.error == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("likely", "right"), [(79.0, False), (80.0, True), (100.0, True), (120.0, True), (121.0, False), (None, False)]
)
def test_an_amount_is_right_within_a_fifth(likely, right):
    outcome = only(truth(fault("slow_host", 100.0), whole=500.0), {"causes": [said("slow_host", likely)]})
    assert outcome.amount is right and outcome.band is None


def test_a_band_that_leaves_the_truth_out_is_counted_against_it():
    assert only(truth(fault("leak", 10.0)), {"causes": [said("leak", 12.0, 11.0, 13.0)]}).band is False


def test_the_lesser_of_two_faults_is_not_asked_for_where_it_is_tiny_and_may_be_named():
    both = truth(fault("leak", 30.0), fault("jitter", 4.9))
    scored = score({"a": both}, {"a": {"causes": [said("leak", 30.0), said("jitter", 4.9)]}})
    assert [o.cause for o in scored.outcomes] == ["leak"] and not scored.alarms


def test_a_fault_named_second_is_named_but_not_first():
    outcome = only(truth(fault("leak", 30.0)), {"causes": [said("jitter", 40.0), said("leak", 30.0)]})
    assert (outcome.top, outcome.named) == (False, True)


def test_of_two_faults_the_first_named_must_be_the_largest_unless_they_are_alike():
    both = {"causes": [said("leak", 10.0), said("slow_loader", 30.0)]}
    far = score({"a": truth(fault("slow_loader", 30.0), fault("leak", 10.0))}, {"a": both}).outcomes
    near = score({"a": truth(fault("slow_loader", 30.0), fault("leak", 25.0))}, {"a": both}).outcomes
    assert [o.top for o in far] == [False, None] and [o.top for o in near] == [True, None]


def test_an_accusation_of_what_was_not_planted_is_false_above_a_fiftieth_of_the_time():
    answers = {"causes": [said("jitter", 1.9), said("slow_network", 2.1), said("leak", None)]}
    scored = score({"a": truth()}, {"a": answers})
    assert [a.accuses for a in scored.alarms] == [("slow_network",), ("leak",)]
    assert scored.alarmed(True) == Share(1, 1) and scored.alarmed(False) == Share(0, 0)


def test_a_headline_is_true_if_one_of_its_causes_was_planted_or_happened_to_the_twin_as_well():
    headlines = [
        {"accuses": ["slow_link", "slow_host"], "chip_seconds": 30.0},
        {"accuses": ["hang", "preemption"], "chip_seconds": 30.0},
        {"accuses": ["slow_loader"], "chip_seconds": 30.0, "says": "input"},
    ]
    scored = score({"a": truth(fault("slow_host", 30.0), both=["hang"])}, {"a": {"headlines": headlines}})
    assert [a.says for a in scored.alarms] == ["input"] and not scored.alarms[0].sound


def test_not_known_is_credited_where_nothing_was_named():
    truths = {n: truth(fault("leak", 30.0)) for n in "abcd"}
    answers = {
        "a": {"not_told": ["leak"]},
        "b": {"causes": [said("leak", 30.0)]},
        "c": {"causes": [said("jitter", 1.0)]},
    }
    scored = score(truths, answers)
    figures = scored.figures()
    assert figures["admitted"] == Share(1, 3)  # of three misses one was admitted
    assert figures["kept"] == Share(1, 3)  # of three that it said it could tell, it told one
    assert scored.unanswered == ("d",)


def test_cases_whose_fault_was_drowned_count_for_nothing():
    scored = score({"a": truth(fault("leak", 1.0), dominates=False)}, {"a": {"causes": [said("jitter", 50.0)]}})
    assert scored.left_out == ("a",) and not scored.outcomes and not scored.alarms and not scored.cases


def test_shares_by_family_are_those_of_counting():
    kinds = [("slow_host", "hosts"), ("slow_loader", "input")]
    truths, answers, hits = {}, {}, {"hosts": 0, "input": 0}
    for i, ((cause, family), right) in enumerate(itertools.product(kinds, (True, False, True))):
        truths[str(i)] = truth(fault(cause, 10.0, family))
        answers[str(i)] = {"causes": [said(cause if right else "jitter", 10.0)]}
        hits[family] += right
    scored = score(truths, answers)
    assert {f: scored.figures(f)["named"].hits for f in scored.families} == hits
    assert scored.figures()["named"] == Share(4, 6)
    assert json.loads(json.dumps(scored.to_dict()))["families"]["input"]["top"]["hits"] == 2
    assert "4/6" in table(scored, by_case=True) and "false alarm: jitter 10%" in table(scored, by_case=True)


@pytest.mark.parametrize(
    ("true", "answer", "right"),
    [
        ({"ranks": [1, 3]}, {"ranks": [3, 1]}, True),
        ({"ranks": [1]}, {"ranks": [1, 2]}, False),
        ({"ranks": [1]}, {}, False),
        ({"links": [[0, 2]]}, {"links": [[2, 0]]}, True),
        ({"links": [[0, 2]]}, {"links": [[0, 1]]}, False),
        ({"hosts": ["a"]}, {"hosts": ["a"]}, True),
        ({"steps": {"first": 10, "last": 19}}, {"steps": {"first": 15, "last": 19}}, True),
        ({"steps": {"first": 10, "last": 19}}, {"steps": {"first": 16, "last": 19}}, False),
        ({"steps": {"first": 0, "last": 30, "every": 10}}, {"steps": [0, 10, 20, 30, 31]}, True),
        ({"steps": {"first": 0, "last": 30, "every": 10}}, {"steps": {"first": 0, "last": 30}}, False),
        ({}, {"ranks": [7]}, True),
    ],
)
def test_a_place_is_right_where_it_is_the_same(true, answer, right):
    assert same_place(true, answer) is right


def test_steps_are_a_list_or_a_stretch():
    assert steps_in({"first": 3, "last": 9, "every": 3}) == {3, 6, 9} == steps_in([3, 6, 9])


def test_an_interval_holds_the_shares_that_the_count_does_not_refute():
    """Wilson's interval is where the score test does not refute the share: found here by trying all."""
    for hits, count in [(0, 5), (1, 5), (5, 5), (13, 40), (39, 40)]:
        fitting = [
            p
            for p in (i / 20_000 for i in range(1, 20_000))
            if abs(hits / count - p) <= 1.959964 * math.sqrt(p * (1 - p) / count)
        ]
        low, high = Share(hits, count).interval
        assert low == pytest.approx(fitting[0], abs=1e-3) and high == pytest.approx(fitting[-1], abs=1e-3)
    assert Share(0, 0).interval is None and str(Share(0, 0)) == "-"


def test_who_names_what_is_wrong_about_the_evidence_is_right_and_who_names_what_is_not_raises_a_false_alarm():
    named = {"causes": [{"cause": "clock_skew", "place": {"ranks": [1]}}]}
    skewed = truth() | {"not_to_accuse": [{"cause": "clock_skew", "ranks": [1], "seconds": 3.0}]}
    scored = score({"skewed": skewed, "sound": truth()}, {"skewed": named, "sound": named})
    assert [alarm.case for alarm in scored.alarms] == ["sound"]


def test_a_cause_that_nobody_knows_is_refused():
    with pytest.raises(InputError, match="gremlins"):
        score({"a": truth()}, {"a": {"causes": [said("gremlins", 1.0)]}})


def test_a_folder_without_truths_and_answers_that_are_none_are_refused(tmp_path):
    answers = tmp_path / "answers.json"
    answers.write_text("[]")
    with pytest.raises(InputError, match="no truths"):
        load(tmp_path, answers)
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "a.json").write_text(json.dumps(truth()))
    with pytest.raises(InputError, match="no object of answers"):
        load(tmp_path, answers)
