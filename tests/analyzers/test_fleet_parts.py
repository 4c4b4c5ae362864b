"""A fleet that is kept in blocks tells what the plain way tells, whatever runs come, go or are others meanwhile."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.fleet import FleetAsked, fleet
from analyzers.fleet.base import FleetRun
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


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_fleet_in_blocks_is_the_plain_one_whatever_run_is_another(rng):
    book, runs, questions = Book(size=3), dict[int, FleetRun](), [(asked_of(rng), Parts()) for _ in range(2)]
    for step in range(4):
        for slot in rng.sample(range(12), 9 if not step else rng.randrange(3)):
            if slot in runs and rng.random() < 0.3:
                del runs[slot]
            else:
                runs[slot] = run_of(rng, slot if rng.random() < 0.8 else slot + 12)
                book.put({slot: runs[slot]})
        listed = sorted(runs, key=lambda slot: (-runs[slot].created_ns, runs[slot].run_id))
        chosen, some = book.chosen(np.array(listed, dtype=np.int64)), [runs[slot] for slot in listed]
        for asked, parts in questions:
            expected = plain(some, asked)
            for found in (told(chosen, asked, parts), told(chosen, asked), told(some, asked)):
                assert same(found, expected), (asked, some)
