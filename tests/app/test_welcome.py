"""What greets a visitor: an empty store, the bundled runs, hiding them and bringing them back, a store emptied."""

import pytest

from app.library import changes
from app.pages.library.welcome import BARS, LINE, STARTS
from tests.app import made_runs
from tests.app.test_pages import opened, words


@pytest.fixture
def demo(place):
    """Runs as `chipledger demo` stores them, by the names that the welcome knows."""
    runs = [made_runs.interrupted(place.store, start.run) for start in STARTS]
    for run in runs:
        place.demo.add(run.run_id)
    return runs


def labels(at):
    return [button.label for button in at.button]


def press(at, label):
    next(b for b in at.button if b.label == label).click()
    return at.run()


def links(at):
    """Labels and addresses of the links to pages."""
    return {link.proto.label: link.proto.query_string for link in at.get("page_link")}


def test_an_empty_store_says_what_this_is_and_offers_the_demo(place):
    at = opened()
    assert LINE in words(at) and "chipledger demo" in words(at) and links(at) == {}
    assert not [label for label in labels(at) if "demo" in label or "Bin" in label]


def test_who_has_the_demo_alone_is_offered_three_starts_and_told_what_the_bars_mean(place, demo):
    at = opened()
    assert LINE in words(at) and "No runs yet" not in words(at) and not at.exception
    first = {label: query for label, query in links(at).items() if label.startswith("Look at this first")}
    assert list(first.values()) == [f"run={run.run_id}" for run in demo]
    assert all(start.says in words(at) for start in STARTS)
    [legend] = [html.proto.body for html in at.get("html") if "Chip time:" in html.proto.body]
    assert all(title in legend for title, _ in BARS)


def test_the_demo_is_hidden_and_brought_back(place, demo):
    at = press(opened(), "Hide the demo")
    assert place.demo.hidden() and "No runs yet" in words(at) and links(at) == {}
    assert "chipledger demo" not in words(at), "it is here already"
    at = press(at, "Bring the demo back")
    assert not place.demo.hidden() and "No runs yet" not in words(at) and len(links(at)) >= len(demo)


def test_who_has_a_run_has_the_examples_in_one_line_and_may_hide_them(place, demo):
    made_runs.interrupted(place.store, "mine")
    at = opened()
    assert LINE not in words(at) and "Examples:" in words(at) and "4 runs" in words(at)
    assert [start.title for start in STARTS if start.title in links(at)] == [start.title for start in STARTS]
    at = press(at, "Hide the demo")
    assert "Examples:" not in words(at) and "1 run" in words(at) and "4 runs" not in words(at)
    assert "Bring the demo back" in labels(at)


def test_of_a_demo_run_that_was_deleted_no_start_is_offered(place, demo):
    changes.bin_many(place, [demo[1].run_id])
    at = opened()
    assert not at.exception and len([label for label in links(at) if label.startswith("Look")]) == 2


def test_from_a_store_whose_last_run_was_deleted_the_bin_can_be_reached(place):
    run = made_runs.interrupted(place.store, "the last")
    changes.bin_many(place, [run.run_id])
    at = opened()
    assert "No runs yet" in words(at)
    at = press(at, "Bin (1)")
    assert at.query_params["view"] == "bin" and "Bin" in words(at) and "1 run" in words(at) and not at.exception
