"""The plan on paper: its arithmetic, and that the docs show what it gives."""

from dataclasses import asdict, replace

import pytest

from benchmarks.scale_plan import CAPTURES, MEASURED, Capture, Measured, Prices, Year, capture_cost, tables, year_cost
from tests.app.serving import PROJECT

ONE = Measured(**dict.fromkeys(asdict(MEASURED), 1.0))
PRICES = Prices(processor_hour=3600.0, gb_month=1e9, puts_1000=1000.0, gets_1000=1000.0)  # a dollar each


def test_the_docs_show_what_the_plan_gives():
    assert tables() in (PROJECT / "docs/scale.md").read_text(encoding="utf-8")


def test_a_capture_is_counted():
    """Of ten hosts of 5 bytes and three workers: four rounds of a second for the file and one for each byte."""
    found = capture_cost(Capture(name="", hosts=10, bytes_per_host=5, workers=3), ONE, PRICES)
    assert (found.input_bytes, found.stored_bytes, found.objects, found.manifest_bytes) == (50, 50, 10, 10)
    assert (found.workers_s, found.wall_s) == (10 * 6, 1 + 10 + 4 * 6)
    assert (found.asks_bytes, found.stragglers_s, found.ledger_s, found.timeline_s) == (11, 10, 60, 50)
    assert found.reading_usd == pytest.approx(60 + 11) and found.month_usd == pytest.approx(50)
    assert found.requests_usd == pytest.approx(2 * 10 * 1 + 2 * 10)  # a piece for each file, read twice; two puts


def test_a_year_is_counted():
    found = year_cost(Year(name="", runs=7, files=2, bytes_per_file=3), ONE, PRICES)
    assert (found.input_bytes, found.stored_bytes, found.objects, found.manifests_bytes) == (42, 42, 14, 14)
    assert found.reading_usd == pytest.approx(14 * 2 + 42 + 7) and found.library_bytes == found.library_s == 7
    assert found.processors * 365.25 * 86_400 == pytest.approx(14 * 2 + 42 + 7)


def test_a_large_file_is_asked_for_in_pieces():
    one = Capture(name="", hosts=1, bytes_per_host=(8 << 20) * 3 + 1, workers=1)
    assert capture_cost(one, ONE, PRICES).requests_usd == pytest.approx(2 * 4 + 2)


@pytest.mark.parametrize("of", CAPTURES)
def test_more_workers_cost_no_more_and_end_sooner(of):
    before, after = capture_cost(of), capture_cost(replace(of, workers=of.workers * 2))
    assert after.wall_s < before.wall_s and after.reading_usd == before.reading_usd
