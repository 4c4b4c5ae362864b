"""The padding tax against a table that was computed without this project: every product and every total."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from analyzers.flops import padding
from analyzers.flops.hbm_layout import shapes
from analyzers.flops.mxu import padded_flops
from app.questions.asking import ModelSubject
from catalog import model
from catalog.matmuls import Matmul, matmuls
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from runs.tables import MemoryTables, frame

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "padding"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the oracles beside the project are absent")
TOTAL = "TOTAL_FLOP_WEIGHTED"


def rows(name: str) -> list[dict[str, str]]:
    file = FOLDER / name
    return list(csv.DictReader(file.open(encoding="utf-8"))) if file.exists() else []


def cases() -> dict[tuple[str, int, int, int], list[dict[str, str]]]:
    found: dict = {}
    for row in rows("oracle.csv"):
        found.setdefault((row["model"], int(row["tp"]), int(row["seq"]), int(row["mxu"])), []).append(row)
    return found


def padded_vocabulary(name: str) -> dict[str, str]:
    """`gpt2-1.5b(V=50304)` is a table of the model with its vocabulary padded to 50,304."""
    return {"vocab": size.removesuffix(")")} if (size := name.partition("(V=")[2]) else {}


def ours(name: str, seq: int, tp: int) -> tuple[Matmul, ...]:
    found = model(name.partition("(")[0])
    return matmuls(replace(found, **{k: int(v) for k, v in padded_vocabulary(name).items()}), seq, tp)


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_row_to_the_printed_digit(case):
    name, tp, seq, side = case
    expected = CASES[case]
    found = ours(name, seq, tp)
    useful = headline = optimistic = 0.0
    assert len(found) == len(expected) - 1 >= 9
    for row, m in zip(expected, found, strict=False):
        a, b = padded_flops(m.m, m.k, m.n, side)
        a, b = a * m.count * m.pairs_fraction, b * m.count * m.pairs_fraction
        assert (m.name, m.count, f"{m.m:.6g}", m.k, m.n) == (
            row["matmul"],
            int(row["count"]),
            f"{float(row['M']):.6g}",
            int(row["K"]),
            int(row["N"]),
        )
        assert f"{m.pairs_fraction:.6g}" == row["pairs_fraction"]
        printed = [row["useful_flops"], row["padded_flops_A"], row["padded_flops_B"]]
        assert [f"{x:.6e}" for x in (m.useful_flops, a, b)] == printed, m.name
        assert [round(m.useful_flops / x, 6) for x in (a, b)] == [float(row["eff_A"]), float(row["eff_B"])], m.name
        useful, headline, optimistic = useful + m.useful_flops, headline + a, optimistic + b
    total = expected[-1]
    assert total["matmul"] == TOTAL
    assert [f"{x:.6e}" for x in (useful, headline, optimistic)] == [
        total["useful_flops"],
        total["padded_flops_A"],
        total["padded_flops_B"],
    ]
    assert [round(useful / x, 6) for x in (headline, optimistic)] == [float(total["eff_A"]), float(total["eff_B"])]


@pytest.mark.parametrize("row", rows("summary.csv"), ids=lambda r: f"{r['model']},{r['tp']},{r['mxu']}")
def test_the_analyzer_reproduces_every_summary(row):
    name = row["model"].partition("(")[0]
    given = {"seq": row["seq"], "tp": row["tp"], "mxu": row["mxu"], **padded_vocabulary(row["model"])}
    result = padding.analyze(
        MemoryTables({}), ModelSubject(name, name).facts, parse_options(padding.OPTIONS, given)
    ).to_dict()
    assert round(result["efficiency"], 5) == float(row["eff_A"])
    assert round(result["tax"], 5) == float(row["tax_A"])
    assert round(result["efficiency_optimistic"], 5) == float(row["eff_B"])
    attention = [m for m in result["matmuls"] if m["name"][:3] in ("qk_", "pv_")]
    assert round(sum(m["share"] for m in attention), 5) == float(row["attn_share_of_useful"])
    padded = sum(m["padded_flops"] for m in attention)
    assert round(sum(m["useful_flops"] for m in attention) / padded, 5) == float(row["attn_eff_A"])


PROGRAMS = FOLDER.parents[1] / "data" / "tpu_hlo"


@pytest.mark.parametrize("file", sorted(PROGRAMS.glob("*.gz")), ids=lambda p: p.name)
def test_real_tpu_programs_give_products_and_the_compiler_s_own_padding(file, tmp_path):
    """Layouts as the TPU compiler printed them: our bytes of each array are those the reader of programs found."""
    store = Store(tmp_path)
    run = store.find(ingest([file], store).run_id)
    memory = frame(run.tables, "memory", ["kind", "shape", "bytes", "padded_bytes"], [("kind", "==", "argument")])
    assert len(memory)
    for row in memory.itertuples():
        [found] = shapes(str(row.shape))
        assert (found.bytes, found.padded_bytes) == (row.bytes, row.padded_bytes)
    side = 256 if file.name.startswith(("v6e", "tpu7x")) else 128
    result = padding.analyze(run.tables, run.manifest.facts, parse_options(padding.OPTIONS, {"mxu": str(side)}))
    assert result.source == "program" and result.rows["padded_flops"].gt(0).all()
    wide = {1000, 2000} if "D1000" in file.name else {1024, 2048}
    assert {int(k) for k in result.rows["k"]} & wide  # the file's name says the model's width
    assert result.tax > (0.01 if "D1000" in file.name else -1)
    assert result.hbm.tax >= 0
