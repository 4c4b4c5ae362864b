"""Days and dollars against the oracle table beside the project, to the last digit that it prints."""

import csv
from pathlib import Path

import pytest

from simulators.training.cost import Held, Work, cost

TABLE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "training" / "cost_oracle.csv"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="the oracles beside the project are absent")


def test_every_row_to_its_last_digit():
    with TABLE.open(newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) >= 6
    for row in rows:
        held = Held(
            chips=int(row["chips"]),
            peak_flops_per_s=float(row["peak"]),
            mfu=float(row["mfu"]),
            goodput=float(row["goodput"]),
            usd_per_chip_hour=float(row["price_per_chip_hour"]),
        )
        work = Work(flops_per_token=float(row["flops_per_token"]), tokens=float(row["tokens"]))
        found = cost(work, held)
        told = {"hours": found.hours, "days": found.days, "chip_hours": found.chip_hours, "cost": found.usd}
        for name, value in told.items():
            assert f"{value:.{len(row[name].partition('.')[2])}f}" == row[name], (row["case"], name)
