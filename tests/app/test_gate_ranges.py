"""Gates on goodput, on what is held a step and on memory at its peak: they tell where that can be told truly, and alarm
on no pair alike."""

import math

import numpy as np
import pandas as pd
import pytest

from analyzers.difference.lost_time import LEAST, LostTime, goodput_range, held_range, lost_time
from analyzers.difference.peaks import peak_range, peaks
from analyzers.difference.step_time import FLOOR
from app.comparing.answer import Compared
from app.comparing.gates import FAILED, NOT_TOLD, PASSED, gate
from app.comparing.rates import goodput
from app.comparing.sides import compare_jobs
from app.workspace import Workspace
from runs.run import Run
from runs.store import Store
from tests.analyzers.test_memory import tables as of_program
from tests.app.made_runs import START_NS, S, interrupted, step_columns, write

HELD_S, PARTS = 1e6, 64
GB = 10**9


def lost(rng: np.random.Generator, events: float, cost_s: float, held_s: float = HELD_S) -> LostTime:
    """Stops that come by chance, `events` on average, each of which takes much more or much less than `cost_s`."""
    took = cost_s * rng.lognormal(0, 1, rng.poisson(events))
    part = np.bincount(rng.integers(0, PARTS, len(took)), took, PARTS) / (held_s / PARTS)
    return LostTime(took, held_s, part)


def told(a: LostTime, b: LostTime) -> tuple[float, tuple[float, float] | None]:
    """(change of goodput, its range where there is one)."""
    change = a.stretches_s.sum() / a.held_s - b.stretches_s.sum() / b.held_s
    ends = goodput_range(a, b, change)
    return change, None if isinstance(ends, str) else ends


@pytest.mark.parametrize(("events", "longer"), [(9, 1), (20, 1), (60, 3), (400, 1)])
def test_of_pairs_alike_hardly_one_in_two_hundred_shows_another_goodput(events, longer):
    rng, wrong, of = np.random.default_rng(events), 0, 400
    for _ in range(of):
        _, ends = told(lost(rng, events, 3000.0), lost(rng, events * longer, 3000.0, HELD_S * longer))
        wrong += ends is not None and not ends[0] <= 0 <= ends[1]
    assert wrong <= of * 0.005 + 3 * math.sqrt(of * 0.005)


def test_five_times_as_many_stops_are_seen_and_the_range_holds_the_truth():
    rng, seen, held = np.random.default_rng(1), [], []
    for _ in range(200):
        change, ends = told(lost(rng, 60, 500.0), lost(rng, 300, 500.0))
        assert ends is not None and ends[0] < change < ends[1]
        seen.append(ends[1] < 0)
        held.append(ends[0] <= -240 * 500.0 * math.exp(0.5) / HELD_S <= ends[1])
    assert np.mean(seen) > 0.9 and np.mean(held) > 0.97


@pytest.mark.parametrize("events", [0, 1, LEAST - 1])
def test_of_few_stretches_nothing_is_told(events):
    some = LostTime(np.full(events, 60.0), HELD_S, np.zeros(PARTS))
    many = LostTime(np.full(50, 60.0), HELD_S, np.zeros(PARTS))
    for pair in ((some, many), (many, some)):
        assert f"{events} stretches of lost time are too few" in goodput_range(*pair, 0.0)


def test_lost_stretches_and_goodput_close(place):
    run = interrupted(place.store)
    found = lost_time(run.tables, run.manifest.facts)
    assert found is not None
    assert 1 - found.stretches_s.sum() / found.held_s == pytest.approx(goodput(run, place))
    assert found.by_part.mean() == pytest.approx(found.stretches_s.sum() / found.held_s)
    assert (found.by_part >= 0).all() and (found.by_part <= 1 + 1e-9).all()
    # start-up, the failure with the steps that it took back, and 4 saves: nothing else lies between kept steps
    assert len(found.stretches_s) == 6


def saving(store: Store, name: str, save_s: float, seed: int, saves: int = 30) -> Run:
    """300 steps of ten seconds, a save after every tenth."""
    rng, now, starts, begins, ends = np.random.default_rng(seed), START_NS, [], [], []
    for step in range(saves * 10):
        starts.append(now)
        now += 10 * S
        if step % 10 == 9:
            begins.append(now)
            now += int(save_s * (1 + 0.1 * rng.normal()) * S)
            ends.append(now)
    saved = {"kind": ["checkpoint_save"] * saves, "start_ns": begins, "end_ns": ends, "order": list(range(saves))}
    tables = {
        "steps": step_columns([10 * S] * len(starts)) | {"start_ns": starts},
        "lifecycle": {**saved, "source": ["train.log"] * saves},
    }
    return write(store, name, tables, {"chip": "TPU v5p", "chips": 4, "seed": seed})


def test_goodput_is_gated_where_its_losses_are_many(place):
    a, same, slow = (saving(place.store, n, s, i) for i, (n, s) in enumerate((("a", 5), ("same", 5), ("slow", 60))))
    alike = gate("goodput<-5").look(Compared(a, same, place).sides)
    assert alike.outcome == PASSED and alike.low < 0 < alike.high
    worse = gate("goodput<-5").look(Compared(a, slow, place).sides)
    assert worse.outcome == FAILED and worse.high < 0
    assert worse.change == pytest.approx(goodput(slow, place) - goodput(a, place))
    assert gate("goodput<-0.01").look(Compared(a, same, place).sides).outcome == NOT_TOLD


def steady_log(store: Store, name: str, steps: int, step_s: float, seed: int, chips: int | None = 256) -> Run:
    """Five minutes of starting up, and then steps alone, which scatter a little."""
    took = step_s + np.random.default_rng(seed).normal(0, 0.05, steps)
    starts = (START_NS + np.cumsum([300, *took[:-1]]) * S).astype(int).tolist()
    order, source = list(range(steps)), ["goodput.jsonl"]
    columns = {"step": order, "start_ns": starts, "order": order, "source": source * steps}
    end = starts[-1] + int(took[-1] * S)
    job = {"kind": ["job"], "start_ns": [START_NS], "end_ns": [end], "order": [0], "source": source}
    facts = {"chip": "TPU v5p", "seed": seed} | ({"chips": chips} if chips else {})
    return write(store, name, {"steps": columns, "lifecycle": job}, facts)


def held(a: Run, b: Run, place: Workspace) -> tuple[str, float, float, float]:
    """The outcome, and between which the change lies."""
    found = gate("held_per_step>+5%").look(Compared(a, b, place).sides)
    assert found.change is not None and found.low is not None and found.high is not None, found.why
    return found.outcome, found.low, found.change, found.high


def test_a_step_that_is_quicker_on_twice_the_chips_holds_more_of_them(place):
    a, b = (steady_log(place.store, n, 400, s, c, c) for n, s, c in (("a", 20, 256), ("b", 12, 512)))
    outcome, low, change, high = held(a, b, place)
    spread = 300 / 400  # of starting up, which is all that was lost
    assert outcome == FAILED and change == pytest.approx((spread + 12) * 512 / (spread + 20) / 256 - 1, abs=0.002)
    assert low < 12 * 512 / 20 / 256 - 1 < high  # what the steps alone hold
    assert held(b, a, place)[0] == PASSED
    told = compare_jobs(a, b, place).whole
    assert sum(c.b for c in told) == pytest.approx((spread + 12) * 512, rel=0.002)


def test_starting_up_that_is_spread_over_fewer_steps_is_told_no_change_of_what_is_held(place):
    pair = steady_log(place.store, "long", 3000, 20, 1), steady_log(place.store, "short", 100, 20, 2)
    found = gate("held_per_step>+5%").look(Compared(*pair, place).sides)
    assert found.outcome == NOT_TOLD and found.change == pytest.approx(0.145, abs=0.01)
    assert "too few to tell their scatter" in found.why


def test_what_is_held_of_chips_that_nobody_counted_is_not_compared(place):
    a, b = steady_log(place.store, "a", 100, 20, 1, None), steady_log(place.store, "b", 100, 30, 2)
    found = gate("held_per_step>+5%").look(Compared(a, b, place).sides)
    assert (found.outcome, found.change) == (NOT_TOLD, None) and compare_jobs(a, b, place).whole == ()


def test_what_is_held_is_gated_where_losses_are_many(place):
    a, same, slow = (saving(place.store, n, s, i) for i, (n, s) in enumerate((("a", 5), ("same", 5), ("slow", 60))))
    outcome, low, _, high = held(a, same, place)
    assert outcome == PASSED and low < 0 < high
    outcome, low, change, high = held(a, slow, place)
    assert outcome == FAILED and 0 < low < change < high and change == pytest.approx(16 / 10.5 - 1, abs=0.03)


@pytest.mark.parametrize("events", [3, 20, 60])
def test_of_pairs_alike_hardly_one_in_two_hundred_holds_another_time_a_step(events):
    rng, wrong, of = np.random.default_rng(events), 0, 400
    for _ in range(of):
        a, b = (lost(rng, events, 3000.0) for _ in "ab")
        kept = [1 - x.stretches_s.sum() / x.held_s for x in (a, b)]
        ends = held_range(a, b, kept[0] / kept[1] - 1, 0.0)
        wrong += not isinstance(ends, str) and not ends[0] <= 0 <= ends[1]
    assert wrong <= of * 0.005 + 3 * math.sqrt(of * 0.005)


def samples(*of: list[int]) -> pd.DataFrame:
    rows = [("h", n, "a", t, used) for n, device in enumerate(of) for t, used in enumerate(device)]
    return pd.DataFrame(rows, columns=["host", "device", "allocator", "ts_ns", "used_bytes"])


def steady(peak: int, n: int = 40) -> list[int]:
    """A start, and then a saw whose every fourth tooth is the peak."""
    return [peak // 3] * (n // 4) + [peak if t % 4 == 3 else peak // 2 for t in range(n - n // 4)]


def test_a_peak_that_comes_again_and_again_is_told_but_for_what_two_starts_differ_by():
    a, b = peaks(samples(steady(8 * GB), steady(8 * GB))), peaks(samples(steady(9 * GB)))
    assert set(a) == {8 * GB} and len(a) == 6 and set(b) == {9 * GB}
    assert peak_range(a, a) == pytest.approx((-FLOOR, FLOOR))
    assert peak_range(a, b) == pytest.approx((1 / 8 - FLOOR, 1 / 8 + FLOOR))


def test_peaks_that_are_now_high_now_low_and_few_samples_tell_nothing():
    even = peaks(samples(steady(GB)))
    assert peaks(samples([GB] * 10 + [2 * GB] * 10 + [4 * GB] * 10 + [3 * GB] * 10)) is None
    assert peaks(samples(steady(GB), [GB] * 30 + [GB + GB // 50] * 10)) is None
    assert peaks(samples(steady(GB), steady(2 * GB))) == (GB,) * 3 + (2 * GB,) * 3
    assert peaks(samples(steady(GB, 15))) == () and peaks(samples()) == ()
    assert all(isinstance(peak_range(a, b), str) for a, b in (((), even), (even, None), (None, even), ((0.0,), even)))


def sampled(store: Store, name: str, of: list[int], **facts: object) -> Run:
    n = len(of)
    memory = {
        "capture": [0] * n,
        "host": ["h"] * n,
        "device": [0] * n,
        "ts_ns": [START_NS + t * S for t in range(n)],
        "kind": ["bytes_in_use"] * n,
        "bytes": of,
        "name": ["allocator"] * n,
    }
    facts = {"chip": "TPU v5p", "chips": 1, "n": name, **facts}
    return write(store, name, {"steps": step_columns([S] * 40), "memory": memory}, facts)


def test_memory_at_its_peak_is_gated_where_it_was_sampled(place):
    a, same, more, odd = (
        sampled(place.store, n, of)
        for n, of in (
            ("a", steady(8 * GB)),
            ("same", steady(8 * GB)),
            ("more", steady(9 * GB)),
            ("odd", [*steady(8 * GB)[:-12], *([5 * GB] * 12)]),
        )
    )
    outcomes = {b.manifest.name: gate("peak_memory>+5%").look(Compared(a, b, place).sides) for b in (same, more, odd)}
    assert {n: j.outcome for n, j in outcomes.items()} == {"same": PASSED, "more": FAILED, "odd": NOT_TOLD}
    assert outcomes["more"].change == pytest.approx(1 / 8)
    assert (
        gate("peak_memory>+5%").look(Compared(odd, same, place).sides).outcome == NOT_TOLD
    )  # 5 or 8 GB: which is A's?
    assert gate("peak_memory>+0.1%").look(Compared(a, same, place).sides).outcome == NOT_TOLD


KNOWN = {"model": "llama3.1-8b", "chip": "TPU v5p", "chips": 256, "per_device_batch_size": 2, "seq_len": 8192}


def test_what_a_formula_tells_of_a_model_is_no_memory_of_a_run(place):
    """All of these tell their model, of which a formula makes a peak; only what a run tells itself is compared."""
    steps = {"steps": step_columns([S] * 40)}
    plain, other = (write(place.store, n, steps, KNOWN) for n in ("plain", "other"))
    of_samples = sampled(place.store, "sampled", steady(8 * GB), **KNOWN)
    planned = write(place.store, "planned", steps | of_program(), KNOWN)
    for a, b in ((plain, other), (of_samples, plain), (planned, plain)):
        found = gate("peak_memory>+5%").look(Compared(a, b, place).sides)
        assert (found.outcome, found.change) == (NOT_TOLD, None) and "not both tell what memory held" in found.why
    for a, b in ((plain, other), (of_samples, plain), (planned, plain), (of_samples, planned)):
        compared = Compared(a, b, place)
        assert "emory" not in compared.verdict.whole
        assert not any("memory" in f.name for f in compare_jobs(a, b, place).figures)


def test_memory_of_both_known_alike_stands_side_by_side(place):
    low, high = (sampled(place.store, n, steady(of * GB), **KNOWN) for n, of in (("low", 8), ("high", 16)))
    assert "Memory at the peak 8.00 GB, then 16.0 GB." in Compared(low, high, place).verdict.whole
    tables = {"steps": step_columns([S] * 40)} | of_program()
    one, other = (write(place.store, n, tables, KNOWN) for n in ("one", "two"))
    planned = compare_jobs(one, other, place).figure("memory_planned_bytes")
    assert planned is not None and planned.same
    assert gate("peak_memory>+5%").look(Compared(one, other, place).sides).outcome == PASSED
