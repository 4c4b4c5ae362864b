"""Headline figures that a baseline can change: each names the number that it shows, and which way is better."""

import pytest

from app.components.baseline import LOADS, changed
from app.questions.asking import ask
from app.questions.interruptions import INTERRUPTIONS
from app.questions.interruptions.page import figures as of_interruptions
from app.questions.latency import LATENCY
from app.questions.latency.page import figures as of_latency
from app.questions.steps import STEPS
from app.questions.steps.page import figures as of_steps
from errors import format as fmt
from tests.app.made_runs import START_NS, S, interrupted, step_columns, write
from tests.app.served_runs import busy
from tests.app.test_pages import opened, words

SHOWN = (fmt.share, fmt.duration, fmt.number, lambda v: fmt.number(v, 4))


def stopped(store, name, down_s):
    """Two attempts of 40 steps, between which the job was away."""
    again = START_NS + (400 + down_s) * S
    steps = {k: [*a, *b] for (k, a), b in zip(_attempt(0, START_NS).items(), _attempt(1, again).values(), strict=True)}
    kinds = {"kind": ["job", "job"], "start_ns": [START_NS, again], "end_ns": [None, again + 400 * S]}
    life = {**kinds, "order": [0, 1], "source": ["goodput.jsonl"] * 2}
    return write(store, name, {"steps": steps, "lifecycle": life}, {"chip": "TPU v5p", "chips": 4})


def _attempt(number, start_ns):
    columns = step_columns([10 * S] * 40, start_ns)
    told = {"step": [n + 40 * number for n in range(40)], "attempt": [number] * 40, "source": ["goodput.jsonl"] * 40}
    return columns | told | {"order": [n + 40 * number for n in range(40)]}


@pytest.mark.parametrize(
    ("make", "question", "figures", "some"),
    [
        (interrupted, INTERRUPTIONS, of_interruptions, {"Time lost", "Usually back after"}),
        (interrupted, STEPS, of_steps, {"Usual step"}),
        (busy, LATENCY, of_latency, {"TTFT p50 · p99", "E2E p50 · p99"}),
    ],
)
def test_the_number_of_a_figure_is_the_one_that_it_shows(place, make, question, figures, some):
    shown = figures(ask(question, make(place.store), {}, place.registry))
    told = {f.label: f for f in shown if f.better and f.amount is not None}
    assert some <= set(told)
    for figure in told.values():
        said = [show(figure.amount) for show in SHOWN]
        assert any(text in figure.value for text in said), (figure, said)
    assert all(change == "+0 %" for change, _ in changed(shown, shown).values())
    assert set(changed(shown, shown)) == {n for n, f in told.items() if f.amount > 0}


def test_a_page_tells_how_much_longer_a_job_was_away_than_the_baseline(place):
    base, run = stopped(place.store, "base", 100), stopped(place.store, "longer", 300)
    lost = [ask(INTERRUPTIONS, r, {}, place.registry) for r in (base, run)]
    told = changed(of_interruptions(lost[1]), of_interruptions(lost[0]))
    assert told["Time lost"][1] == told["Usually back after"][1] == "less"
    at = opened("questions/interruptions/page.py", run=run.run_id, baseline=base.run_id)
    assert not at.exception and "Changes are against base." in words(at)
    shown = {m.label.rsplit(" ", 1)[0]: m for m in at.metric}
    assert shown["Usually back after"].delta == told["Usually back after"][0]
    assert shown["Usually back after"].delta.startswith("+")


def test_of_served_runs_it_is_said_that_other_requests_may_have_come(place):
    base, run = busy(place.store, "base"), busy(place.store, "other", rate=5, seed=4)
    at = opened("questions/latency/page.py", run=run.run_id, baseline=base.run_id)
    assert not at.exception and LOADS in words(at) and any(m.delta for m in at.metric)
