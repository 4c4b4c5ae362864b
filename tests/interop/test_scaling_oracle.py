"""Scaling of published runs against the oracle table beside the project."""

import csv
from pathlib import Path

import pytest

from simulators.training.scaling import Point, scaled

TABLE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "training" / "mlperf_scaling_oracle.csv"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="the oracles beside the project are absent")


def test_speedup_system_and_sample_efficiency_of_every_row():
    families: list[list[dict[str, str]]] = []
    with TABLE.open(newline="") as f:
        for row in csv.DictReader(f):
            if float(row["speedup"]) == 1:
                families.append([])
            families[-1].append(row)
    assert sum(map(len, families)) >= 26
    for rows in families:
        points = {id(r): Point(int(r["chips"]), 60 * float(r["minutes"]), float(r["samples"])) for r in rows}
        found = {id(s.point): s for s in scaled(list(points.values()), "strong")}
        for row in rows:
            s = found[id(points[id(row)])]
            told = (s.speedup, s.efficiency, s.system, s.sample)
            want = [float(row[k]) for k in ("speedup", "scaling_eff", "system_eff", "sample_eff")]
            assert told == pytest.approx(want, rel=6e-5, abs=6e-4), row  # its rates are rounded TFLOP/s
