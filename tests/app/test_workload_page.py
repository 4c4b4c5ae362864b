"""The page of the traffic, and the same answer in words."""

from dataclasses import replace

import numpy as np
import pytest

from analyzers.serving.traffic import STAGE
from app.questions.asking import ask
from app.questions.traffic import TRAFFIC
from app.questions.traffic import figure as draw
from app.questions.traffic import words as answer
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGE = "questions/traffic/page.py"
START_NS, S = made_runs.START_NS, made_runs.S


def traffic(place, times, name="traffic", **columns):
    n = len(times)
    table = {
        "arrival_ns": [START_NS + round(float(t) * S) for t in times],
        "prompt_tokens": [600] * n,
        "output_tokens": [20] * n,
        "source": ["trace.csv"] * n,
        **columns,
    }
    return made_runs.write(place.store, name, {"requests": table}, {}, kind="serving")


def bursts() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.sort((np.cumsum(rng.exponential(20, 60))[:, None] + rng.uniform(0, 1, (60, 30))).ravel())


def result_of(place, run):
    return ask(TRAFFIC, run, {}, place.registry)


@pytest.mark.parametrize("view", ["rate", "windows", "lengths", "mix", "tokens"])
def test_every_view_of_bursty_traffic(place, view):
    run = traffic(place, bursts())
    at = opened(PAGE, run=run.run_id, view=view)
    assert not at.exception and not at.warning
    text = words(at)
    assert "Bursts: gaps between requests have a CV of" in text and "a Poisson model would stay within" in text
    assert "96.8 % of the tokens are prompts: the median request reads 600 and writes 20." in text
    assert [m.label.split(" ")[0] for m in at.metric] == ["Requests/s", "CV", "Peak", "Prompt", "Tokens,"]


def test_views_without_an_answer_are_not_offered(place):
    at = opened(PAGE, run=traffic(place, [0.0] * 40).run_id)
    assert not at.exception
    assert "All 40 requests came at once" in words(at)
    assert at.segmented_control[0].options == ["Lengths", "Mix"]


def test_a_served_run_shows_its_requests_in_flight(place):
    times = np.cumsum(np.random.default_rng(0).exponential(0.5, 400))
    ends = [START_NS + round((t + 3) * S) for t in times]
    run = traffic(place, times, last_token_ns=ends, first_token_ns=[e - S for e in ends], status=["completed"] * 400)
    at = opened(PAGE, run=run.run_id, view="flight")
    assert not at.exception and "Requests in the system" in words(at)
    assert "Arrivals look like a Poisson process" in words(at)


def test_one_load_of_several_is_chosen_in_the_address(place):
    times = [*np.arange(50.0), *(1000 + np.arange(50.0))]
    run = traffic(place, times, stage=["a"] * 50 + ["b"] * 50)
    at = opened(PAGE, run=run.run_id)
    assert f"2 loads of a test. One of them can be asked about {STAGE.chosen}." in words(at)
    assert at.selectbox(key="workload stage").label == STAGE.title
    at = opened(PAGE, run=run.run_id, stage="b")
    assert "more evenly than chance" in words(at) and "2 loads" not in words(at)
    at.selectbox(key="workload stage").set_value("a").run()
    assert at.query_params["stage"] in ("a", ["a"]) and not at.exception


def test_tenants_are_listed_and_odd_names_do_no_harm(place):
    odd = "<img src=x onerror=alert(1)> *run*"
    run = traffic(place, np.arange(100.0), tenant=[odd, "b"] * 50)
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and odd in at.dataframe[1].value["tenant"].tolist()


def test_a_run_without_requests_is_told_what_would_bring_them(place):
    run = made_runs.write(place.store, "engine", {"engine": {"running": [1], "order": [0]}}, {}, kind="serving")
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "this run has no requests" in words(at)


def test_wrong_thresholds_in_the_address_are_told_kindly(place):
    at = opened(PAGE, run=traffic(place, [0.0, 1.0]).run_id, heavy_prompt="none")
    assert not at.exception and "heavy_prompt='none'" in words(at)


def test_the_terminal_has_the_same_numbers(place):
    found = result_of(place, traffic(place, bursts()))
    rows = dict(answer.table(found).rows)
    assert rows["requests"] == "1,800" and rows["they come"] == "in bursts"
    assert rows["long prompt, short answer: prefill-heavy"] == "100 %"
    assert rows["busiest 10 s, requests per second"].startswith(f"{found.window(10.0).peak_per_s:.3g} (")


def test_figures_draw_what_the_answer_holds(place):
    found = result_of(place, traffic(place, bursts()))
    rate = draw.arrivals(found)
    assert max(rate.data[0].y) == found.rates["requests_per_s"].max(), "the peak is not reduced away"
    assert "a Poisson process of this mean, 0 to" in " ".join(a.text for a in rate.layout.annotations)
    lines = draw.dispersion(found).data
    np.testing.assert_allclose(lines[1].y, found.curve["dispersion"])
    heat = draw.joint(found).data[0]
    assert np.nansum(np.square(np.array(heat.z, dtype=float))) == pytest.approx(1.0)
    assert draw.flight(found) is None
    stacked = draw.tokens(found).data
    assert sum(max(t.y) for t in stacked) == pytest.approx(620 * found.rates["requests_per_s"].max())


def test_loads_one_after_another_are_drawn_without_a_mean(place):
    """How requests come is told of one load at a time, and the page draws them all the same."""
    apart = replace(result_of(place, traffic(place, bursts())), request_rate_per_s=None, rate_chance=None, gaps=None)
    drawn = draw.arrivals(apart)
    assert len(drawn.data) == 1 and not drawn.layout.shapes and not drawn.layout.annotations
