"""Operations and roofline of the bundled run, against plain arithmetic on its tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analyzers.device import operations as ops
from analyzers.device import roofline
from errors.options import parse_options
from tests import bundled as bundled_runs

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    return bundled_runs.bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def rows(bundled):
    table = pd.read_parquet(bundled.tables.path("ops"))
    return table[(table["role"] == "compute") & table["device"].notna()]


def ask(question, run, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def test_the_roofline(bundled, rows):
    result = ask(roofline, bundled, top=10_000)
    assert result.device_seconds == pytest.approx(rows["self_ns"].sum() / 1e9)
    colls = rows[rows["category"] == "collective"]
    assert result.time_by_bound["communication"] == pytest.approx(colls["self_ns"].sum() / 1e9)
    dots = rows[rows["category"] == "matmul"].assign(done=lambda x: x["flops"] * x["count"])
    each = dots.groupby(dots["op"].astype(str))[["done", "self_ns"]].sum()
    rate = each["done"] / each["self_ns"] * 1e9
    ours = result.points[result.points["category"] == "matmul"].set_index("op")["flops_per_s"]
    assert (ours / rate.reindex(ours.index)).to_numpy() == pytest.approx(np.ones(len(rate)))
    peak = bundled.manifest.fact("peak_flops_per_s")
    assert result.roof.flops.per_s == peak and result.roof.flops.basis == "declared"
    assert result.roof.bytes.basis == "derived"  # nobody specifies it: the best that the run reached stands in
    compute = result.points[result.points["binds"] == "compute"]
    assert len(compute) >= len(rate)
    assert compute["roof_seconds"].to_numpy() == pytest.approx((compute["flops"] * compute["count"] / peak).to_numpy())
    steps = pd.read_parquet(bundled.tables.path("steps")).dropna(subset=["capture"])
    assert (result.devices, result.device_steps) == (4, len(steps))


def test_the_operations(bundled, rows):
    result = ask(ops, bundled)
    assert result.rows["self_seconds"].sum() == pytest.approx(rows["self_ns"].sum() / 1e9)
    by = rows.groupby(rows["category"].astype(str))["self_ns"].sum().sort_values(ascending=False) / 1e9
    assert dict(zip(result.by_category["category"], result.by_category["self_seconds"], strict=True)) == pytest.approx(
        by.to_dict()
    )
    lines = ask(ops, bundled, by="source").rows.set_index("source")["self_seconds"]
    expected = rows["self_ns"].groupby(rows["source"].astype(object).fillna("")).sum() / 1e9
    assert lines.to_dict() == pytest.approx(expected.to_dict())
    longest = rows.groupby([rows["module"].astype(str), rows["op"].astype(str)])["self_ns"].sum().idxmax()
    assert longest == (result.rows["module"].iloc[0], result.rows["op"].iloc[0])
