"""What was spent is the same after it was packed, to the last bit, and what is cut short is not taken for it."""

import random
from dataclasses import replace

import numpy as np
import pytest

from analyzers.fleet.columns import FLAGS, NUMBERS, TEXTS
from analyzers.fleet.laying import columns_of
from analyzers.fleet.packed import NOTHING, Packed, number_of, packed, unpacked
from tests.analyzers.test_fleet_parts import run_of

RUNS = [run_of(random.Random(seed), seed) for seed in range(60)]


def test_what_is_unpacked_is_what_was_packed():
    laid = unpacked([packed(run.spent) for run in RUNS])
    for row, run in enumerate(RUNS):
        spent, entries, held, files = run.spent, *(_of(lists, row) for lists in (laid.entries, laid.held, laid.files))
        if spent is None:
            assert not len(entries["chip_s"]) and not len(held["start"]) and laid.of["whole"][row] == 0
            continue
        assert [laid.paths[n] for n in entries["path"]] == [e.path for e in spent.entries]
        assert entries["chip_s"].tolist() == [e.chip_s for e in spent.entries]
        assert list(zip(held["start"].tolist(), held["end"].tolist(), strict=True)) == list(spent.held)
        assert files["file"].tolist() == [number_of(file) for file in spent.inputs]
        assert laid.of["whole"][row] == spent.chip_s
        assert np.array_equal(laid.of["usd"][row], np.nan if spent.usd is None else spent.usd, equal_nan=True)


def _of(lists, row: int) -> dict[str, np.ndarray]:
    return {name: values[lists.at[row] : lists.at[row + 1]] for name, values in lists.of.items()}


def test_a_run_is_told_of_its_columns_as_it_came():
    columns = columns_of(RUNS)
    assert [columns.run(row) for row in range(len(RUNS))] == [replace(run, spent=None) for run in RUNS]
    assert not {*FLAGS, *NUMBERS} - columns.of.keys() and columns.texts.keys() == {*TEXTS}


def test_an_input_has_the_same_number_in_every_process():
    assert number_of("log") == -8795791539735446845


@pytest.mark.parametrize(
    "told",
    [
        Packed("", b""),
        Packed("", NOTHING.told[:-1]),
        Packed("a", NOTHING.told),
        Packed("", NOTHING.told + b"\0" * 8),
        Packed("", (-1).to_bytes(8, "little", signed=True) + NOTHING.told[8:]),
    ],
)
def test_what_is_not_as_long_as_it_says_is_not_whole(told):
    assert NOTHING.whole() and all(packed(run.spent).whole() for run in RUNS) and not told.whole()
