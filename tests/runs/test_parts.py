"""Parts of a table: their names tell which captures they hold, and nothing that a question needs is passed over."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import machine
from runs.parts import Part, in_parts, part_of, parts_of
from runs.spread import processes

SMALL = st.integers(0, 6)
HOLDS = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
    "in": lambda one, many: one in many,
}


def test_a_name_tells_the_part():
    part = Part(table="op_events", number=345, captures=(345, 360))
    assert part.relative == "tables/op_events/000345.345-360.parquet"
    assert part_of(part.relative) == part
    bare = Part(table="steps", number=1_234_567)
    assert bare.relative == "tables/steps/1234567.parquet" and part_of(bare.relative) == bare


def test_other_files_of_a_run_are_no_parts():
    for other in ("tables/op_events.parquet", "blobs/hlo/1-2.pb.zst", "tables/op_events/1.parquet", "run.json"):
        assert part_of(other) is None
    assert not in_parts(["tables/op_events.parquet"])
    assert in_parts(["tables/op_events/000001.parquet"])


def test_parts_stand_in_the_order_of_their_numbers():
    parts = [Part(table="ops", number=n, captures=(n, n)) for n in (2_000_000, 7, 10)]
    others = [Part(table="op_stats", number=1).relative, "tables/steps.parquet"]
    assert [p.number for p in parts_of([*(p.relative for p in parts), *others], "ops")] == [7, 10, 2_000_000]


@given(st.lists(SMALL, min_size=1), st.sampled_from(sorted(HOLDS)), SMALL, st.lists(SMALL))
def test_no_part_is_passed_over_that_has_a_fitting_row(captures, how, value, values):
    part = Part(table="ops", number=0, captures=(min(captures), max(captures)))
    asked = values if how == "in" else value
    fits = any(HOLDS[how](one, asked) for one in captures)
    assert part.may_hold([("capture", how, asked)]) or not fits
    assert Part(table="ops", number=0).may_hold([("capture", how, asked)])
    assert part.may_hold([("device", "==", 10)])


@given(st.lists(SMALL, min_size=1, max_size=1), SMALL)
def test_a_part_of_one_capture_is_opened_for_that_alone(captures, asked):
    part = Part(table="ops", number=0, captures=(captures[0], captures[0]))
    assert part.may_hold([("capture", "==", asked)]) == (asked == captures[0])


@pytest.mark.parametrize("number", ["0000001", "\u0661" * 6, "1" * 5000, "1", "-00001", "000001.1", "000001.2-01"])
def test_a_part_has_one_name(number):
    """Of two names for one part rows would count twice, and a checksum be passed over."""
    assert part_of(f"tables/ops/{number}.parquet") is None


def test_processes_of_many_processors_are_no_more_than_a_job_may_have(monkeypatch):
    monkeypatch.setattr(processes, "processors", lambda: 500)
    with processes.Processes() as few, processes.Processes(20) as many:
        assert (few._count, many._count) == (processes.MOST_PROCESSES, 20)


def test_what_a_container_may_have_is_all_there_is(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "none")))
    assert machine.memory_here() == 1_000_000 and machine.memory_left() <= 1_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory_here() > 1_000_000
