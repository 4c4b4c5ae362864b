"""What NVIDIA's DCGM exporter tells of GPUs, alone and beside an engine's metrics."""

import pytest

from analyzers.device.counters import counters, notes
from collectors.device import dcgm
from collectors.ingesting.recognise import recognise
from collectors.ingesting.unpack import SafeSource
from collectors.serving import prometheus
from errors import InputError
from runs.tables import MemoryTables
from tests.collectors.reading import read, source_of
from tests.collectors.scrapes import WHO

S, MIB = 1_000_000_000, 1 << 20
T = 1_700_000_000


def sample(field, value, gpu=0, host="node-1", family="DCGM_FI_", **labels):
    said = {"gpu": gpu, "UUID": f"GPU-{gpu}", "device": f"nvidia{gpu}", "modelName": "NVIDIA L4", "Hostname": host}
    told = ",".join(f'{key}="{value}"' for key, value in (said | labels).items() if value is not None)
    return f"{family}{field}{{{told}}} {value}\n"


def scrapes(*texts, step=15):
    return "".join(f"# scraped_at {T + n * step}\n{text}" for n, text in enumerate(texts))


GPUS = scrapes(
    sample("PROF_SM_ACTIVE", 0.25, pod="a")
    + sample("DEV_FB_USED", 7)
    + sample("DEV_FB_FREE", 9)
    + sample("DEV_XID_ERRORS", 0),
    sample("PROF_SM_ACTIVE", 0.75, GPU_I_ID=1) + sample("DEV_XID_ERRORS", 79) + sample("DEV_CLOCKS_EVENT_REASONS", 68),
    sample("XID_ERRORS_COUNT", 1, family="DCGM_EXP_", xid=94) + sample("DEV_ECC_DBE_VOL_TOTAL", 3, host="b", gpu=1),
)


def told(tmp_path, text):
    return read(dcgm, source_of(tmp_path, text, "gpus.prom"))


def named(got):
    return {row["name"]: (row["value"], row["unit"]) for row in got.rows["scalars"]}


def causes(got):
    return [
        (r["ts_ns"] and r["ts_ns"] // S - T, r["host"], r["device"], r["cause"]) for r in got.rows.get("evidence", [])
    ]


def test_values_with_their_units(tmp_path):
    text = sample("PROF_SM_ACTIVE", 0.156205) + sample("DEV_GPU_UTIL", 91) + sample("DEV_POWER_USAGE", 68.244)
    text += (
        sample("DEV_TOTAL_ENERGY_CONSUMPTION", 15152422938) + sample("DEV_SM_CLOCK", 660) + sample("DEV_GPU_TEMP", 74)
    )
    text += sample("PROF_PCIE_TX_BYTES", 4791810) + sample("DEV_PCIE_REPLAY_COUNTER", 3)
    text += sample("DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 2_500_000_000)
    got = told(tmp_path, scrapes(text))
    assert named(got) == {
        'GPU 0 SM active{host="node-1"}': (15.6205, "%"),
        'GPU 0 time with any kernel running{host="node-1"}': (91, "%"),
        'GPU 0 power{host="node-1"}': (68.244, "W"),
        'GPU 0 energy since the driver was loaded{host="node-1"}': (15152422.938, "J"),
        'GPU 0 SM clock{host="node-1"}': (660, "MHz"),
        'GPU 0 temperature{host="node-1"}': (74, "°C"),
        'GPU 0 PCIe sent{host="node-1"}': (4791810, "B/s"),
        'GPU 0 DEV_PCIE_REPLAY_COUNTER{host="node-1"}': (3, None),
        'GPU 0 time slowed down by the power limit{host="node-1"}': (2.5, "s"),
    }
    assert got.facts == {"chip": "NVIDIA L4"} and not got.lost
    assert set(got.column("scalars", "ts_ns")) == {T * S}


def test_memory_is_what_programs_hold_and_can_have(tmp_path):
    got = told(tmp_path, sample("DEV_FB_USED", 5120) + sample("DEV_FB_FREE", 9791) + sample("DEV_FB_RESERVED", 447))
    told_ = [(r["host"], r["device"], r["ts_ns"], r["kind"], r["bytes"]) for r in got.rows["memory"]]
    assert told_ == [
        ("node-1", 0, None, "bytes_in_use", 5120 * MIB),
        ("node-1", 0, None, "bytes_limit", (5120 + 9791) * MIB),
    ]
    alone = told(tmp_path, sample("DEV_FB_USED", 7))
    assert alone.column("memory", "kind") == ["bytes_in_use"]


@pytest.mark.parametrize("blank", ["9223372036854775792", "9.223372036854776e+18", "2147483632", "140737488355330"])
def test_marks_of_no_value_are_none(tmp_path, blank):
    got = told(tmp_path, sample("DEV_FB_USED", blank) + sample("DEV_POWER_USAGE", blank) + sample("DEV_SM_CLOCK", 5))
    assert list(named(got)) == ['GPU 0 SM clock{host="node-1"}'] and "memory" not in got.rows
    assert got.reasons().count("does not know") == 2


def test_what_cannot_be_is_told_as_lost(tmp_path):
    text = sample("PROF_SM_ACTIVE", 15.6) + sample("DEV_GPU_UTIL", 101) + sample("DEV_POWER_USAGE", -1)
    text += sample("DEV_MEMORY_TEMP", 0) + sample("DEV_SM_CLOCK", "NaN") + sample("DEV_GPU_TEMP", 30)
    got = told(tmp_path, text)
    assert list(named(got)) == ['GPU 0 temperature{host="node-1"}']
    assert len(got.lost) == 4 and "0 °C" in got.reasons()


def test_an_xid_is_evidence_when_it_comes_and_not_while_it_stands(tmp_path):
    xids = (0, 79, 79, 0, 79, 13)
    got = told(tmp_path, scrapes(*(sample("DEV_XID_ERRORS", xid, gpu=3) for xid in xids)))
    at = [(15, "node-1", 3, "accelerator"), (60, "node-1", 3, "accelerator"), (75, "node-1", 3, "software")]
    assert causes(got) == at
    assert got.rows["evidence"][0]["text"].endswith('Hostname="node-1"} 79')
    assert named(got)['GPU 3 last Xid{host="node-1"}'] == (13, None)


def test_an_xid_that_stood_before_came_nobody_knows_when(tmp_path):
    got = told(tmp_path, scrapes(*[sample("DEV_XID_ERRORS", 79)] * 3))
    assert causes(got) == [] and "stood in the first scrape" in got.reasons()


def test_a_number_that_is_no_xid_is_none(tmp_path):
    got = told(tmp_path, scrapes(sample("DEV_XID_ERRORS", 0), sample("DEV_XID_ERRORS", 1e17)))
    assert causes(got) == [] and "no driver has" in got.reasons()


def test_newer_exporters_name_the_code_in_labels(tmp_path):
    new = sample("DEV_XID_ERRORS", 94, err_code=94, err_msg="Contained ECC error")
    old = sample("DEV_XID_ERRORS", 0, err_code=0, err_msg="No Error")
    got = told(tmp_path, scrapes(old, new, old + new))
    assert causes(got) == [(15, "node-1", 0, "hbm")]


def test_xids_counted_in_a_window(tmp_path):
    def counted(count, xid=79):
        return sample("XID_ERRORS_COUNT", count, family="DCGM_EXP_", window_size_in_ms=60000, xid=xid)

    none = sample("XID_ERRORS_COUNT", 0, family="DCGM_EXP_", window_size_in_ms=60000)
    got = told(tmp_path, scrapes(counted(1), counted(1), counted(2), none, counted(1), counted(1, 154)))
    assert causes(got) == [(n, "node-1", 0, "accelerator") for n in (0, 30, 60)]
    both = scrapes(none + sample("DEV_XID_ERRORS", 0), *[counted(1) + sample("DEV_XID_ERRORS", 79)] * 3)
    assert causes(told(tmp_path, both)) == [(15, "node-1", 0, "accelerator")]


def test_newer_exporters_tell_of_an_xid_once_there_is_one(tmp_path):
    clock = sample("DEV_SM_CLOCK", 5)
    got = told(tmp_path, scrapes(clock, clock + sample("DEV_XID_ERRORS", 79, err_code=79)))
    assert causes(got) == [(15, "node-1", 0, "accelerator")] and not got.lost


def test_xids_counted_since_the_exporter_began(tmp_path):
    def total(count, xid=79):
        return sample("XID_ERRORS_TOTAL", count, family="DCGM_EXP_", xid=xid)

    clock = sample("DEV_SM_CLOCK", 5)
    steps = (total(4), total(4), total(5) + total(1, 48), clock, clock + total(1), clock + total(1))
    got = told(tmp_path, scrapes(*steps))
    assert causes(got) == [(30, "node-1", 0, "accelerator"), (30, "node-1", 0, "hbm"), (60, "node-1", 0, "accelerator")]
    assert "stood in the first scrape" in got.reasons()
    assert named(got)['GPU 0 DCGM_EXP_XID_ERRORS_TOTAL of xid 48{host="node-1"}'] == (1, None)


def test_what_a_metric_tells_of_several_things_of_a_gpu_is_kept_apart(tmp_path):
    def events(count, which):
        return sample("CLOCK_EVENTS_COUNT", count, family="DCGM_EXP_", clock_event=which, window_size_in_ms=300000)

    both = events(3, "power_cap") + events(0, "hw_thermal")
    got = told(tmp_path, scrapes(both, events(3, "power_cap") + events(2, "hw_thermal")))
    assert causes(got) == [(15, "node-1", 0, "thermal")]
    assert len(got.rows["scalars"]) == 4
    health = sample("GPU_HEALTH_STATUS", 0, family="DCGM_EXP_", health_watch="PCIE")
    health += sample("GPU_HEALTH_STATUS", 10, family="DCGM_EXP_", health_watch="NVLINK")
    values = {name.partition("{")[0]: value for name, (value, _) in named(told(tmp_path, health)).items()}
    assert values["GPU 0 DCGM_EXP_GPU_HEALTH_STATUS of health_watch NVLINK"] == 10


def test_what_each_pod_holds_of_a_shared_gpu_adds_up(tmp_path):
    """Newer exporters tell of FB_USED and GPU_UTIL what the processes of each pod do."""
    text = "".join(sample("DEV_FB_USED", n, pod=f"p{n}") + sample("DEV_GPU_UTIL", n, pod=f"p{n}") for n in (100, 20))
    got = told(tmp_path, scrapes(text))
    assert [r["bytes"] for r in got.rows["memory"]] == [120 * MIB]
    assert not any("kernel" in name for name in named(got)) and "each pod's own" in got.reasons()
    whole = told(tmp_path, scrapes(text + sample("DEV_FB_USED", 130)))
    assert [r["bytes"] for r in whole.rows["memory"]] == [130 * MIB]


def test_counters_of_faults_tell_when_they_grow(tmp_path):
    field = "DEV_ECC_DBE_VOL_TOTAL"
    got = told(tmp_path, scrapes(*(sample(field, n) for n in (2, 2, 3, 0, 1))))
    assert causes(got) == [(30, "node-1", 0, "hbm"), (60, "node-1", 0, "hbm")]


def test_what_holds_clocks_down(tmp_path):
    reasons = (0x1, 0x4, 0x44, 0x44, 0x0, 0x80)
    got = told(tmp_path, scrapes(*(sample("DEV_CLOCKS_EVENT_REASONS", r) for r in reasons)))
    assert causes(got) == [(30, "node-1", 0, "thermal"), (75, "node-1", 0, "power")]
    capped = [
        r["value"] for r in got.rows["scalars"] if r["name"] == 'GPU 0 slowed down by the power limit{host="node-1"}'
    ]
    assert capped == [0, 100, 100, 100, 0, 0]


def test_what_held_clocks_down_in_the_first_scrape_is_told_once_it_lasts(tmp_path):
    def seen(*reasons):
        return told(tmp_path, scrapes(*(sample("DEV_CLOCKS_EVENT_REASONS", r) for r in reasons)))

    assert causes(seen(0x80)) == [] and "they stood in the first scrape" in seen(0x80).reasons()
    assert causes(seen(0x80, 0x0, 0x0)) == []
    assert causes(seen(0x80, 0x80, 0x80)) == [(15, "node-1", 0, "power")]
    assert causes(seen(0x80, 0xC0)) == [(15, "node-1", 0, "thermal"), (15, "node-1", 0, "power")]
    assert causes(seen(0x80, 0x0, 0x80)) == [(30, "node-1", 0, "power")]


def test_instances_of_a_gpu_share_what_is_the_gpus(tmp_path):
    text = ""
    for n, used in ((1, 100), (2, 300)):
        mig = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": n}
        text += sample("DEV_POWER_USAGE", 200, **mig) + sample("PROF_SM_ACTIVE", n / 10, **mig)
        text += sample("DEV_FB_USED", used, **mig) + sample("DEV_FB_FREE", 1000 - used, **mig)
    got = told(tmp_path, scrapes(text))
    assert named(got)['GPU 0 power{host="node-1"}'] == (200, "W")
    assert [name for name in got.column("scalars", "name") if "power" in name] == ['GPU 0 power{host="node-1"}']
    assert named(got)['GPU 0 SM active{host="node-1",mig="1g.10gb 2"}'] == (20, "%")
    held = {r["name"]: r["bytes"] for r in got.rows["memory"] if r["kind"] == "bytes_in_use"}
    assert held == {"MIG 1g.10gb 1": 100 * MIB, "MIG 1g.10gb 2": 300 * MIB}


def test_a_shared_gpu_is_told_once(tmp_path):
    pods = ({"namespace": "ml", "pod": "b", "container": "c"}, {"namespace": "ml", "pod": "a", "container": "c"})
    text = "".join(sample("PROF_SM_ACTIVE", 0.968, **pod) + sample("DEV_FB_USED", 9, **pod) for pod in pods)
    got = told(tmp_path, scrapes(text, sample("PROF_SM_ACTIVE", 0)))
    names = got.column("scalars", "name")
    assert names.count('GPU 0 SM active{host="node-1",pod="ml/a, ml/b"}') == 1
    assert 'GPU 0 SM active{host="node-1"}' in names and len(got.rows["memory"]) == 1


def test_the_exporters_own_pod_is_nobody_who_uses_it(tmp_path):
    own = {"pod": "nvidia-dcgm-exporter-abc12", "namespace": "gpu-operator", "instance": "10.0.0.7:9400"}
    got = told(tmp_path, sample("DEV_SM_CLOCK", 5, **own, exported_pod="train-0", exported_namespace="ml"))
    assert list(named(got)) == ['GPU 0 SM clock{host="node-1",pod="ml/train-0"}']
    assert list(named(told(tmp_path, sample("DEV_SM_CLOCK", 5, **own)))) == ['GPU 0 SM clock{host="node-1"}']
    pod = sample("DEV_SM_CLOCK", 5, host="dcgm-exporter-abc12", node="gpu-4")
    assert list(named(told(tmp_path, pod))) == ['GPU 0 SM clock{host="gpu-4"}']
    address = sample("DEV_SM_CLOCK", 5, host="...", instance="10.0.0.7:9400")
    assert list(named(told(tmp_path, address))) == ['GPU 0 SM clock{host="10.0.0.7"}']


def test_hosts_number_their_gpus_from_0_each(tmp_path):
    text = sample("PROF_PIPE_TENSOR_ACTIVE", 0.1, host="a") + sample("PROF_PIPE_TENSOR_ACTIVE", 0.3, host="b")
    got = told(tmp_path, scrapes(text, text))
    columns = {key: [row[key] for row in got.rows["scalars"]] for key in got.rows["scalars"][0]}
    rows = counters(MemoryTables({"scalars": columns}))
    assert [(r["host"], r["device"], r["counter"], r["mean_share"], r["samples"]) for r in rows] == [
        ("a", 0, "tensor pipe active", 0.1, 2),
        ("b", 0, "tensor pipe active", 0.3, 2),
    ]
    assert (
        notes(rows)[0]
        == "By its own counters GPU 0 of a was in use, in the mean of 2 samples: tensor pipe active 10 %."
    )


def test_models_of_which_the_job_may_have_held_any(tmp_path):
    mixed = told(tmp_path, sample("DEV_SM_CLOCK", 5) + sample("DEV_SM_CLOCK", 5, gpu=1, modelName="Tesla T4"))
    assert not mixed.facts and "NVIDIA L4, Tesla T4" in mixed.reasons()
    assert not told(tmp_path, sample("DEV_SM_CLOCK", 5, modelName="GRID A100-10C")).facts


def test_a_series_of_no_gpu_number_is_kept_as_it_is(tmp_path):
    got = told(tmp_path, 'DCGM_FI_DEV_SM_CLOCK{UUID="GPU-x"} 5\n' + sample("DEV_SM_CLOCK", 6))
    assert {name.partition("{")[0] for name in named(got)} == {"DCGM_FI_DEV_SM_CLOCK", "GPU 0 SM clock"}


def test_beside_an_engine_both_are_read(tmp_path):
    text = f"vllm:num_requests_running{WHO} 3\n" + sample("DEV_FB_USED", 7)
    path = tmp_path / "m.prom"
    path.write_text(text)
    (tmp_path / "scratch").mkdir()
    assert recognise(SafeSource(path, "m.prom"), tmp_path / "scratch").collector is prometheus
    for reader in (prometheus, dcgm):
        got = read(reader, source_of(tmp_path, text))
        assert got.column("engine", "running") == [3] and got.column("memory", "bytes") == [7 * MIB]


def test_what_is_its_own(tmp_path):
    assert dcgm.sniff(source_of(tmp_path, sample("DEV_SM_CLOCK", 5))) == 0.93
    for other in ("DCGM_FI_DEV_SM_CLOCK is a clock\n", "# TYPE up gauge\nup 1\n", "\0" + sample("DEV_SM_CLOCK", 5), ""):
        assert dcgm.sniff(source_of(tmp_path, other)) == 0
    with pytest.raises(InputError, match="no sample"):
        told(tmp_path, "# HELP DCGM_FI_DEV_SM_CLOCK x\n")


def test_a_log_into_which_a_job_prints_a_sample_is_a_log(tmp_path):
    lines = [f"2026-03-04 10:00:{n:02d} completed step: {n}, seconds: 1.0" for n in range(20)]
    mixed = "\n".join([*lines, 'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 0', *lines])
    assert dcgm.sniff(source_of(tmp_path, mixed)) == 0
    assert (
        dcgm.sniff(source_of(tmp_path, "Wed Mar 4 10:00:00 UTC 2026\n" + 'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 0\n' * 3))
        > 0.9
    )
