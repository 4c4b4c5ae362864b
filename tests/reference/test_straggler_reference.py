"""The slow process of the bundled run, found in spite of any clock: against the truth file that no analyzer sees."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analyzers.ranks import stragglers
from runs.tables import MemoryTables
from tests.bundled import bundled
from tests.conftest import seeds

FOLDER = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"
(SLOW,) = [
    i for i in json.loads((FOLDER.parent / "training.truth.json").read_text())["injections"] if i["what"] == "straggler"
]
TIMES = {
    "collectives": ("start_ns", "end_ns"),
    "captures": ("start_ns", "stop_ns"),
    "steps": ("start_ns",),
    "lifecycle": ("start_ns", "end_ns"),
}
NEEDED = (*TIMES, "ops", "op_events")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def plain(run):
    return stragglers.analyze(run.tables, run.manifest.facts, {})


def with_clock(run, host, shift_ns=0, drift=0.0):
    """The run's tables as if this host's clock had been ahead by `shift_ns`, and fast by `drift`."""
    zero = pc.min(run.tables.arrow("captures", ["start_ns"])["start_ns"]).as_py()
    captures = run.tables.arrow("captures", ["capture", "host"]).to_pylist()
    mine = pa.array([c["capture"] for c in captures if c["host"] == host], pa.int32())
    out = {}
    for name in NEEDED:
        rows = run.tables.arrow(name)
        columns = {n: rows[n].combine_chunks() for n in rows.column_names}
        if name == "op_events" and drift:
            here = pc.is_in(columns["capture"], mine)
            for n in ("start_ps", "dur_ps"):
                scaled = pc.cast(pc.round(pc.multiply(columns[n].cast(pa.float64()), 1 + drift)), pa.int64())
                columns[n] = pc.if_else(here, scaled, columns[n])
        for n in TIMES.get(name, ()):
            here = pc.fill_null(pc.equal(columns["host"].cast(pa.string()), host), False)
            since = pc.subtract(columns[n], zero)
            late = pc.cast(pc.round(pc.multiply(since.cast(pa.float64()), drift)), pa.int64())
            columns[n] = pc.if_else(here, pc.add(columns[n], pc.add(late, shift_ns)), columns[n])
        out[name] = columns
    return MemoryTables(out)


def test_the_slow_process_is_named_with_its_steps_and_its_cause(plain):
    assert plain.verdict == "persistent"
    (row,) = plain.ranks.to_dict("records")
    assert row["rank"] == str(SLOW["process"])
    assert (row["first_step"], row["last_step"]) == (SLOW["first_step"], SLOW["last_step"])
    assert row["cause"] == "launch" and row["cause_share"] > 0.95 and row["confidence"] > 0.99
    excess = plain.causes.set_index("rank").loc[row["rank"], "launch"]
    assert excess == pytest.approx(SLOW["total_s"] / row["steps"], rel=0.02)


def test_its_cost_is_what_the_others_waited(plain):
    assert plain.ranks.iloc[0]["blame_s"] == pytest.approx(SLOW["total_s"], rel=0.1)
    assert plain.cost_chip_seconds == pytest.approx(3 * SLOW["total_s"], rel=0.1)
    assert plain.gain.likely == pytest.approx(4 * SLOW["total_s"], rel=0.1) and plain.gain.steps == 0


SHIFTS = [(process, shift_s) for shift_s in (0.001, -0.001, 0.005, 0.3, -1, 10, -10) for process in range(4)]


@pytest.mark.parametrize("process, shift_s", [SHIFTS[n] for n in seeds(len(SHIFTS))])
def test_no_shift_of_a_clock_changes_a_figure(run, plain, process, shift_s):
    tables = with_clock(run, f"vm/{process}", round(shift_s * 1e9))
    got, expected = (
        {k: v for k, v in x.to_dict().items() if k not in ("clock_offsets_s", "resolution_s", "notes")}
        for x in (stragglers.analyze(tables, run.manifest.facts, {}), plain)
    )
    assert got == expected


@pytest.mark.parametrize("process, drift", [(1, 1e-4), (0, -1e-4), (3, 2e-5)])
def test_a_clock_that_drifts_changes_nothing_that_matters(run, plain, process, drift):
    got = stragglers.analyze(with_clock(run, f"vm/{process}", 10**9, drift), run.manifest.facts, {})
    same = ["rank", "cause", "first_step", "last_step", "steps"]
    assert got.verdict == plain.verdict and got.ranks[same].equals(plain.ranks[same])
    assert got.ranks["blame_s"].iloc[0] == pytest.approx(plain.ranks["blame_s"].iloc[0], rel=1e-3)


def test_the_offset_put_in_is_the_offset_shown(run, plain):
    shifted = stragglers.analyze(with_clock(run, "vm/2", 250_000_000), run.manifest.facts, {}).clock_offsets_s
    moved = {r: shifted[r] - plain.clock_offsets_s[r] for r in shifted}
    assert moved["2"] - moved["0"] == pytest.approx(0.25, abs=3 * plain.resolution_s)


def test_attempts_without_it_are_not_blamed_on_anybody(run):
    """The first and third attempt alone: nobody was slowed there."""
    attempts = [
        c["capture"]
        for c in run.tables.arrow("captures", ["capture", "source"]).to_pylist()
        if "attempt_1" not in c["source"]
    ]
    keep = pa.array(attempts, pa.int32())
    tables = {}
    for name in ("collectives", "captures", "steps", "ops", "op_events"):
        rows = run.tables.arrow(name)
        rows = rows.filter(pc.is_in(rows["capture"], keep))
        tables[name] = {n: rows[n].combine_chunks() for n in rows.column_names}
    assert stragglers.analyze(MemoryTables(tables), run.manifest.facts, {}).verdict == "none"
