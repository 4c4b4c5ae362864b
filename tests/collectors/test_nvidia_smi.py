"""What nvidia-smi writes over time; every row was written for these tests."""

from time import process_time

import pytest

from analyzers.device.power import analyze
from collectors.base import Source
from collectors.device import nvidia_smi
from errors import InputError
from runs.run import FactValue
from runs.tables import MemoryTables
from tests.collectors.reading import read, source_of

S = 1_000_000_000
T = 1_785_456_000 * S  # 2026-07-31 00:00 UTC
HEAD = (
    "timestamp, index, name, power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz], "
    "utilization.gpu [%], memory.used [MiB], memory.total [MiB], clocks_event_reasons.sw_power_cap, "
    "clocks_event_reasons.hw_thermal_slowdown, pcie.link.gen.current"
)


def row(second, index, watts, heat="Not Active", mhz="1350 MHz"):
    return (
        f"2026/07/31 00:{second // 60:02}:{second % 60:02}.500, {index}, NVIDIA L4, {watts}, 72.00 W, 61, {mhz}, "
        f"98 %, 20000 MiB, 23034 MiB, Active, {heat}, 4"
    )


QUERIED = "\n".join(
    [
        HEAD,
        *(row(5 * n, gpu, f"{70 + gpu}.25 W", "Active" if n > 2 else "Not Active") for n in range(6) for gpu in (0, 1)),
    ]
)
DMON = """#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %    MHz    MHz
 20260731   00:00:01      0    312     55      -     98     60      0      0   1593   1410
 20260731   00:00:01      1     60     34      -      0      0      0      0   1593    210
 20260731   00:00:02      0    330     56     71     99     61      0      0   1593   1395
"""


def told(tmp_path, text, name="gpu.csv"):
    source = source_of(tmp_path, text, name)
    assert nvidia_smi.sniff(source) == 0.9
    return read(nvidia_smi, source)


def values(got, name):
    return [((r["ts_ns"] - T) / S, r["value"], r["unit"]) for r in got.rows["scalars"] if r["name"] == name]


def test_a_query(tmp_path):
    got = told(tmp_path, QUERIED + "\n")
    assert values(got, "GPU 1 power") == [(0.5 + 5 * n, 71.25, "W") for n in range(6)]
    assert values(got, "GPU 0 SM clock")[0] == (0.5, 1350, "MHz")
    assert values(got, "GPU 0 temperature")[0] == (0.5, 61, "°C")
    assert [v for _, v, _ in values(got, "GPU 0 slowed down by heat (hardware)")] == [0, 0, 0, 100, 100, 100]
    assert values(got, "GPU 0 slowed down by the power limit")[0] == (0.5, 100, "%")
    assert values(got, "GPU 0 pcie.link.gen.current")[0] == (0.5, 4, None)
    first = got.rows["memory"][0]
    assert (first["device"], first["kind"], first["bytes"]) == (0, "bytes_in_use", 20000 << 20)
    assert {r["kind"] for r in got.rows["memory"]} == {"bytes_in_use", "bytes_limit"}
    assert got.facts == {"chip": "NVIDIA L4"} and [lost.reason for lost in got.lost] == [nvidia_smi.ZONELESS]


def test_what_is_not_known_is_no_number_and_a_head_may_come_again(tmp_path):
    rows = (row(0, 0, "[N/A]", mhz="[Not Supported]"), HEAD, row(5, 0, "70 W"), f"{row(9, 0, '71')}, 1", "2026/0")
    got = told(tmp_path, "\ufeff" + "\n".join([HEAD, *rows]))
    assert values(got, "GPU 0 power") == [(5.5, 70, "W")] and "rows (2)" in got.reasons()


@pytest.mark.parametrize("who", ["uuid", "pci.bus_id", None])
def test_gpus_without_an_index(tmp_path, who):
    head = ", ".join(filter(None, ("timestamp", who, "power.draw [W]")))
    rows = [
        ", ".join(filter(None, (f"2026/07/31 00:00:0{t}.000", who and f"GPU-{g}", f"{100 * g + t} W")))
        for t in range(3)
        for g in (1, 2)
    ]
    got = told(tmp_path, "\n".join([head, *rows]) + "\n")
    assert [v for _, v, _ in values(got, "GPU 0 power")] == [100, 101, 102]
    assert [v for _, v, _ in values(got, "GPU 1 power")] == [200, 201, 202]


def test_reasons_as_bits_and_older_names(tmp_path):
    text = "index, clocks_throttle_reasons.active, power.draw [W]\n0, 0x0000000000000044, 70.5\n0, 0x0, 12\n"
    got = told(tmp_path, text)
    assert [(r["name"], r["value"], r["ts_ns"]) for r in got.rows["scalars"] if "power limit" in r["name"]] == [
        ("GPU 0 slowed down by the power limit", 100, None),
        ("GPU 0 slowed down by the power limit", 0, None),
    ]


def test_what_two_fields_tell_alike_counts_once(tmp_path):
    head = "timestamp, index, power.draw.average [W], power.draw [W], clocks.sm [MHz], clocks.current.sm [MHz]"
    got = told(tmp_path, f"{head}\n2026/07/31 00:00:00.500, 0, 70.00 W, 71.00 W, 1350 MHz, 1350 MHz\n")
    assert [(r["name"], r["value"]) for r in got.rows["scalars"]] == [("GPU 0 power", 70), ("GPU 0 SM clock", 1350)]


def test_dmon(tmp_path):
    got = told(tmp_path, DMON, "dmon.log")
    assert values(got, "GPU 0 power") == [(1, 312, "W"), (2, 330, "W")]
    assert values(got, "GPU 0 memory temperature") == [(2, 71, "°C")]
    assert values(got, "GPU 1 SM clock") == [(1, 210, "MHz")]
    csv = DMON.replace("#Date       Time        gpu", "#Date, Time, gpu").splitlines()
    csv = [", ".join(line.split()).replace("#Date,,", "#Date,").replace(",,", ",") for line in csv]
    assert values(told(tmp_path, "\n".join(csv) + "\n"), "GPU 0 power") == [(1, 312, "W"), (2, 330, "W")]


def test_its_power_is_answered(tmp_path):
    got = told(tmp_path, QUERIED + "\n")
    columns = {name: [r[name] for r in got.rows["scalars"]] for name in ("ts_ns", "name", "value", "unit", "source")}
    facts = {"chip": FactValue("NVIDIA L4", "declared", "test")}
    found = analyze(MemoryTables({"scalars": columns}), facts, {"usd_per_kwh": None})
    assert found.chips == 2 and found.energy_j == pytest.approx((70.25 + 71.25) * 25) and found.limit_watts == 72
    assert {one.by for one in found.slowed or ()} == {"heat (hardware)", "the power limit"}


@pytest.mark.parametrize(
    "text",
    [
        "timestamp, name\n1, 2\n",
        "index, loss\n1, 2\n",
        "a, b\n",
        "# gpu\n",
        "# a comment\n",
        "timestamp,input_tokens,output_tokens\n1,2,3\n",
        "timestamp, name, mem\n1, a, 2\n",  # words of dmon
        "index, name, sm\n1, a, 2\n",
    ],
)
def test_what_is_none_of_its_logs(tmp_path, text):
    assert nvidia_smi.sniff(source_of(tmp_path, text)) == 0


def test_a_head_alone(tmp_path):
    with pytest.raises(InputError, match="no number of a GPU"):
        told(tmp_path, HEAD + "\n")


@pytest.mark.parametrize("part", ["a, ", "# gpu ", "# gpu pwr ", "# Date Time gpu a ", "timestamp, index, ", "[ "])
def test_a_long_line_takes_no_time(tmp_path, part):
    began = process_time()
    source: Source = source_of(tmp_path, part * 200_000)
    nvidia_smi.sniff(source)
    with pytest.raises(InputError):
        read(nvidia_smi, source)
    assert process_time() - began < 5
