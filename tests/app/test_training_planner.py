"""`whatif training`: the contract on the command line, what cannot be asked, its sentences, and its page."""

import contextlib
import itertools
import json
import re
import tomllib

import pytest
import yaml

from app.cli import main
from app.pages.training_planner.worked import WORKED
from app.serve import compiling
from app.serve.compiling import compile_request
from app.whatif.training import TRAINING
from app.whatif.training.asked import REMATS
from app.whatif.training.making import saving
from app.whatif.training.phrases import takes
from app.whatif.training.wording import verdict
from errors import QuestionError
from errors import format as fmt
from simulators.training import layout
from tests.app.test_pages import opened, words

QUERY = {"model": "llama3.1-70b", "on": "v5p,h100", "tokens": "2e12", "days": "30"}


def answered(**more):
    query = {k: v for k, v in {**QUERY, **more}.items() if v is not None}
    return TRAINING.answer(TRAINING.from_query(query), None)


def test_the_contract(capsys):
    arguments = [f"--{k}={v}" for k, v in QUERY.items()]
    assert main(["whatif", "training", *arguments, "--price", "v5p=4.2,h100=3", "--usd", "4e6", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    best = told["best"]
    assert best == told["layouts"][0] and best["fits"] and best["basis"] == "modelled" and best["days"] <= 30
    cut = best["layout"]
    assert best["chips"] == cut["dp"] * cut["fsdp"] * cut["tp"] * cut["pp"] * cut["cp"] * cut["ep"]
    assert best["days"] * 86_400 * best["tokens_per_s_per_chip"] * best["chips"] == pytest.approx(2e12)
    assert best["usd"] == pytest.approx(3 * 24 * best["days"] * best["chips"]) and best["usd"] <= 4e6
    assert best["band"]["low"] < best["step_s"] < best["band"]["high"]
    assert told["global_batch_tokens"] == pytest.approx(best["tokens_per_s_per_chip"] * best["chips"] * best["step_s"])
    ledger = told["ledger"]
    for split in ("accounts", "parts"):
        assert sum(ledger[split].values()) == pytest.approx(ledger["held"]) and min(ledger[split].values()) >= 0
    assert ledger["accounts"]["useful_maths"] / ledger["held"] == pytest.approx(best["mfu"])
    assert main(["whatif", "training", *arguments]) == 0
    assert "within the deadline" in capsys.readouterr().out


def test_what_is_computed_again_is_named_as_the_simulator_has_it():
    assert REMATS == layout.REMATS


def test_choices_are_ranked_and_the_cheapest_that_keeps_every_limit_is_the_best():
    made = answered(price="v5p=4.2,h100=3", usd="4e6")
    kept = [c for c in made.choices if c.days[1] <= 30 and c.usd[1] <= 4e6]
    assert made.best is min(kept, key=lambda c: c.usd[1]) and made.choices[: len(kept)] == tuple(
        sorted(kept, key=lambda c: (c.usd[1], c.days[1]))
    )
    assert {c.planned.chip for c in made.firsts} == {"TPU v5p", "H100 SXM"}


def test_without_tokens_steps_alone_are_told():
    made = answered(tokens=None, days=None, chips="256", on="v5p")
    first = made.choices[0]
    assert first.days is None and first.usd is None and first.meets == {}
    assert re.match(r"Most tokens for each chip's time: 256 TPU v5p as [\w, ]+\. A step takes ", verdict(made))
    assert all(c.planned.mfu <= first.planned.mfu for c in made.choices)
    assert first.to_dict()["topology"] == "v5p-512"


def test_fixed_axes_stay_fixed():
    made = answered(on="h100", chips="512", layout="tp=8, pp=4", days=None)
    assert {(c.planned.layout["tp"], c.planned.layout["pp"]) for c in made.choices} == {(8, 4)}
    free = answered(on="h100", chips="512", days=None)
    assert free.choices[0].planned.step_s <= made.choices[0].planned.step_s


def test_goodput_lengthens_the_job_and_nothing_else():
    whole, half = answered(on="h100", chips="1024"), answered(on="h100", chips="1024", goodput="0.5", days="300")
    assert half.choices[0].days[1] == pytest.approx(2 * whole.choices[0].days[1])
    assert half.choices[0].planned == whole.choices[0].planned


def test_what_does_not_fit_is_told_with_what_may():
    with pytest.raises(
        QuestionError, match=r"64 H100 SXM: llama3.1-405b does not fit.* from about \d+ on it may"
    ) as error:
        answered(model="llama3.1-405b", on="h100", chips="64", days=None)
    need = int(re.search(r"from about (\d+)", str(error.value))[1])
    more = 1 << (need - 1).bit_length()
    assert answered(model="llama3.1-405b", on="h100", chips=str(2 * more), days=None).choices
    made = answered(model="llama3.1-405b", on="h100", chips="64,1024", days=None)
    assert made.choices and made.why_not[0].startswith("64 H100 SXM: llama3.1-405b does not fit")


def test_a_deadline_that_nothing_keeps_is_told_with_the_nearest():
    made = answered(days="0.01")
    assert made.best is None and verdict(made).startswith(
        "Nothing that was tried is likely to keep the deadline. The nearest"
    )


@pytest.mark.parametrize(("limits", "last"), [({"days": "0.01"}, "days"), ({"usd": "1000", "days": None}, "usd")])
def test_the_nearest_to_a_limit_that_nothing_keeps_is_the_nearest(limits, last):
    made = answered(model="llama3.1-8b", on="h100", tokens="1e12", price="h100=2", **limits)
    taken = [getattr(choice, last)[1] for choice in made.choices]
    assert made.best is None and taken[0] == min(taken) < max(taken)


def test_what_is_said_to_do_does():
    """Amounts are rounded up: the budget and the deadline of the sentence are kept when they are asked."""
    told = verdict(answered(on="v5p", tokens="1e12", price="v5p=4.2", usd="1.57e6", days=None)).whole
    millions = re.search(r"A budget of \$([\d.]+) million is likely to do", told)
    assert millions and answered(on="v5p", tokens="1e12", price="v5p=4.2", usd=f"{millions[1]}e6", days=None).best
    told = verdict(answered(model="llama3.1-8b", on="h100", tokens="1e12", days="0.2965")).whole
    at = re.search(r"A deadline of (\d+) h (\d+) min is likely to do", told)
    days = str((int(at[1]) + int(at[2]) / 60) / 24)
    assert answered(model="llama3.1-8b", on="h100", tokens="1e12", days=days).best


def test_a_generation_whose_runs_lay_outside_of_the_usual_range_has_the_widest():
    ranges = {on: answered(on=on, chips="256", days=None).choices[0].planned for on in ("h100", "b200", "mi300x")}
    wide = {on: planned.high_s / planned.low_s for on, planned in ranges.items()}
    assert wide["h100"] < wide["b200"] == pytest.approx(wide["mi300x"])


def test_a_chip_without_a_peak_is_told():
    made = answered(on="h100,TPU 8t")
    assert {c.planned.chip for c in made.choices} == {"H100 SXM"} and made.why_not[0].startswith("TPU 8t: ")
    planned = answered(on="TPU 8t", precision="fp4")
    assert planned.choices[0].planned.published == 0
    assert "TPU 8t: no BF16 peak is published: attention is taken at a quarter of the FP4 peak." in planned.why_not


def test_a_network_that_is_not_published_is_told_where_it_is_needed():
    said = "GB300: its share of a data-centre network is taken as 50 GB/s."
    assert said in answered(on="gb300", chips="256", days=None).why_not
    assert said not in answered(on="gb300", chips="64", days=None).why_not


def test_where_nothing_was_published_the_range_is_wider():
    seen, unseen = (answered(on=on, chips="256", days=None).choices[0].planned for on in ("h100", "mi300x"))
    assert unseen.high_s / unseen.step_s > seen.high_s / seen.step_s
    assert "No run on such a chip" in verdict(answered(on="mi300x", chips="256", days=None)).whole


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": None}, "--model"),
        ({"on": "nothing"}, "nothing"),
        ({"on": ","}, "no chip to try"),
        ({"tokens": "0"}, "tokens"),
        ({"tokens": None}, "a deadline or a budget, without"),
        ({"days": "-3"}, "days"),
        ({"chips": "0"}, "a number of chips"),
        ({"chips": ",".join(map(str, range(1, 60)))}, "at most 50"),
        ({"chips": "7"}, "no layout divides|does not fit"),
        ({"goodput": "0"}, "goodput"),
        ({"price": "h100=-3"}, "price"),
        ({"price": "h200=3"}, "a price for H200 SXM"),
        ({"layout": "xp=3"}, "axis 'xp'"),
        ({"layout": "tp=0"}, "the size of tp"),
        ({"layout": "tp=many"}, "the size of tp"),
        ({"layout": "tp=8,pp=4", "chips": "16"}, "cuts 32 ways, on 16 chips"),
        ({"layout": "tp=3", "chips": "48"}, r"tp 3 does not divide the heads .*; the nearest that do are 2 and 4"),
        ({"layout": "tp=3", "chips": "48"}, "Give the axes sizes that divide, or leave them free"),
        ({"layout": "micro=3", "chips": "48"}, r"no layout with micro 3 divides .*; free some of the axes"),
        ({"usd": "4e6"}, "a budget, without the price of a chip"),
        ({"on": "t4", "chips": "64"}, "the chip has no BF16"),
        ({"seq": "0"}, "seq"),
        ({"global_batch_tokens": "100"}, "at least one sequence"),
        ({"remat": "all"}, "remat"),
        ({"precision": "fp64"}, "precision"),
        ({"on": "a100", "precision": "fp8"}, "fp8_flops_per_s"),
    ],
)
def test_what_cannot_be_asked(change, said):
    with pytest.raises(QuestionError, match=said):
        answered(**change)


def test_whatever_is_asked_the_answer_is_finite():
    ends = {
        "model": ("llama3.1-8b", "deepseek3-671b"),
        "tokens": ("1e18", None),
        "chips": ("1", "4096", "2147483647", None),
        "seq": ("1", "8192", "1048576"),
        "global_batch_tokens": ("1", "1e12", None),
        "price": ("v5p=1e-300,h100=1e6",),
    }
    answers = 0
    for values in itertools.product(*ends.values()):
        with contextlib.suppress(QuestionError):
            made = answered(**dict(zip(ends, values, strict=True)), days=None)
            json.dumps(made.to_dict(), allow_nan=False)
            assert "inf" not in verdict(made) and "nan" not in verdict(made)
            answers += 1
    assert answers > 20


def test_most_tokens_are_most_tokens_on_whatever_chip():
    """Not the highest MFU: an A100 keeps more of a lesser peak busy."""
    made = answered(tokens=None, days=None, chips="256", on="a100,b200,h100")
    rates = [c.planned.tokens_per_s_per_chip for c in made.choices]
    assert rates == sorted(rates, reverse=True) and made.choices[0].planned.chip == "B200"
    assert max(made.choices, key=lambda c: c.planned.mfu).planned.chip == "A100 SXM 80GB"


def test_a_chip_without_a_price_is_not_said_to_keep_a_budget():
    made = answered(chips="1024", days="200", usd="4e6", price="v5p=4.2")
    assert made.best.planned.chip == "TPU v5p" and {c.meets["usd"] for c in made.choices if c.usd is None} == {False}
    assert "H100 SXM: no price is given, so it is not known whether the budget is kept." in made.why_not
    missed = answered(chips="1024", days="200", usd="4", price="v5p=4.2")
    assert missed.best is None and missed.choices[0].usd is not None, "the nearest is one of which it is known"


@pytest.mark.parametrize(
    ("on", "chips", "said"),
    [
        ("v6e", "512", "512 TPU v6e are more than a pod, which has 256"),
        ("v5p", "80", "80 TPU v5p are no slice that is offered; the nearest that are listed have 64 and 128 chips."),
        ("v5p", "96", "96 TPU v5p: no layout divides .*; the nearest that have some: 80 and 128 chips."),
    ],
)
def test_numbers_of_chips_that_are_no_slice(on, chips, said):
    made = answered(on=on, chips=f"{chips},256", days=None)
    assert re.match(said, made.why_not[0])
    assert all(c.to_dict()["topology"] is None for c in made.choices if c.planned.chips == int(chips))


def test_the_page(place):
    page = opened("pages/training_planner/page.py")
    assert not page.exception and "within the deadline and budget" in words(page)
    assert {m.label.split(" ")[0] for m in page.metric} == {"Chips", "MFU", "Memory", "Training", "Dollars"}
    bare = opened("pages/training_planner/page.py", model="llama3.1-8b", on="v6e", chips="64")
    assert not bare.exception and "Most tokens for each chip's time" in words(bare)
    refused = opened("pages/training_planner/page.py", **QUERY, goodput="2")
    assert not refused.exception and "Goodput: 2; expected" in words(refused)


PAGE = "pages/training_planner/page.py"


def test_after_a_refusal_the_form_shows_what_was_asked_and_what_holds_otherwise(place):
    page = opened(PAGE, model="llama-3.1-70b", on="h100,TPU v5p", tokens="nothing")
    assert not page.exception and "Tokens to train on" in words(page)
    chosen = {s.label: s.value for s in page.selectbox}
    assert chosen["Computed again"] == "part" and chosen["Model"] == "llama3.1-70b"
    assert page.multiselect[0].value == ["TPU v5p", "H100 SXM"]
    full = opened(PAGE, model="nobody's", on="nothing,h100", remat="full")
    assert {s.label: s.value for s in full.selectbox}["Computed again"] == "full"
    assert full.multiselect[0].value == ["H100 SXM"]


def test_a_slider_moves_the_answer_and_stands_in_the_address(place):
    page = opened(PAGE, model="llama3.1-70b", on="h100", tokens="2e12", chips="512,1024", price="h100=3")
    assert "At the sliders: what was asked for." in words(page).replace("*", "")
    page.slider(key="slide_at_goodput").set_value(80.0).run()
    assert page.query_params["at_goodput"] == "0.8" and not page.exception
    whole, moved = (answered(on="h100", chips="1024", days=None, price="h100=3", goodput=g) for g in (None, "0.8"))
    assert takes(moved.first) != takes(whole.first)
    page.select_slider(key="slide_at_chips").set_value(1024).run()
    assert takes(moved.first) in words(page)


@pytest.mark.parametrize(
    "odd",
    [
        {"goodput": "1e-6", "price": "h100=1e-9"},
        {"price": "h100=1e6", "at_price": "nan", "at_goodput": "-3", "at_chips": "many", "at_mfu": "1e308"},
        {"at_chips": "7", "at_goodput": "0.9", "at_mfu": "0.3"},
    ],
)
def test_odd_sliders_in_the_address_are_passed_over(place, odd):
    page = opened(PAGE, model="llama3.1-8b", on="h100", tokens="1e12", chips="64,128", **odd)
    assert not page.exception and "At the sliders" in words(page)


def test_what_makes_it_real_is_there_to_copy(place):
    page = opened(PAGE, model="llama3.1-8b", on="v6e", chips="256", layout="pp=1", make="compile")
    assert "chipledger compile llama3.1-8b" in page.code[0].value and "--topology v6e:16x16" in page.code[0].value
    page.button_group(key="switch_make").set_value("gke").run()
    assert "gcloud container node-pools create" in page.code[0].value and "google.com/tpu: 4" in page.code[1].value
    assert "Slurm is written for GPUs here" in words(page)


@pytest.mark.parametrize("one", WORKED, ids=lambda w: w.name)
def test_a_published_job_fills_in_the_form(place, one):
    page = opened(PAGE, **one.query, worked=one.name)
    assert not page.exception
    [told] = [i.value.replace("\\", "") for i in page.info if "Published: " in i.value.replace("\\", "")]
    first = answered(**{**dict.fromkeys(QUERY), **one.query}).first
    published, modelled = (
        (one.days, first.days[1]) if one.days else (one.flops_per_s, first.planned.flops_per_s_per_chip)
    )
    assert told.startswith(one.title) and fmt.share(abs(modelled / published - 1)) in told
    other = opened(PAGE, **{**one.query, "seq": "1024"}, worked=one.name)
    assert "Published: " not in words(other), "another question is no published job"


def test_every_text_that_is_offered_is_one_that_its_reader_takes(monkeypatch):
    """The compiler's request is checked as the server checks it, YAML and TOML are parsed."""
    monkeypatch.setattr(compiling, "missing", lambda: "")  # to check a request takes no compiler
    for query in ({"on": "v6e", "chips": "256", "layout": "pp=1"}, {"on": "7x", "chips": "512", "layout": "pp=1"}):
        made = answered(model="llama3.1-8b", days=None, **query).make
        compile_request(made["compile"]["query"])
        assert list(yaml.safe_load_all(made["gke"]["text"])) and yaml.safe_load(made["pathways"]["text"])
    made = answered(days=None, on="h100", chips="1024").make
    assert tomllib.loads(made["torchtitan"]["text"]) and yaml.safe_load(made["maxtext"]["text"])
    assert made["slurm"]["text"].startswith("#!/bin/bash") and "unavailable" in made["compile"]
    several = answered(days=None, on="v6e", chips="1024", layout="pp=1").make
    assert several["for"]["slice"] == "v6e:16x16:slices=4" and "--num-slices=4" in several["xpk"]["text"]
    compile_request(several["compile"]["query"])


def test_make_prints_the_text_alone(capsys):
    arguments = ["whatif", "training", "--model", "llama3.1-70b", "--on", "h100", "--chips", "1024"]
    assert main([*arguments, "--make", "torchtitan"]) == 0
    printed = tomllib.loads(capsys.readouterr().out)
    assert printed["parallelism"]["tensor_parallel_degree"] >= 1
    assert main([*arguments, "--make", "gke"]) == 2
    assert "expected --make maxtext or megatron or torchtitan or slurm" in capsys.readouterr().err
    assert main([*arguments[:5], "v6e", "--chips", "256", "--make", "gke"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# gcloud container node-pools create") and list(yaml.safe_load_all(out))


def test_a_checkpoint_plan_says_how_often_where_it_is_known():
    made = answered(days=None, on="h100", chips="1024", price="h100=3")
    asked = made.make["checkpoint"]
    assert asked["query"]["chips"] == "1024" and "--save-s SAVE_S" in asked["text"]
    assert asked["bytes"] == pytest.approx(12 * 70.55e9, rel=0.01) and "interval_s" not in asked
    told = saving({"save_s": 60.0, "mttf_s": 36_000.0, "chips": 1024})
    assert told["interval_s"] == pytest.approx((2 * 60 * 36_000) ** 0.5, rel=0.05) and 0.9 < told["goodput"] < 1
    assert "SAVE_S" not in told["text"] and "--mttf-s 36000" in told["text"]
