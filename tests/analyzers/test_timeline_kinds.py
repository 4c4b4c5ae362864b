"""Kinds of work: what each operation is of, and that bins tell of which kind most of their time is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.timeline import timeline
from analyzers.timeline.kernels import CODES
from analyzers.timeline.kinds import KINDS, NUMBER, collective_kind, kinds_of
from analyzers.timeline.lanes import CODE
from analyzers.timeline.lanes import CODES as ACCOUNTS
from analyzers.timeline.pyramid import LEAST_EVENTS, pyramid
from analyzers.timeline.window import window
from runs.schema import OP_CATEGORIES
from tests.bundled import bundled


def test_numbers_of_kinds_and_of_accounts_never_meet():
    assert len(ACCOUNTS) <= CODES and len(set(KINDS)) == len(KINDS) <= CODES
    assert min(NUMBER.values()) >= CODES and max(NUMBER.values()) < 256


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("all-reduce-start.3", "all-reduce"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce"),
        ("all-gather.1", "all-gather"),
        ("reduce-scatter-done", "reduce-scatter"),
        ("all-reduce-scatter.3", "reduce-scatter"),
        ("send.3", "permute"),
        ("recv-done.2", "permute"),
        ("nccl:send 0->1", "permute"),
        ("ragged-all-to-all.7", "all-to-all"),
        ("collective-permute.2", "permute"),
        ("ncclDevKernel_SendRecv(x)", "permute"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", "broadcast"),
        ("ncclDevKernel_Reduce_Sum", "collective"),
        ("", "collective"),
        ("集合", "collective"),
    ],
)
def test_a_collective_is_told_by_its_name(name, kind):
    assert collective_kind(name) == kind


def test_every_category_has_a_kind_and_what_is_of_none_is_other():
    count = len(OP_CATEGORIES) + 4
    ops = pd.DataFrame(
        {
            "op": ["x"] * count,
            "category": [*OP_CATEGORIES, None, "made up", "matmul", "matmul"],
            "role": ["compute"] * (count - 2) + ["step", None],
            "device": pd.array([0] * (count - 1) + [None], dtype="Int64"),
        }
    )
    told = [KINDS[n - CODES] for n in kinds_of(ops)]
    expected = {"infeed": "transfer", "outfeed": "transfer"}
    assert told == [expected.get(c, c) for c in OP_CATEGORIES] + ["other", "other", "whole", "host"]
    assert len(kinds_of(ops.head(0))) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30), st.floats(1.0, 3.5))
def test_of_every_level_each_bin_is_what_its_events_sum_up_to(seed, longest):
    """All levels and all bins, of a table that is drawn, against sums event by event."""
    draw = np.random.default_rng(seed)
    count = LEAST_EVENTS
    row = np.sort(draw.integers(0, 3, count))
    dur = draw.lognormal(5, longest, count).astype(np.int64)
    dur[draw.random(count) < 0.1] = 0
    gap = draw.integers(0, 400, count)
    start = np.empty(count, np.int64)
    for n in range(3):
        mine = row == n
        start[mine] = np.cumsum(gap[mine] + dur[mine]) - dur[mine]
    code, kind = draw.integers(0, 5, count).astype(np.uint8), draw.integers(CODES, CODES + 6, count).astype(np.uint8)
    of = pyramid(row, start, dur, code, 3, kind)
    assert of.levels
    for level in of.levels:
        short = dur >> level.shift == 0
        first, last = start >> level.shift, np.maximum(start + dur - 1, start) >> level.shift
        cut = np.minimum(start + dur, (first + 1) << level.shift) - start
        at = np.concatenate([first[short], last[short & (last > first)]])
        who = np.concatenate([row[short], row[short & (last > first)]])
        ticks = np.concatenate([cut[short], (dur - cut)[short & (last > first)]])
        counts = np.concatenate([np.ones(short.sum(), int), np.zeros((short & (last > first)).sum(), int)])
        of_code, of_kind = (np.concatenate([c[short], c[short & (last > first)]]) for c in (code, kind))
        key = who * (int(last.max()) + 1) + at
        bins, place = np.unique(key, return_inverse=True)
        assert len(bins) == len(level.bins)
        told = np.repeat(np.arange(3), np.diff(level.first)) * (int(last.max()) + 1) + level.bins
        assert (told == bins).all()
        assert (level.busy == np.bincount(place, ticks, len(bins)).astype(np.int64)).all()
        assert (level.count == np.bincount(place, counts, len(bins)).astype(np.int64)).all()
        for column, most in ((of_code, level.code), (of_kind, level.kind)):
            sums = np.zeros((len(bins), CODES + 6), np.int64)
            np.add.at(sums, (place, column), ticks)
            assert (sums[np.arange(len(bins)), most] == sums.max(axis=1)).all()
        assert int(level.busy.sum()) + int(dur[~short].sum()) == int(dur.sum())
        assert int(level.count.sum()) + int((~short).sum()) == count


def test_by_kinds_a_window_shows_the_same_marks_in_other_colours():
    draw = np.random.default_rng(7)
    start = np.cumsum(draw.integers(1, 50, LEAST_EVENTS))
    kind = draw.integers(CODES, CODES + 9, LEAST_EVENTS).astype(np.uint8)
    of = pyramid(np.zeros(LEAST_EVENTS, np.int64), start, np.ones(LEAST_EVENTS, np.int64), kind - CODES, 1, kind)
    for wide in (int(start[-1]), 900):
        plain, kinds = (window(one, np.array([0]), 0, wide, 300) for one in (of, of.by_kind()))
        assert (plain.event == kinds.event).all() and (plain.share == kinds.share).all()
        assert (kinds.code == plain.code + CODES).all()


def test_what_is_no_operation_keeps_its_account(tmp_path_factory):
    run = bundled(tmp_path_factory, "pytorch")
    of = timeline(run.tables, run.manifest.facts)
    assert set(np.unique(of.tiles.kind).tolist()) == set(of.kinds)
    traced = np.asarray(of.event) >= 0
    assert (of.tiles.kind[traced] >= CODES).all()
    assert (of.tiles.kind[~traced] == of.tiles.code[~traced]).all() and (~traced).any()
    together = of.tiles.code == CODE["exposed_communication"]
    assert {KINDS[n - CODES] for n in np.unique(of.tiles.kind[together & traced])} <= set(KINDS[7:14])
