"""One place where a question meets its answer: options, prices, and a cache that is asked once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.questions import asking as questions
from app.questions import question
from app.questions.asking import Answers, ask, glimpse
from app.questions.ledger import LEDGER
from app.questions.steps import STEPS
from errors import QuestionError
from runs import kept
from tests.app import made_runs
from tests.app.test_pages import opened, words


def test_the_price_is_the_options_then_the_registrys_then_the_facts(place):
    run = made_runs.interrupted(place.store, "priced")
    declared = made_runs.write(
        place.store,
        "declared",
        {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}},
        {"chips": 2, "usd_per_chip_hour": 2.5},
    )
    hours = ask(LEDGER, run, {}, place.registry).ledger.chip_seconds / 3600
    assert ask(LEDGER, run, {}, place.registry).ledger.usd is None
    place.registry.price(run.run_id, 3.0)
    assert ask(LEDGER, run, {}, place.registry).ledger.usd == pytest.approx(3 * hours)
    assert ask(LEDGER, run, {"usd_per_chip_hour": "4"}, place.registry).ledger.usd == pytest.approx(4 * hours)
    with_fact = ask(LEDGER, declared, {}, place.registry).ledger
    assert with_fact.usd == pytest.approx(2.5 * with_fact.chip_seconds / 3600)
    place.registry.price(declared.run_id, 5.0)
    assert ask(LEDGER, declared, {}, place.registry).ledger.usd == pytest.approx(5 * with_fact.chip_seconds / 3600)


def test_nobody_is_asked_for_a_profile_of_a_job_that_was_simulated(place):
    steps = {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}
    ran = made_runs.write(place.store, "ran", steps, {"chips": 2})
    never = made_runs.write(place.store, "never", steps, {"chips": 2}, kind="simulated")
    with pytest.raises(QuestionError, match="Add a profile"):
        ask(question("overlap"), ran, {}, place.registry)
    with pytest.raises(QuestionError, match="The run was simulated: it cannot tell what devices did") as told:
        ask(question("overlap"), never, {}, place.registry)
    assert "Add a profile" not in str(told.value)


def test_an_answer_is_computed_once(place):
    run = made_runs.interrupted(place.store)
    assert ask(STEPS, run, {}, place.registry) is ask(STEPS, run, {}, place.registry)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nothing", {}),
        ("ledger", {"colour": "red"}),
        ("ledger", {"usd_per_chip_hour": "much"}),
        ("ledger", {"usd_per_chip_hour": "nan"}),
        ("ledger", {"usd_per_chip_hour": "-1"}),
    ],
)
def test_what_cannot_be_asked_is_told(place, name, given):
    run = made_runs.interrupted(place.store)
    with pytest.raises(QuestionError):
        ask(question(name), run, given, place.registry)


def test_a_glimpse_is_none_until_the_answer_is_there(place):
    run = made_runs.interrupted(place.store, "glimpsed")
    assert glimpse(LEDGER, run, place.registry) is None
    questions._background.submit(lambda: None).result()
    assert glimpse(LEDGER, run, place.registry) is ask(LEDGER, run, {}, place.registry)


def test_a_glimpse_of_no_answer_tells_so_and_is_not_asked_again(place):
    run = made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    assert glimpse(LEDGER, run, place.registry) is None
    questions._background.submit(lambda: None).result()
    with pytest.raises(QuestionError):
        glimpse(LEDGER, run, place.registry)


def test_many_who_ask_at_once_wait_for_one():
    calls, gate = [], threading.Event()

    def compute():
        calls.append(1)
        gate.wait(5)
        return "answer"

    answers = Answers(10**9)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answers.get, "key", compute) for _ in range(8)]
        gate.set()
        assert {a.result() for a in asked} == {"answer"}
    assert len(calls) == 1


def test_a_fault_is_not_kept_and_room_is_made():
    answers = Answers(50_000)
    with pytest.raises(OSError):
        answers.get("a", lambda: (_ for _ in ()).throw(OSError("disk")))
    assert answers.get("a", lambda: 1) == 1
    for key in range(10):
        answers.get(key, lambda: 2)
    assert len(answers._kept) <= 3
    assert answers.known(9) == 2 and answers.known("a") is None


def test_an_answer_is_measured_once_however_many_follow(monkeypatch):
    """Else each new answer costs as much as all that are kept: seconds, after a few hundred."""
    measured = []
    monkeypatch.setattr(kept, "_size", lambda future: measured.append(future) or 20_000)
    answers = Answers(10**9)
    for n in range(30):
        answers.get(n, lambda n=n: n)
    assert len(measured) == 30


def test_a_page_says_what_a_simulated_run_cannot_tell_rather_than_what_would_complete_it(place):
    steps = {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}
    page = "questions/ledger/page.py"
    ran, never = (
        words(opened(page, run=made_runs.write(place.store, kind, steps, {"chips": 2}, kind=kind).run_id))
        for kind in ("training", "simulated")
    )
    assert "Missing: a profile" in ran and "simulated" not in ran
    assert "Not told: what the device did inside steps" in never and "Missing: " not in never
