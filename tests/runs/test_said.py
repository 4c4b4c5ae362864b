"""What people say of a run lies over what is written, and nothing written changes."""

import json

import pytest

from app.library import changes
from app.workspace import workspace
from collectors.ingest import ingest
from errors import InputError, QuestionError
from runs.registry import Registry
from runs.run import NOTHING, Run
from tests.app import made_runs
from tests.collectors.ingesting import LOG


@pytest.fixture
def place(tmp_path):
    place = workspace(str(tmp_path / "store"))
    made_runs.interrupted(place.store, name="first")
    return place


def only(place) -> Run:
    (run,) = place.store.runs()
    return run


def test_a_name_that_was_said_is_the_run_s_and_the_older_one_still_leads_to_it(place):
    run = only(place)
    before = (run.folder / "run.json").read_bytes()
    place.registry.rename(run.run_id, "second", "ann")
    assert place.store.find("second").manifest.name == "second" == only(place).manifest.name
    assert place.store.find("first").run_id == run.run_id and place.store.find("first").written.name == "first"
    assert (run.folder / "run.json").read_bytes() == before
    place.registry.rename(run.run_id, None)
    assert only(place).manifest.name == "first" and only(place).said == NOTHING
    with pytest.raises(QuestionError, match="no run 'second'"):
        place.store.find("second")


def test_a_fact_that_was_said_is_told_with_who_and_when_and_answers_are_another_s(place):
    run = only(place)
    place.registry.declare(run.run_id, {"chip": "TPU v5p", "model": {"layers": 2}}, "ann")
    told = place.store.find(run.run_id)
    assert told.manifest.fact("chip") == "TPU v5p" and told.manifest.fact("model") == {"layers": 2}
    assert told.manifest.facts["chip"].basis == "declared"
    assert told.manifest.facts["chip"].source.startswith("said by ann, 20")
    assert told.writing != run.writing and told.writing[:2] == run.writing[:2]
    assert told.moved() == ""
    place.registry.declare(run.run_id, {"chip": None, "model": None})
    assert only(place).writing == run.writing
    assert only(place).manifest.facts == run.written.facts


def test_the_snapshots_of_a_live_run_share_what_was_said(place):
    registry: Registry = place.registry
    run = only(place)
    registry.stand_for(run.run_id, "live:job")
    registry.rename(run.run_id, "the job")
    assert registry.said()[run.run_id].name == "the job" == registry.said(["live:job"])["live:job"].name
    assert registry.said(["another"]) == {}


def test_runs_of_which_different_things_were_said_are_not_alike(place):
    run = only(place)
    place.registry.rename(run.run_id, "second")
    renamed = only(place)
    assert renamed != run and hash(renamed) == hash(run) and renamed.told(NOTHING) == run
    assert renamed.writing == run.writing, "a name changes no answer"


def test_every_name_that_a_run_ever_had_leads_to_it_until_another_takes_it(place):
    run = only(place).run_id
    for name in ("second", "third", "fourth"):
        changes.rename(place, run, name)
    for name in ("first", "second", "third", "fourth"):
        assert place.store.find(name).run_id == run
    other = made_runs.interrupted(place.store, name="other").run_id
    changes.rename(place, other, "second")
    assert place.store.find("second").run_id == other and place.store.find("third").run_id == run
    changes.rename(place, run, "")
    assert place.store.find("first").manifest.name == "first"
    with pytest.raises(QuestionError, match="no run 'fourth'"):
        place.store.find("fourth")
    changes.rename(place, run, "fifth")
    changes.rename(place, run, "sixth")
    assert place.store.find("fifth").run_id == run


def test_no_door_takes_a_name_that_leads_elsewhere(place, tmp_path):
    run = only(place).run_id
    for name in ("live:x", "model:x"):
        with pytest.raises(InputError, match="begins with"):
            changes.rename(place, run, name)
        for given in (name, f" {name}"):
            with pytest.raises(InputError, match="expected text that does not begin with live: or model:"):
                ingest([tmp_path], place.store, name=given)
        declared = tmp_path / "chipledger.json"
        declared.write_text(json.dumps({"name": name}))
        (tmp_path / "a.log").write_text(LOG)
        with pytest.raises(InputError, match="does not begin with live: or model:"):
            ingest([tmp_path], place.store)
