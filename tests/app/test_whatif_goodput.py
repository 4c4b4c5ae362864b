"""`whatif goodput`: the contract on the command line, what cannot be asked, and its sentences."""

import json

import pytest

from app.cli import main
from app.whatif.goodput import GOODPUT_PLAN
from app.whatif.goodput.wording import TITLES, verdict
from errors import QuestionError

QUERY = {"chips": "16384", "mttf_chip_h": "45000", "save_s": "30", "restart_s": "600"}


def answered(**more):
    query = {k: v for k, v in {**QUERY, **more}.items() if v is not None}
    return GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query(query), None)


def test_the_contract(capsys):
    arguments = [f"--{k.replace('_', '-')}={v}" for k, v in QUERY.items()]
    assert main(["whatif", "goodput", *arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["low"] < told["goodput"] < told["high"] and told["basis"] == "modelled"
    assert told["goodput"] + sum(told["badput"].values()) == pytest.approx(1)
    assert told["goodput"] == pytest.approx(told["closed_form"], abs=0.005)
    assert told["mttf_s"] == pytest.approx(45_000 * 3600 / 16_384)
    assert told["failures"] == pytest.approx(54 * 86_400 / told["mttf_s"], rel=0.02)
    assert told["interval_s"] == told["best_interval_s"] and told["trials"] == 1000
    assert main(["whatif", "goodput", *arguments]) == 0
    assert "of the time becomes kept work" in capsys.readouterr().out


def test_the_same_question_has_the_same_answer_and_another_seed_another():
    assert answered().to_dict() == answered().to_dict() != answered(seed="1").to_dict()


def test_the_largest_loss_is_the_largest():
    for more in ({}, {"save_s": "600"}, {"wait_s": "3000"}, {"elastic": "true", "wait_s": "90000", "slices": "2"}):
        made = answered(**more)
        where, share = max(made.badput.items(), key=lambda item: item[1])
        assert f"The largest loss is {TITLES[where]}, {share * 100:.3g}" in verdict(made).replace(".0 %", " %")


def test_elastic_training_gains_where_machines_come_late():
    waits, goes_on = answered(wait_s="3600"), answered(wait_s="3600", elastic="true", slices="12", resume_s="60")
    assert goes_on.goodput > waits.goodput + 0.1
    assert "slices that are away" in GOODPUT_PLAN.words(goes_on).table.rows[2][0] or goes_on.badput["slices_away"] > 0


def test_spares_are_told():
    made = answered(spares="2", repair_h="48")
    assert made.spare_is_free < 0.5 and made.closed_form is None
    assert "A spare is free at" in verdict(made).whole


def test_a_job_that_hardly_ever_fails():
    made = answered(chips="8")
    assert "of such jobs see a failure at all" in verdict(made) and made.goodput > 0.99


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chips": None}, "--chips"),
        ({"mttf_chip_h": None}, "--mttf-chip-h"),
        ({"mttf_chip_h": "0"}, "--mttf-chip-h 0"),
        ({"mttf_chip_h": "inf"}, "--mttf-chip-h"),
        ({"save_s": "-1"}, "--save-s -1"),
        ({"save_s": "1e9"}, "a save shorter than the mean time to failure"),
        ({"blocked_s": "60"}, "no longer than the save"),
        ({"blocked_s": "1", "interval_s": "5"}, "at least 29 s between two"),
        ({"interval_s": "0"}, "--interval-s 0"),
        ({"slices": "4"}, "not elastic"),
        ({"elastic": "true", "spares": "2"}, "one of the two"),
        ({"elastic": "true", "slices": "1"}, "two slices or more"),
        ({"repair_h": "3"}, "a repair without spares"),
        ({"trials": "5"}, "trials"),
        ({"chips": "1000000000", "save_s": "1e-3", "mttf_chip_h": "1e4", "trials": "100000"}, "Draw fewer lives"),
    ],
)
def test_what_cannot_be_asked(change, said):
    with pytest.raises(QuestionError, match=said):
        answered(**change)
