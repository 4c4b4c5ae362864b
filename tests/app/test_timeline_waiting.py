"""The page of a timeline that is being made: it says how far it is, can be ended, and becomes the page itself."""

import pytest

from app.questions import asking
from app.questions.timeline import TIMELINE
from app.timeline import builds, waiting
from tests.app import made_runs
from tests.app.test_pages import opened, words
from tests.app.test_timeline_builds import Slow

PAGE = "questions/timeline/page.py"


@pytest.fixture
def slow(place, monkeypatch):
    monkeypatch.setattr(waiting, "large", lambda tables: True)
    return Slow(monkeypatch)


def test_a_page_that_waits_says_how_far_it_is_and_is_ended_and_begun_again(place, slow, monkeypatch):
    run = made_runs.interrupted(place.store)
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "is being made" in words(at) and "You can leave the page" in words(at)
    [end] = [button for button in at.button if button.label == "End it"]
    build = builds.made(run, place.registry)
    assert build is not None and build.words.startswith("Part 1 of 3")
    end.click()
    at.run()
    assert not at.exception and "was ended, and nothing of it was kept" in words(at)
    slow.go(1)
    assert build.wait(30) and build.ended
    [again] = [button for button in at.button if button.label == "Make it"]
    monkeypatch.undo()
    monkeypatch.setattr(waiting, "large", lambda tables: True)
    monkeypatch.setattr(waiting, "AT_ONCE_S", 60)
    monkeypatch.setenv("CHIPLEDGER_STORE", str(place.store.root))
    again.click()
    at.run()
    told = words(at)
    assert not at.exception and "What happened when?" in told, told[:1500]
    assert "is being made" not in told, told[max(told.index("is being made") - 300, 0) :][:400]
    assert asking.known(TIMELINE, run, place.registry) is not None
