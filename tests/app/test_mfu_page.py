"""The MFU page: its numbers, its convention in the address, and what it teaches where something is missing."""

import json

import pytest

from analyzers.flops import flops as flops_analyzer
from analyzers.flops import mfu as mfu_analyzer
from app.questions.asking import ModelSubject, answer_dict, ask
from app.questions.flops import FLOPS
from app.questions.flops import words as flops_answer
from app.questions.mfu import MFU
from app.questions.mfu import words as mfu_answer
from app.questions.mfu.figure import conventions, over_steps, utilisations
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGE = "questions/mfu/page.py"
TOKENS, EXACT, LOOSE = 16_384, 51_470_401_536, 57_912_852_480  # of Llama 3.1 8B at T 8192, causal and non-causal
FACTS = {"chip": "TPU v6e", "chips": 256, "model": "llama3.1-8b", "max_target_length": 8192, "precision": "bf16"}


def columns(seconds, tokens=True, per_token=LOOSE):
    n = len(seconds)
    return {
        "step": list(range(n)),
        "dur_ns": [int(s * 1e9) for s in seconds],
        "order": list(range(n)),
        "source": ["a.log"] * n,
        "attempt": [0] * n,
        "tokens_per_s_per_chip": [TOKENS / s for s in seconds] if tokens else [None] * n,
        "model_flops_per_chip": [float(TOKENS * per_token)] * n if per_token else [None] * n,
    }


def logged(store, seconds=(0.02, *[2.2] * 30), facts=FACTS, **more):
    return made_runs.write(store, "trillium", {"steps": columns(list(seconds), **more)}, facts)


def values(at):
    return {m.label.split()[0]: m.value for m in at.metric}


def test_numbers_verdict_and_fingerprint(place):
    at = opened(PAGE, run=logged(place.store).run_id)
    assert not at.exception and not at.warning
    mfu = TOKENS * EXACT / 2.2 / 918e12
    assert values(at)["MFU"] == f"{mfu * 100:.1f} %" == "41.8 %"
    assert values(at)["HFU"] == "–"
    said = words(at)
    assert "Usual steps turn 41.8 % of the chips' peak into useful maths" in said
    assert "1 step cannot be true as printed and is left out" in said
    assert "The printed numbers used the non-causal convention" in said
    assert "By that count MFU reads 47.0 % instead of 41.8 %" in said


def test_the_convention_is_in_the_address(place):
    run = logged(place.store)
    at = opened(PAGE, run=run.run_id, convention="noncausal")
    assert values(at)["MFU"] == "47.0 %" and "the non-causal convention" in words(at)
    at = opened(PAGE, run=run.run_id)
    at.segmented_control(key="switch_convention").set_value("job").run()
    assert not at.exception
    assert at.query_params["convention"] == ["job"] or at.query_params["convention"] == "job"
    assert values(at)["MFU"] == "47.0 %"


def test_assumptions_are_in_the_address(place):
    at = opened(PAGE, run=logged(place.store).run_id, chip="TPU v5p", remat="full")
    assert not at.exception
    assert values(at)["MFU"] == "83.5 %"
    assert values(at)["HFU"] == "111 %"


def test_an_unknown_model_is_asked_for_and_the_answer_used(place):
    run = logged(place.store, facts={**FACTS, "model": "our-own"})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert values(at)["MFU"] == "47.0 %", "the job's own count"
    at.selectbox(key="cost_model").select("llama3.1-8b").run()
    assert not at.exception
    assert values(at)["MFU"] == "41.8 %"


@pytest.mark.parametrize(
    "address, said",
    [
        ({"model": "no-such"}, "no model is called 'no-such'"),
        ({"chip": "no-such"}, "no chip is called 'no-such'"),
        ({"convention": "no-such"}, "option convention='no-such'"),
        ({"seq": "0"}, "expected a whole number from 1"),
        ({"precision": "fp4"}, "does not know fp4"),
    ],
)
def test_an_address_that_cannot_be_answered_is_told_kindly(place, address, said):
    at = opened(PAGE, run=logged(place.store).run_id, **address)
    assert not at.exception
    assert said in words(at)


def test_a_run_without_steps_teaches(place):
    run = made_runs.write(place.store, "other", {"scalars": {"name": ["x"], "value": [1.0]}}, {"chip": "TPU v6e"})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception
    assert "there are no steps to take a rate from" in words(at)
    assert any("train.py" in c.value for c in at.code)


def test_every_table_is_text_and_the_json_holds_no_nan(place):
    for run in (logged(place.store), logged(place.store, tokens=False), made_runs.interrupted(place.store)):
        result = ask(MFU, run, {}, place.registry)
        assert all(isinstance(cell, str) for row in mfu_answer.table(result).rows for cell in row)
        json.dumps(answer_dict(run, result), allow_nan=False)


def of(seconds=(30.0, 0.02, *[2.2] * 30), facts=FACTS, **options):
    tables = MemoryTables({"steps": columns(list(seconds))})
    return mfu_analyzer.analyze(tables, facts_of(facts), parse_options(mfu_analyzer.OPTIONS, options))


def test_the_largest_gap_leads_the_verdict():
    slow_steps = mfu_answer.verdict(of((2.0, 2.0, *[4.0] * 30)))
    assert "if every step did, they would take" in slow_steps and "49 % less time" in slow_steps
    assert "That is as good as the best" in mfu_answer.verdict(of([2.2] * 30))
    no_peak = of(facts={**FACTS, "chip": "abacus"})
    assert "which share of its peak that is, no input tells" in mfu_answer.verdict(no_peak)


def test_a_stated_rate_in_words(place):
    subject = ModelSubject("llama3.1-405b", "llama3.1-405b")
    result = ask(MFU, subject, {"tflops_per_s": "430", "chip": "H100"}, place.registry)
    assert mfu_answer.verdict(result).startswith("430 TFLOP/s per chip is 43.5 % of the catalogue peak of H100 SXM")
    result = ask(FLOPS, subject, {"seq": "8192"}, place.registry)
    assert "costs 2.52 TFLOPs in sequences of 8,192 tokens" in flops_answer.verdict(result)
    assert "4.02 % higher for the same speed" in flops_answer.verdict(result)
    assert len(flops_answer.table(result).rows) == 9


def test_impossible_steps_are_hollow_at_the_edge():
    figure = over_steps(of())
    false = next(t for t in figure.data if t.name == "cannot be true")
    assert false.marker.symbol == "triangle-up-open"
    assert max(false.y) <= figure.layout.yaxis.range[1]
    assert "TFLOP/s: its FLOP/s exceed the chip's peak" in false.hovertext[0]
    labels = [a.text for a in figure.layout.annotations]
    assert any("best step 41.8 %" in a for a in labels) and any("average over the wall time" in a for a in labels)


def test_a_long_run_is_reduced_with_its_extremes():
    seconds = [2.2] * 50_000
    seconds[777], seconds[40_404] = 2.1, 9.0
    figure = over_steps(of(seconds))
    (points,) = [t for t in figure.data if (t.name or "").startswith("stands out")]
    y = points.y
    assert len(y) == 2 and len(figure.to_json()) < 200_000
    assert max(y) == pytest.approx(100 * TOKENS * EXACT / 2.1 / 918e12, rel=1e-4)
    assert min(y) == pytest.approx(100 * TOKENS * EXACT / 9.0 / 918e12, rel=1e-4)


def test_bars_stack_to_what_a_token_costs():
    facts = facts_of({"model": "deepseek3-671b"})
    counts = flops_analyzer.analyze(MemoryTables({}), facts, {"model": None, "seq": 4096}).counts
    figure = conventions(counts, 259.99e9)
    names = figure.data[0].y
    totals = [sum(t.x[i] for t in figure.data) for i in range(len(names))]
    assert dict(zip(names, totals, strict=True))["Megatron"] == pytest.approx(0.25999, rel=1e-4)
    assert "windows-halved" not in names, "the same as exact causal for a model without windows"


def test_recomputation_is_stacked_on_mfu():
    figure = utilisations(of(remat="full"))
    mfu = 100 * TOKENS * EXACT / 2.2 / 918e12
    assert figure.data[0].x[-1] == pytest.approx(mfu) and figure.data[1].x[0] == pytest.approx(mfu / 3)
    unknown = utilisations(of())
    assert any(a.text == "not known" and a.y == "HFU" for a in unknown.layout.annotations)
