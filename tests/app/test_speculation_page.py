"""Speculation: its page, its words, its figures, and the what-if."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from app.cli import main
from app.questions.speculation.figure import by_batch, by_draft, by_position, over_time
from app.questions.speculation.words import decay, limit, table, verdict
from app.whatif.speculation import SPECULATION as WHATIF
from catalog.inference import speculation_speedup
from errors import QuestionError
from tests.analyzers.test_speculation import COUNTERS, DENSE, asked
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGE = "questions/speculation/page.py"


def test_verdicts():
    text = verdict(asked(COUNTERS, DENSE, cost=0.1))
    assert text.startswith("57.8 % of the draft tokens are accepted: a draft of 4 gives 3.31 tokens a step, 2.37 times")
    assert "On this chip it pays up to about 140 sequences at a time." in text
    assert "On this chip" not in verdict(asked(COUNTERS))
    alone = verdict(asked(facts=DENSE, acceptance=0.1, draft=8, cost=0.5))
    assert "does not pay at any batch" in alone and "No draft length would pay at this cost." in alone
    assert "pays at any batch" in verdict(asked(facts=DENSE, acceptance=0.8, context=32768))
    running = {"engine": COUNTERS["engine"] | {"running": [100, 100, 100, 100]}}
    assert "At the 100 that run it is worth 1.3" in verdict(asked(running, DENSE, cost=0.1)).whole


INF = float("inf")


@pytest.mark.parametrize(
    "pays, text",
    [
        ((), "none"),
        (((1.0, INF),), "any"),
        (((1.0, 70.2),), "70.2"),
        (((17.3, 1909.8),), "18 to 1,910"),
        (((1.0, 2.5), (14.2, INF)), "from 15"),  # the last range: the sentence tells all
    ],
)
def test_the_last_range_of_batches_in_short(pays, text):
    assert limit(pays) == text


def test_each_end_of_where_it_pays_is_drawn():
    result = asked(COUNTERS, DENSE, cost=0.1)
    drawn = by_batch(replace(result, pays=((18.0, 190.0),)))
    assert [a.x for a in drawn.layout.annotations if "break-even" in a.text] == pytest.approx(np.log10([18.0, 190.0]))


def test_how_acceptance_falls_is_told():
    def told(shares):
        n = 1000
        tables = {
            "engine": {
                "ts_ns": [1, 2],
                "drafts": [0, n],
                "drafted": [0, n * 3],
                "accepted": [0, 3],
                "accepted_per_position": [[0.0] * 3, [s * n for s in shares]],
            }
        }
        return decay(asked(tables))

    assert "guessed worse" in told([0.8, 0.5, 0.2])
    assert "tends to stay so" in told([0.5, 0.45, 0.42])
    assert "as equal and independent chances" in told([0.8, 0.64, 0.51])
    assert decay(asked(facts=DENSE, acceptance=0.8)) == ""


def test_tables():
    measured = table(asked(COUNTERS))
    assert measured.head[0] == "position" and len(measured.rows) == 4 and measured.rows[0][1] == "86.9 %"
    assert table(asked(facts=DENSE, acceptance=0.8)).rows[5][2] == "2.95 times"


def test_figures_hold_the_numbers():
    result = asked(COUNTERS, DENSE, cost=0.1)
    bars, theory = by_position(result).data
    assert list(bars.y) == pytest.approx([100 * n / 160 for n in (139, 105, 73, 53)])
    assert list(theory.y) == pytest.approx([100 * result.acceptance**i for i in range(1, 5)])
    lines = {t.name: t for t in by_draft(result).data}
    assert lines["by Leviathan's rule"].y[4] == pytest.approx(speculation_speedup(result.acceptance, 4, 0.1))
    assert lines["with the measured positions"].y[-1] == pytest.approx(result.speedup)
    assert lines["if the last chance held on"].y[0] == pytest.approx(result.speedup)
    curve = by_batch(result).data[0]
    assert curve.y[0] == pytest.approx(result.speedup)
    assert np.interp(result.break_even_batch, curve.x, curve.y) == pytest.approx(1, abs=0.02)
    assert by_batch(asked(COUNTERS)) is None
    assert len(over_time(asked(COUNTERS)).data[0].x) == 3


def test_the_page_of_a_run(place):
    run = made_runs.write(place.store, "drafting", COUNTERS, DENSE, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "57.8 % of the draft tokens are accepted" in words(at)
    assert {m.label[:-2]: m.value for m in at.metric}["Accepted"] == "57.8 %"
    at.selectbox(key="pick_cost").set_value("0.5").run()
    assert at.query_params["cost"] == "0.5" and "a draft step costs 50 % of one" in words(at)


def test_the_page_of_a_run_without_a_chip_says_what_is_missing(place):
    run = made_runs.write(place.store, "drafting", COUNTERS, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "Choose the model at the head of the page" in words(at)


def test_the_page_of_a_model_and_of_a_run_that_does_not_draft(place):
    at = opened(PAGE, model="llama3.1-8b")
    assert not at.exception and "With a chance of 80.0 % for each token" in words(at)
    run = made_runs.write(place.store, "plain", {"engine": {"ts_ns": [1], "running": [3]}}, DENSE, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "tells nothing of draft tokens" in words(at)


@pytest.mark.parametrize(
    "a, k, c, speedup", [(0.8, 5, 0.05, 2.9514), (0.7, 3, 0.1, 1.9485), (0.9, 7, 0.02, 4.9959), (0.8, 4, 0, 3.3616)]
)
def test_the_what_if_prints_leviathan_s_numbers(capsys, a, k, c, speedup):
    given = ["--acceptance", a, "--draft", k, "--cost", c]
    assert main(["whatif", "speculation", *map(str, given), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["speedup"] == pytest.approx(speedup, abs=5e-5)
    assert told["best_speedup"] >= told["speedup"] and told["break_even_batch"] is None


def answer(**query):
    return WHATIF.answer(WHATIF.from_query({k: str(v) for k, v in query.items()}), None)


def test_the_what_if_with_a_machine():
    result = answer(acceptance=0.8, draft=5, cost=0.05, model="llama-3.1-8b", chip="v5e")
    told = result.to_dict()
    assert told["free_batch"] == pytest.approx(197e12 / 819e9 / 6)
    assert told["break_even_batch"] == pytest.approx(197e12 / 819e9 * (3.68928 - 0.25) / 6, rel=1e-6)
    assert "It pays up to about 138 sequences at a time; verifying is free up to 40." in WHATIF.words(result).verdict
    long = answer(acceptance=0.8, draft=5, model="llama-3.1-8b", chip="v5e", context=32768)
    assert long.to_dict()["pays_at_any_batch"] and "at any batch" in WHATIF.words(long).verdict


@pytest.mark.parametrize(
    ("model", "chip", "acceptance", "draft", "cost", "context", "said"),
    [
        ("deepseek3-671b", "h200", 0.6, 3, 0.05, 0, r"It pays from about 18 to about [\d,]+ sequences at a time\."),
        ("qwen3-30b-a3b", "h100", 0.5, 4, 0.1, 2000, r"It pays from about 15 sequences at a time\."),
        ("deepseek3-671b", "h200", 0.1, 8, 0.5, 0, r"It does not pay at any batch\."),
    ],
)
def test_drafts_of_a_model_with_experts_pay_between_batches(model, chip, acceptance, draft, cost, context, said):
    query = {"model": model, "chip": chip, "context": context}
    result = answer(acceptance=acceptance, draft=draft, cost=cost, **query)
    told, verdict = result.to_dict(), WHATIF.words(result).verdict
    assert re.search(said, verdict) and "bound by memory" not in verdict
    assert told["free_batch"] is None and not told["pays_at_any_batch"]
    for batch in (1, 4, 16, 64, 256, 1024, 4096):
        pays = any(low <= batch <= (high or np.inf) for low, high in told["pays_between_batches"])
        assert pays == (result.machine.speedup(batch, result.asked.length, draft, cost) >= 1)


def test_verifying_is_said_to_be_free_at_none_where_attention_is_bound_by_computing():
    long = answer(acceptance=0.8, draft=8, cost=0.05, model="qwen3-32b", chip="H20", context=131072)
    said = WHATIF.words(long).verdict
    assert long.to_dict()["free_batch"] == 0 and "verifying is free at none" in said
    assert "It pays at any batch; " in said and "caches" not in said


def test_the_page_says_where_verifying_costs(place):
    for facts, said in ((DENSE, "beyond the first line"), (DENSE | {"model": "mixtral-8x7b"}, "at any number of them")):
        run = made_runs.write(place.store, "drafting", COUNTERS, facts, kind="serving")
        assert said in words(opened(PAGE, run=run.run_id))


def test_the_best_of_long_drafts_is_told_and_drawn():
    long = answer(acceptance=0.95, cost=0.01, draft=8)
    assert "40 draft tokens would be best: 12.54 times." in WHATIF.words(long).verdict
    assert "12.54 times" in verdict(asked(facts=DENSE, acceptance=0.95, draft=8, cost=0.01)).whole
    drawn = by_draft(asked(facts=DENSE, acceptance=0.95, draft=8, cost=0.01))
    assert max(drawn.data[0].y) == pytest.approx(12.54, abs=0.01) and drawn.data[0].y[-1] < 12.54
    assert "best: 40 (12.54 times)" in [a.text for a in drawn.layout.annotations]


def test_where_no_length_is_best_it_is_told_how_far_was_tried():
    free = answer(acceptance=0.8, cost=0, draft=4)
    said = "16 draft tokens would be best of those tried: 4.89 times; more would gain yet."
    assert said in WHATIF.words(free).verdict and any("16 are as far as was tried" in n for n in free.notes())
    result = asked(facts=DENSE, acceptance=0.8, draft=4, cost=0)
    assert said in verdict(result).whole
    assert "best of those tried: 16 (4.89 times)" in [a.text for a in by_draft(result).layout.annotations]


def test_without_a_length_the_best_is_taken():
    assert answer(acceptance=0.8, cost=0.05).to_dict()["draft"] == 8
    never = answer(acceptance=0.2, cost=0.9)
    assert never.draft == 1 and "It does not pay." in WHATIF.words(never).verdict


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"acceptance": 1.2},
        {"acceptance": 0.5, "draft": 0},
        {"acceptance": 0.5, "cost": -1},
        {"acceptance": 0.5, "model": "llama-3.1-8b"},
        {"acceptance": 0.5, "model": "no-such", "chip": "v5e"},
        {"acceptance": 0.5, "draft": 10**6},
        {"acceptance": "much"},
        {"acceptance": "nan"},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(QuestionError):
        answer(**wrong)
