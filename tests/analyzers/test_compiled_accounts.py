"""The ledger of a compiled step against arithmetic done by hand."""

import math

import pytest

from analyzers.time import ledger
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.test_compiled import FACTS, TABLES

PEAK, HBM, LINK = 918e12, 1638e9, 4 * 100e9  # v6e
BASE = {name: rows for name, rows in TABLES.items() if name != "matmuls"}
MODULE = {"capture": [0], "program": [0], "flops": [32 * 4.01e11], "remat_flops": [32 * 1e11]}


def asked(tables=BASE, price=None, **facts):
    told = facts_of({**FACTS, **facts})
    return ledger.analyze(MemoryTables({**tables, "modules": MODULE}), told, {"usd_per_chip_hour": price})


def test_a_compiled_step_is_entered_in_chip_seconds_and_closes():
    model_flops = 16 * 32 * 2e11
    result = asked(model_flops_per_step=model_flops)
    book = result.ledger
    computing = 32 * max(1e9 / PEAK, 2e8 / HBM) + 32 * 4e11 / PEAK + 1e6 / HBM
    assert book.chips == 16
    assert book.amount("useful_maths") == pytest.approx(model_flops / PEAK)
    assert book.amount("recomputation") == pytest.approx(16 * 32 * 1e11 / PEAK)
    rest = computing - 32 * 3e11 / PEAK
    assert book.amount("below_roofline") == pytest.approx(16 * rest)
    # the asynchronous all-gather is covered by computing; the others are not
    waited = (2 * 3 / 4 * (8e6 * 64 + 4e6 * 2) + 5e5) / LINK
    assert book.amount("exposed_communication") == pytest.approx(16 * waited)
    assert book.chip_seconds == pytest.approx(16 * (computing + waited))
    assert math.fsum(c.chip_seconds for c in book.account.children) == pytest.approx(book.chip_seconds, rel=1e-12)
    assert all(a.basis == "modelled" for _, a in book.account.walk() if not a.children)
    assert book.useful_flops == model_flops
    assert any("not a forecast" in n for n in result.notes)


def test_communication_that_computing_cannot_cover_is_exposed_even_if_asynchronous():
    collectives = {
        "kind": ["all-gather"],
        "axis": ["data"],
        "bytes": [1e12],
        "count": [1],
        "group_size": [4],
        "asynchronous": [True],
    }
    book = asked({**BASE, "program_collectives": collectives}).ledger
    computing = 32 * max(1e9 / PEAK, 2e8 / HBM) + 32 * 4e11 / PEAK + 1e6 / HBM
    assert book.amount("exposed_communication") == pytest.approx(16 * (3 * 1e12 / LINK - computing))


def test_a_program_that_a_step_runs_many_times_is_recomputed_as_often():
    once, times = {**MODULE, "flops": [4.01e11], "remat_flops": [1e11]}, 32
    tables = {**BASE, "modules": {**once, "runs_per_step": [times]}}
    book = ledger.analyze(MemoryTables(tables), facts_of(FACTS), {"usd_per_chip_hour": None}).ledger
    assert book.amount("recomputation") == pytest.approx(16 * times * 1e11 / PEAK)
    assert book.amount("recomputation") == pytest.approx(asked().ledger.amount("recomputation"))


def test_padding_comes_on_top():
    matmuls = {
        "capture": [0],
        "program": [0],
        "op": ["dot.2"],
        "m": [4096],
        "k": [64],
        "n": [4096],
        "batch": [1],
        "count": [32],
    }
    plain, padded = asked().ledger, asked({**BASE, "matmuls": matmuls}).ledger
    extra = 16 * 32 * (2 * 4096 * 4096 * (256 - 64)) / PEAK  # 64 is filled up to the 256 of a v6e
    assert padded.amount("padding") == pytest.approx(extra)
    assert padded.chip_seconds == pytest.approx(plain.chip_seconds + extra)


def test_products_of_the_whole_mesh_pad_no_more_flops_than_a_chip_executes():
    matmuls = {
        "capture": [0],
        "program": [0],
        "op": ["scores"],
        "m": [4096],
        "k": [128],
        "n": [4096],
        "batch": [10**6],
        "count": [32],
    }
    padded = asked({**BASE, "matmuls": matmuls}).ledger
    assert padded.amount("padding") == pytest.approx(16 * 32 * 4.01e11 / PEAK)  # 128 of 256: each FLOP is done twice


def test_what_did_not_compile_has_no_ledger_and_says_so():
    with pytest.raises(QuestionError, match="did not compile"):
        ledger.analyze(MemoryTables({}), facts_of({**FACTS, "outcome": "out_of_memory", "fits": False}), {})


def test_a_price_makes_dollars_of_a_step():
    result = asked(price=3600.0)
    assert result.ledger.usd == pytest.approx(result.ledger.chip_seconds)
