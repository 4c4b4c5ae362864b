"""Lives of a job against the closed forms, and against one life walked event by event."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from errors import QuestionError
from simulators.checkpointing import Job, optimal_s
from simulators.training.lives import ACCOUNTS, Life, live

DAY_S = 86_400.0
SYNC = Job(save_s=30, mttf_s=10_000, restart_s=600, wait_s=120)
ASYNC = Job(save_s=90, mttf_s=9_000, restart_s=400, wait_s=60, blocked_s=4)


@pytest.mark.parametrize("job", [SYNC, ASYNC, Job(save_s=1, mttf_s=1e5), Job(save_s=500, mttf_s=3000, restart_s=800)])
@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
def test_the_mean_of_lives_is_the_closed_form(job, times):
    life = Life(job=job, interval_s=max(times * optimal_s(job), job.shortest_s), span_s=400 * job.mttf_s)
    drawn = live(life, 400).goodput
    assert drawn.mean() == pytest.approx(life.closed_form(), abs=5 * drawn.std() / 20 + 3e-3)


@pytest.mark.parametrize(("slices", "wait_s"), [(2, 600.0), (4, 7200.0), (48, 7200.0), (3, 30_000.0)])
def test_elastic_lives_are_within_three_points_of_theirs(slices, wait_s):
    job = replace(SYNC, mttf_s=20_000, wait_s=wait_s)
    life = Life(job=job, interval_s=optimal_s(job), span_s=54 * DAY_S, slices=slices, resume_s=60)
    assert live(life, 300).goodput.mean() == pytest.approx(life.closed_form(), abs=0.03)


@pytest.mark.parametrize(
    "more", [{}, {"spares": 3, "repair_s": 40_000.0}, {"slices": 4, "resume_s": 50.0}, {"slices": 2, "resume_s": 900.0}]
)
def test_accounts_add_up_to_the_span_of_each_life(more):
    life = Life(job=SYNC, interval_s=700, span_s=20 * DAY_S, **more)
    drawn = live(life, 200, seed=3)
    assert set(drawn.seconds) == set(ACCOUNTS) and all((s >= 0).all() for s in drawn.seconds.values())
    assert sum(drawn.seconds.values()) == pytest.approx(np.full(200, life.span_s))


def walked(life: Life, clocks: list[float]) -> dict[str, float]:
    """One life, second by second where work and saves are concerned, with the same clocks. No elastic jobs."""
    told = dict.fromkeys(ACCOUNTS, 0.0)
    now, free, job = 0.0, [0.0] * life.spares, life.job
    for clock in clocks:
        end = min(now + clock, life.span_s)
        told["restarting"] += min(job.restart_s, end - now)
        now = min(now + job.restart_s, end)
        work = saved = 0.0
        while now < end:
            step = min(life.interval_s, end - now)
            work, now, began = work + step, now + step, now + step
            if now < end:
                told["saving"] += min(job.save_s, end - now)
                now = min(now + job.save_s, end)
                saved = work if now - began >= job.save_s - 1e-9 else saved
        kept = work if end >= life.span_s else saved
        told["kept"] += kept
        told["lost_work"] += work - kept
        if now >= life.span_s:
            break
        wait = job.wait_s
        if life.spares:
            heapq.heapify(free)
            wait += max(heapq.heappop(free) - now, 0.0)
            heapq.heappush(free, now + life.repair_s)
        told["waiting"] += min(wait, life.span_s - now)
        now = min(now + wait, life.span_s)
        if now >= life.span_s:
            break
    return told


@pytest.mark.parametrize("spares", [0, 1, 4])
@pytest.mark.parametrize("seed", range(12))
def test_a_life_is_that_of_one_walked_event_by_event(spares, seed):
    life = Life(job=SYNC, interval_s=900.0, span_s=3 * DAY_S, spares=spares, repair_s=30_000.0 if spares else 0.0)
    drawn = live(life, 1, seed=seed)
    rng = np.random.default_rng(seed)
    clocks = [float(rng.exponential(SYNC.mttf_s, 1)[0]) for _ in range(500)]
    assert {n: s[0] for n, s in drawn.seconds.items()} == pytest.approx(walked(life, clocks), abs=1e-6)


def test_more_spares_lose_no_more_time():
    lost = [
        live(Life(job=SYNC, interval_s=900, span_s=54 * DAY_S, spares=n, repair_s=DAY_S), 200).seconds["waiting"].mean()
        for n in (1, 2, 4, 8, 16, 32)
    ]
    assert lost == sorted(lost, reverse=True)


def test_what_cannot_be_drawn():
    with pytest.raises(QuestionError, match="failures in each of 1,000 lives"):
        live(Life(job=Job(save_s=1, mttf_s=10), interval_s=3, span_s=100 * DAY_S), 1000)
    for more in ({"spares": -1}, {"slices": 0}, {"span_s": 0.0}, {"interval_s": float("nan")}):
        with pytest.raises(QuestionError):
            Life(**{"job": SYNC, "interval_s": 9.0, "span_s": 9.0, **more})
