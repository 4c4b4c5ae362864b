"""The search of `whatif training`, attacked with questions of all kinds: layouts, front, limits, reasons, sentences."""

import json
import math
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.whatif.training import TRAINING
from app.whatif.training.amounts import dollars, time
from app.whatif.training.answers import find
from app.whatif.training.asked import Asked
from app.whatif.training.moving import at_mfu, counts, moved
from app.whatif.training.sensitivity import sensitivity
from app.whatif.training.wording import verdict, words
from errors import QuestionError

BASE = {"model": "llama3.1-70b", "on": "v5p,h100", "tokens": "2e12", "price": "v5p=4.2,h100=3"}
SIZES = st.sampled_from([1, 2, 4, 8, 16])


def answered(**more):
    query = {k: v for k, v in {**BASE, **more}.items() if v is not None}
    return TRAINING.answer(TRAINING.from_query(query), None)


@st.composite
def questions(draw):
    on = draw(st.lists(st.sampled_from(["v5p", "v6e", "h100", "b200", "7x", "a100", "mi300x"]), min_size=1, max_size=3))
    on = list(dict.fromkeys(on))
    query = {
        "model": draw(st.sampled_from(["llama3.1-8b", "llama3.1-70b", "mixtral-8x7b", "deepseek3-671b", "gemma3-27b"])),
        "on": ",".join(on),
        "chips": draw(st.none() | st.sampled_from(["64", "256,1024", "96", "7,8", "4096", "333,512"])),
        "tokens": draw(st.none() | st.sampled_from(["1e9", "3e11", "2e12", "1.5e13", "1e18"])),
        "seq": draw(st.none() | st.sampled_from(["2048", "4096", "8192", "32768"])),
        "global_batch_tokens": draw(st.none() | st.sampled_from(["262144", "1e6", "4194304", "6.5e7"])),
        "remat": draw(st.none() | st.sampled_from(["none", "part", "full"])),
        "precision": draw(st.none() | st.sampled_from(["bf16", "fp8"])),
        "goodput": draw(st.none() | st.sampled_from(["0.5", "0.97", "1e-6"])),
        "layout": draw(st.none() | st.builds("tp={},pp={}".format, SIZES, SIZES)),
    }
    if draw(st.booleans()):
        query["price"] = ",".join(f"{n}={draw(st.sampled_from(['1e-9', '2', '3.5', '1e6']))}" for n in on[:2])
        query["usd"] = draw(st.none() | st.sampled_from(["1", "1e6", "1e9", "1e15"]))
    query["days"] = draw(st.none() | st.sampled_from(["0.001", "30", "365", "1e5"]))
    if query["tokens"] is None:
        query["days"] = query["usd"] = None
    return {k: v for k, v in query.items() if v is not None}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(questions())
def test_whatever_is_asked_the_answer_holds_together(query):
    asked = TRAINING.from_query(query)
    try:
        made = find(asked)
    except QuestionError as e:
        assert len(str(e)) < 2000 and not re.search(r"\b(inf|nan)\b", str(e))
        return
    for choice in made.choices:
        divides_and_fits(choice, made)
    ordered_and_fronted(made)
    told = TRAINING.told(made)
    json.dumps(told, allow_nan=False)
    assert len(told["why_not"]) == len(made.reasons) + len(made.choices) - 1
    sentences(made)


def divides_and_fits(choice, made):
    p, cut = choice.planned, choice.planned.layout
    copies = cut["dp"] * cut["fsdp"] * cut["ep"]
    assert copies * cut["tp"] * cut["pp"] * cut["cp"] == p.chips
    assert made.batch % (copies * cut["micro"]) == 0 and made.seq % (cut["cp"] * cut["tp"]) == 0
    assert cut["pp"] <= made.model.layers and p.bytes_per_chip <= p.hbm_bytes * (1 + 1e-9)
    for split in (p.accounts, p.parts):
        assert math.isclose(sum(split.values()), p.step_s, rel_tol=1e-9) and min(split.values()) >= -1e-9 * p.step_s
    assert p.low_s <= p.step_s <= p.high_s


def ordered_and_fronted(made):
    feasible = [c for c in made.choices if c.feasible]
    assert made.best is (feasible[0] if feasible else None)
    if feasible:
        assert made.choices[: len(feasible)] == tuple(feasible)
        known = [c.usd[1] for c in feasible if c.usd]
        if len(known) == len(made.choices):
            assert known[0] == min(known)
    points = {id(c): (c.days[1], c.usd[1]) for c in made.choices if c.days and c.usd}
    for c in made.choices:
        if id(c) not in points:
            assert c.front is None
            continue
        d, u = points[id(c)]
        assert c.front == (not any(a <= d and b <= u and (a, b) != (d, u) for a, b in points.values()))


def sentences(made):
    said, first = verdict(made).whole, made.first
    assert f"{first.planned.chips:,} {first.planned.chip}" in said
    if first.days:
        assert all(time(d) in said for d in first.days)
    if first.usd:
        assert all(dollars(u) in said for u in first.usd)
    for name, limit in {"days": "deadline", "usd": "budget"}.items():
        if made.best and (kept := made.best.limits.get(name)):
            asked = getattr(made.asked, name)
            assert (kept.word == "yes") == (getattr(made.best, name)[2] <= asked)
            assert (f"beyond the {limit} of" in said) == (not kept.high)
    for reason in made.losers:
        if reason.total is not None and reason.total > 0 and reason.kind not in ("deadline", "budget"):
            assert reason.by is not None and f"{reason.chips:,} {reason.chip}" in reason.text
    assert not re.search(r"\b(inf|nan)\b|\d{22}", " ".join([said, *words(made).notes]))


def test_a_limit_that_would_do_does_and_a_smaller_one_does_not():
    made = answered(days="2", usd="1.2e6")
    assert made.best is None and {w.limit for w in made.would_do} == {"days", "usd"}
    for found in made.would_do:
        other = {"days": "usd", "usd": "days"}[found.limit]
        alone = {other: None} if found.alone else {}
        base = {"days": "2", "usd": "1.2e6", **alone}
        enough = answered(**{**base, found.limit: repr(found.value * 1.0000001)})
        assert enough.best is not None
        assert enough.best.planned.chips == found.choice.planned.chips
        assert answered(**{**base, found.limit: repr(found.value * 0.9999999)}).best is None
    said = verdict(made).whole
    assert "A deadline of" in said and "A budget of" in said and "is likely to do" in said


def test_a_limit_is_judged_at_both_ends_of_the_range():
    first = answered(on="h100", price=None, chips="1024").first
    low, likely, high = first.days
    for deadline, word, said in (
        (high * 1.01, "yes", ", within the deadline."),
        (likely * 1.01, "likely", f", likely within the deadline. The range reaches {time(high)}, beyond the deadline"),
    ):
        made = answered(on="h100", price=None, chips="1024", days=str(deadline))
        assert made.best.limits["days"].word == word and said in verdict(made).whole
    for deadline, word in ((likely * 0.99, "perhaps"), (low * 0.99, "no")):
        made = answered(on="h100", price=None, chips="1024", days=str(deadline))
        assert made.best is None and made.first.limits["days"].word == word
        assert made.to_dict()["layouts"][0]["meets"]["days"]["word"] == word


def test_the_front_is_that_of_every_layout_there_is():
    """Not only of those that are listed: five of each number of chips, of which the fastest alone can be on it."""
    from catalog import chip, model
    from simulators.training.plan import plan

    made = answered(chips="256,512")
    every = []
    for on, usd in (("v5p", 4.2), ("h100", 3.0)):
        for number in (256, 512):
            for p in plan(model("llama3.1-70b"), chip(on), number, made.batch, made.seq, most=10_000).layouts:
                s = 2e12 / (p.tokens_per_s_per_chip * number)
                every.append((s / 86_400, s / 3600 * number * usd))
    front = {(d, u) for d, u in every if not any(a <= d and b <= u and (a, b) != (d, u) for a, b in every)}
    assert len(every) > len(made.choices)
    found = sorted((c.days[1], c.usd[1]) for c in made.front)
    assert len(found) == len(front) and sum(found, ()) == pytest.approx(sum(sorted(front), ()))


def test_sensitivity_is_what_asking_again_answers():
    made = answered(on="h100", price="h100=3", chips="1024", goodput="0.9")
    found = {(m.what, round(m.value, 6)): m for m in sensitivity(made.first)}
    for goodput in ("0.85", "0.95"):
        again = answered(on="h100", price="h100=3", chips="1024", goodput=goodput).first
        m = found["goodput", float(goodput)]
        assert (m.days, m.usd) == pytest.approx((again.days[1], again.usd[1]))
    for price in ("2.4", "3.6"):
        again = answered(on="h100", price=f"h100={price}", chips="1024", goodput="0.9").first
        assert found["price", float(price)].usd == pytest.approx(again.usd[1])
    for by in (0.9, 1.1):
        again = at_mfu(made.first, made.first.planned.mfu * by, made)
        m = found["mfu", round(made.first.planned.mfu * by, 6)]
        assert (m.days, m.usd) == pytest.approx((again.days[1], again.usd[1]))
    whole = sensitivity(answered(on="h100", price=None, chips="1024").first)
    assert [m.value for m in whole if m.what == "goodput"] == [0.95] and {m.usd for m in whole} == {None}
    assert sensitivity(answered(tokens=None, price=None).first) == ()


def test_sliders_move_what_they_say_and_nothing_else():
    made = answered(chips="512,1024")
    assert counts(made) == [512, 1024]
    still = moved(made, made.first.planned.chips)
    assert still.plan is made and still.choice is made.first
    at = moved(made, 512, goodput=0.8, price=6.0, mfu=0.25)
    assert (at.choice.planned.chips, at.choice.goodput, at.choice.price) == (512, 0.8, 6.0)
    one = at.choice.planned
    assert one.mfu == 0.25 and sum(one.accounts.values()) == pytest.approx(one.step_s)
    assert sum(one.parts.values()) == pytest.approx(one.step_s) and min(one.accounts.values()) >= 0
    rate = one.tokens_per_s_per_chip * 512 * 0.8
    assert at.choice.days[1] == pytest.approx(2e12 / rate / 86_400)
    assert at.choice.usd[1] == pytest.approx(at.choice.days[1] * 24 * 512 * 6.0)
    others = {c.planned.chip: c.price for c in at.plan.choices}
    assert others == {"H100 SXM": 6.0, "TPU v5p": 4.2}


def test_one_that_fits_only_just_is_marked_with_what_is_left_and_one_that_is_safer():
    made = answered(on="h100", model="llama3.1-70b", chips="128,256", remat="full", price=None)
    tight, safer = made.first, made.safer
    assert tight.planned.tight and safer is not None and not safer.planned.tight
    assert safer.planned.chips == 256 and safer is next(c for c in made.choices if not c.planned.tight)
    assert tight.to_dict()["bytes_left_per_chip"] < 0.05 * tight.planned.hbm_bytes
    assert made.to_dict()["safer"]["bytes_left_per_chip"] == safer.planned.bytes_left
    said = verdict(made).whole
    assert "It fits only just: " in said and f"Safer: {safer.planned.chips:,} H100 SXM" in said
    assert "just fits" in words(made).table.rows[0][-1]
    roomy = answered(on="h100", chips="1024", price=None)
    assert roomy.safer is None and "fits only just" not in verdict(roomy).whole


def test_a_layout_without_an_axis_is_refused():
    for text in ("", "  ", ","):
        with pytest.raises(QuestionError, match="a layout without an axis"):
            find(Asked(model="llama3.1-8b", on="h100", chips="8", layout=text))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layout": "tp=8,tp=4"}, "axis 'tp' is given twice"),
        ({"layout": "tp=8, tp = 8"}, "axis 'tp' is given twice"),
        ({"layout": "  , "}, "a layout without an axis"),
        ({"layout": "tp" * 5000}, "axis 'tptp"),
        ({"on": "x" * 10_000}, "xxx"),
        ({"on": "h100," * 2000, "price": None}, None),
        ({"price": "v5p=0,h100=3"}, "price"),
        ({"price": "v5p=-1,h100=3"}, "price"),
        ({"price": "v5p=nan,h100=3"}, "price"),
        ({"tokens": "0"}, "tokens"),
        ({"tokens": "inf"}, "tokens"),
        ({"tokens": "nan"}, "tokens"),
        ({"tokens": "1e308"}, "tokens"),
        ({"days": "0"}, "days"),
        ({"days": "1e-30"}, "days"),
        ({"usd": "0"}, "usd"),
        ({"usd": "1e308"}, "usd"),
        ({"make": "cake"}, "one of maxtext, megatron"),
        ({"chips": "8" * 10_000}, "a number of chips"),
    ],
)
def test_odd_input_is_refused_in_few_words(change, said):
    try:
        answered(**change)
    except QuestionError as e:
        assert said and said in str(e) and len(str(e)) < 1200
    else:
        assert said is None


def test_limits_without_end_are_told_in_few_characters():
    made = answered(usd="1e15", days="1e5", tokens="1e18", goodput="1e-6", price="v5p=1e6,h100=1e6")
    assert len(verdict(made)) <= 220 and not re.search(r"\d[\d,]{13}", verdict(made).whole)
    assert "× 10" in verdict(made).whole and "years" in verdict(made).whole


def test_many_numbers_of_chips_without_a_layout_are_one_short_refusal():
    with pytest.raises(QuestionError) as error:
        answered(on="h100", price=None, model="llama3.1-405b", chips=",".join(str(n) for n in range(1, 50)))
    assert len(str(error.value)) < 1500 and "more likewise" in str(error.value)


def test_why_not_names_kinds_and_what_would_do():
    made = answered(on="h100", price=None, model="llama3.1-405b", chips="64,1024,1000")
    told = {r["chips"]: r for r in made.to_dict()["why_not"] if "layout" not in r}
    assert told[64]["kind"] == "memory" and told[64]["try_chips"] == [128]
    assert told[1000]["kind"] == "divisibility" and told[1000]["try_chips"] == [896, 1008]
    assert answered(on="h100", price=None, model="llama3.1-405b", chips="896,1008").choices
    few = answered(on="h100", price=None, model="llama3.1-8b", chips="256,8192", global_batch_tokens="65536")
    [one] = [r for r in few.to_dict()["why_not"] if r.get("chips") == 8192 and "layout" not in r]
    assert one["kind"] == "batch" and one["try_batch_tokens"] > 65536
    again = answered(
        on="h100", price=None, model="llama3.1-8b", chips="8192", global_batch_tokens=str(one["try_batch_tokens"])
    )
    assert again.choices


def test_a_batch_beyond_the_critical_one_is_told():
    made = answered(on="h100", price=None, chips="1024", tokens="1e10", global_batch_tokens="67108864")
    told = made.to_dict()["critical_batch"]
    assert told["place"] == "beyond" and told["more_tokens"]["low"] > 1
    assert "no batch, however large, halves the steps once more" in verdict(made).whole
    assert answered(tokens=None, price=None).to_dict()["critical_batch"] is None


def test_other_numbers_of_chips_that_keep_the_limits_are_named():
    made = answered(on="h100", price=None, chips="64,128", days="30")
    [chips] = [w for w in made.would_do if w.limit == "chips"]
    assert answered(on="h100", price=None, chips=str(int(chips.value)), days="30").best is not None
    assert answered(on="h100", price=None, chips=str(int(chips.value) // 2), days="30").best is None
    assert f"{chips.value:,.0f} H100 SXM are likely to keep it." in verdict(made).whole
    assert not any(w.limit == "chips" for w in answered(on="h100", price=None, days="0.1").would_do)
