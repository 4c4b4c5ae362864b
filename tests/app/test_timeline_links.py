"""The ways from verdicts, steps, operations, findings, interruptions and requests to their places on the timeline."""

import urllib.parse

import pytest

from app.questions.asking import ask
from app.questions.interruptions import INTERRUPTIONS
from app.questions.timeline import TIMELINE
from app.timeline.places import resolved
from errors import format as fmt
from runs.tables import frame
from tests.app import made_runs
from tests.app.test_pages import opened, words

S = 1_000_000_000


def leads(at, label: str = "imeline") -> list[dict[str, str]]:
    """Where links to the timeline lead."""
    links = [link.proto for link in at.get("page_link") if label in link.label]
    return [dict(urllib.parse.parse_qsl(link.query_string)) for link in links]


def looked_at(place, run, lead: dict[str, str]) -> tuple[int, int]:
    """Where the timeline looks then, in ns since 1970."""
    assert lead.pop("run") == run.run_id
    of = ask(TIMELINE, run, {}, place.registry).timeline
    found = resolved(of, run.tables, lead)
    start, end = (of.origin_ns + int(found[name]) * of.tick_ps // 1000 for name in ("from", "to"))
    return start, end


@pytest.fixture
def run(place):
    return made_runs.interrupted(place.store)


def test_the_longest_step_and_one_that_was_clicked_lead_to_themselves(place, run):
    rows = frame(run.tables, "steps", ["step", "start_ns", "attempt"])
    at = opened("questions/steps/page.py", run=run.run_id)
    [lead] = leads(at)
    took = int(lead["to_ns"]) - int(lead["from_ns"])
    assert took == 20 * S  # the save of 6 s behind one of them is no time of it
    start, end = looked_at(place, run, lead)
    inside = rows[(rows["start_ns"] >= start) & (rows["start_ns"] + 20 * S <= end)]
    assert f"Step {inside['step'].iloc[0]:,} took longest, {fmt.duration(20)}" in words(at)
    clicked = opened("questions/steps/page.py", run=run.run_id, at="95")
    [lead] = leads(clicked)
    assert f"Step 95 took {fmt.duration(20)}" in words(clicked)
    again = int(rows[rows["step"] == 95]["start_ns"].max())
    assert int(lead["from_ns"]) == again
    for wrong in ("x", "-1", "999999", "9" * 10_000):
        assert leads(opened("questions/steps/page.py", run=run.run_id, at=wrong))[0]["from_ns"] != str(again)


def test_an_interruption_leads_from_its_last_sign_of_life_until_the_job_was_back(place, run):
    [lead] = leads(opened("questions/interruptions/page.py", run=run.run_id))
    row = ask(INTERRUPTIONS, run, {}, place.registry).rows.iloc[0]
    assert (int(lead["from_ns"]), int(lead["to_ns"])) == (row["last_sign_ns"], row["back_ns"])
    start, end = looked_at(place, run, lead)
    assert start <= row["last_sign_ns"] < row["restart_ns"] < row["back_ns"] <= end


def test_the_slowest_request_leads_to_its_own_time(place):
    begin = made_runs.START_NS
    requests = {
        "id": ["a", "b", "c"],
        "replica": ["r0", "r1", "r0"],
        "status": ["completed"] * 3,
        "arrival_ns": [begin, begin + S, begin + 2 * S],
        "scheduled_ns": [begin, begin + S, begin + 2 * S],
        "first_token_ns": [begin + S, begin + 2 * S, begin + 3 * S],
        "last_token_ns": [begin + 2 * S, begin + 9 * S, begin + 4 * S],
        "output_tokens": [9, 9, 9],
    }
    run = made_runs.write(place.store, "served", {"requests": requests}, {}, kind="serving")
    [lead] = leads(opened("questions/latency/page.py", run=run.run_id))
    assert lead["lane"] == "r1" and int(lead["from_ns"]) == begin + S
    start, end = looked_at(place, run, lead)
    assert start <= begin + S and begin + 9 * S <= end


def test_the_timeline_puts_a_place_into_ticks_and_keeps_those_that_are_there(place, run):
    at = opened("questions/timeline/page.py", run=run.run_id, step="40")
    assert not at.exception and not at.warning
    assert "step" not in at.query_params and {"from", "to", "at"} <= set(at.query_params)
    start = int(frame(run.tables, "steps", ["step", "start_ns"]).query("step == 40")["start_ns"].iloc[0])
    of = ask(TIMELINE, run, {}, place.registry).timeline
    tick = (start - of.origin_ns) * 1000 // of.tick_ps
    assert int(_one(at, "from")) < tick < int(_one(at, "to"))
    kept = opened("questions/timeline/page.py", run=run.run_id, **{"from": "5", "to": "9", "q": "step"})
    assert (_one(kept, "from"), _one(kept, "q")) == ("5", "step") and "at" not in kept.query_params


def _one(at, name: str) -> str:
    """A value of the address."""
    value = at.query_params[name]
    return value if isinstance(value, str) else value[0]


@pytest.mark.parametrize("given", [{"step": "4000"}, {"from_ns": "x"}, {"q": "<b>" * 3_000}, {"lane": "nowhere"}])
def test_what_is_no_place_is_told_above_the_whole_run(place, run, given):
    at = opened("questions/timeline/page.py", run=run.run_id, **given)
    assert not at.exception and len(at.warning) == 1 and "from" not in at.query_params
    assert len(at.warning[0].value) < 500


def test_steps_without_times_lead_nowhere(place):
    steps = {"step": list(range(9)), "dur_ns": [S] * 9, "order": list(range(9))}
    run = made_runs.write(place.store, "untimed", {"steps": steps}, {})
    at = opened("questions/steps/page.py", run=run.run_id)
    assert not at.exception and f"took longest, {fmt.duration(1)}" in words(at) and leads(at) == []
