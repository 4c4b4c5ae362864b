"""Overlap, collectives and input of real traces of a TPU and a GPU machine, where they lie beside the project."""

from pathlib import Path

import pytest

from analyzers.device import input, overlap
from analyzers.ranks import collectives
from collectors.ingest import ingest
from errors import QuestionError
from errors.options import parse_options
from runs.store import Store

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "xplane"
TPU = DATA / "tpu_v6e_4chip_host_offload.xplane.pb"
GPU = DATA / "mi300x_8gpu_jax_conv.xplane.pb"

pytestmark = pytest.mark.skipif(not TPU.exists(), reason="no sample traces beside the project")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def tpu(store):
    return store.get(ingest([TPU], store).run_id)


@pytest.fixture(scope="module")
def gpu(store):
    return store.get(ingest([GPU], store).run_id)


def ask(run, question, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def ops_of(run, device, *categories, role="compute"):
    rows = run.tables.arrow("ops", ["device", "role", "category", "total_ns"]).to_pylist()
    return (
        sum(r["total_ns"] for r in rows if r["device"] == device and r["role"] == role and r["category"] in categories)
        / 1e9
    )


def test_a_tpu_that_waits_for_copies_to_the_host(tpu):
    """A TPU core runs one operation of its line after the other, so sums of durations are unions there."""
    rows = ask(tpu, overlap).devices
    assert len(rows) == 4
    for row in rows.to_dict("records"):
        device = row["device"]
        assert row["compute_s"] == pytest.approx(ops_of(tpu, device, "fusion", "data-movement"), rel=1e-5)
        assert row["communication_s"] == pytest.approx(ops_of(tpu, device, "collective"), rel=1e-5)
        assert row["overlapped_s"] == 0  # psum ran as a program of its own
        assert row["copies_s"] == pytest.approx(ops_of(tpu, device, "copy"), rel=1e-3)
        assert row["copies_s"] / row["window_s"] > 0.8
    assert ask(tpu, overlap).window == "operations"


def test_an_all_reduce_between_two_tpu_hosts(tpu):
    (row,) = ask(tpu, collectives).rows.to_dict("records")
    assert (row["kind"], row["group_size"], row["bytes"], row["count"]) == ("all-reduce", 2, 5 * 1024**3, 12)
    assert not row["matched"]  # the other host's profile is not here
    assert row["busbw_bytes_per_s"] == pytest.approx(5 * 1024**3 / 0.1217, rel=1e-3)  # n = 2: factor 1
    assert row["link_bytes_per_s"] == 4 * 100e9
    assert row["busbw_bytes_per_s"] < ask(tpu, collectives).one_link_bytes_per_s


def test_without_fetches_in_the_trace_nothing_is_claimed_of_input(tpu, gpu):
    for run in (tpu, gpu):
        result = ask(run, input)
        assert result.input_bound is None and result.waited_s is None
        assert any("data_loading" in n for n in result.notes)


def test_streams_of_eight_gpus(gpu):
    rows = ask(gpu, overlap).devices
    assert rows["device"].tolist() == list(range(8))
    assert (rows["communication_s"] == 0).all() and rows["overlap_share"].isna().all()
    for row in rows.to_dict("records"):
        kernels = ops_of(gpu, row["device"], "fusion", "convolution", "other")
        assert 0.9 * kernels < row["compute_s"] <= kernels * 1.0001  # streams may run at once
        whole = row["compute_s"] + row["exposed_s"] + row["copies_s"] + row["idle_s"]
        assert whole == pytest.approx(row["window_s"], rel=1e-12)
    with pytest.raises(QuestionError, match="no collectives"):
        ask(gpu, collectives)
