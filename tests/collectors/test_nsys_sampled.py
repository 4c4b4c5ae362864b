"""What Nsight samples: clocks, floating-point metrics, power; and what is counted as lost since no table holds it."""

import json
import struct

import pytest

from collectors.device import nsys
from collectors.ingesting.folders import joined
from collectors.ingesting.unpack import SafeSource
from tests.collectors.nsys_exports import BASE, COLUMNS, Export, tid_of
from tests.collectors.reading import read, source_of

FIELD_TYPES = ((1, "Unsigned", None), (2, "Signed", None), (3, "Float", None), (4, "Double", None))
MORE = {
    "GENERIC_EVENTS": "genericEventId INTEGER, rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, "
    "globalTid INTEGER, data TEXT",
    "GENERIC_EVENT_DATA": "genericEventId INTEGER, fieldIdx INTEGER, intVal INTEGER, uintVal INTEGER, floatVal REAL, "
    "doubleVal REAL",
    "GENERIC_EVENT_TYPE_FIELDS": "typeId INTEGER, fieldIdx INTEGER, fieldNameId INTEGER, offset INTEGER, size INTEGER, "
    "type INTEGER",
    "ENUM_NSYS_GENERIC_EVENT_FIELD_TYPE": "id INTEGER, name TEXT, label TEXT",
    "MPI_COLLECTIVES_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, size INTEGER",
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER",
}


@pytest.fixture
def export():
    made = Export()
    made.columns |= MORE
    return made.ran("gemm", 1000, 100, 1)


@pytest.fixture
def got(tmp_path):
    def reading(made: Export, parquet: bool = False):
        if parquet:
            return read(nsys, of_parquet(made, tmp_path))
        return read(nsys, source_of(tmp_path, made.data(tmp_path), "report1.sqlite"))

    return reading


def of_parquet(made: Export, folder):
    """The export as a folder of Parquet files, as one input."""
    files = sorted(made.parquet(folder / "parquet").iterdir())
    (found,) = joined([SafeSource(f, f"parquet/{f.name}") for f in files])
    return found


def scalars(result):
    return [(s["name"], s["value"], s["unit"], s["ts_ns"] - BASE) for s in result.rows.get("scalars", [])]


def test_what_nsight_scales_where_it_shows_it_is_scaled(got, export):
    for metric, name in enumerate(("GPC Clock Frequency [MHz]", "DRAM Read [GB/s]", "SM Active Cycles [cycles]")):
        export.put("TARGET_INFO_GPU_METRICS", (0x100, 1, "GPU Metrics", metric, name))
    for metric, value in ((0, 1_425_000_000), (0, 1980), (1, 2_500_000_000_000), (2, 7_000_000)):
        export.put("GPU_METRICS", (0, 1000, 0x100, metric, value))
    assert [(name, value, unit) for name, value, unit, _ in scalars(got(export))] == [
        ("GPU 0 GPC Clock Frequency", 1425.0, "MHz"),
        ("GPU 0 GPC Clock Frequency", 1980.0, "MHz"),
        ("GPU 0 DRAM Read", 2500.0, "GB/s"),
        ("GPU 0 SM Active Cycles", 7_000_000.0, "cycles"),
    ]


def test_fields_of_types_tell_names_and_bits_of_metrics(got, export):
    export.put("ENUM_NSYS_GENERIC_EVENT_FIELD_TYPE", *FIELD_TYPES)
    kinds = ((0, "SMs Active [Throughput %]", 8, 1), (1, "Tensor Active [Throughput %]", 4, 3), (2, "Ratio", 8, 4))
    for place, name, size, kind in kinds:
        export.put("GENERIC_EVENT_TYPE_FIELDS", (0x101, place, export.string(name), 0, size, kind))
    export.put("TARGET_INFO_GPU_METRICS", (0x101, 1, "GPU Metrics", 2, "Told [%]"))
    bits = struct.unpack("<i", struct.pack("<f", -37.5))[0], struct.unpack("<q", struct.pack("<d", 0.25))[0]
    for place, value in ((0, 61), (1, bits[0]), (2, bits[1])):
        export.put("GPU_METRICS", (0, 1000 + place, 0x101, place, value))
    assert scalars(got(export)) == [
        ("GPU 1 SMs Active", 61.0, "%", 1000),
        ("GPU 1 Tensor Active", -37.5, "%", 1001),
        ("GPU 1 Told", 0.25, "%", 1002),
    ]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("scale", [1000, 1])
def test_power_and_temperature_are_told_in_watts_and_degrees(got, export, apart, scale):
    for place, name in enumerate(("Index", "Power", "Temperature")):
        export.put("GENERIC_EVENT_TYPE_FIELDS", (0x102, place, export.string(name), 0, 8, 1))
    for n, watts in enumerate((312, 700)):
        told = {"Index": "0", "Power": str(watts * scale), "Temperature": 55 + n}
        export.put("GENERIC_EVENTS", (n + 5, 0, 1000 + n, 0x102, None, None if apart else json.dumps(told)))
        for place, value in enumerate(told.values()) if apart else ():
            export.put("GENERIC_EVENT_DATA", (n + 5, place, None, int(value), None, None))
    export.put("GENERIC_EVENTS", (90, 0, 1000, 0x7700, None, '{"prev_comm": "\\"Power\\""}'))
    export.put("GENERIC_EVENTS", (91, 0, 1000, 0x7700, None, '{"Power": ' + "[" * 2000))
    export.put("GENERIC_EVENTS", (92, 0, None, 0x102, None, '{"Power": 3}'), (93, 0, 5, 0x102, None, '{"Power": "?"}'))
    result = got(export)
    assert sorted(scalars(result)) == [
        ("GPU 2 Power", 312.0, "W", 1000),
        ("GPU 2 Power", 700.0, "W", 1001),
        ("GPU 2 Temperature", 55.0, "°C", 1000),
        ("GPU 2 Temperature", 56.0, "°C", 1001),
    ]
    assert f"by its size it was taken for {'milliwatts' if scale > 1 else 'watts'}" in result.reasons()
    assert "4 rows of GENERIC_EVENTS: they tell neither power nor temperature of a GPU" in result.reasons()


def test_times_since_1970_stay_what_they_are(got):
    export = Export()
    export.ran("gemm", BASE + 1000, 100, 1)
    export.put("TARGET_INFO_GPU_METRICS", (0x100, 1, "GPU Metrics", 3, "SMs Active [Throughput %]"))
    export.put("GPU_METRICS", (0, BASE + 1050, 0x100, 3, 40))
    export.put("DIAGNOSTIC_EVENT", (BASE + 1060, 2, "Not all events were kept"))
    result = got(export)
    assert [at for *_, at in scalars(result)] == [1050]
    assert [e["ts_ns"] - BASE for e in result.rows["evidence"]] == [1060]


@pytest.mark.parametrize("parquet", [False, True])
def test_rows_that_no_table_holds_are_counted(got, export, parquet):
    export.put("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", (2000, 9000, 0, 7, 5, tid_of(10, 0)))
    export.put("MPI_COLLECTIVES_EVENTS", (1, 2, tid_of(10), 100, 5), (3, 4, tid_of(10), 100, 5))
    export.put("SCHED_EVENTS", (1, 2, 1, tid_of(10, 1)))
    result = got(export, parquet)
    ran = {o["op"]: o["total_ns"] for o in result.rows["ops"] if o["device"] == 0}
    assert ran["Memory decompression"] == 7000
    told = {reason for reason in result.reasons().split("; ") if reason.endswith("this table is not read")}
    assert told == {
        "2 rows of MPI_COLLECTIVES_EVENTS: this table is not read",
        "1 row of SCHED_EVENTS: this table is not read",
    }


def test_complaints_are_as_severe_as_the_export_says(got, export):
    for level, text in enumerate(("Info", "Warning", "Error", "Verbose"), start=1):
        export.put("DIAGNOSTIC_EVENT", (level, level, text))
    told = {e["text"]: e["severity"] for e in got(export).rows["evidence"]}
    assert told == {"Info": "info", "Warning": "warning", "Error": "error", "Verbose": "info"}


def test_texts_and_blobs_in_place_of_numbers_are_no_numbers(got):
    export = Export()
    export.ran("gemm", 1_000_000, 1000, 1)
    for start, name in (("abc", "a text"), (b"12", "a blob"), ("2000000", "a number as text"), ("12x", "nearly")):
        row = (start, 3_000_000, 0, 1, 7, 0, tid_of(10, 0), export.string(name), export.string(name), None)
        export.put("CUPTI_ACTIVITY_KIND_KERNEL", row)
    export.columns["CUPTI_ACTIVITY_KIND_KERNEL"] = COLUMNS["CUPTI_ACTIVITY_KIND_KERNEL"].replace(
        "start INTEGER NOT NULL", "start"
    )
    result = got(export)
    ran = {o["op"]: o["total_ns"] for o in result.rows["ops"] if o["role"] == "compute"}
    assert ran == {"gemm": 1000, "a number as text": 1_000_000}
    (capture,) = result.rows["captures"]
    assert capture["start_ns"] - BASE > 900_000
