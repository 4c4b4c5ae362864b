"""`whatif cost`: the contract on the command line, what cannot be asked, its sentences, and its page."""

import contextlib
import itertools
import json

import pytest

from app.cli import main
from app.pages.cost_planner.trade import dollars, equal_time
from app.whatif.cost import COST
from app.whatif.cost.wording import verdict
from errors import QuestionError
from tests.app.test_pages import opened, words

QUERY = {"model": "llama3.1-70b", "on": "v5p,h100", "tokens": "2e12", "days": "30"}


def answered(**more):
    query = {k: v for k, v in {**QUERY, **more}.items() if v is not None}
    return COST.answer(COST.from_query(query), None)


def test_the_contract(capsys):
    arguments = [f"--{k}={v}" for k, v in QUERY.items()]
    assert main(["whatif", "cost", *arguments, "--price", "v5p=4.2,h100=3", "--usd", "4e6", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    best = told["best"]
    assert best == told["choices"][0] and best["feasible"] and best["basis"] == "published"
    assert best["days"]["low"] < best["days"]["likely"] <= 30 < best["days"]["high"]
    assert set(best["meets"]) == {"days", "usd"} and best["usd"]["likely"] <= 4e6
    hours = best["days"]["likely"] * 24
    assert best["usd"]["likely"] == pytest.approx(3 * hours * best["chips"])
    assert told["flops"] == pytest.approx(told["flops_per_token"] * 2e12)
    assert main(["whatif", "cost", *arguments]) == 0
    assert "likely keep the deadline" in capsys.readouterr().out


def test_a_job_that_was_published_takes_as_long_as_it_says():
    made = answered(
        model="llama3.1-405b", on="h100", tokens="15.6e12", chips="16384", days=None, mfu="0.40445", goodput="0.9"
    )
    assert made.best.likely.days == pytest.approx(77.2626, rel=2e-3)
    assert verdict(made).startswith("16,384 H100 SXM take 77 d")


def test_as_many_chips_as_the_deadline_needs_in_whole_hosts():
    for choice in answered(mfu="0.4").choices:
        host = int(choice.chip.value("chips_per_host") or 1)
        fewer = choice.likely.days * choice.chips / (choice.chips - host)
        assert choice.chips % host == 0 and choice.likely.days <= 30 < fewer


def test_beyond_the_largest_published_run_nothing_is_likely():
    small, large = (answered(on="v6e", chips=n, days="1e5").choices[0] for n in ("512", "4096"))
    assert (small.meets, large.meets) == ({"days": "yes"}, {"days": "likely"})
    assert "512 chips: beyond" in large.remark and "512 chips: beyond" not in small.remark
    barely = answered(on="v6e", chips="4096", days=str(large.likely.days * 1.001))
    assert barely.choices[0].meets == {"days": "perhaps"} and barely.best is None
    assert verdict(barely).startswith(
        "Nothing that was tried is sure enough to keep the deadline. The nearest: 4,096 TPU"
    )


def test_a_budget_without_the_price_of_a_chip_is_refused():
    for more in ({"on": "h100"}, {"on": "v5p,h100"}, {"on": "h100", "days": None, "chips": "512"}):
        with pytest.raises(QuestionError, match="a budget, without the price of a chip; expected --price"):
            answered(usd="1", **more)


@pytest.mark.parametrize("usd", ["1000", "1e9"])
def test_a_chip_without_a_price_never_wins_where_a_budget_was_asked_for(usd):
    made = answered(model="llama-3.1-8b", tokens="1e12", usd=usd, price="v5p=4")
    first, last = made.choices
    assert (first.chip.name, last.chip.name) == ("TPU v5p", "H100 SXM")
    assert last.meets["usd"] == "unknown" and not last.feasible and last.to_dict()["usd"] is None
    assert (first.meets["usd"] == "no") == (made.best is None) == (usd == "1000")
    assert verdict(made).startswith("Nothing that was tried is sure enough to keep the budget") == (usd == "1000")
    assert "No price is given for H100 SXM: whether the budget is kept there is not known." in made.notes
    assert not any("No price" in note for note in answered(usd=usd, price="v5p=4,h100=3").notes)


def test_a_budget_counts_at_any_number_of_chips():
    made = answered(on="h100", chips="8,80,800", days=None, usd="1e5", price="h100=3")
    assert {tuple(c.meets.items()) for c in made.choices} == {(("usd", "no"),)}
    assert len({round(c.likely.usd) for c in made.choices}) == 1 and made.best is None
    assert "budget" in verdict(made) and "deadline" not in verdict(made)


def test_chips_that_cannot_be_reckoned_with_are_told_with_the_reason():
    made = answered(on="h100,b200,TPU 8t")
    assert [c.chip.name for c in made.choices] == ["H100 SXM"]
    assert [why.partition(":")[0] for why in made.why_not] == ["B200", "TPU 8t"]
    with pytest.raises(QuestionError, match="TPU 8t: no peak in bf16 is published. Name other chips or"):
        answered(on="TPU 8t")
    assert answered(on="TPU 8t", precision="fp4", mfu="0.3").choices[0].basis == "modelled"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": None}, "--model"),
        ({"on": "nothing"}, "nothing"),
        ({"on": ","}, "no chip to try"),
        ({"tokens": "0"}, "tokens"),
        ({"tokens": "inf"}, "tokens"),
        ({"days": None}, "neither a number of chips nor a deadline"),
        ({"days": "0"}, "days"),
        ({"days": "-3"}, "days"),
        ({"chips": "0"}, "a number of chips"),
        ({"chips": "many"}, "a number of chips"),
        ({"chips": ",".join(map(str, range(1, 60)))}, "at most 50"),
        ({"mfu": "0"}, "mfu"),
        ({"mfu": "1.2"}, "mfu"),
        ({"goodput": "0"}, "goodput"),
        ({"price": "h100=-3"}, "price"),
        ({"price": "h100=1,v5p=4,h100=9"}, "two prices for H100 SXM; expected one for each chip"),
        ({"price": "h100=1,H100=1"}, "two prices for H100 SXM"),
        ({"price": "h200=3"}, "a price for H200 SXM"),
        ({"days": "1e-9"}, "from 0.001 to"),
        ({"days": "1e-3", "mfu": "1e-6"}, "more days"),
        ({"mfu": "5e-324"}, "from 1e-06 to 1"),
        ({"goodput": "5e-324"}, "from 1e-06 to 1"),
        ({"usd": "-1"}, "usd"),
        ({"developers": "0"}, "developers 0; expected a whole number from 1"),
        ({"developers": "2.5"}, "developers"),
        ({"developers": "1e308"}, "developers"),
        ({"price": "h100=0"}, "price"),
        ({"price": "h100=nan"}, "price"),
        ({"mfu": "nan"}, "mfu"),
        ({"tokens": "1e308"}, "tokens"),
        ({"precision": "fp64"}, "precision"),
    ],
)
def test_what_cannot_be_asked(change, said):
    with pytest.raises(QuestionError, match=said):
        answered(**change)


def test_lines_of_equal_time_take_the_days_that_they_name():
    made = answered(on="v5p,h100", goodput="0.8")
    told = made.to_dict()["equal_time"]
    assert {line["chip"] for line in told} == {"TPU v5p", "H100 SXM"} and {line["days"] for line in told} >= {
        15,
        30,
        60,
    }
    for line in told:
        for chips, mfu in zip(line["chips"], line["mfu"], strict=True):
            assert 0 < mfu <= 1 and line["chips"] == tuple(sorted(line["chips"]))
            if chips % 7 == 0:
                one = answered(on=line["chip"], chips=str(chips), days=None, mfu=str(mfu), goodput="0.8")
                assert one.choices[0].likely.days == pytest.approx(line["days"], rel=1e-6)
        likely = next(c.mfu[1] for c in made.choices if c.chip.name == line["chip"])
        for mfu, goodput in zip(line["mfu"], line["goodput"], strict=True):
            needed = mfu * 0.8 / likely
            assert (goodput is None) == (needed > 1) and (goodput is None or goodput == pytest.approx(needed))


def test_the_front_is_what_no_other_choice_beats():
    made = answered(on="v5p,v6e,h100", chips="256,1024,4096", mfu="0.4", days=None, price="v5p=4.2,v6e=2.7,h100=3")

    def beaten(c) -> bool:
        days, usd = c.likely.days * (1 + 1e-9), c.likely.usd * (1 + 1e-9)
        better = [o for o in made.choices if o.likely.days <= days and o.likely.usd <= usd]
        return any(
            o.likely.days < c.likely.days * (1 - 1e-9) or o.likely.usd < c.likely.usd * (1 - 1e-9) for o in better
        )

    assert set(map(id, made.front)) == {id(c) for c in made.choices if not beaten(c)}
    assert [c.likely.days for c in made.front] == sorted(c.likely.days for c in made.front)
    assert made.to_dict()["pareto_front"][0] == {"chip": made.front[0].chip.name, "chips": made.front[0].chips}
    assert answered().front == () and answered().to_dict()["pareto_front"] == []


def test_flops_per_developer_are_told_with_their_definition():
    made = answered(on="h100", developers="40", goodput="0.9")
    [choice], told = made.choices, made.to_dict()["best"]["flops_per_developer_month"]
    by_hand = choice.chips * 989.4e12 * choice.mfu[1] * 0.9 * 365.25 / 12 * 86_400 / 40
    assert told["likely"] == pytest.approx(by_hand, rel=1e-3) and told["low"] < told["likely"] < told["high"]
    assert "model FLOPs a month that are kept" in made.notes[0] and made.to_dict()["developers"] == 40
    assert answered(on="h100").to_dict()["best"]["flops_per_developer_month"] is None


def test_pictures_of_cost_show_every_choice_and_both_limits():
    made = answered(on="v5p,h100", chips="512,2048", price="v5p=4.2,h100=3", usd="4e6")
    figure = dollars(made)
    marks = {(x, y) for trace in figure.data if "markers" in trace.mode for x, y in zip(trace.x, trace.y, strict=True)}
    assert marks == {(c.likely.days, c.likely.usd) for c in made.choices}
    assert [a.text for a in figure.layout.annotations] == ["deadline: 30 d", "budget: $4,000,000"]
    for of in ("mfu", "goodput"):
        drawn = equal_time(made, made.equal_time, made.choices[0], of)
        assert {"15 d", "30 d", "60 d", "tried"} <= {trace.name for trace in drawn.data}
        assert all(0 < y <= 100 for trace in drawn.data for y in trace.y)


def test_whatever_is_asked_the_answer_is_finite():
    ends = {
        "tokens": ("1", "1e18"),
        "mfu": ("1e-6", "1"),
        "goodput": ("1e-6", None),
        "chips": ("1", "2147483647", None),
    }
    ends |= {"days": ("1e-3", "1e5"), "usd": ("1e-300", "1e15"), "price": ("v5p=1e-300,h100=1e6", "v5p=5e-324")}
    answers = 0
    for values in itertools.product(*ends.values()):
        with contextlib.suppress(QuestionError):
            made = answered(**dict(zip(ends, values, strict=True)))
            json.dumps(made.to_dict(), allow_nan=False)
            assert "inf" not in verdict(made) and "nan" not in verdict(made)
            answers += 1
    assert answers > 50


def test_the_page(place):
    page = opened("pages/cost_planner/page.py")
    assert not page.exception and "likely keep the deadline and budget" in words(page)
    assert {m.label.split(" ")[0] for m in page.metric} >= {"Chips", "Training", "Dollars", "MFU"}
    assert "What do days cost?" in words(page) and "What takes equally long?" in words(page)
    named = opened("pages/cost_planner/page.py", **QUERY, mfu="0.4", price="h100=3", developers="40")
    assert any(m.label.startswith("FLOPs per developer") for m in named.metric)
    assert not named.exception and "keep the deadline" in words(named)
    refused = opened("pages/cost_planner/page.py", **QUERY, goodput="2")
    assert not refused.exception and "Goodput: 2; expected" in words(refused)
