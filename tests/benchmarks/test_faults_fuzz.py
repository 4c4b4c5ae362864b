"""The hunt with damaged files: what a reader must not do is told, whichever way it does it; a few files of each."""

import os
import signal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import benchmarks.faults.fuzz.case as cases
from benchmarks.faults.fuzz.__main__ import table
from benchmarks.faults.fuzz.case import DEFECT, GOOD, LEFT, MEMORY, Case, case
from benchmarks.faults.fuzz.hunt import DIED, HANG, Limits, hunt
from benchmarks.faults.fuzz.seeds import seeds
from collectors import COLLECTORS
from tests.conftest import seeds as some


def takes_too_long(source):
    while True:
        pass


def ends_its_process(source):
    os.kill(os.getpid(), signal.SIGSEGV)


def takes_memory(source):
    bytearray(1 << 33)


def leaves_a_file(source):
    Path("left").write_text("x")
    yield from ()


def writes_elsewhere(source):
    (Path(__file__).parents[2] / "elsewhere").touch()
    (Path(__file__).parents[2] / "elsewhere").unlink()
    yield from ()


def fails(source):
    yield from {}["no such key"]


@pytest.mark.parametrize(
    ("reads", "outcome"),
    [
        (takes_too_long, HANG),
        (ends_its_process, DIED),
        (takes_memory, MEMORY),
        (leaves_a_file, LEFT),
        (writes_elsewhere, LEFT),
        (fails, DEFECT),
    ],
)
def test_what_a_reader_must_not_do_is_told_and_the_next_file_is_read(reads, outcome, tmp_path, monkeypatch):
    bad = SimpleNamespace(NAME="bad", sniff=lambda source: 1.0, read=reads)
    monkeypatch.setattr(cases, "COLLECTORS", (bad, *COLLECTORS))

    def make(number: int) -> Case:
        reader = "bad" if number == 1 else "maxtext"
        return Case(number, reader, "x.log", "as it was", b"completed step: 1, seconds: 2.000, loss: 1.000\n")

    told = list(hunt(make, range(3), tmp_path / "cases", Limits(cpu_s=1.0, memory_bytes=1 << 30)))
    assert [t.number for t in told] == [0, 1, 2]
    assert told[1].outcome == outcome, told[1]
    assert told[0].outcome in GOOD and told[2].outcome in GOOD


def test_the_same_number_is_the_same_file_and_every_reader_has_its_turn():
    known = seeds()
    made = [case(n, 7, known) for n in range(len(COLLECTORS))]
    assert {one.reader for one in made} == {c.NAME for c in COLLECTORS}
    assert made == [case(n, 7, known) for n in range(len(COLLECTORS))]
    assert made != [case(n, 8, known) for n in range(len(COLLECTORS))]


def test_no_damaged_file_breaks_a_reader(tmp_path):
    numbers = list(some(10 * len(COLLECTORS)))
    told = list(hunt(partial(case, seed=2026, seeds=seeds()), numbers, tmp_path / "cases"))
    assert [t for t in told if t.outcome not in GOOD] == []
    assert len(told) == len(numbers)
    assert "| all |" in table(t.to_dict() for t in told)
