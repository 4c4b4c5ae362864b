"""Who tells of an alert: one process, once, though others die or are about to."""

import threading
import time

import pytest

from app.cli import main
from app.follow.alerts.evaluate import book
from app.follow.alerts.webhook import checked
from app.workspace import workspace
from runs.alert_book import CLAIM_NS, SWITCHED_OFF, AlertBook, Target
from tests.app.alerting import S, job, judged, webhook


@pytest.fixture
def place(tmp_path):
    return workspace(str(tmp_path / "store"))


def opened(place, url: str, count: int = 1) -> AlertBook:
    kept = book(place)
    kept.set_target(checked(Target(url, "json", "http://board")))
    kept.set_threshold("goodput", 0.99)
    for n in range(count):
        kept.judge(judged(f"job:{n}"))
    return kept


def test_of_several_processes_one_tells(place):
    from app.follow.alerts.evaluate import tell

    with webhook() as (url, got):
        opened(place, url, 5)
        begin = threading.Barrier(6)

        def evaluator():
            begin.wait()
            tell(AlertBook(place.registry.path))

        threads = [threading.Thread(target=evaluator) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert sorted(body["subject"] for _, body in got) == [f"job:{n}" for n in range(5)]
    assert all(a.told_ns for a in book(place).alerts())


def test_a_sender_that_died_after_claiming_is_followed_by_another(place, monkeypatch):
    from app.follow.alerts.evaluate import tell

    with webhook() as (url, got):
        kept = opened(place, url)
        [alert] = kept.untold()
        assert kept.claim(alert) and not kept.claim(alert)
        assert tell(kept) == (0, []) and got == [], "somebody else is about to tell"
        now = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: now + CLAIM_NS + S)
        assert tell(kept) == (1, []) and tell(kept) == (0, [])
    assert len(got) == 1


def test_an_end_waits_for_the_message_that_is_on_its_way(place):
    from app.follow.alerts.evaluate import tell

    with webhook() as (url, got):
        kept = opened(place, url)
        [alert] = kept.untold()
        assert kept.claim(alert)  # sending
        kept.judge(judged("job:0", "over", (2, 1), sentence="fine"))
        assert tell(kept) == (0, []), "not taken for one that nobody heard of"
        kept.told(alert)  # sent
        assert tell(kept) == (1, []) and got[-1][1]["state"] == "resolved"


def test_a_rule_that_is_switched_off_closes_its_alerts_and_says_so(place, capsys):
    store = str(place.store.root)
    with webhook() as (url, got):
        opened(place, url)
        assert main(["--store", store, "alerts", "--check", job(place, "a", 20, 4000).run_id]) == 0
        assert main(["--store", store, "alerts", "--off", "goodput"]) == 0
        assert main(["--store", store, "alerts", "--off", "goodput"]) == 0
        book(place).judge(judged("job:0", moment=(9, 9)))
    assert [b["state"] for _, b in got] == ["open", "open", "resolved", "resolved"]
    assert {b["sentence"] for _, b in got[2:]} == {SWITCHED_OFF}
    assert not book(place).is_open("goodput", "job:0"), "who was evaluating meanwhile opens nothing any more"
