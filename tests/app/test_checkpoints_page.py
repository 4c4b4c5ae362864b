"""The page about checkpoints and the planner: their heads, their inputs in the address, and what is not known."""

import pytest

from app.pages.checkpoint_planner.figure import given_back, over_interval
from app.whatif.checkpoint import CHECKPOINT
from app.whatif.checkpoint.wording import TITLES
from simulators.checkpointing import Job, goodput, optimal_s
from simulators.cures import ALL
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGE, PLANNER = "questions/checkpoints/page.py", "pages/checkpoint_planner/page.py"


@pytest.fixture
def run(place):
    return made_runs.interrupted(place.store)


def answer(**query):
    return CHECKPOINT.answer(CHECKPOINT.from_query({k: str(v) for k, v in query.items()}), None)


def charts(at):
    return [e for e in at.main if e.type == "plotly_chart"] or at.get("plotly_chart")


def test_a_run_says_how_often_it_saves_and_should(place, run):
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "You save every 16 min 40 s; every " in words(at)
    shown = {m.label[:-2]: m.value for m in at.metric}
    assert shown["A save blocks"] == "6.00 s" and shown["Between saves"] == "16 min 40 s"
    assert all(m.help for m in at.metric)
    assert len(charts(at)) == 2
    assert at.number_input(key="pick_save_s").value == 6
    assert at.number_input(key="pick_save_s").label == "A save (s) ●"


def test_a_number_entered_goes_into_the_address_and_back(place, run):
    at = opened(PAGE, run=run.run_id)
    at.number_input(key="pick_save_s").set_value(30.0).run()
    assert not at.exception
    assert at.query_params["save_s"] == "30"
    assert at.number_input(key="pick_save_s").label == "A save (s) ◇"
    again = opened(PAGE, run=run.run_id, save_s="30")
    assert again.number_input(key="pick_save_s").value == 30
    [back] = [b for b in again.button if "measured" in b.label]
    back.click().run()
    assert "save_s" not in again.query_params
    assert again.number_input(key="pick_save_s").value == 6


def test_a_price_gives_what_is_given_back_dollars(place, run):
    place.registry.price(run.run_id, 3.0)
    at = opened(PAGE, run=run.run_id)
    table = next(d.value for d in at.dataframe if "Assumed" in d.value)
    assert (table["Dollars"] == table["Chip-hours"] * 3).all()


def test_numbers_that_cannot_be_leave_the_page_standing(place, run):
    at = opened(PAGE, run=run.run_id, save_s="1000000")
    assert not at.exception
    assert "a failure comes every" in words(at)
    assert at.number_input(key="pick_save_s").value == 1_000_000
    assert not opened(PAGE, run=run.run_id, save_s="nonsense", mttf_s="-3").exception


def test_without_a_run_the_page_is_the_planner(place):
    at = opened(PAGE)
    assert not at.exception
    assert "Checkpoint planner" in words(at) and len(charts(at)) == 2


def test_the_planner_begins_with_an_example_that_its_address_holds(place):
    at = opened(PLANNER)
    assert not at.exception and not at.warning
    assert "Save after every 18 min 19 s of work: 87.4 % of the time then becomes kept work." in words(at)
    assert (at.query_params["save_s"], at.query_params["mttf_s"]) == ("60", "10800")


def test_a_rate_by_node_takes_the_place_of_a_mean_time_to_failure(place):
    at = opened(PLANNER, save_s="60", mttf_s="10800", nodes="128")
    at.number_input(key="pick_failures_per_1000_node_days").set_value(6.5).run()
    assert not at.exception and not at.warning
    assert "mttf_s" not in at.query_params


def test_the_planner_says_what_it_lacks(place):
    at = opened(PLANNER, save_s="60")
    assert not at.exception and "nothing says how often the job fails" in words(at)


def test_the_claim_is_worked_through_with_its_assumptions(place):
    at = opened(PLANNER)
    text = words(at)
    assert "no paper was found" in text and "48 slices" in text
    table = next(d.value for d in at.dataframe if "Gain" in d.value)
    assert len(table) == 6 and set(table["Failures per 1,000 node-days"]) == {2.34, 6.5}


def test_a_run_without_saves_asks_for_what_it_lacks(place):
    starts = [made_runs.START_NS + (k * 20 + (k > 4) * 900) * made_runs.S for k in range(10)]
    tables = {
        "steps": {
            "step": [*range(5), *range(3, 8)],
            "attempt": [0] * 5 + [1] * 5,
            "order": list(range(10)),
            "start_ns": starts,
        },
        "lifecycle": {
            "kind": ["job", "job"],
            "start_ns": [made_runs.START_NS, made_runs.START_NS + 990 * made_runs.S],
            "end_ns": [None, None],
            "order": [0, 1],
        },
    }
    run = made_runs.write(place.store, "no saves", tables, {"chips": 2})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception
    assert "1 failure in" in words(at) and "Enter what is not known" in words(at)
    at.number_input(key="pick_save_s").set_value(2.0).run()
    assert not at.exception and "Save after every" in words(at)


def test_the_curve_is_the_formula_and_its_marks_lie_on_it():
    made = answer(save_s=60, mttf_s=10800, restart_s=300, interval_s=7200)
    figure = over_interval(made)
    job = Job(save_s=60, mttf_s=10800, restart_s=300)
    line = next(t for t in figure.data if t.name == "goodput")
    assert line.y == pytest.approx(goodput(job, line.x) * 100)
    marks = {t.name: (t.x[0], t.y[0]) for t in figure.data if t.mode == "markers"}
    assert marks["best"] == pytest.approx((optimal_s(job), float(goodput(job, optimal_s(job))) * 100))
    assert marks["as it is"] == pytest.approx((7200, float(goodput(job, 7200)) * 100))
    assert {"Young", "Daly"} <= set(marks)


def test_bars_carry_gain_and_range():
    made = answer(save_s=60, mttf_s=10800, restart_s=300, interval_s=7200, wait_s=600, slices=16)
    bars = given_back(made).data[0]
    gains = {TITLES[c.name]: c for c in made.cures.offered}
    assert list(bars.y) == list(gains)
    for name, x, more, less in zip(bars.y, bars.x, bars.error_x.array, bars.error_x.arrayminus, strict=True):
        assert x == pytest.approx(gains[name].gain * 100)
        assert x + more == pytest.approx(gains[name].high * 100)
        assert x - less == pytest.approx(gains[name].low * 100)


def test_every_cure_has_a_title():
    assert set(TITLES) == set(ALL)
