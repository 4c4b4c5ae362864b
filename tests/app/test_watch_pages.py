"""Pages of live runs, of a job that is followed and of one of which there is nothing yet."""

import json

import pytest

from tests.app.test_pages import opened, words
from tests.app.test_watch import NOW, once, watching
from tests.collectors.job_entries import S, job
from tests.collectors.logging_server import LoggingServer


@pytest.fixture
def server():
    with LoggingServer() as running:
        yield running


@pytest.fixture
def live_run(place, server):
    server.add(*job(NOW - 3600 * S, 30, ends=False))
    return once(server, place.store.root)[-1]


@pytest.mark.parametrize("page", ["questions/ledger/page.py", "questions/steps/page.py"])
def test_a_page_of_a_live_run_keeps_its_name_in_the_address(place, live_run, page):
    for address in ("live:night-run", live_run["run_id"]):
        at = opened(page, run=address)
        assert not at.exception
        assert at.query_params["run"] == "live:night-run"
        assert "live run, not followed now" in words(at) and "34 log entries" not in words(at)
        assert "33 log entries" in words(at)


def test_the_library_shows_a_live_run_once_and_tags_stay_with_it(place, server, live_run):
    from app.library.rows import library
    from app.pages.library.shown import USUAL, drawn

    place.registry.tag(live_run["run_id"], "team", "x")
    server.add(*job(NOW - 600 * S, 10, first=700, ends=False))
    assert once(server, place.store.root)[-1]["run_id"] != live_run["run_id"]
    [row] = [drawn(row, USUAL) for row in library(place).rows]
    assert row["id"] == "live:night-run" and row["tags"] == ["team=x"]
    assert row["marks"][0]["state"] == "live stopped" and "updated" in row["marks"][0]["text"]
    at = opened()
    assert not at.exception and "1 run" in [caption.value for caption in at.caption]


def test_a_job_of_which_there_is_nothing_yet_is_named_in_the_library(place, server):
    with watching(server, place.store.root, jobs=("*odd* job",)) as process:
        assert json.loads(process.stdout.readline())["run_id"] is None
        assert "Following job *odd* job of project chip-tests: no entry yet" in words(opened())
