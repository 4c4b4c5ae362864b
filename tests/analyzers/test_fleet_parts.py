"""A fleet that is kept in blocks tells what the plain way tells, whatever runs come, go or are others meanwhile."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.fleet import FleetAsked, fleet, once, parts, twice
from analyzers.fleet.base import FleetRun
from analyzers.fleet.budget import of_team
from analyzers.fleet.chosen import Book
from analyzers.fleet.parts import Parts
from analyzers.fleet.spent import Cells, Entry, Spent
from errors import QuestionError
from tests.analyzers.plain_fleet import plain

S = 1_000_000_000
QUARTER_S = 900
BEGIN_S = int(datetime(2026, 10, 24, 18, tzinfo=UTC).timestamp())  # clocks are set back in Berlin in the night after
PATHS = {
    "productive/useful_maths": "kept",
    "productive/straggler_wait": "kept",
    "productive/device_idle/idle_logging": "kept",
    "badput/checkpoint_save": "checkpoint_save",
    "badput/other": "other",
    "served/decode": "",
    "unattributed": "other",
}
ZONES = (UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu"))


def run_of(rng, number):
    """A run of any sort. Its time is in halves of halves, so that sums are the same in whatever order."""
    hours, begin_s = rng.choice((1, 2, 4, 8)), BEGIN_S + QUARTER_S * rng.randrange(0, 60)
    first, cells = begin_s // 3600, None
    held = ((begin_s * S, (begin_s + 3600 * hours) * S),)
    if rng.random() < 0.6:
        of = {"kept": [8] * (hours + (hours == 1 and rng.random() < 0.5))}  # a cell that begins where the run may end
        for heading in ("checkpoint_save", "other"):
            if at := rng.choice((0, 1, hours // 2)):
                of[heading] = [4] * at + [0] * (hours - at)
        cells = Cells(start_s=first * 3600, each_s=3600, of=of)
    elif rng.random() < 0.4:
        held = tuple((a * S, (a + 900 * hours) * S) for a in (begin_s, begin_s + 2700 * hours))
    if rng.random() < 0.15:
        held, cells = (), None
    chosen = rng.sample(list(PATHS), rng.randrange(0 if rng.random() < 0.1 else 1, 5))
    spent = Spent(
        entries=tuple(Entry(path=path, chip_s=float(rng.randrange(1, 9)), basis="derived") for path in chosen),
        held=held,
        cells=cells,
        usd=rng.choice((None, 1.5, 3.0)),
        useful_flops=rng.choice((None, 1e15, 2e15)),
        useful_told=rng.random() < 0.7,
        useful_least=rng.random() < 0.2,
        chips_known=rng.random() < 0.95,
        inputs=tuple(sorted(rng.sample("abcd", rng.choice((0, 0, 0, 1, 2, 3))))),
    )
    tags = {"team": rng.choice("xy"), "Owner": rng.choice(("ann", "bob", ""))} if rng.random() < 0.8 else {}
    return FleetRun(
        run_id=f"run {number}",
        name=f"name {number}",
        kind=rng.choice(("training",) * 9 + ("compiled",)),
        simulated=rng.random() < 0.1,
        damaged=rng.random() < 0.05,
        pending=rng.random() < 0.05,
        created_ns=rng.randrange(3) * S,
        chip=rng.choice(("v5p", "v5p", "")),
        chips=8,
        job=rng.choice(("", "j", "k")),
        tags=tags,
        goodput=rng.choice((None, 0.5)),
        mfu=rng.choice((None, 0.25, 0.5)),
        archived=rng.random() < 0.2,
        live=rng.random() < 0.2,
        spent=None if rng.random() < 0.05 else spent,
    )


def asked_of(rng):
    since, until = (
        None if rng.random() < 0.6 else (BEGIN_S + QUARTER_S * rng.randrange(at, at + 40)) * S for at in (0, 41)
    )
    return FleetAsked(
        by=rng.choice(("team", "owner", "chip", "kind", "tag:owner", "model")),
        every=rng.choice(("day", "week", "month")),
        zone=rng.choice(ZONES),
        since_ns=since,
        until_ns=until,
        simulated=rng.random() < 0.1,
        capacity_chips=rng.choice((None, None, 1, 1_000)),
    )


def told(runs, asked, kept=None):
    """None where chips cannot have been held."""
    try:
        result = fleet(runs, asked, kept=kept)
    except QuestionError:
        return None
    return result.to_dict(10_000) | {"causes": [cause.to_dict() for cause in result.all_causes]}


def same(found, expected):
    """The same in the same order; numbers to a part in a billion, since they are added up in another."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == pytest.approx(expected, rel=1e-9) if isinstance(expected, float) else found == expected


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_fleet_in_blocks_is_the_plain_one_whatever_run_is_another(rng):
    book, runs, questions = Book(size=3), dict[int, FleetRun](), [(asked_of(rng), Parts()) for _ in range(2)]
    for step in range(3):
        for slot in rng.sample(range(12), 9 if not step else rng.randrange(3)):
            if slot in runs and rng.random() < 0.3:
                del runs[slot]
            else:
                runs[slot] = run_of(rng, slot if rng.random() < 0.8 else slot + 12)
                book.put({slot: runs[slot]})
        listed = sorted(runs, key=lambda slot: (-runs[slot].created_ns, runs[slot].run_id))
        chosen, some = book.chosen(np.array(listed, dtype=np.int64)), [runs[slot] for slot in listed]
        for asked, kept in questions:
            expected = plain(some, asked)
            for found in (told(chosen, asked, kept), told(chosen, asked), told(some, asked)):
                assert same(found, expected), (asked, some)


def lasting(number, hours, begin_s=BEGIN_S, **more):
    """A run that held chips for so long, and nothing but useful maths."""
    held = ((begin_s * S, (begin_s + 3600 * hours) * S),)
    spent = Spent(entries=(Entry(path="productive/useful_maths", chip_s=hours * 3600.0, basis="derived"),), held=held)
    return FleetRun(run_id=f"run {number:02}", name=f"{number}", **{"spent": spent} | more)


def test_the_largest_runs_are_told_without_the_others_and_what_those_held():
    runs = fleet([lasting(n, 1 + n // 3, tags={"a": "", f"only {n}": ""}) for n in range(12)], FleetAsked()).runs
    all_ids = [f"run {n:02}" for n in (9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2)]
    assert [told.run.run_id for told in runs] == all_ids and len(runs) == 12
    for most in (0, 1, 4, 6, 12, 99):
        assert [told.run.run_id for told in runs[:most]] == all_ids[:most]
        assert [told.run.run_id for told in runs[most:]] == all_ids[most:]
        assert runs.beyond(most) == (len(all_ids[most:]), sum(told.chip_s for told in runs[most:]))
    assert runs[-1].run.run_id == "run 02" and runs[1].chip_s == 4 * 3600
    assert runs.tags["a"] == 12 and runs.tags["only 3"] == 1


def test_one_run_that_is_another_has_its_own_block_summed_anew(monkeypatch):
    counted, real = [], parts.counting
    monkeypatch.setattr(parts, "counting", lambda block, *more: counted.append(block.slots[0]) or real(block, *more))
    book, kept = Book(size=4), Parts()
    book.put({n: lasting(n, 1 + n) for n in range(12)})
    slots = np.arange(12)
    assert fleet(book.chosen(slots), FleetAsked(), kept=kept).total.chip_s == 3600 * 78
    assert counted == [0, 4, 8]
    book.put({5: lasting(5, 7)})
    assert fleet(book.chosen(slots), FleetAsked(), kept=kept).total.chip_s == 3600 * 79
    assert counted == [0, 4, 8, 4]
    book.put({0: lasting(0, 1, begin_s=BEGIN_S - 30 * 86_400)})  # with a month more there are other periods
    assert len(fleet(book.chosen(slots), FleetAsked(every="month"), kept=kept).trend) == 2
    assert counted == [0, 4, 8, 4, 0, 4, 8]


def test_who_is_told_again_is_judged_anew_where_a_run_that_holds_its_files_is_another(monkeypatch):
    judged, real = [], once._judged
    monkeypatch.setattr(once, "_judged", lambda files, suspects: judged.append(suspects) or real(files, suspects))
    book, slots = Book(size=4), np.arange(6)

    def of(number, *inputs):
        return lasting(number, 1, spent=replace(lasting(number, 1).spent, inputs=inputs))

    book.put({0: of(0, "log", "config"), 1: of(1, "log", "config", "profile"), 2: of(2, "other", "config")})
    book.put({n: of(n, f"{n}", "config") for n in (3, 4, 5)})
    assert fleet(book.chosen(slots), FleetAsked()).left_out == {"told_again": 1} and judged == [[0]]
    book.put({4: of(4, "another", "config")})
    assert fleet(book.chosen(slots), FleetAsked()).left_out == {"told_again": 1} and judged == [[0]]
    book.put({1: of(1, "log", "profile")})  # 0 shares all its files as before, with no one run
    assert not fleet(book.chosen(slots), FleetAsked()).left_out and judged == [[0], [0]]
    book.put({1: of(1, "profile", "config")})
    assert not fleet(book.chosen(slots), FleetAsked()).left_out and judged == [[0], [0]]
    book.put({1: of(1, "log", "config")})
    assert fleet(book.chosen(slots), FleetAsked()).left_out == {"told_again": 1} and judged == [[0], [0], [0, 1]]


def test_what_was_chosen_stays_as_it_was_and_a_few_of_many_are_put_together():
    book = Book(size=4)
    book.put({n: lasting(n, 1, tags={"team": "a" if n % 5 else "b"}) for n in range(40)})
    chosen = book.chosen(np.arange(40))
    book.put({0: lasting(0, 9, tags={"team": "b"})})
    few = of_team(chosen, "B")
    assert [run.run_id for run in few.runs] == [f"run {n:02}" for n in range(0, 40, 5)]
    assert len(few.summed_up) == 1 and fleet(few, FleetAsked()).total.chip_s == 8 * 3600
    assert fleet(few, FleetAsked(), twice(chosen, FleetAsked())).runs[0].run.run_id == "run 00"
    assert fleet(book.chosen(few.slots), FleetAsked()).total.chip_s == 16 * 3600


def test_what_runs_of_a_job_tell_twice_is_judged_anew_where_one_of_them_is_another():
    book, slots = Book(size=4), np.arange(2)
    book.put({0: lasting(0, 8, job="j"), 1: lasting(1, 4, begin_s=BEGIN_S + 3600 * 6, job="j")})
    assert fleet(book.chosen(slots), FleetAsked()).total.chip_s == 3600 * 10
    book.put({0: lasting(0, 7, job="j")})
    assert fleet(book.chosen(slots), FleetAsked()).total.chip_s == 3600 * 10
    book.put({1: lasting(1, 4, begin_s=BEGIN_S + 3600 * 5, job="j")})
    assert fleet(book.chosen(slots), FleetAsked()).total.chip_s == 3600 * 9
