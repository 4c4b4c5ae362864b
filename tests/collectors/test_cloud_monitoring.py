"""Time series of Cloud Monitoring: what each becomes, in which order, of which chip of which host."""

import gzip
import json
from datetime import UTC, datetime

import pytest

from collectors.device import cloud_monitoring
from errors import InputError
from tests.collectors.reading import read, source_of

START = 1_767_225_600  # 2026-01-01, s
S = 1_000_000_000
GIB = 1 << 30


def moment(second):
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def points(values, key="doubleValue", every=60, taken=0):
    """Newest first; the first value is that of START + `every`. `taken`: seconds of an interval."""
    made = []
    for n, value in enumerate(values, 1):
        end = START + n * every
        typed = str(value) if key == "int64Value" else value
        made.append({"interval": {"startTime": moment(end - taken), "endTime": moment(end)}, "value": {key: typed}})
    return made[::-1]


def series(metric, made, labels=None, resource=None, unit=None, kind="GAUGE", **more):
    told = {
        "metric": {"labels": labels or {}, "type": metric},
        "resource": {"type": "k8s_node", "labels": resource or {}},
    }
    told |= {"metricKind": kind, "valueType": "DOUBLE", "points": made, **more}
    return told | ({"unit": unit} if unit else {})


def chip(metric, made, host="node-a", number=0, prefix="kubernetes.io/node/accelerator/", **more):
    labels = {"accelerator_id": f"{4242 if host == 'node-a' else 4343}-{number}", "make": "cloud-tpu"}
    labels |= {"model": "tpu-v5-lite-podslice", "tpu_topology": "2x4"}
    return series(prefix + metric, made, labels, {"node_name": host, "cluster_name": "c"}, **more)


def two_hosts(hosts=("node-a", "node-b"), chips=4, minutes=3):
    """Duty cycle, TensorCore and memory of the chips of some hosts."""
    made = []
    for host in hosts:
        for n in range(chips):
            busy = [90 + n - minute for minute in range(minutes)]
            used = [(n + 1) * GIB + minute for minute in range(minutes)]
            made += [
                chip("duty_cycle", points(busy, "int64Value"), host, n, unit="%"),
                chip("tensorcore_utilization", points([b / 2 for b in busy]), host, n, unit="percent"),
                chip("memory_used", points(used, "int64Value"), host, n, unit="By"),
                chip("memory_total", points([16 * GIB] * minutes, "int64Value"), host, n, unit="By"),
            ]
    return made


TWO = json.dumps({"timeSeries": two_hosts(), "unit": "%"}, indent=2)
BARE = json.dumps([*two_hosts(("node-a",), 1), series("kubernetes.io/node/cpu/total_cores", points([8]), unit="{cpu}")])
VALID = [TWO.encode(), BARE.encode()]


def told(tmp_path, made, name="metrics.json"):
    data = made if isinstance(made, str | bytes) else json.dumps({"timeSeries": made})
    source = source_of(tmp_path, data, name)
    assert cloud_monitoring.sniff(source) == 0.95
    return read(cloud_monitoring, source)


def samples(got, name):
    return [(r["ts_ns"] / S - START, r["value"], r["unit"]) for r in got.rows.get("scalars", []) if r["name"] == name]


def test_chips_of_two_hosts(tmp_path):
    got = told(tmp_path, TWO)
    assert samples(got, 'TPU 2 duty cycle{host="node-b"}') == [(60, 92, "%"), (120, 91, "%"), (180, 90, "%")]
    assert samples(got, 'TPU 0 TensorCore utilization{host="node-a"}') == [
        (60, 45, "%"),
        (120, 44.5, "%"),
        (180, 44, "%"),
    ]
    assert len(got.rows["scalars"]) == 2 * 4 * 2 * 3
    memory = [(r["host"], r["device"], r["kind"], r["bytes"]) for r in got.rows["memory"]]
    assert len(memory) == 2 * 4 * 2 * 3 and ("node-b", 3, "bytes_in_use", 4 * GIB + 2) in memory
    assert ("node-a", 1, "bytes_limit", 16 * GIB) in memory
    assert got.facts == {"chip": "tpu-v5-lite-podslice"} and not got.lost


@pytest.mark.parametrize("shape", ["pages", "lines", "bare", "joined", "reversed", "underscores", "packed", "marked"])
def test_the_same_in_every_shape(tmp_path, shape):
    made = two_hosts()
    match shape:
        case "pages":
            data = "".join(json.dumps({"timeSeries": made[n : n + 5], "nextPageToken": "x"}) for n in range(0, 32, 5))
        case "lines":
            data = "".join(json.dumps(one) + "\r\n" for one in made)
        case "bare":
            data = json.dumps(made)
        case "joined":  # two listings that overlap
            data = json.dumps(made[:20]) + "\n" + json.dumps(made[10:])
        case "reversed":
            data = json.dumps([{**dict(reversed(one.items())), "points": one["points"][::-1]} for one in made[::-1]])
        case "underscores":
            data = json.dumps({"time_series": made})
            for word in ("startTime", "endTime", "doubleValue", "int64Value", "metricKind", "valueType"):
                data = data.replace(word, "".join(f"_{c.lower()}" if c.isupper() else c for c in word))
        case "packed":
            data = gzip.compress(json.dumps(made).encode())
        case "marked":
            data = b"\xef\xbb\xbf" + json.dumps(made).encode()
    got, usual = told(tmp_path, data), told(tmp_path, TWO)
    for table in ("scalars", "memory"):
        assert sorted(map(str, got.rows[table])) == sorted(map(str, usual.rows[table]))
    assert got.facts == usual.facts and not got.lost


def test_what_a_node_and_its_container_tell_is_told_once(tmp_path):
    node = chip("duty_cycle", points([50, 60], "int64Value"), unit="%")
    container = chip("duty_cycle", points([50, 60, 70], "int64Value"), prefix="kubernetes.io/container/accelerator/")
    container["resource"] = {"type": "k8s_container", "labels": {"pod_name": "train-0", "container_name": "jax"}}
    for made in ([node, container], [container, node]):
        got = told(tmp_path, made)
        assert samples(got, 'TPU 0 duty cycle{host="node-a"}') == [(60, 50, "%"), (120, 60, "%"), (180, 70, "%")]
        assert len(got.rows["scalars"]) == 3 and not got.lost
    alone = told(tmp_path, [container])
    assert alone.column("scalars", "name") == ['TPU 0 duty cycle{host="train-0"}'] * 3
    named = told(tmp_path, [container | {"metadata": {"systemLabels": {"node_name": "node-a"}}}])
    assert named.column("scalars", "name") == ['TPU 0 duty cycle{host="node-a"}'] * 3


def test_ids_that_every_host_has_tell_no_chip_from_anothers(tmp_path):
    pod = chip("duty_cycle", points([20]), prefix="kubernetes.io/container/accelerator/")
    pod["resource"]["labels"] = {"pod_name": "train-0"}
    node = chip("duty_cycle", points([80]))
    for one in (pod, node):
        one["metric"]["labels"]["accelerator_id"] = "0"
    got = told(tmp_path, [pod, node])
    assert sorted(got.column("scalars", "name")) == [
        'TPU 0 duty cycle{host="node-a"}',
        'TPU 0 duty cycle{host="train-0"}',
    ]


def test_another_value_at_the_same_time_is_lost_by_name(tmp_path):
    got = told(tmp_path, [chip("duty_cycle", points([50, 60])), chip("duty_cycle", points([50, 61]))])
    assert samples(got, 'TPU 0 duty cycle{host="node-a"}') == [(60, 50, "%"), (120, 60, "%")]
    assert [lost.what for lost in got.lost] == ["points (1)"] and "another value" in got.reasons()


def test_gpus_are_numbered_by_what_tells_them_apart(tmp_path):
    uuids = ["GPU-b0a1-77", "GPU-aa01-77", "GPU-0c0c-77"]
    made = [
        series(
            "kubernetes.io/container/accelerator/duty_cycle",
            points([n]),
            {"accelerator_id": uuid, "make": "nvidia", "model": "nvidia-l4"},
            {"pod_name": "p"},
        )
        for n, uuid in enumerate(uuids)
    ]
    got = told(tmp_path, made)
    assert [samples(got, f'GPU {n} duty cycle{{host="p"}}')[0][1] for n in range(3)] == [2, 1, 0]
    assert got.facts == {"chip": "nvidia-l4"} and "numbered in the order" in got.reasons()


def test_units(tmp_path):
    worker, node = {"zone": "z", "node_id": "pod", "worker_id": "3"}, {"node_name": "n"}
    used, free = ({"gpu_number": "1", "memory_state": state} for state in ("used", "free"))
    tpu, gpu, vm = "tpu.googleapis.com/", "agent.googleapis.com/gpu/", {"instance_name": "vm"}
    duty, tensor = "kubernetes.io/node/accelerator/duty_cycle", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE/gauge"
    sent = points(["600"], "int64Value", taken=60)
    made = [
        series(f"{tpu}cpu/utilization", points([12.5]), {"core": "7"}, worker, "%"),
        series(f"{tpu}tpu/mxu/utilization", points([33]), {"core": "1"}, worker, "%"),
        series(f"{tpu}network/sent_bytes_count", sent, {}, worker, "By", "DELTA"),
        series("compute.googleapis.com/instance/cpu/utilization", points([0.25]), vm, {}, "10^2.%"),
        series(f"{gpu}memory/bytes_used", points([5.0]), used, {"instance_id": "9"}, "By"),
        series(f"{gpu}memory/bytes_used", points([7.0]), free, {"instance_id": "9"}, "By"),
        series(f"prometheus.googleapis.com/{tensor}", points([0.5]), {"gpu": "3", "Hostname": "h"}),
        series(duty, points([0.5]), {"accelerator_id": "2", "make": "nvidia"}, node, "1"),
        series("prometheus.googleapis.com/DCGM_FI_DEV_GPU_UTIL/gauge", points([91]), {"gpu": "4"}, node, "1"),
        series(duty, points([40]), {}, node),
    ]
    got = told(tmp_path, made)
    values = {r["name"]: (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values == {
        'cpu/utilization{host="pod-w-3",core="7"}': (12.5, "%"),
        'TPU 1 MXU utilization{host="pod-w-3"}': (33, "%"),
        'network/sent_bytes_count{host="pod-w-3"}': (10, "B/s"),
        'instance/cpu/utilization{host="vm",instance_name="vm"}': (25, "%"),
        'GPU 3 tensor pipe active{host="h"}': (50, "%"),
        'GPU 2 duty cycle{host="n"}': (50, "%"),
        'GPU 4 any kernel active{host="n"}': (91, "%"),
        'duty cycle{host="n"}': (40, "%"),
    }
    assert [(r["host"], r["device"], r["bytes"]) for r in got.rows["memory"]] == [("9", 1, 5)]
    assert "not in use" in got.reasons()


def test_the_unit_of_a_page_is_that_of_its_series(tmp_path):
    """It stands behind them; one of their own counts before it."""
    cpu = series("compute.googleapis.com/instance/cpu/utilization", points([0.5]), {"instance_name": "vm"})
    own = series("compute.googleapis.com/instance/uptime", points([7]), {"instance_name": "vm"}, unit="s")
    pages = [{"timeSeries": [cpu, own], "unit": "10^2.%"}]
    pages.append({"timeSeries": [chip("duty_cycle", points([0.25]))], "unit": "1"})
    pages.append({"unit": "{not_a_unit}", "timeSeries": [chip("tensorcore_utilization", points([33]))]})
    got = told(tmp_path, "".join(map(json.dumps, pages)))
    assert {r["name"].partition("{")[0]: (r["value"], r["unit"]) for r in got.rows["scalars"]} == {
        "instance/cpu/utilization": (50, "%"),
        "instance/uptime": (7, "s"),
        "TPU 0 duty cycle": (25, "%"),
        "TPU 0 TensorCore utilization": (33, "%"),
    }


def test_distributions(tmp_path):
    spread = [{"count": "4", "mean": 250.5, "bucketCounts": ["0", "4"]}, {"count": "0"}]
    latency = series(
        "kubernetes.io/container/multislice/network/dcn_transfer_latencies",
        points(spread, "distributionValue", taken=60),
        {"buffer_size": "8MB+", "make": "cloud-tpu"},
        {"pod_name": "p", "container_name": "jax"},
        "us",
        "DELTA",
    )
    got = told(tmp_path, [latency])
    of = '{host="p",buffer_size="8MB+",container="jax",make="cloud-tpu"}'
    assert samples(got, f"container/multislice/network/dcn_transfer_latencies mean{of}") == [(60, 250.5, "us")]
    assert samples(got, f"container/multislice/network/dcn_transfer_latencies count{of}") == [(60, 4, None)]
    assert "buckets" in got.reasons() and "no finite number" in got.reasons()


def test_the_limit_holds_until_it_is_told_anew(tmp_path):
    used, total = points([1, 2, 3, 4], "int64Value"), points([10, 20], "int64Value", every=120)
    got = told(tmp_path, [chip("memory_used", used), chip("memory_total", total)])
    limits = [r["bytes"] for r in got.rows["memory"] if r["kind"] == "bytes_limit"]
    assert limits == [10, 10, 10, 20]
    alone = told(tmp_path, [chip("memory_total", total)])
    assert [(r["kind"], r["bytes"]) for r in alone.rows["memory"]] == [("bytes_limit", 10), ("bytes_limit", 20)]


def test_values_that_are_none(tmp_path):
    made = points([1, "NaN", 2, float("nan"), -3, 250, True, [], 10**400])
    made += [{"value": {"doubleValue": 1}}, {"interval": {"endTime": "soon"}, "value": {"doubleValue": 1}}, 5, None]
    got = told(tmp_path, [chip("duty_cycle", made)])
    assert [value for _, value, _ in samples(got, 'TPU 0 duty cycle{host="node-a"}')] == [1, 2]
    assert "no finite number" in got.reasons() and "above 100 %" in got.reasons() and "no time" in got.reasons()


def test_a_file_that_is_cut_off_keeps_what_came_before(tmp_path):
    cut = TWO[: TWO.index("90") + len(TWO) // 2]
    got = told(tmp_path, cut)
    assert 20 < len(got.rows["scalars"]) < 48 and "end in the middle" in got.reasons()
    packed = gzip.compress(TWO.encode())
    assert len(told(tmp_path, packed[: len(packed) * 2 // 3]).rows["scalars"]) > 10
    made = json.dumps(two_hosts(("node-a",), 2))
    broken = made.replace('"doubleValue": 45.0', '"doubleValue": 45.0.0', 1)
    assert 8 <= len(told(tmp_path, broken).rows["scalars"]) < 12


def test_hostile_labels(tmp_path):
    one = chip("duty_cycle", points([5]))
    one["resource"]["labels"]["node_name"] = 'a"b{\n' + "x" * 1_000_000
    one["metric"]["labels"] |= {"model": 7, "tpu_topology": ["x"], "other": "\ud800"}
    [row] = told(tmp_path, [one]).rows["scalars"]
    assert row["name"].startswith('TPU 0 duty cycle{host="a_b_xxx') and len(row["name"]) < 300


@pytest.mark.parametrize("made", [[], [chip("duty_cycle", [])], [{"metric": 5, "points": points([1])}]])
def test_a_file_without_points_is_refused_with_what_to_do(tmp_path, made):
    data = json.dumps({"timeSeries": made, "points": None, "metric": {"type": "a.com/b"}})
    with pytest.raises(InputError, match="no point of a time series") as told_so:
        read(cloud_monitoring, source_of(tmp_path, data, "metrics.json"))
    assert "FULL" in str(told_so.value)


@pytest.mark.parametrize(
    "data",
    [
        '{"metric": "loss", "points": [1]}',
        '[{"metric": {"type": "loss"}, "points": []}]',
        '{"status": "success", "data": {"result": [{"metric": {"__name__": "up"}, "values": []}]}}',
        '{"traceEvents": [{"name": "metric", "ph": "X"}]}',
        '[{"protoPayload": {"metric": 1}, "logName": "projects/p/logs/tpu.googleapis.com%2Fx"}]',
        "metric points type",
    ],
)
def test_what_others_write_is_not_claimed(tmp_path, data):
    assert cloud_monitoring.sniff(source_of(tmp_path, data)) == 0
