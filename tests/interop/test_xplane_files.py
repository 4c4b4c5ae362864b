"""Real traces of a TPU and a GPU machine and real TPU programs, where they lie beside the project."""

import gzip
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.device import xplane
from collectors.device.hlo.module import analyse
from collectors.device.hlo.text import collective_of_text
from errors import InputError
from tests.collectors.traces import Got, XSpace, hlo_proto

DATA = Path(__file__).parents[2].parent / "shared" / "data"
TPU = DATA / "xplane" / "tpu_v6e_4chip_host_offload.xplane.pb"
GPU = DATA / "xplane" / "mi300x_8gpu_jax_conv.xplane.pb"
MANGLED = DATA / "xplane" / "corrupt_utf8_mangled.xplane.pb"
PROGRAMS = sorted((DATA / "tpu_hlo").glob("*.hlo.txt.gz"))

needs_traces = pytest.mark.skipif(not TPU.exists(), reason="no sample traces beside the project")


def read(path):
    source = Source(path, path.name)
    assert xplane.sniff(source) == 1.0
    return Got(source)


def own_times(plane, event):
    """(offset, duration) ps that the device measured itself, None where an event does not tell them."""
    names = {e.key: e.value.name for e in plane.stat_metadata}
    told = {names[s.metadata_id]: s.int64_value or s.uint64_value for s in event.stats}
    keys = (b"device_offset_ps", b"device_duration_ps")
    return tuple(told[k] for k in keys) if all(k in told for k in keys) else None


@needs_traces
@pytest.mark.parametrize("path", [TPU, GPU], ids=lambda p: p.name)
def test_every_event_of_a_real_trace_is_read(path):
    space = XSpace.FromString(path.read_bytes())
    got = read(path)
    events, stats = Counter(), 0
    for plane in space.planes:
        names = {e.key: e.value.name.decode() for e in plane.event_metadata}
        moved = any(own_times(plane, e) for line in plane.lines for e in line.events)
        for line in plane.lines:
            stats += sum(len(e.stats) for e in line.events)
            for e in line.events:
                place = (None, None) if moved else (e.offset_ps + line.timestamp_ns * 1000, e.duration_ps)
                events[line.name.decode(), *place] += 1
            assert {e.metadata_id for e in line.events} <= set(names)
    on_devices = {o["line"] for o in got.rows["ops"] if o["device"] is not None} if path == TPU else set()
    assert events == Counter(
        (e["line"], *((None, None) if e["line"] in on_devices else (e["start_ps"], e["dur_ps"]))) for e in got.events()
    )
    assert len(got.rows["event_stats"]) == stats
    # The GPU's `memory_bandwidth` is half of what an MI300X has (5.3 TB/s), so one operation beats it.
    assert [lost.what for lost in got.lost] == ([] if path == TPU else ["rates of operations"])


@needs_traces
def test_tpu_operations_stand_at_the_times_that_the_device_measured():
    space = XSpace.FromString(TPU.read_bytes())
    got = read(TPU)
    for plane in space.planes:
        if not plane.name.startswith(b"/device:TPU"):
            continue
        device = int(plane.name.split(b":")[-1])
        (line,) = (x for x in plane.lines if x.name == b"XLA Ops")
        own = [own_times(plane, e) for e in line.events]
        ours = [e for e in got.events() if e["line"] == "XLA Ops" and e["device"] == device]
        moved = {e["start_ps"] - offset for e, (offset, _) in zip(ours, own, strict=True)}
        assert len(moved) == 1 and abs(moved.pop()) < 1e9  # moved as a whole, by less than a millisecond
        assert [e["dur_ps"] for e in ours] == [dur for _, dur in own]
        by_start = sorted(ours, key=lambda e: e["start_ps"])
        ends = [e["start_ps"] + e["dur_ps"] for e in by_start]
        assert all(end <= e["start_ps"] for end, e in zip(ends, by_start[1:], strict=False))  # one after another
        runs = [e for e in got.events() if e["line"] == "XLA Modules" and e["device"] == device]
        inside = sum(any(r["start_ps"] <= e["start_ps"] < r["start_ps"] + r["dur_ps"] for r in runs) for e in ours[::7])
        assert inside == len(ours[::7])  # program runs went with them
    seconds = {}
    for o in got.ops(role="compute"):
        seconds[o["op"]] = seconds.get(o["op"], 0) + o["total_ns"] / 1e9
    assert seconds["copy-done.2"] == pytest.approx(77.64, abs=0.005)  # 87.96 by the host's times
    assert seconds["copy-done.4"] == pytest.approx(77.77, abs=0.005)  # 70.54
    assert got.facts["operation_times"] == "as the devices measured them"


@needs_traces
def test_against_jax_profile_data():
    profile = pytest.importorskip("jax.profiler").ProfileData.from_file(str(TPU))
    theirs = defaultdict(Counter)
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                took = dict(event.stats).get("device_duration_ps", event.duration_ns * 1000)
                theirs[line.name][event.name.split(" = ")[0].lstrip("%"), int(took) // 1000] += 1
    beside = ("XLA Modules", "Async XLA Ops", "XLA TraceMe")  # moved back as the operations were: see the test above
    theirs = {line: found for line, found in theirs.items() if line not in beside}
    ours = defaultdict(Counter)
    for event in read(TPU).events():
        if event["line"] in beside:
            continue
        ours[event["line"]][(event["op"] or "").split(" = ")[0].lstrip("%"), event["dur_ps"] // 1000] += 1
    assert ours == {line: found for line, found in theirs.items() if found}


@needs_traces
def test_tpu_v6e():
    got = read(TPU)
    capture = got.rows["captures"][0]
    assert capture | {"devices": 4, "device_type": "TPU v6 Lite", "peak_flops_per_s": 918e12} == capture
    assert capture["peak_hbm_bytes_per_s"] == pytest.approx(1637.993152512e9)
    assert 98 < (capture["stop_ns"] - capture["start_ns"]) / 1e9 < 99
    assert (
        got.facts | {"chip": "TPU v6 Lite", "chips": 8} == got.facts
    )  # four here, and groups of two with the other host
    assert {m["name"] for m in got.rows["modules"]} == {
        "jit__psum",
        "jit_broadcast_in_dim",
        "jit_f",
        "jit_convert_element_type",
    }
    collectives = got.rows["collectives"]
    assert len(collectives) == 12
    for row in collectives:
        assert (row["op"], row["kind"], row["dtype"], row["bytes"]) == ("all-reduce", "all-reduce", "f32", 5 * 2**30)
        assert row["rank"] == row["device"] + 4
        assert row["group"] == f"{row['device']},{row['rank']}"
        assert 0.121e9 < row["end_ns"] - row["start_ns"] < 0.122e9
    for seq in range(3):  # the four chips of the host run each in step
        starts = [c["start_ns"] for c in collectives if c["seq"] == seq]
        assert len(starts) == 4 and max(starts) - min(starts) < 10_000
    fusions = got.ops(role="compute", op="broadcast_add_fusion.1")
    assert len(fusions) == 4
    for fusion in fusions:
        assert fusion["flops"] == 5 * 2**28 and fusion["bytes"] == 10 * 2**30 and fusion["count"] == 100
        assert fusion["source"].endswith("host_offload_stress_test.py:29")
        assert 0.7 < fusion["bytes"] / (fusion["total_ns"] / fusion["count"]) / 1638 < 1  # bound by HBM
    assert {o["role"] for o in got.rows["ops"]} == {"compute", "async", "module", "other", "host"}
    assert {o["category"] for o in got.ops(role="compute")} >= {"copy", "fusion", "collective", "data-movement"}
    copies = got.ops(role="async")
    assert copies and all(o["category"] == "copy" and o["op"].startswith("copy-start") for o in copies)
    assert {m["kind"] for m in got.rows["memory"]} >= {"bytes_in_use", "peak_bytes_in_use"}


@needs_traces
def test_busy_time_of_each_tpu_stays_below_its_span():
    got = read(TPU)
    for device in range(4):
        ops = [o for o in got.ops(role="compute") if o["device"] == device]
        runs = [o for o in got.ops(role="module") if o["device"] == device]
        busy, ran = sum(o["self_ns"] for o in ops), sum(o["total_ns"] for o in runs)
        assert 0.9 * ran < busy <= ran * 1.001


@needs_traces
def test_mi300x():
    got = read(GPU)
    capture = got.rows["captures"][0]
    assert capture | {"host": "tw003", "devices": 8, "device_type": "MI300X"} == capture
    (conv,) = got.rows["matmuls"]
    # bf16[1,16,32,60,104] with kernel [5120,16,1,2,2], padded to [1,5120,34,31,53]: as a product 55862 x 64 x 5120
    assert (conv["m"], conv["k"], conv["n"], conv["batch"], conv["dtype"]) == (34 * 31 * 53, 64, 5120, 1, "bf16")
    kernels = [o for o in got.ops(op="cudnn-conv.1") if o["role"] == "compute"]
    assert {o["device"] for o in kernels} == set(range(8))
    for device in range(8):
        costs = [o["flops"] for o in kernels if o["device"] == device and o["flops"]]
        assert len(costs) == 1  # Im3d2Col and the product are two kernels of one convolution; its cost counts once
        assert costs == [2 * 16 * 5120 * 32 * 60 * 104]  # with stride 2 each input meets one place of the kernel
    names = {s["text_value"] for s in got.rows["op_stats"] if s["name"] == "kernel"}
    assert any("Im3d2Col" in n for n in names) and any(n.startswith("Cijk_") for n in names)
    copies = [o for o in got.rows["ops"] if o["device"] is not None and "rocclr_copy" in o["op"]]
    assert copies and {(o["category"], o["role"]) for o in copies} == {("copy", "compute")}


@needs_traces
def test_a_mangled_trace_is_refused_with_the_cause():
    source = Source(MANGLED, MANGLED.name)
    assert xplane.sniff(source) >= 0.9
    with pytest.raises(InputError, match=r"U\+FFFD .* first at byte 1: a text filter"):
        Got(source)


@pytest.mark.skipif(not PROGRAMS, reason="no TPU programs beside the project")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name.split(".hlo")[0])
def test_tpu_programs(path):
    jax = pytest.importorskip("jax")
    from jaxlib import _hlo, _jax

    text = gzip.decompress(path.read_bytes()).decode()
    parsed = _hlo.hlo_module_from_text(text)
    theirs = _jax.hlo_module_cost_analysis(jax.devices()[0].client, parsed)
    module = analyse(hlo_proto(parsed.as_serialized_hlo_module_proto()))
    assert module.flops == pytest.approx(
        theirs["flops"], rel=1e-4
    )  # XLA counts one reduce-window of softmax as nothing
    assert all(m.product.kind == "matmul" for m in module.matmuls)
    products = sum(m.product.flops * m.count for m in module.matmuls)
    assert 0.98 * module.flops < products <= module.flops
    for m in module.matmuls:
        assert m.product.flops == 2 * m.product.m * m.product.k * m.product.n * m.product.batch
    found = 0
    for line in text.splitlines():
        line = line.strip().removeprefix("ROOT ")
        if said := collective_of_text(line):
            kept = module.operations[line.split(" = ")[0].lstrip("%")].collective
            assert (said.kind, said.part, said.groups) == (kept.kind, kept.part, kept.groups)
            found += 1
    wrapping = ("async-start", "async-done")  # printed as `call-start`: see test_tpu_collectives
    assert found == sum(o.collective is not None and o.opcode not in wrapping for o in module.operations.values()) > 0
