"""Profiles beside logs: whose steps a capture shows, and what it does not move."""

import numpy as np
import pytest

from analyzers.time import ledger
from analyzers.time.calendar import calendar
from analyzers.time.history import history
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.test_history import job_of, logs
from tests.analyzers.told_jobs import EPOCH, S
from tests.analyzers.worlds import MS, World


def profile(*captures: tuple[int, float, list[int]], dur_s: float = 5.0) -> dict[str, list]:
    """Rows of steps of (capture, start, step numbers)."""
    rows = [(c, n, at + i * dur_s) for c, at, numbers in captures for i, n in enumerate(numbers)]
    return {
        "capture": [c for c, *_ in rows],
        "step": [n for _, n, _ in rows],
        "host": ["h"] * len(rows),
        "start_ns": [EPOCH + round(t * S) for *_, t in rows],
        "dur_ns": [round(dur_s * S)] * len(rows),
    }


def joined(lines: dict, seen: dict) -> MemoryTables:
    count, more = len(lines["step"]), len(seen["step"])
    return MemoryTables(
        {"steps": {n: [*lines.get(n, [None] * count), *seen.get(n, [None] * more)] for n in {*lines, *seen}}}
    )


def test_two_profiles_that_count_from_0_lost_nothing():
    past = history(MemoryTables({"steps": profile((0, 0, [0, 1, 2]), (1, 3600, [0, 1, 2]))}), {})
    assert past.rows["kept"].all() and len(past.rows) == 6
    assert any("begin anew" in note for note in past.notes)


def test_steps_of_a_capture_of_another_host_at_another_time_are_told_too():
    columns = profile((0, 0, [10, 11, 12]), (1, 3600, [500, 501]))
    columns["host"] = ["a"] * 3 + ["b"] * 2
    assert history(MemoryTables({"steps": columns}), {}).rows["step"].tolist() == [10, 11, 12, 500, 501]


@pytest.mark.parametrize("seen_at", [0.0, 900.0])
def test_a_profile_does_not_lay_two_attempts_over_one_another(seen_at):
    takes = job_of((0, 199, 0), (100, 299, 5000))
    lines = logs((takes, "a.log"), timed=False).arrow("steps").to_pydict()
    here = joined(lines, profile((0, 10_000 + seen_at, [150, 151, 152])))
    days = calendar(here, history(here, {}))
    assert days.end_ns - days.start_ns == pytest.approx(2000 * S, rel=0.01)
    assert days.steps["start_ns"].is_monotonic_increasing


def test_two_profiles_of_the_same_numbers_lie_in_two_attempts():
    takes = job_of((0, 199, 0), (100, 299, 5000))
    lines = logs((takes, "a.log"), timed=False).arrow("steps").to_pydict()
    here = joined(lines, profile((0, 750, [150, 151, 152]), (1, 5250, [150, 151, 152])))
    rows = history(here, {}).rows
    at = rows[rows["step"] == 150]["start_ns"].to_numpy(dtype=np.int64)
    assert at.tolist() == pytest.approx([EPOCH + 750 * S, EPOCH + 5250 * S], abs=S)


def test_a_profile_of_other_steps_lends_no_time_and_that_is_said():
    lines = logs((job_of((0, 199, 0)), "a.log"), timed=False).arrow("steps").to_pydict()
    past = history(joined(lines, profile((0, 50, [7, 8, 9]), dur_s=0.05)), {})
    assert not past.timed and any("lends no times" in note for note in past.notes)


def test_a_profile_that_counts_its_own_steps_stays_where_its_clock_puts_it():
    world = World(steps=100, compute_ms=900.0, profiled=(0,))
    here = world.tables()
    columns = here.arrow("steps").to_pydict()
    whole = ledger.analyze(here, facts_of({"chips": 1, "peak_flops_per_s": 1e14}), {}).profiled_share
    seen = [n for n, c in enumerate(columns["capture"]) if c is not None]
    keep = [n for n in range(len(columns["step"])) if n not in seen[:40] + seen[50:]]
    part = {name: [values[n] for n in keep] for name, values in columns.items()}
    for n, (step, c) in enumerate(zip(part["step"], part["capture"], strict=True)):
        part["step"][n] = step - 40 if c is not None else step
    start = [s for s, c in zip(part["start_ns"], part["capture"], strict=True) if c is not None]
    made = {n: here.arrow(n).to_pydict() for n in ("ops", "op_events", "lifecycle", "captures")}
    began = made["captures"]["start_ns"][0]
    made["captures"] |= {"start_ns": [start[0]], "stop_ns": [start[-1] + 917 * MS]}
    inside = [
        n
        for n, ps in enumerate(made["op_events"]["start_ps"])
        if start[0] - began <= ps // 1000 < start[-1] + 917 * MS - began
    ]
    made["op_events"] = {name: [values[n] for n in inside] for name, values in made["op_events"].items()}
    made["op_events"]["start_ps"] = [ps - 1000 * (start[0] - began) for ps in made["op_events"]["start_ps"]]
    result = ledger.analyze(MemoryTables({"steps": part, **made}), facts_of({"chips": 1, "peak_flops_per_s": 1e14}), {})
    assert whole == pytest.approx(1)
    assert result.profiled_share == pytest.approx(0.1, rel=0.02)
    assert result.ledger.amount("device_idle") < 0.2, "moved to step 0 it would look idle or lie outside"


@pytest.mark.parametrize("slow", ["a", "b"])
@pytest.mark.parametrize("apart_s", [0, 100])  # of another time than the host's own it takes nothing
def test_of_hosts_of_a_profile_the_slowest_tells_how_long_a_step_took_whatever_its_name(slow, apart_s):
    n, took = 30, {"a": 9 * S // 10, "b": 9 * S // 10, slow: S}
    columns = {
        "step": 2 * [*range(n)],
        "start_ns": [EPOCH + (k + apart_s * (host == "b")) * S for host in "ab" for k in range(n)],
        "dur_ns": [took[host] for host in "ab" for _ in range(n)],
        "host": [host for host in "ab" for _ in range(n)],
        "capture": [capture for capture in (0, 1) for _ in range(n)],
        "format": ["xplane"] * 2 * n,
    }
    past = history(MemoryTables({"steps": columns}), {})
    assert past.rows["dur_ns"].tolist() == [took["a"] if apart_s else S] * n and past.origin == "profile"


def test_steps_that_share_a_number_are_those_that_began_together():
    """As a loop that marks each pass as step 0 has them: of as many passes as there are, in a moment."""
    n = 20_000
    took = {"a": 9 * S // 10, "b": S}
    columns = {
        "step": [0] * 2 * n,
        "start_ns": [EPOCH + 2 * k * S + (host == "b") * MS for host in "ab" for k in range(n)],
        "dur_ns": [took[host] for host in "ab" for _ in range(n)],
        "host": [host for host in "ab" for _ in range(n)],
        "capture": [capture for capture in (0, 1) for _ in range(n)],
        "format": ["xplane"] * 2 * n,
    }
    past = history(MemoryTables({"steps": columns}), {})
    assert len(past.rows) == n and set(past.rows["dur_ns"]) == {S}
