"""TraceLens' own tables of a trace of an H100, from beside the project, against the same run here."""

import csv
from pathlib import Path

import pytest

from analyzers.device import operations as ops
from analyzers.device.modules import modules
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "kineto" / "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_"
CSVS = FOLDER / "Qwen_Qwen1.5-0.5B-Chat__1016005_perf_report_csvs"
pytestmark = pytest.mark.skipif(not CSVS.is_dir(), reason="no ../shared/data/kineto beside the project")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    return store.get(ingest([FOLDER / "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"], store).run_id)


def ask(run, question, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def table(name):
    with open(CSVS / name, newline="") as file:
        return list(csv.DictReader(file))


GEMMS = ("aten::mm", "aten::addmm", "aten::bmm")


def gemm_seconds():
    """Seconds by call of the kernels that TraceLens counts as GEMM."""
    found: dict[str, float] = {}
    for row in table("kernel_summary.csv"):
        if row["Parent op category"] == "GEMM":
            call = row["Parent cpu_op"]
            found[call] = found.get(call, 0.0) + float(row["Kernel duration (µs)_sum"]) * 1e-6
    return found


def biased(row):
    """FLOPs of adding a bias to a product."""
    return float(row["param: M"]) * float(row["param: N"]) if row["param: bias"] == "True" else 0.0


def test_products_take_the_time_that_tracelens_tells_and_have_its_flops(run):
    """Its time of a GEMM holds the memory that its calls clear, which is a copy here, its FLOPs those of adding a
    bias."""
    rows = ask(run, ops).rows
    mine = rows[rows["op"].isin(GEMMS)]
    by_call = mine.groupby("op")["self_seconds"].sum().to_dict()
    assert by_call == pytest.approx(gemm_seconds(), rel=1e-6)
    flops = sum((float(r["GFLOPS_first"]) * 1e9 - biased(r)) * float(r["name_count"]) for r in table("GEMM.csv"))
    assert mine["flops"].sum() == pytest.approx(flops, rel=1e-6)
    whole = sum(float(r["Kernel Time (µs)_sum"]) * 1e-6 for r in table("GEMM.csv"))
    cleared = rows[rows["op"].eq("Memset (Device)") & rows["framework_op"].isin(GEMMS)]
    assert mine["self_seconds"].sum() + cleared["self_seconds"].sum() == pytest.approx(whole, rel=1e-6)


def test_all_of_them_ran_on_tensor_cores_but_one(run):
    made = ask(run, ops).products
    assert made.untold_seconds == 0 and made.share == pytest.approx(0.99972, abs=1e-5)
    assert [r["dtype"] for r in made.by_dtype.to_dict("records") if r["tensor_core_seconds"] == 0] == ["f32"]


def test_what_has_a_module_is_what_has_a_call(run):
    """What TraceLens tells by category is the time of kernels whose call the trace holds; here the rest is beside it,
    under no module."""
    result = ask(run, modules)
    theirs = sum(float(r["total_direct_kernel_time_ms"]) * 1e-3 for r in table("ops_summary_by_category.csv"))
    assert result.told_seconds == pytest.approx(theirs, rel=1e-6)  # its times are rounded as they are added
