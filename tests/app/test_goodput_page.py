"""The goodput page: both rule sets, windows and attempts from the address, and what it says without an answer."""

import json

import pytest

from app.questions.asking import ask
from app.questions.goodput import GOODPUT
from app.questions.goodput.figure import STACK, bars, deviation, over_time, shares, slices
from app.questions.goodput.words import table, verdict
from errors import format as fmt
from tests.app import made_runs
from tests.app.test_pages import opened, words

S = 1_000_000_000
T0 = 1_767_571_200 * S
PAGE = "questions/goodput/page.py"


def ns(seconds):
    return None if seconds is None else T0 + round(seconds * S)


def tables(elastic=False):
    """Two attempts: 20 steps of 2 s, lost from step 15 on; 25 more after 52 s of downtime; an event across steps."""
    steps = [(n, 10 + 2 * n) for n in range(20)] + [(15 + n, 110 + 2 * n) for n in range(25)]
    life = [
        ("job", 0, None, None),
        ("accelerator_initialization", 1, 9, None),
        ("job", 100, 160, None),
        ("custom", 125, 127, "sdc<check>"),
    ]
    if elastic:
        counts = ({"active": 4, "total": 4, "available": 4}, {"active": 2, "total": 4, "available": 3})
        life += [("slices", t, None, json.dumps(c)) for t, c in zip((0, 40), counts, strict=True)]
        life.append(("elastic_scale_up", 101, 104, None))
    return {
        "steps": {"step": [n for n, _ in steps], "start_ns": [ns(t) for _, t in steps], "order": [*range(len(steps))]},
        "lifecycle": {
            "kind": [k for k, *_ in life],
            "start_ns": [ns(a) for _, a, *_ in life],
            "end_ns": [ns(b) for _, _, b, _ in life],
            "detail": [d for *_, d in life],
        },
    }


@pytest.fixture
def run(place):
    return made_runs.write(place.store, "job", tables(elastic=True), {"chips": 16, "usd_per_chip_hour": 3.0})


def answer(run, place, **options):
    return ask(GOODPUT, run, options, place.registry)


def shown(at):
    return {m.label[:-2]: m.value for m in at.metric}


def test_the_page_tells_both_rule_sets_and_why_they_differ(place, run):
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    exact, library = answer(run, place), answer(run, place, rules="ml-goodput")
    assert verdict(exact) in words(at)
    assert shown(at)["Goodput"] == fmt.share(exact.goodput_share) == "48.8 %"
    assert shown(at)["By ml-goodput"] == fmt.share(library.goodput_share) == "50.0 %"
    assert shown(at)["Disruptions"] == "1"
    for text in exact.differences:
        assert text in words(at)
    both = at.dataframe[0].value
    held = both[both["Amount"] == "Time held"].iloc[0]
    assert (held["Exact (s)"], held["ml-goodput (s)"]) == (160, 160)
    assert both["Exact counts"].str.len().min() > 0 and both["ml-goodput counts"].str.len().min() > 0
    attempts = at.dataframe[1].value
    assert attempts["Ended"].tolist() == ["interrupted", "finished"]
    assert "How many slices worked?" in words(at)


def test_the_rules_are_in_the_address_and_change_the_verdict(place, run):
    at = opened(PAGE, run=run.run_id, rules="ml-goodput")
    assert at.button_group(key="pick_rules").value == "ml-goodput"
    assert "By the rules of ml-goodput" in words(at)
    assert "By the exact rules" in shown(at)
    assert not opened(PAGE, run=run.run_id, rules="nonsense", over="nonsense", attempt="x").exception


def test_window_exclusions_and_attempt_are_in_the_address(place, run):
    second = f"{T0 // S + 110}"
    at = opened(PAGE, run=run.run_id, **{"from": second})
    assert shown(at)["Time held"] == "50.0 s"
    at = opened(PAGE, run=run.run_id, exclude=f"{T0 // S + 48}/{T0 // S + 100}")
    assert shown(at)["Time held"] == "1 min 48 s"
    at = opened(PAGE, run=run.run_id, attempt="1")
    assert shown(at)["Time held"] == "1 min"
    at.text_input(key="pick_from").set_value(second).run()
    assert at.query_params["from"] == second
    assert shown(at)["Time held"] == "50.0 s"


@pytest.mark.parametrize("over", ["stretch", "rolling", "cumulative"])
def test_each_view_over_time_stands(place, run, over):
    at = opened(PAGE, run=run.run_id, over=over, rolling_s="60")
    assert not at.exception and not at.warning


@pytest.mark.parametrize("address", [{"from": "yesterday"}, {"attempt": "7"}, {"exclude": "x"}, {"to": "1000"}])
def test_what_cannot_be_asked_is_told_kindly(place, run, address):
    at = opened(PAGE, run=run.run_id, **address)
    assert not at.exception
    assert any(e.value for e in at.info)


def test_without_times_the_page_says_what_would_bring_them(place):
    run = made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception
    assert "goodput log" in words(at)


def test_shares_over_time_stack_up_to_the_whole(place, run):
    result = answer(run, place)
    for view in ("stretch", "rolling", "cumulative"):
        parts = shares(result.over_time, view, result.rolling_s)[list(STACK)]
        assert parts.sum(axis=1).dropna().to_numpy() == pytest.approx(1)
        assert over_time(result, view).data[0].name == "Kept steps"
    last = shares(result.over_time, "cumulative", None).iloc[-1]
    assert last["productive"] == pytest.approx(result.goodput_share)


def test_figures_escape_names_and_mark_the_other_rules(place, run):
    exact, library = answer(run, place), answer(run, place, rules="ml-goodput")
    figure = bars(exact, library)
    assert any("SDC&lt;CHECK&gt;" in str(t) for t in figure.layout.yaxis.ticktext)
    assert figure.data[1].name == "by the rules of ml-goodput"
    longest = figure.data[0].x[0]
    assert longest == max(figure.data[0].x) == exact.badput_s["infrastructure_recovery_from_disruption"]
    assert len(deviation(exact).data[0].x) == len(exact.steps)
    assert [list(t.y) for t in slices(exact).data] == [[4, 4, 4], [4, 3, 3], [4, 2, 2]]


def test_the_verdict_prices_the_largest_loss(place, run):
    text = verdict(answer(run, place))
    assert text.startswith("49 % of 2 min 40 s went into steps that were kept.")
    assert "after an interruption cost the most: 32 % (52.0 s, 0.231 chip-hours, about $0.693)." in text
    rows = table(answer(run, place)).rows
    assert rows[0][0] == "Productive" and rows[-1][0] == "Total" and rows[-1][1] == "2 min 40 s"


@pytest.mark.parametrize("page", [PAGE, "questions/ledger/page.py", "questions/interruptions/page.py"])
def test_a_job_of_which_no_step_was_read_shows_no_0_per_cent(place, page):
    life = {
        "kind": ["job", "training_preparation", "eval"],
        "start_ns": [ns(0), ns(0), ns(500)],
        "end_ns": [ns(1500), ns(300), ns(560)],
    }
    run = made_runs.write(place.store, "stepless", {"lifecycle": life}, {"chips": 16})
    at = opened(page, run=run.run_id)
    assert not at.exception and not at.error
    if page != "questions/interruptions/page.py":
        assert shown(at)["Goodput"] == fmt.NO_VALUE
        assert "no step was read" in words(at)
    if page == PAGE:
        assert shown(at)["By ml-goodput"] == fmt.NO_VALUE


def test_a_step_that_hung_is_named_on_the_page(place):
    at_s = [10 * n + (21_600 if n > 20 else 0) for n in range(50)]
    run = made_runs.write(
        place.store,
        "hung",
        {
            "steps": {"step": [*range(50)], "order": [*range(50)], "start_ns": [ns(t) for t in at_s]},
            "lifecycle": {"kind": ["job"], "start_ns": [ns(0)], "end_ns": [ns(at_s[-1] + 10)]},
        },
        {"chips": 16},
    )
    for page in (PAGE, "questions/ledger/page.py"):
        at = opened(page, run=run.run_id)
        assert not at.exception and "Steps that hung cost the most: 98 %" in words(at)
        assert "Step 20 took 6 h" in words(at)
