"""The queue of jobs: whose turn it is, that nobody else has a job, and what is left of it whoever dies."""

import threading
import time
import uuid

import pytest

from errors import QuestionError
from runs import job_book
from runs.job_book import BULK, SMALL, USUAL, Beat, JobBook, Wanted

ALL = ("ingest", "compile", "capture")


@pytest.fixture
def book(registry_at):
    return JobBook(registry_at)


def ask(book, who="", priority=USUAL, what="ingest", most=10_000, **about):
    wanted = Wanted(job_id=uuid.uuid4().hex, what=what, arguments=[what], about=about, who=who, priority=priority)
    book.ask(wanted, most)
    return wanted.job_id


def claim(book, worker="w", whats=ALL):
    return book.claim(worker, whats, lambda job_id: True)


def done(book, entry, state="done", worker="w"):
    return book.end(worker, Beat(job_id=entry.job_id, progress=1.0, doing=""), state, "", {"run_id": "r"})


def order(book):
    """Who is served, to the end of the queue."""
    found = []
    while entry := claim(book):
        found.append((entry.who, entry.priority))
        done(book, entry)
    return found


def test_nobodys_many_jobs_are_before_anothers_first(book):
    for _ in range(30):
        ask(book, "ann")
    first = claim(book)
    for who in ("ben", "cy"):
        ask(book, who)
    done(book, first)
    served = [who for who, _ in order(book)]
    assert set(served[:3]) == {"ann", "ben", "cy"} and served[3:] == ["ann"] * 28


def test_those_of_equal_backlogs_are_served_in_turns(book):
    for who in ("ann", "ben", "cy"):
        for _ in range(5):
            ask(book, who)
    served = [who for who, _ in order(book)]
    assert all(sorted(served[i : i + 3]) == ["ann", "ben", "cy"] for i in range(0, 15, 3))


def test_small_uploads_go_before_bulk_and_bulk_waits_for_a_bounded_number_of_them(book):
    for _ in range(3):
        ask(book, priority=BULK)
    for _ in range(100):
        ask(book, priority=SMALL)
    served = [priority for _, priority in order(book)]
    assert served[0] == SMALL and served.index(BULK) <= job_book.STEP[BULK] // job_book.STEP[SMALL]
    assert served.count(BULK) == 3 and len(served) == 103


def test_a_small_upload_that_comes_late_overtakes_bulk_of_the_same_person(book):
    for _ in range(200):
        ask(book, "ann", BULK)
    done(book, claim(book))
    mine = ask(book, "ann", SMALL)
    assert claim(book).job_id == mine


def test_many_workers_have_each_job_once(registry_at):
    book = JobBook(registry_at)
    asked = {ask(book) for _ in range(60)}
    had: list[str] = []

    def work(name):
        mine = JobBook(registry_at)
        while entry := claim(mine, name):
            had.append(entry.job_id)
            assert done(mine, entry, worker=name)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(had) == sorted(asked) and book.counts() == {"done": 60}


def test_a_job_whose_lock_another_has_is_left_and_the_next_is_taken(book):
    first, second = ask(book), ask(book)
    assert book.claim("w", ALL, lambda job_id: job_id != first).job_id == second
    assert book.get(first).state == "waiting"


def test_only_kinds_for_which_there_is_room_are_taken(book):
    ask(book, what="compile")
    assert claim(book, whats=("ingest", "capture")) is None and claim(book, whats=()) is None
    assert claim(book).what == "compile"


STATES = ["waiting", "running", "parked", "done", "failed", "cancelled"]


def in_state(book, state):
    job_id = ask(book)
    if state == "waiting":
        return job_id
    if state == "cancelled":
        return book.cancel(job_id).job_id
    entry = claim(book)
    if state == "parked":
        book.park("w", job_id)
    elif state != "running":
        done(book, entry, state)
    return job_id


@pytest.mark.parametrize("state", STATES)
def test_a_job_is_cancelled_in_each_state(book, state):
    job_id = in_state(book, state)
    told = book.cancel(job_id)
    assert told.state == {"waiting": "cancelled", "parked": "cancelled"}.get(state, state)
    assert told.cancelling == (state == "running")
    if state == "running":
        assert book.beat("w", [Beat(job_id=job_id, progress=None, doing="")]) == ({job_id}, set())


@pytest.mark.parametrize("state", STATES)
def test_only_what_failed_or_was_cancelled_is_tried_again(book, state):
    job_id = in_state(book, state)
    if state in ("failed", "cancelled"):
        told = book.retry(job_id, 10)
        assert (told.job_id, told.state, told.error, told.attempts) == (job_id, "waiting", "", 0)
        assert claim(book).job_id == job_id
    else:
        with pytest.raises(QuestionError, match="expected one that failed or was cancelled"):
            book.retry(job_id, 10)
        assert book.get(job_id).state == state


@pytest.mark.parametrize("most", [1, 3])
def test_the_job_of_a_worker_that_is_gone_waits_again_so_many_times(book, most):
    job_id = ask(book)
    for attempt in range(1, most + 1):
        entry = claim(book, f"w{attempt}")
        assert entry.attempts == attempt
        assert book.give_back(entry, lambda job_id: False, {"ingest": most}, "gone") is None, "it lives"
        expected = "failed" if attempt == most else "waiting"
        assert book.give_back(entry, lambda job_id: True, {"ingest": most}, "gone") == expected
    assert (book.get(job_id).error, claim(book)) == ("gone", None)


def test_a_job_that_said_something_meanwhile_is_not_given_back(book):
    entry = claim(book) if ask(book) else None
    book.beat("w", [Beat(job_id=entry.job_id, progress=0.5, doing="x")])
    assert book.give_back(entry, lambda job_id: True, {"ingest": 3}, "gone") is None
    assert book.get(entry.job_id).state == "running"


def test_who_lost_a_job_changes_nothing_of_it_any_more(book):
    entry = claim(book, "old") if ask(book) else None
    book.give_back(entry, lambda job_id: True, {"ingest": 3}, "gone")
    again = claim(book, "new")
    beat = Beat(job_id=entry.job_id, progress=0.9, doing="old")
    assert book.beat("old", [beat]) == (set(), {entry.job_id})
    assert not book.end("old", beat, "failed", "no", {})
    book.park("old", entry.job_id)
    assert (again.attempts, book.get(entry.job_id).state, book.get(entry.job_id).progress) == (2, "running", None)


def test_a_parked_job_goes_on_before_what_came_after_it_and_was_no_attempt(book):
    first = ask(book)
    entry = claim(book)
    later = [ask(book) for _ in range(3)]
    book.park("w", first)
    again = claim(book, "next")
    assert (again.job_id, again.attempts, entry.attempts) == (first, 1, 1) and later


def test_no_more_wait_than_may_and_the_oldest_that_ended_are_forgotten(book, monkeypatch):
    monkeypatch.setattr(job_book, "KEPT", 5)
    monkeypatch.setattr(job_book, "WITH_FILES", 2)
    for number in range(12):
        job_id = ask(book, most=2)
        entry = claim(book)
        told = Beat(job_id=job_id, progress=1.0, doing="", files={"a": (number, {"name": "a"})}, changes=number)
        book.end("w", told, "done", "", {})
    waits = [ask(book, most=2), ask(book, most=2)]
    with pytest.raises(QuestionError, match="2 jobs run or wait already"):
        ask(book, most=2)
    there = book.newest(100)
    assert [e.job_id for e in there[:2]] == waits[::-1] and len(there) == 2 + 5
    assert [bool(book.files(e.job_id)) for e in there] == [False] * 2 + [True] * 2 + [False] * 3
    assert entry.job_id == there[2].job_id
    with pytest.raises(QuestionError, match="no job 'x'"):
        book.get("x")


def test_a_clock_that_jumps_changes_no_turn(book, monkeypatch):
    now = time.time_ns()
    times = iter([now, now - 3600 * 10**9, now + 10**15, 0, *[now] * 20])
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    asked = [ask(book) for _ in range(4)]
    served = []
    while entry := claim(book):
        served.append(entry.job_id)
        done(book, entry)
    assert served == asked


def test_files_are_told_by_the_change_since_which_they_are_asked(book):
    entry = claim(book) if ask(book) else None
    for number, name in enumerate("abca", 1):
        files = {name: (number, {"name": name, "n": number})}
        book.beat("w", [Beat(job_id=entry.job_id, progress=None, doing="", changes=number, files=files)])
    assert {n: told["n"] for n, (_, told) in book.files(entry.job_id).items()} == {"a": 4, "b": 2, "c": 3}
    assert list(book.files(entry.job_id, 3)) == ["a"] and book.files(entry.job_id, 4) == {}


def test_an_upload_is_being_read_until_its_job_ends(book):
    ask(book, upload_id="u1")
    ask(book, upload_id=None)
    entry = claim(book)
    assert book.reading() == {"u1"}
    done(book, entry)
    assert book.reading() == set()
