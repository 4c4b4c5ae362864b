"""A second run below the first on the timeline's page: chosen, linked from the comparison, refused in a sentence."""

import pytest

from app.library.changes import bin_many
from app.questions.asking import ask
from app.questions.timeline import TIMELINE
from app.timeline import viewer
from app.timeline.beside import laid
from tests.app import made_runs
from tests.app.test_pages import opened
from tests.app.test_timeline_links import leads

PAGE, S = "questions/timeline/page.py", 1_000_000_000


@pytest.fixture
def pair(place):
    first = made_runs.interrupted(place.store)
    steps = made_runs.step_columns([30 * S, *[10 * S] * 59], made_runs.START_NS + 86_400 * S)
    return first, made_runs.write(place.store, "second <b>", {"steps": steps}, {})


@pytest.fixture
def sent(monkeypatch):
    """What the viewer was given."""
    given: list[dict] = []
    monkeypatch.setattr(viewer, "_viewer", lambda key, data: given.append(data))
    return given


def test_the_viewer_is_told_where_both_lie_over_one_another(place, pair, sent):
    a, b = pair
    at = opened(PAGE, run=a.run_id, **{"with": b.run_id})
    assert not at.exception and not at.warning
    below = sent[-1]["beside"]
    assert (below["run"], below["step"], below["names"]) == (b.run_id, 1, ["llama-70b v5p", "second <b>"])
    assert below["said"].endswith("step 1, the first settled step that both have.")
    for run, tick, starts in ((a, below["at"], 300 + 80), (b, below["other_at"], 86_400 + 30)):
        of = ask(TIMELINE, run, {}, place.registry).timeline
        assert of.origin_ns + tick * of.tick_ps // 1_000 == made_runs.START_NS + starts * S


def test_a_step_that_the_address_names_is_where_they_lie(place, pair, sent):
    a, b = pair
    assert not opened(PAGE, run=a.run_id, **{"with": b.run_id, "beside_step": "50"}).warning
    assert sent[-1]["beside"]["step"] == 50
    assert not opened(PAGE, run=a.run_id, **{"with": b.run_id, "beside_step": "200"}).exception
    assert sent[-1]["beside"]["step"] == 1 and "such as 59, the nearest" in sent[-1]["beside"]["said"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"with": "SELF"}, "the second run is the first"),
        ({"with": "nothing"}, "has no timeline: nothing of this run has a place in time"),
        ({"with": "nobody"}, "no run 'nobody' in this store"),
        ({"with": "<img src=x>" * 900}, "no run"),
        ({"with": "second <b>", "beside_step": "x"}, "beside_step"),
        ({"with": "second <b>", "beside_step": "-1"}, "a whole number from 0"),
        ({"with": "second <b>", "beside_step": "9" * 400}, "a whole number from 0"),
    ],
)
def test_a_run_that_cannot_stand_there_is_one_sentence_and_the_first_is_shown_alone(place, pair, sent, given, said):
    made_runs.write(place.store, "nothing", {}, {})
    given = {name: pair[0].run_id if value == "SELF" else value for name, value in given.items()}
    at = opened(PAGE, run=pair[0].run_id, **given)
    assert not at.exception and sent[-1]["beside"] is None
    [told] = [w.value.replace("\\", "") for w in at.warning]
    assert said in told and "\n" not in told and len(told) < 500


def test_a_second_run_that_is_deleted_meanwhile_is_told(place, pair, sent):
    a, b = pair
    bin_many(place, [b.run_id], who="ann")
    told = opened(PAGE, run=a.run_id, **{"with": b.run_id})
    assert not told.exception and "bin" in told.warning[0].value and sent[-1]["beside"] is None


def test_a_run_that_one_may_not_see_is_as_one_that_does_not_exist(place, pair, sent, monkeypatch):
    a, b = pair
    monkeypatch.setattr(place.store, "hidden", lambda: frozenset({b.run_id}))
    hidden = opened(PAGE, run=a.run_id, **{"with": b.run_id})
    other = b.run_id[::-1]
    none = opened(PAGE, run=a.run_id, **{"with": other})
    assert [w.value.replace(b.run_id[:80], "") for w in hidden.warning] == [
        w.value.replace(other[:80], "") for w in none.warning
    ]
    assert sent[-1]["beside"] is None and "Second run below" not in [box.label for box in hidden.selectbox]


def test_it_is_chosen_in_the_head_and_what_was_looked_at_in_another_is_dropped(place, pair, sent):
    a, b = pair
    at = opened(PAGE, run=a.run_id, b_at="5", beside_step="9")
    box = next(box for box in at.selectbox if box.label == "Second run below")
    assert box.options[0] == "No second run" and "second <b>" in box.options
    box.set_value(b.run_id).run()
    assert at.query_params["with"] in (b.run_id, [b.run_id])
    assert not {"b_at", "beside_step"} & set(at.query_params)
    box = next(box for box in at.selectbox if box.label == "Second run below")
    box.set_value("").run()
    assert "with" not in at.query_params and sent[-1]["beside"] is None


def test_the_comparison_leads_there_with_both_runs(place, pair):
    a, b = pair
    at = opened("pages/compare/page.py", run=a.run_id, **{"with": b.run_id})
    [lead] = leads(at, "Both on the timeline")
    assert lead == {"run": a.run_id, "with": b.run_id}


def test_runs_without_a_common_step_lie_at_their_first_events_and_it_is_said(place, pair):
    steps = made_runs.step_columns([S] * 5)
    steps["step"] = [n + 1_000 for n in steps["step"]]
    far = made_runs.write(place.store, "far", {"steps": steps}, {})
    of = ask(TIMELINE, pair[0], {}, place.registry).timeline
    said = laid(pair[0], of, far, place, None)
    assert (said.met.at, said.met.other_at, said.met.step) == (0, 0, None)
    assert "they have no step in common: llama-70b v5p has steps from 0 to 249; far has steps from 1,000" in said.said
