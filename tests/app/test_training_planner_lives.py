"""The training planner where chips fail: goodput of lives, spares, checkpoints; and what its texts are made of."""

import itertools
import json
import re
from dataclasses import replace

import pytest

from app.pages.training_planner.figure import days_and_dollars
from app.whatif.goodput import GOODPUT_PLAN
from app.whatif.training.moving import moved
from app.whatif.training.phrases import takes
from app.whatif.training.sensitivity import sensitivity
from app.whatif.training.wording import verdict
from errors import QuestionError
from tests.app.test_pages import opened, words
from tests.app.test_training_planner import PAGE, answered

FAILING = {"mttf_chip_h": "41026", "save_s": "30", "restart_s": "300", "wait_s": "600"}


def test_goodput_follows_from_the_failures_of_so_many_chips():
    made = answered(on="h100", chips="256,2048,16384", days=None, price="h100=3", **FAILING)
    by_chips = {c.planned.chips: c for c in reversed(made.choices)}
    shares = [by_chips[n].goodput for n in (256, 2048, 16384)]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.98 and shares[2] < 0.85
    for c in made.choices:
        told, rate = c.to_dict(), c.planned.tokens_per_s_per_chip * c.planned.chips
        assert told["goodput_band"]["low"] <= c.goodput <= told["goodput_band"]["high"]
        assert told["tokens_per_day"]["likely"] == pytest.approx(rate * 86_400 * c.goodput)
        assert c.days[1] == pytest.approx(2e12 / told["tokens_per_day"]["likely"])
        assert c.days[2] / c.days[1] >= c.planned.high_s / c.planned.step_s  # its own luck comes on top
        assert c.usd[1] == pytest.approx(3 * 24 * c.days[1] * c.planned.chips)
    assert any("lives of the job" in note for note in made.notes) and "Lives of the job keep" in verdict(made).whole


def test_a_planned_job_keeps_what_whatif_goodput_says():
    made = answered(on="h100", chips="2048", days=None, **FAILING).choices[0]
    days = {"chips": "2048", "days": f"{made.days[1]:.4g}"}
    alone = GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query({**FAILING, **days}), None)
    assert made.goodput == pytest.approx(alone.goodput, abs=4e-3)
    assert made.lived.goodput.low == pytest.approx(alone.range[0], abs=0.01)


def test_spares_are_paid_for_by_the_host():
    one, held = (answered(on="h100", chips="256", days=None, price="h100=3", spares=n, **FAILING) for n in (None, "4"))
    first = held.choices[0]
    assert first.usd[1] == pytest.approx(3 * 24 * first.days[1] * (256 + 4 * 8))
    assert first.usd[1] > one.choices[0].usd[1] and any("Spares are paid for" in note for note in held.notes)


def test_a_goodput_that_is_given_holds_on_any_number_of_chips():
    made = answered(on="h100", chips="256,2048", goodput="0.9", days=None)
    assert {c.goodput for c in made.choices} == {0.9} and any("as it was given" in note for note in made.notes)
    assert made.choices[0].days[2] / made.choices[0].days[1] == pytest.approx(
        made.choices[0].planned.high_s / made.choices[0].planned.step_s
    )


def test_chips_that_fail_too_often_are_left_out_with_the_reason():
    made = answered(on="h100", chips="256,65536", days=None, mttf_chip_h="200", save_s="10", restart_s="60")
    assert {c.planned.chips for c in made.choices} == {256}
    assert re.search(r"65,536 H100 SXM: .* fails every 11.0 s keeps .* of its time.* Fewer chips", made.why_not[0])
    with pytest.raises(QuestionError, match="At most 10 s for a save, or at most 24,000 chips"):
        answered(on="h100", chips="65536", days=None, mttf_chip_h="200", save_s="30")


def test_sliders_of_a_job_whose_chips_fail_are_answered_or_refused(place):
    asked = {"model": "llama3.1-70b", "on": "h100", "tokens": "2e12", "chips": "512,1024", **FAILING}
    page = opened(PAGE, **asked, at_goodput="0.8")
    assert not page.exception and "At the sliders" in words(page) and "Lives of the job keep" in words(page)
    lived = answered(on="h100", chips="512,1024", days=None, **FAILING).first
    by_hand = replace(lived, days=tuple(d * lived.goodput / 0.8 for d in lived.days))  # with the luck of its lives
    assert takes(by_hand) in words(page)
    given = answered(on="h100", chips="512,1024", days=None, goodput="0.8").first
    assert by_hand.days == pytest.approx(given.days, rel=1e-3) and by_hand.days[1] == pytest.approx(given.days[1])
    slower = opened(PAGE, **asked, at_mfu="0.2")
    assert not slower.exception and "At the sliders" in words(slower)


def test_a_job_shorter_than_its_start_counts_the_start():
    [first, *_] = answered(on="h100", chips="256", days=None, tokens="1e8", **FAILING).choices
    steps_s = 1e8 / (first.planned.tokens_per_s_per_chip * 256)
    assert first.days[1] * 86_400 == pytest.approx(steps_s + 300, rel=0.03)


def test_lives_of_which_many_keep_nothing_are_refused():
    with pytest.raises(QuestionError, match="more than one in twenty lives of .* keeps next to nothing"):
        answered(on="h100", chips="256", days=None, tokens="1e8", mttf_chip_h="60", save_s="10", restart_s="700")


def test_whatever_fails_the_answer_is_finite_or_a_sentence():
    ends = {"tokens": ("1", "1e18", None), "mttf_chip_h": ("1e-3", "300", "1e12"), "wait_s": (None, "1e12")}
    ends |= {"restart_s": (None, "3000"), "elastic": (None, "true"), "save_s": ("1e-9", "100"), "price": ("h100=1e6",)}
    answers = 0
    for values in itertools.product(*ends.values()):
        try:
            made = answered(
                **dict(zip(ends, values, strict=True)), on="h100", chips="256", layout="tp=8,pp=1", days=None
            )
        except QuestionError as e:
            assert len(str(e)) < 500 and "nan" not in str(e)
            continue
        json.dumps(made.to_dict(), allow_nan=False)
        assert all(d < 1e300 for c in made.choices for d in (*(c.days or ()), *(c.usd or ())))
        answers += 1
    assert answers > 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {**FAILING, "goodput": "0.9"},
            "a goodput, and --mttf-chip-h, from which one follows; expected one of the two",
        ),
        ({"save_s": "30"}, "--save-s without what else lives of a job take; expected --mttf-chip-h"),
        ({"mttf_chip_h": "4e4"}, "--mttf-chip-h without what else lives of a job take; expected --save-s"),
        ({"elastic": "true"}, "--elastic without what else"),
        ({**FAILING, "slices": "4"}, "not elastic"),
        ({**FAILING, "elastic": "true", "spares": "2"}, "one of the two"),
        ({**FAILING, "spares": "5000"}, "from 0 to 4,096"),
        ({**FAILING, "mttf_chip_h": "0"}, "--mttf-chip-h 0; expected a number from 0.001"),
        ({**FAILING, "wait_s": "1e308"}, "--wait-s 1e308"),
        ({**FAILING, "interval_s": "1e10", "chips": "64"}, "in a job of .* Leave it away for the best"),
    ],
)
def test_lives_that_cannot_be(change, said):
    with pytest.raises(QuestionError, match=said):
        answered(**({"on": "h100", "chips": "256", "days": None} | change))


def test_the_picture_holds_every_choice_its_range_the_limits_and_the_front():
    made = answered(price="v5p=4.2,h100=3", usd="4e6", days="30")
    drawn = days_and_dollars(made.firsts, made.first, 30, 4e6)
    mine = [t for t in drawn.data if t.mode == "markers+text"]
    marks = {(x, y): s for t in mine for x, y, s in zip(t.x, t.y, t.marker.symbol, strict=True)}
    assert marks == {(c.days[1], c.usd[1]): "circle" if c.front else "circle-open" for c in made.firsts}
    [line] = [t for t in drawn.data if t.name == "front"]
    assert list(zip(line.x, line.y, strict=True)) == [(c.days[1], c.usd[1]) for c in made.front]
    ends = {x for t in drawn.data if t.mode == "lines" and t.name != "front" for x in t.x if x is not None}
    assert ends == {e for c in made.firsts for e in (c.days[0], c.days[2])}
    assert {(s.x0, s.x1) for s in drawn.layout.shapes if s.x0 == s.x1} == {(30, 30)}
    assert {(s.y0, s.y1) for s in drawn.layout.shapes if s.y0 == s.y1} == {(4e6, 4e6)}
    low, high = (10**e for e in drawn.layout.xaxis.range)
    assert low < min(ends) and max(ends) < high


SPARED = {"model": "llama3.1-8b", "on": "h100", "tokens": "1e12", "price": "h100=2", "days": None, "spares": "4"} | {
    "mttf_chip_h": "20000",
    "save_s": "60",
    "restart_s": "600",
}


def test_why_a_choice_loses_counts_spares_as_its_dollars_do():
    made = answered(**SPARED, chips="64,128")
    for one, reason in zip(made.choices[1:], made.losers, strict=True):
        assert reason.total is None or reason.total == pytest.approx(one.usd[1] - made.first.usd[1], rel=1e-6)
        assert "cheaper in all" not in reason.text or one.usd[1] <= made.first.usd[1]


def test_the_slider_of_goodput_keeps_the_spares():
    made = answered(**SPARED, chips="128")
    first = made.first
    same = moved(made, 128, goodput=first.goodput).choice
    assert same.usd == pytest.approx(first.usd) and same.days == pytest.approx(first.days)
    [lower] = [m for m in sensitivity(first) if m.what == "goodput" and m.value < first.goodput]
    assert moved(made, 128, goodput=lower.value).choice.usd[1] == pytest.approx(lower.usd)


@pytest.mark.parametrize(
    "how",
    [{"wait_s": "3600"}, {"interval_s": "7200"}, {"blocked_s": "2"}, {"local_save_s": "2", "local_restart_s": "60"}],
    ids=lambda how: next(iter(how)),
)
def test_the_checkpoint_plan_is_that_of_the_plans_own_goodput(how):
    job = {"model": "llama3.1-8b", "on": "h100", "chips": "4096", "global_batch_tokens": "33554432", "tokens": "1e12"}
    made = answered(**job, days=None, mttf_chip_h="20000", save_s="120", restart_s="600", **how)
    told = made.make["checkpoint"]
    assert told["goodput"] == made.first.goodput
    assert all(f"--{name.replace('_', '-')} {value}" in told["text"] for name, value in how.items())
    assert "interval_s" not in how or told["interval_s"] == 7200


def test_a_zero_that_is_given_is_given():
    with pytest.raises(QuestionError, match="a goodput, and --wait-s"):
        answered(on="h100", chips="256", days=None, goodput="0.9", wait_s="0")


def test_megatrons_experts_lie_as_they_were_timed():
    def flags(layout):
        made = answered(model="mixtral-8x7b", on="h100", chips="64", layout=layout, days=None)
        return made.make["megatron"]["text"]

    whole, cut = flags("tp=4,ep=2"), flags("tp=4,ep=8")
    assert "--expert-model-parallel-size 8" in whole and "--expert-tensor-parallel-size 1" in whole
    assert "--expert-model-parallel-size 8" in cut and "--expert-tensor-parallel-size 4" in cut


def test_what_no_tool_could_start_is_not_offered():
    odd = answered(model="llama3.1-8b", on="b200", chips="12", global_batch_tokens="12582912", days=None, tokens=None)
    assert all("no whole nodes of 8" in odd.make[tool]["unavailable"] for tool in ("megatron", "torchtitan"))
    wide = answered(model="llama3.1-405b", on="v6e", chips="256", layout="pp=16,vp=8", days=None)
    assert "126 layers do not fill them" in wide.make["maxtext"]["unavailable"]
    brief = answered(on="h100", chips="64", tokens="1", days=None, model="llama3.1-8b").make["checkpoint"]
    assert "--span-s 0 " not in brief["text"] and float(brief["query"]["span_s"]) > 0
    endless = answered(on="h100", chips="64", tokens="1e18", days=None, model="llama3.1-8b").make["checkpoint"]
    assert "span_s" not in endless["query"]


def test_a_peak_that_nobody_published_is_answered_with_another_precision():
    with pytest.raises(QuestionError, match="another --precision"):
        answered(model="llama3.1-8b", on="8t", chips="64", days=None)
    assert answered(model="llama3.1-8b", on="8t", chips="64", precision="fp4", days=None).choices
