"""Worked cases: arithmetic that can be done by hand, the contract, the page."""

import json

import pytest

from app.cli import main
from app.whatif.cases import CASES, memory, percentile
from catalog.serving_figures import figures
from simulators.serving.cost import break_even, usd_per_million_tokens
from tests.app.test_pages import opened, words


def test_every_figure_has_a_source_and_a_basis():
    assert all(f.source and f.basis in ("measured", "modelled") for f in figures().values())


def test_the_percentile_case_by_hand():
    case = percentile.answer()
    assert case.numbers["mean_s"] == pytest.approx(0.04242 + 11 * 0.01364)
    assert case.numbers["sum_of_p99_s"] == pytest.approx(0.05619 + 12 * 0.0157)
    n = case.numbers
    assert n["mean_s"] < n["p99_low_s"] < n["p99_high_s"] < n["sum_of_p99_s"]
    assert "192 ms" in case.verdict


def test_the_memory_case_by_hand():
    sliding, full = 50 * 2 * 16 * 256 * 2 * 1024, 10 * 2 * 4 * 512 * 2 * 1500
    weights = 30.696013824e9 * 2
    assert memory.sequences(4, 32e9, False) == pytest.approx((4 * 32e9 * 0.9 - weights) / (sliding + full))
    assert memory.sequences(8, 32e9, True) == pytest.approx((8 * 32e9 * 0.9 - weights) / (sliding + 2 * full))
    for row in memory.answer().rows[::2]:
        assert row.computed == pytest.approx(row.stated, rel=0.02)


def test_costs_and_break_even():
    assert usd_per_million_tokens(1000, 8, 3.6) == pytest.approx(8.0)
    assert break_even((902.72, 2), (701.38, 1)) == pytest.approx(2 * 701.38 / 902.72)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.NAME)
def test_each_case_on_the_page_and_as_json(place, capsys, case):
    at = opened("pages/serving_cases/page.py", case=case.NAME)
    assert not at.exception and case.QUESTION in words(at)
    assert main(["whatif", "case", "--name", case.NAME, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] and any(row["stated"] is not None for row in told["rows"])


def test_a_case_that_does_not_exist(capsys):
    assert main(["whatif", "case", "--name", "nothing"]) == 2
    assert "p99" in capsys.readouterr().err
