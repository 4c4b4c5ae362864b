"""Steps of jobs with a known history, told by many files, hosts and clocks in any order: the same history comes out."""

import random
from itertools import pairwise

import numpy as np
import pytest

from analyzers.flops import mfu
from analyzers.lost import goodput, interruptions
from analyzers.time import ledger, steps
from analyzers.time.calendar import calendar
from analyzers.time.history import history
from analyzers.time.job_past import job_past
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.short_jobs import job_of, logs
from tests.analyzers.told_jobs import EPOCH, Row, S, TrueJob, log, renumbered, tables
from tests.conftest import seeds

SEEDS = seeds(150)


KINDS = (
    "one file",
    "file per host",
    "file per attempt",
    "rotated",
    "prefix",
    "renamed pods",
    "cut",
    "west",
    "merged",
    "newest first",
)
NAMELESS = KINDS[-2:]  # nothing in them would tell of a restart that takes no step again


def told(rng: random.Random, job: TrueJob, kind: str) -> list[Row]:
    """The job as its hosts told of it, in one of the ways that logs come in."""
    names = [f"{rng.choice('abcxyz')}{rng.randint(0, 99)}-{k}" for k in range(40)]
    takes, step_s = job.takes, job.step_s
    jitter = 0.2 * step_s
    if kind == "one file":
        return log(rng, takes, "train.log")
    if kind == "file per host":
        hosts = rng.randint(2, 4)
        return [r for h in range(hosts) for r in log(rng, takes, names[h], clock_s=rng.uniform(-1, 1), jitter_s=jitter)]
    if kind == "file per attempt":
        hosts = rng.randint(1, 3)
        return [
            r
            for k in range(job.attempts)
            for h in range(hosts)
            for r in log(rng, [t for t in takes if t.attempt == k], names[k * hosts + h], jitter_s=jitter)
        ]
    if kind == "rotated":
        cut = sorted(rng.sample(range(5, len(takes) - 5), 2))
        parts = [takes[: cut[0]], takes[cut[0] : cut[1]], takes[cut[1] :]]
        return [r for part, name in zip(parts, ("log.2", "log.1", "log"), strict=True) for r in log(rng, part, name)]
    if kind == "prefix":
        return [r for h in range(3) for r in log(rng, takes, "pods.log", names[h], jitter_s=jitter)]
    if kind == "renamed pods":
        return [
            r
            for k in range(job.attempts)
            for h in range(2)
            for r in log(rng, [t for t in takes if t.attempt == k], "pods.log", names[2 * k + h], jitter_s=jitter)
        ]
    if kind == "cut":  # the first host's log has a hole that the second's covers; that one begins late and ends early
        a, b = sorted(rng.sample(range(4, len(takes) - 4), 2))
        return log(rng, takes[:a] + takes[b:], names[0], jitter_s=jitter) + log(
            rng, takes[max(a - 3, 1) : b + 3], names[1], jitter_s=jitter
        )
    if kind == "merged":
        both = [r for h in range(rng.randint(2, 3)) for r in log(rng, takes, "all.log", jitter_s=jitter)]
        return renumbered(sorted(both, key=lambda r: r.start_s + r.dur_s))
    if kind == "newest first":
        return renumbered(log(rng, takes, "export.json")[::-1])
    return [
        r for h in range(3) for r in log(rng, takes, names[h], clock_s=-7 * 3600 if h == 2 else 0.0, jitter_s=jitter)
    ]


@pytest.mark.parametrize("block", range(6))
def test_whoever_tells_of_a_job_the_same_history_comes_out(block):
    for seed in SEEDS[block::6]:
        rng = random.Random(seed)
        kind = rng.choice(KINDS)
        job = TrueJob(rng, rng.randint(1, 4), rng.choice([0.4, 3.0, 20.0]), kind in NAMELESS)
        rows = told(rng, job, kind)
        rng.shuffle(rows)
        here = tables(rows)
        facts = facts_of({"chips": 1})
        past, days = job_past(here, facts)  # kept: the question below rests on the same
        where = (seed, kind)
        found = list(zip(past.rows["attempt"], past.rows["step"], strict=True))
        assert found == [(t.attempt, t.step) for t in job.takes], where
        kept = past.rows[past.rows["kept"].astype(bool)]
        assert list(zip(kept["attempt"], kept["step"], strict=True)) == job.kept, where
        ends = [(i.last_step, i.resumed_step) for i in days.interruptions]
        assert ends == list(zip(job.last_steps[:-1], job.first_steps[1:], strict=True)), where
        assert (days.end_ns - days.start_ns) / S == pytest.approx(job.held_s, abs=2 + job.step_s), where
        asked = interruptions.analyze(here, facts, {})
        assert asked.count == job.attempts - 1, where


def untimed(rng: random.Random, job: TrueJob) -> tuple[list[Row], str]:
    kind = rng.choice(["one file", "file per attempt", "ranks", "rotated"])
    takes = job.takes
    if kind == "one file":
        return log(rng, takes, "train.log", timed=False), kind
    if kind == "file per attempt":
        return [
            r
            for k in range(job.attempts)
            for r in log(rng, [t for t in takes if t.attempt == k], f"attempt_{k + 8}.log", timed=False)
        ], kind
    if kind == "ranks":
        return [r for h in range(4) for r in log(rng, takes, f"rank{h}.log", timed=False)], kind
    cut = sorted(rng.sample(range(5, len(takes) - 5), 2))
    parts = [takes[: cut[0]], takes[cut[0] : cut[1]], takes[cut[1] :]]
    named = zip(parts, ("log.2", "log.1", "log"), strict=True)
    return [r for part, name in named for r in log(rng, part, name, timed=False)], kind


def test_without_times_of_day_copies_are_hosts_and_files_follow_one_another():
    for seed in seeds(150):
        rng = random.Random(seed)
        job = TrueJob(rng, rng.randint(1, 4), 3.0)
        rows, kind = untimed(rng, job)
        if kind == "file per attempt" and any(a == b for a, b in pairwise(job.first_steps)):
            continue  # from the same step on at the same speed: nothing tells a rerun from a copy, and a note says so
        rng.shuffle(rows)
        past = history(tables(rows), {})
        found = list(zip(past.rows["attempt"], past.rows["step"], strict=True))
        assert [s for _, s in found] == [t.step for t in job.takes], (seed, kind)
        kept = past.rows[past.rows["kept"].astype(bool)]
        assert list(kept["step"]) == [s for _, s in job.kept], (seed, kind)
        assert not past.timed


@pytest.mark.parametrize("seed", seeds(25))
def test_order_of_rows_split_of_files_and_a_second_host_change_nothing(seed):
    rng = random.Random(seed)
    job = TrueJob(rng, rng.randint(1, 3), 3.0)
    alone = log(rng, job.takes, "a.log")
    cut = rng.randint(1, len(alone) - 1)
    mixed = alone[:]
    rng.shuffle(mixed)
    split = [
        Row(r.take, r.host, "a.log" if n < cut else "0.log", r.order, r.attempt, r.start_s, r.dur_s)
        for n, r in enumerate(alone)
    ]
    copied = alone + [
        Row(r.take, r.host, "b.log", r.order, r.attempt, r.start_s + rng.uniform(0, 0.3), r.dur_s) for r in alone
    ]
    first = answer(alone)
    for other in (mixed, split, alone[::-1]):
        assert answer(other) == first
    assert answer(copied) == pytest.approx(first, abs=0.5)


def answer(rows: list[Row]) -> list[float]:
    here, facts = tables(rows), facts_of({"chips": 4, "peak_flops_per_s": 1e13})
    book = ledger.analyze(here, facts, {}).ledger
    share = goodput.analyze(here, facts, {"rules": "exact"})
    cut = interruptions.analyze(here, facts, {})
    return [
        book.chip_seconds,
        book.amount("productive"),
        book.amount("wasted_progress"),
        book.useful_flops,
        book.amount("infrastructure_recovery"),
        share.productive_s,
        share.disruptions,
        cut.count,
    ]


def test_a_new_pod_that_repeats_no_step_is_a_restart_and_keeps_both_parts():
    here = logs((job_of((0, 49, 0)), "pod-a.log"), (job_of((50, 99, 1000)), "pod-b.log"))
    past = history(here, {})
    assert past.rows["attempt"].tolist() == [0] * 50 + [1] * 50
    (stop,) = calendar(here, past).interruptions
    assert (stop.last_step, stop.resumed_step, stop.wasted_steps) == (49, 50, 0)
    assert ledger.analyze(here, facts_of({"chips": 1}), {}).ledger.amount("infrastructure_recovery") == pytest.approx(
        750, abs=1
    )
    assert steps.analyze(here, facts_of({}), {}).steps == 100


def test_a_log_that_goes_on_in_the_next_file_is_no_restart():
    past = history(logs((job_of((0, 49, 0)), "log.1"), (job_of((50, 99, 250)), "log")), {})
    assert set(past.rows["attempt"]) == {0} and past.rows["first"].sum() == 1


@pytest.mark.parametrize("where", ["same file", "other file"])
def test_a_restart_at_the_next_step_keeps_its_flops_where_the_goodput_log_marks_it(where):
    takes = job_of((0, 99, 10), (100, 199, 2000))
    parts = [(takes, "a.log")] if where == "same file" else [(takes[:100], "a.log"), (takes[100:], "b.log")]
    for timed in (True, False):
        rng = random.Random(0)
        rows = [r for part, name in parts for r in log(rng, part, name, timed=timed, announced=False)]
        columns = dict(
            zip(
                ("step", "dur_ns", "source", "order", "model_flops_per_chip", "start_ns"),
                zip(
                    *(
                        (
                            r.take.step,
                            round(r.dur_s * S),
                            r.source,
                            r.order,
                            1e12,
                            None if r.start_s is None else EPOCH + round(r.start_s * S),
                        )
                        for r in rows
                    ),
                    strict=True,
                ),
                strict=True,
            )
        )
        marks = {
            "step": [t.step for t in takes],
            "start_ns": [EPOCH + round(t.start_s * S) for t in takes],
            "source": ["g.json"] * len(takes),
            "order": list(range(len(takes))),
        }
        both = {n: [*marks.get(n, [None] * len(takes)), *columns[n]] for n in columns}
        here = MemoryTables(
            {
                "steps": both,
                "lifecycle": {
                    "kind": ["job", "job"],
                    "start_ns": [EPOCH, EPOCH + 1900 * S],
                    "end_ns": [None, EPOCH + 2500 * S],
                },
            }
        )
        past = history(here, {})
        assert past.rows["model_flops_per_chip"].notna().all()
        assert past.rows["attempt"].tolist() == [0] * 100 + [1] * 100
        book = ledger.analyze(here, facts_of({"chips": 1, "peak_flops_per_s": 1e12}), {}).ledger
        assert book.useful_flops == pytest.approx(200e12)


def test_a_start_that_was_cut_off_is_a_start_all_the_same():
    at = [*range(0, 1000, 10), *range(8260, 9260, 10)]
    here = MemoryTables(
        {
            "steps": {"step": range(200), "start_ns": [EPOCH + t * S for t in at], "order": range(200)},
            "lifecycle": {"kind": ["job"], "start_ns": [EPOCH + 8200 * S], "end_ns": [EPOCH + 9260 * S]},
        }
    )
    assert history(here, {}).rows["attempt"].tolist() == [0] * 100 + [1] * 100
    book = ledger.analyze(here, facts_of({"chips": 1}), {}).ledger
    assert book.amount("infrastructure_recovery") == pytest.approx(8200 - 1000)
    assert book.amount("productive") == pytest.approx(2000, abs=1)


def test_steps_below_0_and_shorter_than_nothing_are_refused():
    columns = {"step": [0, -1, 1, 2, None], "dur_ns": [S, S, -S, S, S], "order": range(5), "source": ["a"] * 5}
    past = history(MemoryTables({"steps": columns}), {})
    assert past.rows["step"].tolist() == [0, 2]
    assert "1 row names a step below 0: left out." in past.notes
    assert "1 row tells of a step that took less than no time: left out." in past.notes
    assert past.notes[0].startswith("1 row names no step number")
    assert set(past.notes) <= set(steps.analyze(MemoryTables({"steps": columns}), facts_of({}), {}).notes)


def test_what_was_left_out_reaches_every_answer():
    here = logs((job_of((0, 49, 0)), "a.log"), (job_of((0, 49, 0)), "b.log"))
    facts = facts_of({"chips": 1, "peak_flops_per_s": 1e15})
    notes = history(here, {}).notes
    assert any("2 hosts or logs" in note for note in notes)
    options = {o.name: o.default for o in mfu.OPTIONS}
    for found in (
        ledger.analyze(here, facts, {}),
        goodput.analyze(here, facts, {"rules": "exact"}),
        interruptions.analyze(here, facts, {}),
        steps.analyze(here, facts, {}),
        mfu.analyze(here, facts, options),
    ):
        assert set(notes) <= set(found.notes)
    bare = logs((job_of((0, 49, 0)), "a.log"), (job_of((0, 49, 0)), "b.log"), timed=False)
    notes = history(bare, {}).notes
    assert any("taken for hosts of one attempt" in note for note in notes)
    for found in (
        ledger.analyze(bare, facts, {}),
        goodput.analyze(bare, facts, {"rules": "exact"}),
        interruptions.analyze(bare, facts, {}),
    ):
        assert set(notes) <= set(found.notes)


def test_hosts_that_mark_the_steps_tell_of_all_that_any_of_them_saw():
    takes = job_of((0, 99, 0), (90, 149, 2000))
    rows = [
        (t.step, t.start_s, host)
        for k, hosts in ((0, "ab"), (1, "cd"))
        for host in hosts
        for t in takes
        if t.attempt == k
    ]
    random.Random(0).shuffle(rows)
    here = MemoryTables(
        {
            "steps": {
                "step": [n for n, *_ in rows],
                "host": [h for *_, h in rows],
                "start_ns": [EPOCH + round((t + 0.4 * (h in "bd")) * S) for _, t, h in rows],
            },
            "lifecycle": {
                "kind": ["job"] * 4,
                "host": list("abcd"),
                "end_ns": [None] * 4,
                "start_ns": [EPOCH + t * S for t in (-20, -18, 1900, 1903)],
            },
        }
    )
    past = history(here, {})
    assert list(zip(past.rows["attempt"], past.rows["step"], strict=True)) == [(t.attempt, t.step) for t in takes]
    (stop,) = calendar(here, past).interruptions
    assert (stop.last_step, stop.resumed_step, stop.wasted_steps) == (99, 90, 10)


def test_a_host_whose_log_misses_the_restart_does_not_hide_it():
    takes = job_of((0, 59, 0), (50, 99, 2000))
    holed = [t for t in takes if not (t.attempt == 0 and t.step >= 40)]
    past = history(logs((takes, "a.log"), (holed, "b.log")), {})
    assert list(zip(past.rows["attempt"], past.rows["step"], strict=True)) == [(t.attempt, t.step) for t in takes]


def test_a_line_without_a_time_takes_none_from_the_others():
    takes = job_of((0, 99, 0), (90, 149, 3000))
    columns = logs((takes, "a.log")).arrow("steps").to_pydict()
    for n in (0, 7, 8, 99, 100, 101, 159):
        columns["start_ns"][n] = columns["logged_ns"][n] = None
    past = history(MemoryTables({"steps": columns}), {})
    assert past.timed
    assert past.rows["start_ns"].to_numpy(dtype=np.int64).tolist() == pytest.approx(
        [EPOCH + round(t.start_s * S) for t in takes], abs=S
    )


def test_a_line_that_tells_why_belongs_to_the_attempt_of_its_own_log():
    takes = job_of((0, 59, 0), (50, 99, 2000), (90, 129, 4000))
    here = (
        logs(
            *((takes[a:b], f"attempt_{k}.log") for k, (a, b) in enumerate([(0, 60), (60, 110), (110, 150)])),
            timed=False,
        )
        .arrow("steps")
        .to_pydict()
    )
    evidence = {
        "ts_ns": [None],
        "attempt": [0],
        "step": [99],
        "cause": ["hbm"],
        "severity": ["error"],
        "text": ["HBM uncorrectable"],
        "offset": [0],
        "order": [0],
        "source": ["attempt_1.log"],
    }
    found = interruptions.analyze(MemoryTables({"steps": here, "evidence": evidence}), facts_of({"chips": 1}), {})
    assert found.rows["cause"].tolist() == ["unknown", "hbm"]


@pytest.mark.parametrize("slow", ["a.parquet", "b.parquet"])
def test_of_hosts_that_take_a_step_at_once_the_slowest_tells_how_long_it_took_whatever_its_name(slow):
    quick = {"a.parquet": "b.parquet", "b.parquet": "a.parquet"}[slow]
    n, took = 30, {slow: S, quick: 9 * S // 10}
    columns = {
        "step": 2 * [*range(n)],
        "start_ns": 2 * [(EPOCH + k * S) for k in range(n)],
        "dur_ns": [took[name] for name in sorted(took) for _ in range(n)],
        "tokens_per_s_per_chip": [1e12 / took[name] for name in sorted(took) for _ in range(n)],
        "source": [name for name in sorted(took) for _ in range(n)],
        "host": [name[0] for name in sorted(took) for _ in range(n)],
        "format": ["table"] * 2 * n,
    }
    rows = history(MemoryTables({"steps": columns}), {}).rows
    assert rows["dur_ns"].tolist() == [S] * n
    assert rows["tokens_per_s_per_chip"].tolist() == pytest.approx([1000.0] * n)  # of as many tokens
