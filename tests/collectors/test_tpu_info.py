"""What tpu-info prints, and memory statistics of devices."""

import json

import pytest

from collectors.base import Rows, Source
from collectors.device import tpu_info
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
GIB = 1 << 30
TABLES = """Libtpu version: 0.0.19
Accelerator type: v6e

TPU Chips

| Chip        | Type         | Devices | PID  |
|-------------|--------------|---------|------|
| /dev/vfio/0 | TPU v6e chip | 1       | 1022 |
| /dev/vfio/1 | TPU v6e chip | 1       | 1022 |

TPU Runtime Utilization

| Chip | HBM Usage (GiB)       | Duty cycle |
|------|-----------------------|------------|
| 8    | 17.25 GiB / 31.25 GiB |    100.00% |
| 9    | 9.50 GiB / 31.25 GiB  |     87.50% |

TensorCore Utilization

| Core ID | TensorCore Utilization |
|---------|------------------------|
| 0       | 15.17%                 |

TPU Buffer Transfer Latency

| Buffer Size | P50         | P999        |
|-------------|-------------|-------------|
| 8MB+        | 18264.03 us | 53997.32 us |

TPU gRPC TCP Delivery Rate

| P50           | P90 |
|---------------|-----|
| 12305.96 Mbps | N/A |
"""
BOXED = """TPU Runtime Utilization
┏━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
┃ Device ┃ Memory usage          ┃ Duty cycle ┃
┡━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
│ 0      │ 0.50 GiB / 31.25 GiB  │      0.00% │
└────────┴───────────────────────┴────────────┘
"""


def told(tmp_path, text):
    return read(tpu_info, source_of(tmp_path, text, "tpu.txt"))


def memory(got) -> list[tuple]:
    return [(r["device"], r["kind"], r["bytes"], r["ts_ns"]) for r in got.rows["memory"]]


def scalars(got) -> dict:
    return {r["name"]: (r["value"], r["unit"]) for r in got.rows.get("scalars", [])}


def test_one_snapshot(tmp_path):
    got = told(tmp_path, TABLES)
    assert memory(got) == [
        (8, "bytes_in_use", round(17.25 * GIB), None),
        (8, "bytes_limit", round(31.25 * GIB), None),
        (9, "bytes_in_use", round(9.5 * GIB), None),
        (9, "bytes_limit", round(31.25 * GIB), None),
    ]
    assert scalars(got) == {
        'Duty cycle{Chip="8"}': (100.0, "%"),
        'Duty cycle{Chip="9"}': (87.5, "%"),
        'TensorCore Utilization{Core ID="0"}': (15.17, "%"),
        'TPU Buffer Transfer Latency P50{Buffer Size="8MB+"}': (18264.03, "us"),
        'TPU Buffer Transfer Latency P999{Buffer Size="8MB+"}': (53997.32, "us"),
        "TPU gRPC TCP Delivery Rate P50": (12305.96, "Mbps"),
    }
    assert got.facts == {"chip": "v6e", "chips_of_host": 2}


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("node-3.txt", "node-3"),
        ("node-3.log.2.gz", "node-3"),
        ("slice.1/tpu-info.txt", "slice.1/tpu-info"),
        (".txt", ".txt"),
        ("tpu-info-20251130-0205.txt", "tpu-info"),
        ("w-0_2025-11-30T02:05:10Z.log", "w-0"),
        ("tpu_1764468300.txt", "tpu"),
        ("t1v-n-0a1b2c3d-w-12.txt", "t1v-n-0a1b2c3d-w-12"),
        ("10.128.0.17.txt", "10.128.0.17"),
    ],
)
def test_chips_are_those_of_the_host_that_the_file_is_of(tmp_path, name, host):
    """Each host counts its chips from 0."""
    (tmp_path / "tables").write_text(TABLES)
    got = list(tpu_info.read(Source(tmp_path / "tables", name)))
    rows = [r for item in got if isinstance(item, Rows) and item.table == "memory" for r in item.batch.to_pylist()]
    assert {r["host"] for r in rows} == {host} and len(rows) == 4


def test_statistics_may_name_their_host(tmp_path):
    lines = [{"hostname": h, "devices": [{"id": 0, "bytes_in_use": n}]} for n, h in enumerate(("a", "b", ""))]
    got = told(tmp_path, "\n".join(json.dumps(line) for line in lines))
    assert [(r["host"], r["bytes"]) for r in got.rows["memory"]][:2] == [("a", 0), ("b", 1)]
    assert got.rows["memory"][2]["host"] not in ("a", "b", "", None)


def test_boxes_and_colours(tmp_path):
    got = told(tmp_path, BOXED.replace("0.50", "\x1b[32m0.50\x1b[0m"))
    assert memory(got)[0] == (0, "bytes_in_use", GIB // 2, None)
    assert scalars(got) == {'Duty cycle{Device="0"}': (0, "%")}


@pytest.mark.parametrize("stamp", ["Last update: 2023-11-14 22:13:{:02d} UTC", "2023-11-14T22:13:{:02d}Z"])
def test_streaming_has_a_time_for_each_table(tmp_path, stamp):
    got = told(tmp_path, "".join(f"Refresh rate: 5s\n{stamp.format(20 + 5 * n)}\n{TABLES}" for n in range(3)))
    times = [t for device, kind, _, t in memory(got) if (device, kind) == (8, "bytes_in_use")]
    assert times == [(1_700_000_000 + 5 * n) * S for n in range(3)]
    assert got.facts == {"chip": "v6e", "chips_of_host": 2}


def test_statistics_as_python_prints_them(tmp_path):
    text = (
        "1700000000\n"
        "TPU_0(process=0,(0,0,0,0)) {'num_allocs': 3, 'bytes_in_use': 12, 'peak_bytes_in_use': 55, 'bytes_limit': 90}\n"
        "1 {'bytes_in_use': 3}\n"
        "{'device': 7, 'bytes_in_use': 4}\n"
    )
    got = told(tmp_path, text)
    at = 1_700_000_000 * S
    assert memory(got) == [
        (0, "bytes_in_use", 12, at),
        (0, "bytes_limit", 90, at),
        (0, "peak_bytes_in_use", 55, at),
        (1, "bytes_in_use", 3, at),
        (7, "bytes_in_use", 4, at),
    ]
    assert scalars(got) == {'num_allocs{device="0"}': (3.0, None)}


def test_statistics_as_json(tmp_path):
    entries = [
        {"time": 1_700_000_000.5, "devices": [{"id": 3, "memory_stats": {"bytes_in_use": 7, "bytes_limit": 9}}]},
        {"TPU_1": {"bytes_in_use": 8}},
        [{"bytes_in_use": 1}, {"bytes_in_use": 2}],
    ]
    got = told(tmp_path, "\n".join(json.dumps(e) for e in entries[:2]))
    assert memory(got) == [
        (3, "bytes_in_use", 7, 1_700_000_000 * S + S // 2),
        (3, "bytes_limit", 9, 1_700_000_000 * S + S // 2),
        (1, "bytes_in_use", 8, None),
    ]
    assert [row[2] for row in memory(told(tmp_path, json.dumps(entries[2])))] == [1, 2]


def test_rows_that_do_not_fit_are_counted(tmp_path):
    got = told(tmp_path, TABLES.replace("| 9    | 9.50 GiB / 31.25 GiB  |     87.50% |", "| 9    | 9.50 GiB |"))
    assert "more or fewer cells" in got.reasons() and {row[0] for row in memory(got)} == {8}


@pytest.mark.parametrize("text", ["", "TPU Chips\n\n| Chip |\n", "bytes_in_use\n", "{}\n"])
def test_nothing_in_it_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no table of tpu-info"):
        told(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (TABLES, 0.9),
        (BOXED, 0.9),
        ('{"bytes_in_use": 3}\n', 0.75),
        ("0 {'bytes_in_use': 3}\n", 0.75),
        ("", 0.0),
        ("We looked at TPU Chips.\n", 0.0),
        ("x bytes_in_use y\n", 0.0),
    ],
)
def test_sniff(tmp_path, text, score):
    assert tpu_info.sniff(source_of(tmp_path, text)) == score
