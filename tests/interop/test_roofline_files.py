"""Operations and rooflines of real traces of a TPU and a GPU machine, against the events in the files themselves."""

from collections import defaultdict
from pathlib import Path

import pytest

from analyzers.device import operations as ops
from analyzers.device import roofline
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from tests.collectors.traces import XSpace

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "xplane"
TPU = DATA / "tpu_v6e_4chip_host_offload.xplane.pb"
GPU = DATA / "mi300x_8gpu_jax_conv.xplane.pb"
pytestmark = pytest.mark.skipif(not TPU.exists(), reason="no sample traces beside the project")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    return {path: store.get(ingest([path], store).run_id) for path in (TPU, GPU)}


def ask(question, run, **options):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, options))


def busy_s(path, wanted) -> dict[str, float]:
    """Seconds covered at least once by the events of each device plane's lines that are `wanted`, by plane; lines of
    one plane are added. Times are those that the device measured itself, where events tell them."""
    found: dict[str, float] = defaultdict(float)
    for plane in XSpace.FromString(path.read_bytes()).planes:
        name = plane.name.decode()
        stats = {e.key: e.value.name for e in plane.stat_metadata}

        def span(event, stats=stats):
            told = {stats[s.metadata_id]: s.int64_value or s.uint64_value for s in event.stats}
            start = told.get(b"device_offset_ps", event.offset_ps)
            return start, start + told.get(b"device_duration_ps", event.duration_ps)

        for line in plane.lines:
            if not name.startswith("/device:") or not wanted(line.name.decode()):
                continue
            end = 0
            for start, stop in sorted(span(e) for e in line.events):
                found[name] += max(stop - max(start, end), 0) / 1e12
                end = max(end, stop)
    return found


def test_self_time_of_a_tpu_s_operations_is_the_time_that_its_line_is_busy(stored):
    busy = busy_s(TPU, lambda line: line == "XLA Ops")
    assert len(busy) == 4
    for plane, seconds in busy.items():
        result = ask(ops, stored[TPU], device=int(plane.rpartition(":")[2]))
        assert result.device_seconds == pytest.approx(seconds, rel=1e-9)
    assert ask(roofline, stored[TPU]).device_seconds == pytest.approx(sum(busy.values()), rel=1e-9)


def test_the_v6e_s_own_peaks_and_what_its_fusions_reach(stored):
    result = ask(roofline, stored[TPU])
    assert result.roof.flops.per_s == 918e12
    assert result.roof.bytes.per_s / 1e9 == pytest.approx(1637.99, abs=0.005)
    fusions = result.points[result.points["category"] == "fusion"]
    assert len(fusions) == 3
    for row in fusions.to_dict("records"):
        assert row["bytes"] == 10 * 2**30 and row["flops"] == 5 * 2**28 and row["count"] == 400
        assert row["flops_per_byte"] == 0.125 and row["bound"] == "memory"
        assert 0.8 < row["roof_share"] < 0.9
        assert row["bytes_per_s"] == pytest.approx(row["bytes"] * 400 / row["self_seconds"])
    waits = result.points[result.points["bound"] == "asynchronous"]
    assert set(waits["op"].str.rsplit(".", n=1).str[0].str.replace(r"\.\d+", "", regex=True)) == {
        "copy-start",
        "copy-done",
    }
    # 304.033 of 315.118 s by the device's own times; by the host's it was .9655
    assert result.time_by_bound["asynchronous"] / result.device_seconds == pytest.approx(0.96482, abs=5e-5)
    reached = next(r for r in result.roofs if r.name == "reached")
    assert reached.flops is None and reached.bytes.per_s == pytest.approx(fusions["bytes_per_s"].max())


def test_self_time_of_gpu_kernels_is_the_time_that_their_streams_are_busy(stored):
    busy = busy_s(GPU, lambda line: line.startswith("Stream #"))
    assert ask(ops, stored[GPU]).device_seconds == pytest.approx(sum(busy.values()), rel=1e-6)  # copies among them


def test_the_mi300x_is_held_against_its_data_sheet(stored):
    result = ask(roofline, stored[GPU])
    assert result.roof.flops.per_s == pytest.approx(1307.4e12) and result.roof.bytes.per_s == 5300e9
    moved = result.points[result.points["op"] == "input_transpose_fusion"].iloc[0]
    assert moved["bytes_per_s"] > 2662.4e9  # more than the trace says the memory can do: it halves the real rate
    assert moved["bound"] == "memory" and moved["roof_share"] == pytest.approx(0.602, abs=1e-3)
    conv = result.points[result.points["category"] == "convolution"].iloc[0]
    assert conv["flops"] == 2 * 16 * 5120 * 32 * 60 * 104 and conv["count"] == 40
    assert conv["flops_per_s"] == pytest.approx(104e12, rel=0.01) and conv["binds"] == "memory"
