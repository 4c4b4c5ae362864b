"""What few profiled steps show of the others: by hand, and held against what was put into them."""

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.base import Seen
from analyzers.findings.carried import _alike, _slowed, computing, covering
from analyzers.findings.parts import _as_profiled, _until_next
from analyzers.findings.rules.program import recomputed
from analyzers.time import ledger
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.conftest import seeds

S = 1_000_000_000
BASE_S = 0.02


@pytest.mark.parametrize("seed", seeds(20))
def test_what_each_step_holds_is_in_each_of_those_that_none_saw(seed):
    rng = np.random.default_rng(seed)
    extra = float(rng.uniform(0.005, 0.2))
    dur = BASE_S + extra + rng.normal(0, 0.02 * BASE_S, 40)
    saw = np.zeros(40, dtype=bool)
    saw[20:23] = True
    told = _alike(dur[saw], np.full(3, extra), dur[~saw]).sum()
    assert told == pytest.approx(37 * extra, rel=0.15)


@pytest.mark.parametrize("seed", seeds(20))
def test_what_some_steps_hold_is_looked_for_in_steps_as_long(seed):
    rng = np.random.default_rng(seed)
    long = np.zeros(400)
    long[:: int(rng.integers(5, 12))] = 2.0
    dur = BASE_S + long + rng.normal(0, 0.02 * BASE_S, 400)
    saw = np.zeros(400, dtype=bool)
    saw[100:200] = True
    told = _alike(dur[saw], long[saw], dur[~saw]).sum()
    assert told == pytest.approx(long[~saw].sum(), rel=0.1)


def test_a_step_that_was_quicker_than_those_seen_without_it_holds_none():
    assert _alike(np.array([0.1, 0.1, 0.1]), np.array([0.08, 0.08, 0.08]), np.array([0.02, 0.01])).sum() == (
        pytest.approx(0.0, abs=1e-12)
    )


@pytest.mark.parametrize("seed", seeds(20))
def test_steps_around_tell_by_how_much_a_profiler_slowed_those_that_it_saw(seed):
    rng = np.random.default_rng(seed)
    slowed = float(rng.uniform(1.3, 2.0))
    dur = BASE_S * (1 + rng.normal(0, 0.02, 40))
    saw = np.zeros(40, dtype=bool)
    saw[20:23] = True
    assert _slowed(np.where(saw, slowed * dur, dur), saw) == pytest.approx(1 / slowed, rel=0.05)
    assert _slowed(dur, saw) == 1.0
    grown = dur + np.linspace(0, 10 * BASE_S, 40)  # others are quicker, but not because no profiler saw them
    assert _slowed(grown, saw) == 1.0


@pytest.mark.parametrize("untold", [("flash_attn::_flash_attn_varlen_forward", "custom-call"), ("mul", "elementwise")])
def test_computing_whose_flops_nobody_tells_was_seen_and_is_computing(untold):
    """Attention counted as what no profile saw, so that gains were told twice as large, and not as computing."""
    one = {"capture": [0] * 3, "device": [0] * 3, "op_id": [0, 1, 2]}
    ops = one | {"host": ["vm"] * 3, "role": ["compute"] * 3, "program": [7] * 3, "count": [1] * 3}
    ops |= {"op": ["aten::mm", "aten::mm.again", untold[0]], "category": ["matmul", "matmul", untold[1]]}
    ops |= {"flops": [1e12, 0.8e12, None], "total_ns": [S // 5, S // 10, S // 2]}
    events = one | {"start_ps": [0, 2 * 10**11, 3 * 10**11], "dur_ps": [2 * 10**11, 10**11, 5 * 10**11]}
    step = {"capture": [0], "host": ["vm"], "step": [0], "start_ns": [0], "dur_ns": [S], "source": ["x"]}
    told = {
        "captures": {"capture": [0], "host": ["vm"], "start_ns": [0], "stop_ns": [S]},
        "modules": {"capture": [0], "program": [7], "flops": [1.8e12], "remat_flops": [0.8e12]},
    }
    tables = MemoryTables(told | {"steps": step, "ops": ops, "op_events": events})
    facts = facts_of({"chips": 1, "peak_flops_per_s": 10e12})
    seen = Seen(tables=tables, facts=facts, answers=None, ledger=ledger.analyze(tables, facts, {}).ledger)
    assert seen.amount("compute_unsplit") == pytest.approx(0.5 if untold[1] == "custom-call" else 0.0)
    assert seen.beyond_profile(0.1).likely == pytest.approx(0.1)
    assert computing(seen, "recomputation").likely == covering(seen).likely == pytest.approx(0.8)
    (again,) = recomputed(seen).findings
    assert again.gain is not None and again.gain.high == pytest.approx(0.8 * 0.8 / 1.8 * 1.15)


def test_the_host_whose_clock_is_the_logs_tells_when_steps_began():
    rows, profile = steps_of_a_loop(0.05)
    other = profile.assign(host="other", start_ns=profile["start_ns"] + 7 * S, end_ns=profile["end_ns"] + 7 * S)
    both = _until_next(pd.concat([other, profile], ignore_index=True))
    told = _as_profiled(rows, both)
    assert told.equals(_as_profiled(rows, _until_next(profile)))
    assert not told["start_ns"].equals(rows["start_ns"])


def steps_of_a_loop(pause_s, clock_s=0.0):
    """Every second step pauses before the log's mark and after the profile's annotation: (log's rows, profile)."""
    begun, marks, noted = 0.0, [], []
    for n in range(20):
        noted.append(begun)
        begun += pause_s if n % 2 == 0 else 0.0
        marks.append(begun)
        begun += BASE_S
    rows = pd.DataFrame(
        {
            "step": range(19),
            "start_ns": (np.array(marks[:-1]) * S).astype(np.int64),
            "dur_s": np.diff(marks),
        }
    )
    start = ((np.array(noted) + clock_s) * S).astype(np.int64)
    profile = pd.DataFrame(
        {"host": "vm", "step": range(20), "capture": 0, "start_ns": start, "end_ns": start + S // 100}
    ).assign(device=pd.array([pd.NA] * 20, dtype="Int64"))  # all of the host's took them
    return rows, _until_next(profile)


@pytest.mark.parametrize("clock_s", [0.0, 0.003, 60.0, -5.0])
def test_a_pause_lies_in_the_step_in_which_the_profile_saw_it_whatever_the_clocks(clock_s):
    rows, profile = steps_of_a_loop(0.3, clock_s)
    assert rows["dur_s"].iloc[0] == pytest.approx(BASE_S)  # by the log it is the next step's
    told = _as_profiled(rows, profile)["dur_s"].to_numpy()
    assert told == pytest.approx([BASE_S + (0.3 if n % 2 == 0 else 0.0) for n in range(19)], rel=1e-6)


def test_steps_that_are_other_steps_of_the_same_numbers_stay_as_they_are():
    rows, profile = steps_of_a_loop(0.3)
    slower = rows.assign(dur_s=rows["dur_s"] * 5)
    assert _as_profiled(slower, profile).equals(slower)
