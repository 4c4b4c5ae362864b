"""What holds up steps and ranks for more than one reason, or for one without a name: each is told once."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.parts import StepParts
from analyzers.findings.rules import network, stragglers
from analyzers.findings.rules.input import _told_already
from analyzers.findings.rules.pace import _as_around, _work_of
from analyzers.findings.rules.stragglers import _drawn, _unequally_taken, reasons
from analyzers.ranks.stragglers.rank_causes import CAUSES, UNKNOWN
from analyzers.time.step_patterns import StepPattern
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.app import made_runs
from tests.app.made_runs import S

NAMES = {"evaluation", "logging"}


def told(place, every):
    """What is found about a job of steps of a second, of which one in so many takes three."""
    took = [3 * S if every and n % every == 0 and n else S for n in range(80)]
    run = made_runs.write(place.store, f"every {every}", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


def test_what_a_nameless_pause_may_be_is_not_ruled_out(place):
    result = told(place, 8)
    assert "periodic_pause" in {f.cause for f in result.findings}
    (gap,) = (gap for gap in result.not_told if "no event names" in gap.why)
    assert {*gap.causes} == NAMES and not NAMES & {out.cause for out in result.ruled_out}
    assert not any("no event names" in gap.why for gap in told(place, 0).not_told)


def test_steps_that_are_held_up_now_and_then_are_told_where_no_profile_saw_a_step(place):
    """A quarter of the steps took six times as long, and it was said that nothing stands out."""
    rng = np.random.default_rng(5)
    took = np.where(np.isin(np.arange(120), np.cumsum(rng.integers(2, 7, 28))), 6 * S, S)
    run = made_runs.write(place.store, "now and then", {"steps": made_runs.step_columns(list(took))}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    (found,) = (f for f in result.findings if f.cause == "irregular_pauses")
    times = int((took == 6 * S).sum())
    assert found.title.startswith(f"{times} steps take 6.00 s in place of 1.00 s, at no one distance")
    assert found.gain.likely == pytest.approx(times * 5 * 4, rel=0.05)


def test_what_a_save_leaves_of_its_step_is_as_of_the_steps_around():
    left, saved = np.array([1.0, 2.0, 0.1, 4.0, 5.0, 0.0]), np.array([False, False, True, False, False, True])
    assert _as_around(left, saved).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]
    assert _as_around(left, ~saved).tolist() == left.tolist()  # most are taken: none tells of the others
    assert _as_around(left, np.zeros(6, dtype=bool)).tolist() == left.tolist()


def test_a_step_without_its_parts_may_keep_some_of_them():
    rows = pd.DataFrame({"step": range(3), "start_ns": range(3), "dur_s": [1.0, 3.0, 1.0]})
    parts = pd.DataFrame({"evaluation": [0.0, 2.0, 0.0], "logging": [0.25, 0.25, 0.25], "fetch": [0.5, 0.5, 0.5]})
    held = StepParts(rows, parts, np.zeros(3), np.zeros(3), False)
    assert held.bare()["dur_s"].tolist() == [0.25, 0.25, 0.25]
    assert held.bare(("evaluation",))["dur_s"].tolist() == [0.25, 2.25, 0.25]


@pytest.mark.parametrize(
    ("usual_s", "slow_s", "told"),
    [
        (0.1, 0.14, False),  # for eight seconds, 4 % of the time
        (0.1, 0.2, True),
        (1.0, 1.4, True),  # for more than a minute
    ],
)
def test_a_change_of_pace_for_some_seconds_is_told_where_it_costs_much(place, usual_s, slow_s, told):
    took = [int((slow_s if n >= 540 else usual_s) * S) + 100_000 * (n % 7) for n in range(600)]
    run = made_runs.write(place.store, f"{usual_s} {slow_s}", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    result = ask(FINDINGS, run, {}, place.registry)
    assert ("step_change" in {f.cause for f in result.findings}) is told
    assert ("step_change" in {out.cause for out in result.ruled_out}) is not told


@pytest.mark.parametrize(
    ("took", "work"),
    [
        ({20: 0.6}, "evaluation"),  # what a log counts to step 19, a profile may to step 20
        ({19: 0.6}, "evaluation"),
        ({19: 0.2}, None),  # too little to be the pause
        ({15: 0.6, 19: 0.6}, None),  # in a step that is not held up as well
        ({}, None),
    ],
    ids=["next step", "same step", "little", "elsewhere", "nothing"],
)
def test_a_pause_of_which_a_profile_saw_one_has_its_name(took, work):
    rows = pd.DataFrame({"step": range(1, 40)})
    spent = [took.get(n, 0.0) if 12 <= n <= 20 else np.nan for n in rows["step"]]
    held = StepParts(rows, pd.DataFrame({"evaluation": spent}), np.zeros(39), np.zeros(39), False)
    each = {"kind": "periodic", "first_step": 11, "last_step": 35, "every": 8}
    assert _work_of(StepPattern(**each, usual_s=0.09, slow_s=0.67, excess_s=1.8), held) == work


def test_garbage_that_is_made_is_told_with_that_which_is_collected():
    """What a late rank lost by itself lies in its host's code where the account of collecting holds less."""
    seen = SimpleNamespace(amount={"idle_garbage_collection": 3.0}.__getitem__)
    assert _drawn(seen, "idle_garbage_collection", 4.0) == {"idle_garbage_collection": 3.0, "idle_host_code": 1.0}
    assert _drawn(seen, "idle_garbage_collection", 2.0) == {"idle_garbage_collection": 2.0, "idle_host_code": 0.0}


@pytest.mark.parametrize(
    ("garbage", "fetched", "other", "told"),
    [
        (1.0, 1.0, 0.0, {"garbage_collection": 0.5, "input": 0.5}),
        (1.0, 1.0, 0.5, {"garbage_collection": 0.6, "input": 0.4}),  # garbage is made before it is collected
        (1.0, 0.2, 0.0, {"garbage_collection": 1.0}),
        (0.2, 1.0, 0.0, {"input": 1.0}),
        (0.0, 0.0, 0.0, {"input": 1.0}),
    ],
)
def test_a_rank_that_is_late_for_two_reasons_is_told_by_both(garbage, fetched, other, told):
    excess = dict.fromkeys((*CAUSES, UNKNOWN), 0.0)
    excess |= {"garbage_collection": garbage, "input": fetched, "idle": other}
    found = SimpleNamespace(causes=pd.DataFrame([{"rank": 3, **excess}]))
    assert reasons(found, {"rank": 3, "cause": "input"}) == pytest.approx(told)


@pytest.mark.parametrize(
    ("verdict", "cause", "already"),
    [
        ("unknown", "input", False),
        ("persistent", "input", True),
        ("persistent", "compute", False),  # of this rank something else is told, and not its input
        ("rotating", "compute", False),
        ("none", "compute", True),  # nobody is late, so a fetch keeps nobody waiting
    ],
)
def test_what_stragglers_tells_of_an_input_is_not_told_twice(verdict, cause, already):
    causes = pd.DataFrame([{"rank": 3, **dict.fromkeys((*CAUSES, UNKNOWN), 0.0)}])
    named = pd.DataFrame([{"rank": 3, "host": "vm/3", "cause": cause}])
    assert _told_already(SimpleNamespace(verdict=verdict, ranks=named, causes=causes), "vm/3") is already


@pytest.mark.parametrize(
    ("every", "compiled_s", "otherwise"),
    [
        (8, 3.0, True),  # all compile, and it takes a little longer than the others
        (8, 0.1, False),
        (1, 3.0, False),  # late in each step
    ],
)
def test_a_rank_late_in_steps_that_compile_is_not_late_by_itself(monkeypatch, every, compiled_s, otherwise):
    rows = pd.DataFrame({"step": range(40), "start_ns": range(40), "dur_s": 4.0})
    parts = pd.DataFrame({"compilation": [compiled_s if n % 8 == 3 else 0.0 for n in range(40)]})
    held = StepParts(rows, parts, np.zeros(40), np.zeros(40), False)
    monkeypatch.setattr(stragglers, "step_parts", lambda tables, facts: held)
    row = {"every": every, "first_step": 3, "last_step": 35, "lag_s": 0.2}
    assert _unequally_taken(SimpleNamespace(tables=None, facts=None), row) is otherwise


@pytest.mark.parametrize(("grown", "told"), [(0.0, True), (9.0, True), (11.0, False)])
def test_a_network_slower_in_steps_that_grow_is_not_accused(monkeypatch, grown, told):
    monkeypatch.setattr(network, "grown", lambda seen: grown)
    slow = SimpleNamespace(verdict="network", cost_chip_seconds=5.0, why="moving data took long")
    seen = SimpleNamespace(answer=lambda question, of: slow, least=0.1, drawn=lambda likely, *names: {"": likely})
    assert (network._network(seen, network.Sent(pd.DataFrame())) is not None) is told


@pytest.mark.parametrize(
    ("apart_s", "launching_s", "told"), [(0.02, 0.05, False), (0.03, 0.05, True), (0.02, 0.0, True)]
)
def test_ranks_apart_by_a_part_of_what_each_launches_are_not_late_in_turn(apart_s, launching_s, told):
    """Forty steps of two ranks, of which each launches for so long in each."""
    amounts = {"idle_launching": 80 * launching_s, "straggler_wait": 1.0}
    seen = SimpleNamespace(chips=2, whole=20.0, amount=lambda name: amounts.get(name, 0.0))
    found = SimpleNamespace(apart_s=apart_s, steps=pd.DataFrame({"step": range(40)}))
    answer = stragglers._told_in_turn(seen, found, 2)
    assert [f.cause for f in answer.findings] == (["jitter"] if told else [])
    assert "jitter" in {r.cause for r in answer.ruled_out} or told


def run_again(place, name, first, second):
    """A job that ends and is run again: steps (number, seconds) of both runs, which have times of day."""
    steps, life, now = [], [], made_runs.START_NS
    for attempt, told in enumerate((first, second)):
        begun = now
        for number, took_s in told:
            steps.append((number, now, took_s * S, attempt))
            now += took_s * S
        life.append(("job", begun, now, attempt))
        now += 600 * S
    columns = [list(column) for column in zip(*steps, strict=True)]
    tables = {
        "steps": dict(zip(("step", "start_ns", "dur_ns", "attempt"), columns, strict=True)),
        "lifecycle": dict(
            zip(("kind", "start_ns", "end_ns", "attempt"), map(list, zip(*life, strict=True)), strict=True)
        ),
    }
    for table in tables.values():
        n = len(table["attempt"])
        table |= {"order": list(range(n)), "source": ["train.log"] * n}
    run = made_runs.write(place.store, name, tables, {"chips": 4})
    return ask(FINDINGS, run, {}, place.registry)


def test_a_change_of_pace_across_two_runs_of_a_job_is_told_once_and_in_its_place(place):
    slowed = [(100 + n, 30 if n == 0 else 5 if n < 100 else 10) for n in range(200)]
    result = run_again(place, "slowed", slowed, [(50 + n, 30 if n == 0 else 10 if n <= 10 else 5) for n in range(600)])
    (found,) = result.findings
    assert found.title == "Steps take 10.0 s in steps 200 to 299, in place of 5.00 s."
    assert found.likely == pytest.approx(100 * 5 * 4)


@pytest.mark.parametrize("slow", [3, 9])
def test_a_second_run_that_begins_as_slowly_as_the_first_was_has_an_answer(place, slow):
    first = [(1 + n, 30 if n == 0 else 10) for n in range(98)]
    second = [(n, 30 if n == 0 else 10 if n <= slow else 5) for n in range(300)]
    result = run_again(place, f"slow {slow}", first, second)
    assert all(f.where.steps is None or f.where.steps.first <= f.where.steps.last for f in result.findings)


def test_a_finding_names_the_accounts_that_it_draws_on_and_no_others(place):
    """Steps that become slower, of which a log alone tells: nothing is known of what devices did in them."""
    took = [10 * S] * 200 + [14 * S] * 200
    run = made_runs.write(place.store, "slower", {"steps": made_runs.step_columns(took)}, {"chips": 4})
    (told,) = ask(FINDINGS, run, {}, place.registry).to_dict()["findings"]
    assert told["cause"] == "step_change" and told["accounts"] == ["unattributed"]


@pytest.mark.parametrize("tokens", [4000, 8000])
def test_steps_that_are_longer_for_their_tokens_are_not_held_up(place, tokens):
    """Of batches of two lengths, at no one distance: a fifth of the steps take twice as long, for twice the tokens."""
    longer = [n * n % 11 == 5 for n in range(400)]
    took = [14 * S if one else 7 * S for one in longer]
    rate = [(tokens if one else 4000) / (t / S) for one, t in zip(longer, took, strict=True)]
    tables = {"steps": made_runs.step_columns(took, tokens_per_s_per_chip=rate)}
    run = made_runs.write(place.store, f"lengths {tokens}", tables, {"chips": 4})
    causes = {f.cause for f in ask(FINDINGS, run, {}, place.registry).findings}
    assert ("irregular_pauses" in causes) == (tokens == 4000)
