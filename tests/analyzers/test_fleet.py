"""A fleet of runs: its sums close whichever way they are cut, time is split where clocks say, nothing counts twice."""

import math
import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from analyzers.fleet import FleetAsked, fleet
from analyzers.fleet.base import NOT_TOLD, FleetRun
from analyzers.fleet.periods import MOST, period_of, periods
from analyzers.fleet.spent import Cells, Entry, Spent, entries
from errors import QuestionError
from tests.app.ledgers import usual

S = 1_000_000_000
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
PATHS = (
    "productive/useful_maths",
    "productive/straggler_wait",
    "productive/device_idle/idle_logging",
    "badput/checkpoint_save",
    "badput/other",
    "unattributed",
)


def ns(at):
    return int(at.timestamp()) * S


def steady(start, hours, chips=8, *, save_in=(), **more):
    """A run that takes steps from its start on; in the hours `save_in` the second half is saving."""
    begins, ends = ns(start), ns(start) + int(hours * 3600 * S)
    first = begins // (3600 * S)
    last = -(-ends // (3600 * S))
    kept, saved = [], []
    for at in range(first, last):
        there = (min(ends, (at + 1) * 3600 * S) - max(begins, at * 3600 * S)) // 1000
        saves = there // 2 if at - first in save_in else 0
        kept.append(there - saves)
        saved.append(saves)
    in_steps, in_saves = (sum(x) / 1e6 * chips for x in (kept, saved))
    told = [("productive/useful_maths", 0.4 * in_steps), ("productive/below_roofline", 0.6 * in_steps)]
    told += [("badput/checkpoint_save", in_saves)] if in_saves else []
    spent = Spent(
        entries=tuple(Entry(path=p, chip_s=s, basis="derived") for p, s in told),
        held=((begins, ends),),
        cells=Cells(start_s=first * 3600, each_s=3600, of={"kept": kept, "checkpoint_save": saved}),
        useful_told=True,
        useful_flops=0.4 * in_steps * 1e15,
        **{k: more.pop(k) for k in ("usd", "inputs", "chips_known") if k in more},
    )
    name = more.pop("name", f"run {begins}")
    return FleetRun(**{"run_id": name, "name": name, "goodput": 0.9, "mfu": 0.4, "spent": spent} | more)


def many(seed, count=60):
    """Runs of all sorts: dated and not, with a calendar and without, priced and not, of some teams and owners."""
    rng = random.Random(seed)
    made = []
    for n in range(count):
        start = MONDAY + timedelta(minutes=rng.randrange(-60_000, 60_000))
        run = steady(start, rng.uniform(0.2, 90), rng.choice((1, 8, 256)), save_in=(0, 3, 5), name=f"run {n}")
        chosen = rng.sample(PATHS, rng.randrange(1, len(PATHS)))
        told = tuple(Entry(path=p, chip_s=rng.expovariate(1e-4), basis="derived") for p in chosen)
        spent = replace(run.spent, entries=told, usd=rng.choice((None, rng.uniform(1, 1000))))
        spent = replace(spent, cells=None) if n % 3 == 0 else spent
        spent = replace(spent, held=(), cells=None) if n % 7 == 0 else spent
        tags = {"team": rng.choice("abc"), "owner": rng.choice(("ann", "bob", ""))} if n % 4 else {}
        chip = rng.choice(("v5p", "H100 SXM", ""))
        made.append(replace(run, spent=spent, tags=tags, chip=chip, goodput=rng.choice((None, 0.5))))
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", ["team", "chip", "owner", "tag:team", "model"])
def test_the_sums_over_groups_periods_runs_and_accounts_are_the_sum_of_the_runs_ledgers(seed, by):
    runs = many(seed)
    told = fleet(runs, FleetAsked(by=by, every="day"))
    whole = math.fsum(e.chip_s for r in runs for e in r.spent.entries)
    parts = {
        "total": told.total.chip_s,
        "groups": math.fsum(part.chip_s for _, part in told.groups),
        "runs": math.fsum(r.chip_s for r in told.runs),
        "accounts": math.fsum(told.total.accounts.values()),
        "periods": math.fsum([*(part.chip_s for _, part in told.trend), told.undated.chip_s]),
        "accounts of groups": math.fsum(s for _, part in told.groups for s in part.accounts.values()),
        "accounts of periods": math.fsum(
            [*(s for _, part in told.trend for s in part.accounts.values()), *told.undated.accounts.values()]
        ),
    }
    for name, amount in parts.items():
        assert amount == pytest.approx(whole, rel=1e-9), name
    for path in PATHS:
        mine = math.fsum(e.chip_s for r in runs for e in r.spent.entries if e.path == path)
        assert told.total.accounts.get(path, 0.0) == pytest.approx(mine, rel=1e-9)
    money = math.fsum(r.spent.usd for r in runs if r.spent.usd is not None)
    assert told.total.usd == pytest.approx(money, rel=1e-9)
    assert math.fsum(part.usd or 0.0 for _, part in told.groups) == pytest.approx(money, rel=1e-9)
    assert math.fsum([*(p.usd or 0.0 for _, p in told.trend), told.undated.usd or 0.0]) == pytest.approx(
        money, rel=1e-9
    )
    assert told.total.unpriced_runs == sum(r.spent.usd is None for r in runs)


def by_minute(run, zone, name_of):
    """Chip-seconds by period and account, each minute of the run looked at: what is inside an hour is even in it."""
    spent, found = run.spent, defaultdict(float)
    (begins, ends), cells = spent.held[0], spent.cells
    for entry in spent.entries:
        heading = {"productive": "kept", "badput": entry.path.rpartition("/")[2]}[entry.path.partition("/")[0]]
        whole = sum(cells.of[heading])
        for i, us in ((i, us) for i, us in enumerate(cells.of[heading]) if us):
            start = max((cells.start_s + i * 3600) * S, begins)
            stop = min((cells.start_s + (i + 1) * 3600) * S, ends)
            minutes = round((stop - start) / (60 * S))
            for minute in range(minutes):
                local = datetime.fromtimestamp(start // S + minute * 60, UTC).astimezone(zone)
                found[name_of(local), entry.path] += entry.chip_s * us / whole / minutes
    return found


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"])
@pytest.mark.parametrize(
    ("every", "name_of"),
    [
        ("week", lambda at: f"{at:%G-W%V}"),
        ("day", lambda at: f"{at:%Y-%m-%d}"),
        ("month", lambda at: f"{at:%Y-%m}"),
    ],
)
def test_a_run_over_a_boundary_is_split_where_the_clocks_of_the_zone_say(zone, every, name_of):
    """From Friday before the clocks go back in Berlin (25 October 2026) over the end of the month."""
    zone = ZoneInfo(zone)
    run = steady(datetime(2026, 10, 23, 7, 30, tzinfo=UTC), 220, 16, save_in=(5, 40, 41, 90, 209))
    told = fleet([run], FleetAsked(every=every, zone=zone))
    expected = by_minute(run, zone, name_of)
    found = {(p.name, path): s for p, part in told.trend for path, s in part.accounts.items()}
    assert found.keys() == expected.keys()
    for key, amount in expected.items():
        assert found[key] == pytest.approx(amount, rel=1e-6), key


def test_a_day_in_which_clocks_are_set_has_25_hours_and_weeks_still_begin_on_monday():
    berlin = ZoneInfo("Europe/Berlin")
    day = period_of(ns(datetime(2026, 10, 25, 12, tzinfo=UTC)), "day", berlin)
    assert (day.end_ns - day.start_ns) / S == 25 * 3600
    week = period_of(day.start_ns, "week", berlin)
    assert datetime.fromtimestamp(week.start_ns / S, berlin).strftime("%a %H:%M") == "Mon 00:00"
    assert week.name == "2026-W43" and week.end_ns == day.end_ns


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_periods_follow_one_another_and_hold_every_instant(every):
    first, last = ns(datetime(2025, 1, 31, 23, tzinfo=UTC)), ns(datetime(2026, 1, 1, tzinfo=UTC))
    told = periods(first, last, every, ZoneInfo("America/New_York"))
    assert told[0].start_ns <= first and told[-1].start_ns <= last < told[-1].end_ns
    assert all(a.end_ns == b.start_ns for a, b in zip(told, told[1:], strict=False))


def test_of_very_many_days_the_newest_are_told_apart_and_nothing_is_lost():
    runs = [steady(MONDAY - timedelta(days=3 * n), 2, name=f"run {n}") for n in range(300)]
    told = fleet(runs, FleetAsked(every="day"))
    assert len(told.trend) == MOST and told.trend[0][0].name.startswith("before ")
    assert math.fsum(p.chip_s for _, p in told.trend) == pytest.approx(300 * 2 * 3600 * 8, rel=1e-9)


def test_only_the_time_asked_for_is_counted():
    run = steady(MONDAY, 10, 8, usd=80.0)
    asked = FleetAsked(since_ns=ns(MONDAY + timedelta(hours=2)), until_ns=ns(MONDAY + timedelta(hours=5, minutes=30)))
    told = fleet([run], asked)
    assert told.total.chip_s == pytest.approx(3.5 * 3600 * 8) and told.total.usd == pytest.approx(28.0)
    assert told.total.flops == pytest.approx(0.35 * run.spent.useful_flops)
    assert told.runs[0].whole_chip_s == pytest.approx(10 * 3600 * 8)
    later = fleet([run], FleetAsked(since_ns=ns(MONDAY + timedelta(days=1))))
    assert later.left_out == {"outside": 1} and later.total.runs == 0 and later.trend == ()


def test_a_run_without_a_time_of_day_is_in_all_sums_but_not_where_a_time_is_asked_for():
    run = steady(MONDAY, 1)
    undated = replace(run, run_id="u", spent=replace(run.spent, held=(), cells=None))
    told = fleet([run, undated], FleetAsked())
    assert told.total.chip_s == pytest.approx(2 * 8 * 3600) and told.undated.runs == 1
    assert math.fsum(p.chip_s for _, p in told.trend) == pytest.approx(8 * 3600)
    assert fleet([run, undated], FleetAsked(since_ns=0)).left_out == {"undated": 1}


def test_simulated_compiled_damaged_and_unknown_runs_are_left_out_and_counted():
    run = steady(MONDAY, 1)
    others = [
        replace(run, run_id="s", simulated=True),
        replace(run, run_id="c", kind="compiled", spent=None),
        replace(run, run_id="d", damaged=True),
        replace(run, run_id="p", pending=True, spent=None),
        replace(run, run_id="n", spent=None),
        replace(run, run_id="x", spent=replace(run.spent, chips_known=False)),
    ]
    told = fleet([run, *others], FleetAsked())
    names = ("damaged", "pending", "simulated", "compiled", "no_ledger", "chips_unknown")
    assert told.left_out == dict.fromkeys(names, 1)
    assert told.total.chip_s == pytest.approx(8 * 3600)
    only = fleet([run, *others], FleetAsked(simulated=True))
    assert only.total.runs == 1 and only.left_out["measured"] == 4


def test_a_job_told_twice_counts_once_and_its_attempts_all_count():
    whole = steady(MONDAY, 10, job="job", name="whole")
    again = steady(MONDAY + timedelta(hours=2), 3, job="job", name="attempt told again")
    after = steady(MONDAY + timedelta(hours=10), 4, job="job", name="next attempt")
    over = steady(MONDAY + timedelta(hours=12), 6, job="job", name="over its end")
    other = steady(MONDAY, 10, job="another", name="another job")
    told = fleet([again, after, whole, over, other], FleetAsked())
    counted = {r.run.name: r.chip_s / 3600 / 8 for r in told.runs}
    assert counted.pop("whole") == counted.pop("another job") == pytest.approx(10)
    assert counted.pop("over its end") == pytest.approx(6)
    assert counted.pop("next attempt") == pytest.approx(2) and not counted
    assert told.left_out == {"told_elsewhere": 1}
    assert told.partly == 1 and told.partly_chip_s == pytest.approx(2 * 3600 * 8)


def test_what_another_run_tells_of_is_told_of_the_time_asked_for_alone():
    whole, over = (steady(MONDAY + timedelta(hours=h), 10, job="job", name=f"at {h}") for h in (0, 6))
    asked = FleetAsked(since_ns=ns(MONDAY + timedelta(hours=8)), until_ns=ns(MONDAY + timedelta(hours=12)))
    told = fleet([whole, over], asked)
    assert told.total.chip_s == pytest.approx(4 * 3600 * 8)
    assert told.partly == 1 and told.partly_chip_s == pytest.approx(2 * 3600 * 8)


def test_a_developer_whose_runs_tell_no_flops_is_not_counted_with_none():
    ann, bob = (steady(MONDAY, 2, tags={"owner": who}, name=who) for who in ("ann", "bob"))
    bob = replace(bob, spent=replace(bob.spent, useful_flops=None))
    told = fleet([ann, bob], FleetAsked())
    assert told.developers == 1 and told.flops_per_developer == pytest.approx(ann.spent.useful_flops)


def test_runs_of_one_name_without_a_job_or_on_other_chips_are_different():
    alike = [steady(MONDAY, 5, name="train"), replace(steady(MONDAY, 5, name="train"), run_id="second")]
    chips = [replace(steady(MONDAY, 5, job="job", name=f"on {n}"), chips=n) for n in (8, 16)]
    assert fleet([*alike, *chips], FleetAsked()).total.runs == 4


def test_files_told_again_with_others_count_once_and_the_wider_run_stands():
    log = steady(MONDAY, 5, inputs=("log",), name="log")
    both = steady(MONDAY, 6, inputs=("log", "profile"), name="log and profile")
    same = replace(both, run_id="same", name="read with another option", created_ns=5)
    config = steady(MONDAY, 5, inputs=("config", "other log"), name="shares a file with none of them")
    sibling = steady(MONDAY, 5, inputs=("config", "third log"), name="shares its configuration")
    told = fleet([log, both, same, config, sibling], FleetAsked())
    assert {r.run.name for r in told.runs} == {same.name, config.name, sibling.name}
    assert told.left_out == {"told_again": 2}


def test_what_has_no_price_is_counted_and_never_taken_as_nothing():
    priced, other = steady(MONDAY, 2, usd=20.0, name="a"), steady(MONDAY, 3, name="b")
    told = fleet([priced, other], FleetAsked()).total
    assert (told.usd, told.unpriced_runs) == (20.0, 1)
    assert told.unpriced_chip_s == pytest.approx(3 * 8 * 3600)
    assert fleet([other], FleetAsked()).total.usd is None


def test_the_factors_multiply_and_stand_on_the_runs_that_tell_them():
    tells = steady(MONDAY, 10, save_in=(0, 1, 2, 3), name="tells")
    silent = replace(steady(MONDAY, 30, name="silent"), goodput=None)
    told = fleet([tells, silent], FleetAsked()).total
    assert told.runtime_goodput == pytest.approx(8 / 10) and told.program_goodput == pytest.approx(0.4)
    assert told.product == pytest.approx(told.runtime_goodput * told.program_goodput)
    assert told.runtime_chip_s == pytest.approx(10 * 8 * 3600)


def test_scheduling_goodput_needs_a_capacity_and_the_product_is_the_published_one():
    """.95 x .90 x .55 = .47025, as the source multiplies."""
    half = timedelta(hours=10)
    run = steady(MONDAY, 9.5, 8)
    entries_ = (("productive/useful_maths", 0.9 * 0.55), ("productive/padding", 0.9 * 0.45), ("badput/other", 0.1))
    told = tuple(Entry(path=p, chip_s=s * 9.5 * 3600 * 8, basis="derived") for p, s in entries_)
    run = replace(run, spent=replace(run.spent, entries=told))
    asked = FleetAsked(since_ns=ns(MONDAY), until_ns=ns(MONDAY + half))
    assert fleet([run], asked).scheduling is None
    found = fleet([run], replace(asked, capacity_chips=8))
    assert found.scheduling * found.total.runtime_goodput * found.total.program_goodput == pytest.approx(0.47025)
    with pytest.raises(QuestionError, match="held more than 7 chips.*a capacity of 8 chips or more"):
        fleet([run], replace(asked, capacity_chips=7))


def test_mfu_is_weighted_by_the_time_in_kept_steps():
    long, short = steady(MONDAY, 9, name="a"), replace(steady(MONDAY, 1, name="b"), mfu=0.6)
    unknown = replace(steady(MONDAY, 50, name="c"), mfu=None)
    told = fleet([long, short, unknown], FleetAsked()).total
    assert told.mfu == pytest.approx(0.9 * 0.4 + 0.1 * 0.6)
    assert told.mfu_chip_s == pytest.approx(10 * 8 * 3600)


def test_causes_are_the_losses_of_all_runs_with_their_owners():
    ann = steady(MONDAY, 10, save_in=range(10), tags={"Owner": "ann"}, name="ann's")
    bob = steady(MONDAY, 10, save_in=(0,), tags={"user": "bob"}, usd=100.0, name="bob's")
    told = fleet([ann, bob], FleetAsked(by="owner"))
    by_account = {c.account: c for c in told.causes}
    assert set(by_account) == {"below_roofline", "checkpoint_save"}
    saves = by_account["checkpoint_save"]
    assert saves.owners == (("ann", pytest.approx(5 * 8 * 3600)), ("bob", pytest.approx(0.5 * 8 * 3600)))
    assert (saves.run_name, saves.runs, saves.usd) == ("ann's", 2, pytest.approx(5.0))
    assert told.developers == 2 and told.unowned_runs == 0
    flops = ann.spent.useful_flops + bob.spent.useful_flops
    assert told.flops_per_developer == pytest.approx(flops / 2)


def test_a_fleet_of_nothing_tells_nothing_and_no_zeroes():
    told = fleet([], FleetAsked(capacity_chips=8))
    assert (told.total.usd, told.total.runtime_goodput, told.total.mfu, told.total.flops) == (None, None, None, None)
    assert (told.groups, told.trend, told.causes, told.scheduling, told.flops_per_developer) == ((), (), (), None, None)
    assert fleet([replace(steady(MONDAY, 1))], FleetAsked()).groups[0][0] == NOT_TOLD


def test_a_ledgers_leaves_stand_under_accounts_that_have_a_definition():
    told = {e.path: e.chip_s / 3600 for e in entries(usual().ledger.account)}
    assert math.fsum(told.values()) == pytest.approx(12_400)
    assert told["productive/straggler_wait"] == 170 and told["badput/custom"] == 90
    assert told["productive/unattributed"] == 1200 and told["unattributed"] == 100


def test_what_was_spent_is_read_back_as_it_was_written_and_nothing_else_is():
    spent = steady(MONDAY, 5, save_in=(1,), usd=3.5, inputs=("a", "b")).spent
    assert Spent.from_json(spent.to_json()) == spent
    for text in ("", "{}", "[]", "null", '{"entries": 3}', spent.to_json()[:-5]):
        assert Spent.from_json(text) is None


def test_a_time_that_ends_before_it_begins_is_refused():
    with pytest.raises(QuestionError, match="ends before it begins"):
        fleet([], FleetAsked(since_ns=5, until_ns=5))
