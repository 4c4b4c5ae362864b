"""The simulated fleet does what its plan says: counted here from its tables alone, and by hand."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from catalog.causes import CAUSES, cause_of
from reference.fleet import CAUSES as PUBLISHED
from simulators.fleet import FleetPlan, host_name, simulate
from simulators.fleet_messages import MESSAGES, SYMPTOMS
from simulators.fleet_ranks import RanksPlan, profile

PLAN = FleetPlan(
    start_ns=1_788_220_800_000_000_000,
    days=3,
    hosts=64,
    chips_per_host=8,
    causes={"accelerator": 20, "user": 3},
    step_s=6.0,
    checkpoint_every=50,
    save_s=5.0,
    lemons=(7,),
    lemon_factor=200.0,
    seed=1,
)
SAMPLE = {"device": 3, "bus": "4e", "pid": 4242, "rank": 77, "host": "r001-n02", "seq": 123456}


@pytest.fixture(scope="module")
def fleet():
    return simulate(PLAN)


@pytest.fixture(scope="module")
def steps(fleet):
    return pd.DataFrame(fleet.tables["steps"])


def test_every_interruption_starts_the_job_again(fleet):
    life = pd.DataFrame(fleet.tables["lifecycle"])
    jobs = life[life["kind"] == "job"].sort_values("start_ns")
    assert len(fleet.truth) == 23 and len(jobs) == 24
    assert jobs["attempt"].tolist() == list(range(24))
    assert jobs["end_ns"].isna().tolist() == [True] * 23 + [False]
    assert int(jobs["end_ns"].iloc[-1]) == PLAN.start_ns + 3 * 86_400 * 10**9
    for told, begun in zip(fleet.truth, jobs["start_ns"].iloc[1:], strict=True):
        assert told["at_ns"] < told["noticed_ns"] < begun
    assert sorted(t["cause"] for t in fleet.truth) == ["accelerator"] * 20 + ["user"] * 3


def test_steps_rise_within_an_attempt_and_go_on_after_what_was_saved(fleet, steps):
    assert (steps["start_ns"].diff().dropna() > 0).all()
    by = steps.groupby("attempt")["step"]
    assert (by.diff().dropna() == 1).all()
    for told in fleet.truth:
        if told["attempt"] + 1 in by.groups:
            assert by.min()[told["attempt"] + 1] == told["saved_step"] + 1
    saves = pd.DataFrame(fleet.tables["lifecycle"]).query("kind == 'checkpoint_save'")
    assert (saves["step"] % 50 == 0).all() and ((saves["end_ns"] - saves["start_ns"]) > 0).all()


def test_usual_steps_take_what_the_plan_says(steps):
    took = steps.groupby("attempt")["start_ns"].diff().dropna() / 1e9
    assert took.median() == pytest.approx(6.0, rel=0.01)
    slow = simulate(dataclasses.replace(PLAN, slow=((0.0, 3.0, 1.2),)))
    took = pd.DataFrame(slow.tables["steps"]).groupby("attempt")["start_ns"].diff().dropna() / 1e9
    assert took.median() == pytest.approx(7.2, rel=0.01)


def test_the_order_is_that_of_one_log(fleet, steps):
    life = fleet.tables["lifecycle"]
    ends = [(e, o) for e, o in zip(life["end_ns"], life["end_order"], strict=True) if e is not None]
    when = np.concatenate([steps["start_ns"], life["start_ns"], [e for e, _ in ends]])
    order = np.concatenate([steps["order"], life["order"], [o for _, o in ends]])
    assert len(np.unique(order)) == len(order)
    assert (np.diff(when[np.argsort(order)]) >= 0).all()


def test_a_lemon_breaks_most_often(fleet):
    broken = pd.Series([t["host"] for t in fleet.truth if t["cause"] == "accelerator"]).value_counts()
    assert broken.index[0] == host_name(7) and broken.iloc[0] >= 10


def test_the_same_seed_is_the_same_job_and_another_is_not(fleet):
    again, other = simulate(PLAN), simulate(dataclasses.replace(PLAN, seed=2))
    assert again.truth == fleet.truth and other.truth != fleet.truth
    assert np.array_equal(again.tables["steps"]["start_ns"], fleet.tables["steps"]["start_ns"])


@pytest.mark.parametrize("cause", sorted(MESSAGES))
def test_what_hosts_say_names_their_cause(cause):
    assert cause in CAUSES
    for line in MESSAGES[cause]:
        assert cause_of(line.format(**SAMPLE)) == cause, line


def test_symptoms_name_no_cause():
    for line in SYMPTOMS:
        found = cause_of(line.format(**SAMPLE))
        assert found is not None and CAUSES[found].symptom, line


def test_the_published_counts():
    assert set(PUBLISHED) == set(MESSAGES)
    assert sum(PUBLISHED.values()) == 466
    unplanned = {**PUBLISHED, "maintenance": 32, "user": 0}
    assert sum(unplanned.values()) == 419


def test_ranks_leave_together_and_the_late_one_waits_least():
    plan = RanksPlan(
        start_ns=0, first_step=100, steps=12, hosts=4, chips_per_host=8, stages=4, step_s=1.0, late=13, seed=3
    )
    tables = profile(plan)
    rows = pd.DataFrame(tables["collectives"])
    rows["took"] = rows["end_ns"] - rows["start_ns"]
    spread = rows.groupby("host", observed=True)["end_ns"].apply(lambda e: e.nunique())
    assert (spread == 12).all(), "the ranks of a host share a clock, so they leave at the same instant"
    least = rows.loc[rows.groupby("step")["took"].idxmin()].set_index("step")["rank"]
    assert (least.drop([108]) == 13).all() and least[108] != 13
    assert rows.groupby("role")["rank"].nunique().tolist() == [8, 8, 8, 8]
    assert len(tables["captures"]["host"]) == 4 and len(tables["steps"]["step"]) == 12
