"""Lives of a job against the closed forms, and against one life walked event by event."""

import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from simulators.checkpointing import Job, optimal_s
from simulators.training.lives import ACCOUNTS, Life, live
from simulators.two_tier import Local, best_counted, best_interval, best_two_tier, fewest, shortest_s, two_tier_goodput

DAY_S = 86_400.0
SYNC = Job(save_s=30, mttf_s=10_000, restart_s=600, wait_s=120)
ASYNC = Job(save_s=90, mttf_s=9_000, restart_s=400, wait_s=60, blocked_s=4)


@pytest.mark.parametrize("job", [SYNC, ASYNC, Job(save_s=1, mttf_s=1e5), Job(save_s=500, mttf_s=3000, restart_s=800)])
@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
def test_the_mean_of_lives_is_the_closed_form(job, times):
    life = Life(job=job, interval_s=max(times * optimal_s(job), job.shortest_s), span_s=400 * job.mttf_s)
    drawn = live(life, 400).goodput
    assert drawn.mean() == pytest.approx(life.closed_form(), abs=5 * drawn.std() / 20 + 3e-3)


@pytest.mark.parametrize(
    ("save_s", "mttf_s", "restart_s", "interval_s", "share"),
    [
        (60, 10800, 300, 1098.771, 0.873653),
        (30, 10737.9, 600, 782.791, 0.876717),
        (5, 10737.9, 120, 324.362, 0.959015),
        (300, 86400, 900, 7001.389, 0.909442),
        (120, 1800, 300, 579.701, 0.573810),
    ],
)
def test_lives_against_shares_computed_elsewhere(save_s, mttf_s, restart_s, interval_s, share):
    """Daly's interval and the exact goodput at it, by numerical work that shares no line with this."""
    job = Job(save_s=save_s, mttf_s=mttf_s, restart_s=restart_s)
    drawn = live(Life(job=job, interval_s=interval_s, span_s=400 * mttf_s), 300).goodput
    assert drawn.mean() == pytest.approx(share, abs=5 * drawn.std() / 300**0.5 + 2e-3)


@pytest.mark.parametrize(("slices", "wait_s"), [(2, 600.0), (4, 7200.0), (48, 7200.0), (3, 30_000.0)])
def test_elastic_lives_are_within_three_points_of_theirs(slices, wait_s):
    job = replace(SYNC, mttf_s=20_000, wait_s=wait_s)
    life = Life(job=job, interval_s=optimal_s(job), span_s=54 * DAY_S, slices=slices, resume_s=60)
    assert live(life, 300).goodput.mean() == pytest.approx(life.closed_form(), abs=0.03)


@pytest.mark.parametrize("slices, resume_s", [(2, 540), (4, 900), (8, 1800), (32, 1800)])
@pytest.mark.parametrize("wait_s", [0.0, 60.0, 300.0, 3600.0])
def test_elastic_lives_pause_again_for_a_slice_that_comes_back_during_a_pause(slices, resume_s, wait_s):
    job = Job(save_s=30, mttf_s=10_800, restart_s=900, wait_s=wait_s)
    life = Life(job=job, interval_s=optimal_s(job), span_s=54 * DAY_S, slices=slices, resume_s=resume_s)
    assert live(life, 100).goodput.mean() == pytest.approx(life.closed_form(), abs=0.03)


@pytest.mark.parametrize("wait_s", [0.0, 1.0])
def test_an_elastic_life_without_a_wait_for_the_slice_pauses_once_more_and_no_oftener(wait_s):
    """Each slice is back at once: all that a failure costs beside its work are the pauses, two for each."""
    job = Job(save_s=30, mttf_s=1e6, wait_s=wait_s)
    drawn = live(Life(job=job, interval_s=1000, span_s=400 * DAY_S, slices=8, resume_s=100), 50)
    paused = drawn.seconds["restarting"].mean()
    assert paused == pytest.approx(200 * drawn.failures.mean(), rel=0.02)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"spares": 3, "repair_s": 40_000.0},
        {"slices": 4, "resume_s": 50.0},
        {"slices": 2, "resume_s": 900.0},
        {"local": Local(save_s=3, restart_s=60, share=0.7), "saves_per_remote": 9},
        {"local": Local(save_s=3, restart_s=60, share=0.7), "saves_per_remote": 4, "spares": 2, "repair_s": 40_000.0},
    ],
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


TIERED = (
    (Job(save_s=10, mttf_s=10800, restart_s=300), Local(save_s=1, restart_s=20, share=0.9), 60.0, 60),
    (Job(save_s=60, mttf_s=1800, restart_s=300, wait_s=200), Local(save_s=5, restart_s=60, share=0.7), 100.0, 7),
    (Job(save_s=60, mttf_s=600, restart_s=300), Local(save_s=5, restart_s=200, share=0.5), 100.0, 3),
    (Job(save_s=60, mttf_s=1800, restart_s=300), Local(save_s=60, restart_s=300, share=1.0), 100.0, 1),
    (Job(save_s=60, mttf_s=1800, restart_s=300), Local(save_s=5, restart_s=10, share=0.0), 100.0, 5),
)
WRITTEN = (  # in the background
    (Job(save_s=600, mttf_s=43_945, restart_s=120, blocked_s=1), Local(save_s=2, restart_s=120, share=0.8), 350.0, 2),
    (Job(save_s=600, mttf_s=43_945, restart_s=120, blocked_s=1), Local(save_s=2, restart_s=120, share=0.8), 599.0, 1),
    (Job(save_s=300, mttf_s=7200, restart_s=300, blocked_s=3), Local(save_s=5, restart_s=60, share=0.5), 60.0, 6),
)


@pytest.mark.parametrize(("job", "local", "interval_s", "every"), (*TIERED, *WRITTEN))
def test_the_mean_of_lives_with_two_tiers_is_the_closed_form(job, local, interval_s, every):
    life = Life(job=job, interval_s=interval_s, span_s=500 * job.mttf_s, local=local, saves_per_remote=every)
    drawn = live(life, 400).goodput
    assert life.closed_form() == two_tier_goodput(job, local, interval_s, every)
    assert drawn.mean() == pytest.approx(life.closed_form(), abs=5 * drawn.std() / 20 + 2e-3)


def walked_tiers(life: Life, draws: list[tuple[float, float]]) -> dict[str, float]:
    """One life with two tiers, save by save. `draws`: seconds to the next failure, and whether local copies survive it,
    below their share."""
    told = dict.fromkeys(ACCOUNTS, 0.0)
    now, done, remote, from_remote, job = 0.0, 0, 0, True, life.job
    written: list[tuple[float, int]] = []  # when each remote save of this stretch is safe, and what it holds
    for clock, luck in draws:
        end = min(now + clock, life.span_s)
        restart = job.restart_s if from_remote else life.local.restart_s
        told["restarting"] += min(restart, end - now)
        begun, now = now + restart < end, min(now + restart, end)
        work = 0.0
        while now < end:
            step = min(life.interval_s, end - now)
            now, work = now + step, work + step
            if now >= end:
                break
            is_remote = (done + 1) % life.saves_per_remote == 0
            takes = job.blocking_s if is_remote else life.local.save_s
            told["saving"] += min(takes, end - now)
            if now + takes <= end + 1e-9:
                done, work = done + 1, 0.0
                written += [(now + job.save_s, done)] if is_remote else []
            now = min(now + takes, end)
        if now >= life.span_s:
            told["kept"], told["lost_work"] = done * life.interval_s + work, told["lost_work"]
            return told
        told["lost_work"] += work
        survives = luck < life.local.share and life.saves_per_remote > 1  # else there are no local copies
        safe = [held for at, held in written if at <= end + 1e-9 or survives]  # what a copy holds is written on
        remote, written = max([remote, *safe]), []
        if not survives:
            told["lost_work"] += (done - remote) * life.interval_s
            done, from_remote = remote, True
        elif begun:
            from_remote = False
        told["waiting"] += min(job.wait_s, life.span_s - now)
        now = min(now + job.wait_s, life.span_s)
        if now >= life.span_s:
            told["kept"] = done * life.interval_s
            return told
    raise AssertionError("too few draws")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("job", "local", "interval_s", "every"), (*TIERED, *WRITTEN))
def test_a_life_with_two_tiers_is_that_of_one_walked_save_by_save(job, local, interval_s, every, seed):
    life = Life(job=job, interval_s=interval_s, span_s=40 * job.mttf_s, local=local, saves_per_remote=every)
    drawn = live(life, 1, seed=seed)
    rng = np.random.default_rng(seed)
    draws = [(float(rng.exponential(job.mttf_s, 1)[0]), float(rng.random(1)[0])) for _ in range(300)]
    assert {n: s[0] for n, s in drawn.seconds.items()} == pytest.approx(walked_tiers(life, draws), abs=1e-5)


def test_the_best_count_of_local_saves_is_no_worse_than_any():
    job, local = Job(save_s=30, mttf_s=7200, restart_s=200), Local(save_s=2, restart_s=60, share=0.8)
    interval_s, every, share = best_two_tier(job, local)
    assert best_interval(job, local, every) == pytest.approx((interval_s, share), rel=1e-4)
    for at in (interval_s / 3, interval_s, interval_s * 5):
        best = two_tier_goodput(job, local, at, best_counted(job, local, at))
        assert best >= max(two_tier_goodput(job, local, at, n) for n in range(1, 200)) - 1e-9


def test_the_best_of_two_tiers_waits_until_a_remote_save_is_written():
    job, local, interval_s, every = WRITTEN[0]
    found, n, share = best_two_tier(job, local)
    assert n > 1 and n * found + (n - 1) * local.save_s >= job.shortest_s - 1e-6
    assert share == pytest.approx(0.9855, abs=1e-3)  # of failures walked one by one, remote saves and all
    assert best_interval(job, local, 1)[0] >= job.shortest_s
    assert best_counted(job, local, 10.0) >= 51  # 51 x 12 - 2 s pass then between two remote ones, 599 at least
    with pytest.raises(QuestionError, match="at least"):
        best_counted(job, Local(save_s=1e-3, restart_s=0, share=0.8), 0.01)


def test_two_tiers_that_write_nothing_in_the_background_may_save_as_often_as_they_like():
    job, local = TIERED[0][:2]
    assert shortest_s(job, local, 1) == 0 and fewest(job, local, 1.0) == 1
    assert best_two_tier(job, local)[0] == pytest.approx(153.2, rel=1e-2)


@st.composite
def lived(draw) -> Life:
    """Any life of at most some hundred failures, of each kind."""
    mttf_s = draw(st.floats(100, 1e6))
    save_s = mttf_s * draw(st.floats(1e-6, 1))
    blocked_s = draw(st.sampled_from([None, save_s, save_s / 7]))
    times = {n: mttf_s * draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 5.0])) for n in ("restart_s", "wait_s")}
    job = Job(save_s=save_s, mttf_s=mttf_s, blocked_s=blocked_s, **times)
    interval_s = max(job.shortest_s, mttf_s * draw(st.floats(1e-4, 10)))
    of = {"spares": draw(st.integers(0, 4)), "repair_s": mttf_s * draw(st.floats(0, 20))}
    kind = draw(st.sampled_from(["whole", "elastic", "tiers"]))
    if kind == "elastic":
        of |= {"slices": draw(st.integers(2, 9)), "resume_s": mttf_s * draw(st.floats(0, 2))}
    if kind == "tiers":
        local = Local(save_s=save_s * draw(st.floats(0.01, 1)), restart_s=times["restart_s"] / 2, share=0.6)
        of |= {"local": local, "saves_per_remote": draw(st.integers(1, 12))}
    return Life(job=job, interval_s=interval_s, span_s=mttf_s * draw(st.floats(1e-3, 60)), **of)


@settings(deadline=None, max_examples=60)
@given(lived(), st.integers(0, 9))
def test_shares_of_every_life_sum_to_one_and_none_is_negative(life, seed):
    drawn = live(life, 12, seed)
    shares = {n: s / life.span_s for n, s in drawn.seconds.items()}
    assert sum(shares.values()) == pytest.approx(np.ones(12), abs=1e-9)
    assert all((s >= -1e-9).all() and (s <= 1 + 1e-9).all() for s in shares.values())
    assert drawn.range[0] + 1e-9 >= 0 and drawn.range[0] <= drawn.range[1] <= 1 + 1e-9


@settings(deadline=None)
@given(
    st.sampled_from(["whole", "elastic", "tiers"]), st.floats(1e-5, 0.3), st.floats(0, 3), st.floats(0, 3),
    st.floats(1.0, 20), st.floats(0.05, 3),
)  # fmt: skip
def test_a_job_that_fails_less_or_restarts_waits_or_saves_faster_keeps_no_less(kind, save, restart, wait, times, tau):
    of = {
        "whole": {},
        "elastic": {"slices": 4, "resume_s": restart / 2},
        "tiers": {"local": Local(save_s=save / 4, restart_s=restart / 2, share=0.8), "saves_per_remote": 6},
    }[kind]

    def keeps(**change) -> float:
        job = Job(**{"save_s": save, "mttf_s": 1.0, "restart_s": restart, "wait_s": wait} | change)
        return Life(job=job, interval_s=tau, span_s=1.0, **of).closed_form()

    least = keeps() - 1e-12
    assert 0 <= keeps() <= 1
    assert keeps(mttf_s=times) >= least and keeps(save_s=save / times) >= least
    assert keeps(restart_s=restart / times) >= least and keeps(wait_s=wait / times) >= least


@settings(deadline=None)
@given(
    st.floats(1e-5, 0.5), st.floats(0, 2), st.floats(0, 6), st.integers(2, 64), st.floats(0, 0.5), st.floats(0.05, 3)
)
def test_elastic_is_no_worse_than_the_whole_where_both_pauses_are_within_a_restart(save, restart, wait, k, part, tau):
    job = Job(save_s=save, mttf_s=1.0, restart_s=restart, wait_s=wait)
    whole = Life(job=job, interval_s=tau, span_s=1.0)
    elastic = replace(whole, slices=k, resume_s=restart * part)
    assert elastic.closed_form() >= whole.closed_form() - 1e-12


def test_elastic_may_be_worse_where_a_pause_is_as_long_as_a_restart():
    """Two pauses for one restart: where replacements are there at once, the second buys nothing."""
    job = Job(save_s=30, mttf_s=10_000, restart_s=600)
    whole = Life(job=job, interval_s=optimal_s(job), span_s=200 * job.mttf_s)
    elastic = replace(whole, slices=8, resume_s=600.0)
    assert elastic.closed_form() < whole.closed_form() - 0.03
    late = replace(job, wait_s=3600)
    assert replace(elastic, job=late).closed_form() > replace(whole, job=late).closed_form() + 0.1
    assert live(replace(elastic, job=late), 200).goodput.mean() > live(replace(whole, job=late), 200).goodput.mean()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 5), st.integers(1, 3), st.floats(0, 20), st.floats(0, 2), st.integers(0, 5))
def test_more_spares_are_never_worse_for_the_same_failures(spares, more, repair, wait, seed):
    """With the same times between failures: as many failures or more are come through, and no work is behind but what
    a failure just before the end took."""
    job = Job(save_s=20, mttf_s=2000, restart_s=100, wait_s=wait * 2000)
    few = Life(job=job, interval_s=300, span_s=60_000, spares=spares + 1, repair_s=repair * 2000)
    first, second = (live(x, 15, seed) for x in (few, replace(few, spares=spares + 1 + more)))
    assert (second.failures >= first.failures).all()
    assert (second.seconds["kept"] >= first.seconds["kept"] - 300 - 1e-6).all()
    assert (second.seconds["waiting"] <= first.seconds["waiting"] + 1e-6).mean() > 0.5


def test_the_mean_lies_in_the_range_however_seldom_a_life_fails():
    found = live(
        Life(job=Job(save_s=60, mttf_s=50_000 * 3600 / 64, restart_s=600), interval_s=18_000, span_s=DAY_S), 400
    )
    low, high = found.range
    assert 0 < float((found.goodput < high).mean()) < 0.05 and low <= found.goodput.mean() <= high


def test_what_cannot_be_drawn():
    local = Local(save_s=1, restart_s=1, share=0.5)
    for more in (
        {"saves_per_remote": 2},
        {"local": local, "saves_per_remote": 0},
        {"local": local, "saves_per_remote": 5000},
        {"local": local, "slices": 2},
    ):
        with pytest.raises(QuestionError):
            Life(job=SYNC, interval_s=9.0, span_s=9.0, **more)
    with pytest.raises(
        QuestionError, match="failures in each of 1,000 lives; expected at most 50,000 in each. Draw fewer"
    ):
        live(Life(job=Job(save_s=1, mttf_s=10), interval_s=3, span_s=100 * DAY_S), 1000)
    # each failure of a life with 1,023 slices away looks at them all: 50,000 / 1,023 of them are as much work
    away = Life(job=Job(save_s=1, mttf_s=100, wait_s=1e6), interval_s=10, span_s=60_000.0, slices=1024, resume_s=1.0)
    with pytest.raises(QuestionError, match="600 failures in each of 1,000 lives; expected at most 49 in each"):
        live(away, 1000)
    assert live(replace(away, span_s=4_000.0), 1000).failures.mean() == pytest.approx(40, rel=0.05)
    assert live(replace(away, job=replace(away.job, wait_s=10.0)), 100).failures.mean() > 500  # hardly any is away
    for more in ({"spares": -1}, {"slices": 0}, {"span_s": 0.0}, {"interval_s": float("nan")}):
        with pytest.raises(QuestionError):
            Life(**{"job": SYNC, "interval_s": 9.0, "span_s": 9.0, **more})
