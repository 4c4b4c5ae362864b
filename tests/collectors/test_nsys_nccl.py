"""What Nsight tells beside events: metrics of GPUs, and the payloads of NCCL's calls."""

import pytest

from collectors.device import nsys
from tests.collectors.nsys_exports import BASE, COLLECTIVE, INIT, Export, everything, payload
from tests.collectors.reading import read, source_of
from tests.collectors.test_nsys import ops


@pytest.fixture
def got(tmp_path):
    def reading(export: Export, name="report1.sqlite"):
        return read(nsys, source_of(tmp_path, export.data(tmp_path), name))

    return reading


def test_metrics_of_gpus_are_told_with_their_unit_and_gpu(got):
    export = everything()
    export.put("TARGET_INFO_GPU_METRICS", (0x102, 1, "GPU Metrics", 7, "DRAM Read Bandwidth [Throughput %]"))
    export.put("TARGET_INFO_GPU_METRICS", (0x102, 1, "GPU Metrics", 8, "GPC Clock Frequency [MHz]"))
    export.put("TARGET_INFO_GPU_METRICS", (0x102, 1, "GPU Metrics", 9, "Something bare"))
    for metric, value in ((7, 31), (8, 1980), (9, 5), (10, 6)):
        export.put("GPU_METRICS", (0, 1_000_000 + metric, 0x102, metric, value))
    export.put("GPU_METRICS", (0, None, 0x102, 7, 1), (0, 5, 0x102, 7, "many"))
    result = got(export)
    told = [(s["name"], s["value"], s["unit"], s["ts_ns"] - BASE) for s in result.rows["scalars"]]
    assert told[:3] == [("GPU 0 SMs Active", 40.0 + n, "%", 1_000_000 + n) for n in range(3)]
    assert told[6:] == [
        ("GPU 2 DRAM Read Bandwidth", 31.0, "%", 1_000_007),
        ("GPU 2 GPC Clock Frequency", 1980.0, "MHz", 1_000_008),
        ("GPU 2 Something bare", 5.0, None, 1_000_009),
        ("GPU 2 metric 10", 6.0, None, 1_000_010),
    ]
    assert "2 samples of GPU metrics: their time or value is no number" in result.reasons()


def collectives(result):
    return [(c["kind"], c["bytes"], c["op"], c["group"]) for c in result.rows["collectives"]]


def test_messages_of_nccl_are_sized_by_its_payloads(got):
    """4,096 bytes in a communicator of two ranks, as the calls and the one that made it tell."""
    result = got(everything())
    assert collectives(result) == [("all-reduce", 4096.0, "nccl:all-reduce 0x4d", "?,?")] * 2
    assert {o["module"] for o in ops(result, category="collective")} == {"nccl:all_reduce"}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (["ncclAllReduce"], ("all-reduce", 4096.0)),
        (["ncclReduceScatter"], ("reduce-scatter", 8192.0)),
        (["ncclAllGather"], ("all-gather", 4096.0)),
        (["ncclAlltoAll"], ("all-to-all", 8192.0)),
        (["ncclAllReduce", "ncclAllReduce"], ("all-reduce", None)),
        ([], ("all-reduce", None)),
    ],
)
def test_the_end_of_a_group_launches_for_its_one_call(got, calls, expected):
    """PyTorch makes each call in a group, so that its kernel is launched by ncclGroupEnd."""
    export = Export().nccl_fields()
    export.range("ncclCommInitRank", 10, 20, payload=payload(INIT, "<Qiii", 77, 2, 1, 0))
    export.range("ncclGroupStart", 100, 110)
    for n, call in enumerate(calls):
        export.range(call, 120 + 20 * n, 130 + 20 * n, payload=payload(COLLECTIVE, "<QQ", 77, 4096))
    export.range("ncclGroupEnd", 200, 400)
    name = "ncclDevKernel_AllReduce_Sum_f32" if expected[1] is None else "ncclDevKernel_Generic_1"
    result = got(export.ran(f"{name}(ncclArgs)", 350, 1000, 1))
    (told,) = collectives(result)
    assert told[:2] == expected


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 31, payload(COLLECTIVE, "<Q", 77), payload(9, "<QQ", 77, 1), payload(INIT, "<QQ", 1, 2)[:-4]],
)
def test_a_payload_that_is_none_tells_nothing(got, data):
    export = Export().nccl_fields().range("ncclAllReduce", 100, 400, payload=data)
    export.ran("ncclDevKernel_AllReduce_Sum_f32(ncclArgs)", 350, 1000, 1)
    assert [c["bytes"] for c in got(export).rows["collectives"]] == [None]
