"""Negative rates, FLOPs and steps, and intervals that end before they start, whichever file tells of them."""

import json

import pytest

from collectors.base import Lost, Rows
from collectors.ingest import ingest
from collectors.ingesting.plausible import plausible
from runs.schema import SCHEMAS
from runs.tables import frame

STEP = "completed step: {n}, seconds: 2.000, TFLOP/s/device: {rate}, Tokens/s/device: {rate}, loss: 2.000\n"


def sifted(table, columns):
    rows, *lost = plausible([Rows(table, SCHEMAS[table].batch(columns))])
    assert all(isinstance(one, Lost) for one in lost)
    return rows.batch, "; ".join(f"{one.what}: {one.reason}" for one in lost)


@pytest.mark.parametrize("column", ["dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip"])
def test_what_is_below_zero_is_not_known(column):
    batch, said = sifted("steps", {"step": [1, 2, 3], column: [5, -5, None]})
    assert batch.column(column).to_pylist() == [5, None, None] and batch.column("step").to_pylist() == [1, 2, 3]
    assert said == f"steps: {column} (1): below zero: taken as not known"


def test_steps_below_zero_are_refused():
    batch, said = sifted("steps", {"step": [-1, 0, None, 2], "dur_ns": [1, 2, 3, 4]})
    assert batch.column("step").to_pylist() == [0, None, 2] and batch.column("dur_ns").to_pylist() == [2, 3, 4]
    assert said == "steps (1): their number is below zero: refused"


def test_ends_before_starts_are_named():
    batch, said = sifted("lifecycle", {"kind": ["eval"] * 3, "start_ns": [5, 5, 5], "end_ns": [4, 5, None]})
    assert batch.num_rows == 3 and said == "lifecycle: intervals (1): they end before they start"


def test_what_can_be_stays_as_it_is():
    rows = Rows("steps", SCHEMAS["steps"].batch({"step": [0], "dur_ns": [0]}))
    assert next(plausible([rows])) is rows
    assert sifted("steps", {"step": []})[1] == sifted("scalars", {"value": [-1.0]})[1] == ""


def test_it_is_told_on_ingest(folder, store):
    (folder / "a.log").write_text("".join(STEP.format(n=n, rate="-100.000") for n in range(3)))
    done = ingest([folder / "a.log"], store)
    told = [w for w in done.warnings if "below zero" in w]
    assert len(told) == 2 and "model_flops_per_chip (3)" in "".join(told)
    rows = frame(store.get(done.run_id).tables, "steps", ["model_flops_per_chip"])
    assert rows["model_flops_per_chip"].isna().all()


def test_rows_of_a_simulator_are_judged_too(folder, store):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "chipledger.json").write_text(json.dumps({"name": "x"}))
    pq.write_table(pa.table({"step": [-1, 0], "start_ns": [0, 10], "dur_ns": [5, 5]}), folder / "steps.parquet")
    done = ingest([folder], store)
    assert done.tables["steps"] == 1 and any("refused" in w for w in done.warnings)
