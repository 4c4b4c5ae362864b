"""Real profiles of GPUs from beside the project: copies, steps of devices captured apart, memory, fused kernels."""

from pathlib import Path

import pytest

from analyzers.device import memory, overlap
from analyzers.device import operations as ops
from analyzers.time import ledger, steps
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

DATA = Path(__file__).parents[3] / "shared" / "data" / "more" / "corrections" / "xplane"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data/more/corrections beside the project")


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """The answer to a question about one of the files."""
    store = Store(tmp_path_factory.mktemp("store"))
    runs = {}

    def answer(name, question, **options):
        if name not in runs:
            runs[name] = store.get(ingest([DATA / name], store).run_id)
        run = runs[name]
        return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))

    return answer


def shares(result):
    return dict(zip(result.by_category["category"], result.by_category["share"], strict=True))


def test_copies_between_devices_are_copies(ask):
    result = ask("tracelens_mi300_legacy.xplane.pb", ops)
    copied = result.rows[result.rows["category"] == "copy"]
    assert copied["op"].tolist() == ["CopyDeviceToDevice"] and copied["count"].tolist() == [53]
    assert copied["self_seconds"].sum() == pytest.approx(889.0e-6, rel=1e-3)
    assert shares(result)["copy"] == pytest.approx(0.20, abs=0.005)
    totals = ask("tracelens_mi300_legacy.xplane.pb", overlap).totals
    assert totals["copies_s"] == pytest.approx(889.0e-6, rel=1e-3)


def test_kernels_that_fill_memory_do_not_make_copies_of_attention(ask):
    result = ask("tracelens_te_fused_attn.xplane.pb", ops)
    backward = result.rows[result.rows["op"].str.startswith("te_fused_attn_backward")]
    assert backward["share"].sum() == pytest.approx(0.383, abs=0.001)
    assert set(backward["category"]) == {"custom-call"}
    assert shares(result)["copy"] == pytest.approx(0.0137, abs=0.0002)


def test_devices_captured_apart_took_steps_of_their_own(ask):
    result = ask("tf_gpu_multi_worker.xplane.pb.gz", steps)
    assert result.hosts["dur_s"].tolist() == pytest.approx([0.0198655, 0.0213104], abs=1e-6)
    assert result.median_step_s == pytest.approx(0.0213104, abs=1e-6)
    windows = ask("tf_gpu_multi_worker.xplane.pb.gz", overlap).devices.set_index("device")["window_s"]
    assert windows.loc[[4, 6]].tolist() == pytest.approx([0.0198655, 0.0213104], abs=1e-6)


def test_the_limit_is_that_of_the_device(ask):
    result = ask("tf_gpu_multi_worker.xplane.pb.gz", memory)
    assert result.peak_bytes == pytest.approx(6.21e9, rel=1e-3)
    assert result.limit_bytes == pytest.approx(15.48e9, rel=1e-3)
    assert result.chip == "V100 SXM2 16GB"


@pytest.mark.parametrize("name", ["tracelens_mi300_legacy.xplane.pb", "tracelens_te_fused_attn.xplane.pb"])
def test_no_steps_are_no_kept_steps(ask, name):
    result = ask(name, ledger)
    assert result.ledger.find("productive") is None and result.ledger.find("profiled") is not None
