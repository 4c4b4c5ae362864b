"""The catalogue's published runs against the table of published runs beside the project."""

import csv
from pathlib import Path

import pytest

from analyzers.flops.published import reviewed
from catalog import chip, chips

CSV = Path(__file__).parents[2].parent / "shared" / "oracles" / "training" / "published_runs.csv"
pytestmark = pytest.mark.skipif(not CSV.exists(), reason="no table of published runs beside the project")


TOLD = "f"  # ids of rows that the table lacks


def beside(oracle):
    """The published runs that the table has as well: all but those told elsewhere."""
    found = [r for r in reviewed() if not r.run.id.startswith(TOLD)]
    assert {r.run.id for r in found} <= set(oracle)
    return found


@pytest.fixture(scope="module")
def oracle():
    with CSV.open(newline="") as f:
        return {row["run_id"]: row for row in csv.DictReader(f)}


def test_every_row_read_from_a_file_is_there_with_its_figures(oracle):
    ours = {r.run.id: r.run for r in reviewed()}
    assert {i for i, row in oracle.items() if row["confidence"].startswith("file")} <= set(ours)
    for run_id, run in ours.items():
        if run_id.startswith(TOLD):
            continue
        row = oracle[run_id]
        assert run.chips == int(row["chips"]) and run.chip == chip(row["chip_type"]).name
        for name, column in (("tokens_per_s", "tokens_per_s_per_chip"), ("tflops_per_s", "tflops_per_chip")):
            assert run.printed.get(name, "") == row[column]
        printed = "hfu_percent" if row["flops_convention"].startswith("HARDWARE") else "mfu_percent"
        assert run.printed.get(printed, "") == row["mfu_pct_printed"] or "HFU" in row["notes"]
        assert (str(run.seq) if run.seq else "") == row["seq"]


def test_utilisation_of_the_bf16_peak_equals_the_table(oracle):
    """The table divides by 2307 (7x), 2250 (B200) and so on, in per cent with two decimals."""
    compared = 0
    for r in beside(oracle):
        said = oracle[r.run.id]["mfu_pct_bf16peak_as_published_tflops"]
        if said and r.bf16_utilisation:
            peak = chips()[r.run.chip].value("bf16_flops_per_s")
            assert r.bf16_utilisation * 100 == pytest.approx(float(said), rel=0.006), (r.run.id, peak)
            compared += 1
    assert compared > 280


def test_rows_called_anomalous_are_the_flagged_ones(oracle):
    called = {i for i, row in oracle.items() if "ANOMALY" in row["notes"] or "printed eMFU" in row["notes"]}
    assert {r.run.id for r in beside(oracle) if r.contradictions} == called
