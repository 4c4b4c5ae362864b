"""A timeline that is made at first view: one for all who ask, told how far it is, and ended by whoever wants."""

import threading
from pathlib import Path

import pytest

from analyzers.timeline.progress import STAGES, making, tell
from app.questions import asking
from app.timeline import builds
from app.timeline.builds import EndedError, made
from errors import QuestionError
from runs.registry import Registry
from runs.store import Store
from tests.app import made_runs


@pytest.fixture
def run(tmp_path):
    return made_runs.interrupted(Store(tmp_path)), Registry(Path(tmp_path) / "registry.db")


class Slow:
    """An analysis that goes on when it is let, stage by stage; other questions are answered as ever."""

    def __init__(self, monkeypatch):
        self._others = asking._of_run
        self.begun, self.calls = threading.Event(), 0
        self._on = threading.Semaphore(0)
        monkeypatch.setattr(asking, "_of_run", self)

    def __call__(self, asked, *more):
        if asked is not builds.TIMELINE:
            return self._others(asked, *more)
        self.calls += 1
        for stage in STAGES:
            for done in (0, 50):
                tell(stage, done, 100)
                self.begun.set()
                assert self._on.acquire(timeout=30)
        return "the answer"

    def go(self, steps: int = 6) -> None:
        self._on.release(steps)


def test_all_who_ask_wait_for_one_and_hear_how_far_it_is(run, monkeypatch):
    slow = Slow(monkeypatch)
    build = made(*run)
    assert build is not None and slow.begun.wait(30)
    assert made(*run) is build and not build.wait(0)
    assert build.words.startswith("Part 1 of 3, reading its events: 0 of 100; ")
    others = [threading.Thread(target=lambda: asking.ask(builds.TIMELINE, run[0], {}, run[1])) for _ in range(3)]
    for one in others:
        one.start()
    slow.go()
    assert build.wait(30)
    for one in others:
        one.join(30)
    assert slow.calls == 1 and made(*run) is None
    assert asking.known(builds.TIMELINE, *run) == "the answer"


def test_ended_by_one_it_is_ended_for_all_and_made_anew_when_it_is_asked_for(run, monkeypatch):
    slow = Slow(monkeypatch)
    build = made(*run)
    assert build is not None and slow.begun.wait(30)
    build.end()
    assert "ends at its next piece" in build.words
    slow.go(1)
    assert build.wait(30) and build.ended
    with pytest.raises(EndedError, match="was ended"):
        asking.known(builds.TIMELINE, *run)
    again = made(*run)
    assert again is not None and again is not build
    slow.go(6)
    assert again.wait(30) and slow.calls == 2 and made(*run) is None


def test_a_timeline_that_nobody_can_have_is_asked_for_no_more(run, monkeypatch):
    def none(*_):
        raise QuestionError("nothing of this run has a place in time")

    monkeypatch.setattr(asking, "_of_run", none)
    build = made(*run)
    assert build is not None and build.wait(30)
    assert made(*run) is None


def test_what_an_api_request_began_is_told_and_ended_on_the_page(run, monkeypatch):
    """The request makes it in its own thread; the page that comes later hears how far it is and ends it there."""
    begun, go, ended = threading.Event(), threading.Event(), []

    def slowly(asked, subject, *_):
        with making(subject.tables.state):
            tell(STAGES[0], 30, 100)
            begun.set()
            assert go.wait(30)
            tell(STAGES[0], 60, 100)
        return "the answer"

    monkeypatch.setattr(asking, "_of_run", slowly)

    def request():
        try:
            asking.ask(builds.TIMELINE, run[0], {}, run[1])
        except EndedError as e:
            ended.append(str(e))

    asks = threading.Thread(target=request)
    asks.start()
    assert begun.wait(30)
    build = made(*run)
    assert build is not None and not build.wait(0.2)
    build.end()
    go.set()
    asks.join(30)
    assert build.wait(30) and build.ended
    assert ["was ended" in said for said in ended] == [True]


def test_how_far_another_threads_making_is_stands_in_words(run, monkeypatch):
    heard, done = threading.Event(), threading.Event()

    def slowly(asked, subject, *_):
        with making(subject.tables.state):
            while not done.wait(0.01):
                tell(STAGES[1], 30, 100)
                heard.set()
        return "the answer"

    monkeypatch.setattr(asking, "_of_run", slowly)
    asks = threading.Thread(target=lambda: asking.ask(builds.TIMELINE, run[0], {}, run[1]))
    asks.start()
    assert heard.wait(30)
    build = made(*run)
    assert build is not None
    for _ in range(500):
        if build.words.startswith("Part 2 of 3"):
            break
        done.wait(0.01)
    assert build.words.startswith("Part 2 of 3, putting events into rows: 30 of 100; ")
    done.set()
    asks.join(30)
    assert build.wait(30) and not build.ended
