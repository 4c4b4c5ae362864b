"""Our own tables as Parquet: what fits is taken exactly, what does not is refused in a sentence."""

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from collectors.base import Source
from collectors.ingest import ingest
from collectors.ingesting.gather import MAX_FILES
from collectors.own import tables
from collectors.reading import parquet_columns
from errors import InputError
from runs.schema import SCHEMAS
from runs.store import Store
from tests.collectors.reading import read
from tests.fuzz.damage import damaged

START = 1_767_571_200_000_000_000
STEPS = {"step": [0, 1, 2], "start_ns": [START, START + 5, START + 9], "dur_ns": [5, 4, None], "host": ["a", "b", None]}


def parquet(columns, **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def written(folder, data, name="steps.parquet"):
    path = folder / name.replace("/", "_")
    path.write_bytes(data if isinstance(data, bytes) else parquet(data))
    return Source(path, name)


def get(folder, data, name="steps.parquet"):
    return read(tables, written(folder, data, name))


def test_rows_come_as_they_were_written(tmp_path):
    got = get(tmp_path, STEPS)
    assert got.column("steps", "step") == [0, 1, 2] and got.column("steps", "start_ns") == STEPS["start_ns"]
    assert got.column("steps", "dur_ns") == [5, 4, None] and got.column("steps", "host") == ["a", "b", None]
    assert got.column("steps", "order") == [0, 1, 2] and got.column("steps", "loss") == [None] * 3
    assert set(got.column("steps", "source")) == {"steps.parquet"} and set(got.column("steps", "format")) == {"tables"}
    assert not got.lost and not got.facts


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_table_survives_a_round_trip(tmp_path, table):
    schema = SCHEMAS[table].arrow
    values = {
        pa.int64(): [1, None, -3],
        pa.int32(): [1, 0, None],
        pa.float64(): [0.5, None, 3.0],
        pa.bool_(): [True, None, False],
        pa.string(): ["x", "é", None],
        pa.list_(pa.int64()): [[1, 2], [], None],
        pa.list_(pa.float64()): [[0.5, 1.0], [], None],
    }
    columns = {f.name: values.get(f.type, ["a", None, "b"]) for f in schema}
    whole = pa.Table.from_batches([SCHEMAS[table].batch(columns)])
    got = get(tmp_path, whole, f"{table}.parquet").rows[table]
    expected = whole.to_pylist()
    for row, wanted in zip(got, expected, strict=True):
        if row.get("capture") is not None:
            row["capture"] -= MAX_FILES
        if table == "modules":
            assert row.pop("file") is None and wanted.pop("file") is not KeyError
        assert row == wanted


def test_row_groups_and_batches_count_on(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 7)
    data = parquet({"step": range(100), "host": ["h" + str(i % 9) for i in range(100)]}, row_group_size=20)
    got = get(tmp_path, data)
    assert got.batches == 15
    assert got.column("steps", "order") == got.column("steps", "step") == list(range(100))
    assert got.column("steps", "host") == ["h" + str(i % 9) for i in range(100)]


MOMENTS = [datetime(2026, 1, 5, tzinfo=UTC), None, datetime(2026, 1, 5, 0, 0, 1, 500_000, tzinfo=UTC)]
NS = [START, None, START + 1_500_000_000]
SHORT = pa.dictionary(pa.int8(), pa.string())
WIDER = [
    (pa.array([1, 2, None], pa.int8()), "step", [1, 2, None]),
    (pa.array([1, 2, None], pa.uint64()), "step", [1, 2, None]),
    (pa.array([1.0, -2.0, float("nan")]), "step", [1, -2, None]),
    (pa.array([1.0, 2.0, None], pa.float32()), "attempt", [1, 2, None]),
    (pa.array([Decimal("1"), Decimal("2"), None], pa.decimal128(20, 0)), "step", [1, 2, None]),
    (pa.array([3, 4, None], pa.int64()), "attempt", [3, 4, None]),
    (pa.array(MOMENTS, pa.timestamp("us", "UTC")), "start_ns", NS),
    (pa.array(MOMENTS, pa.timestamp("ms", "Asia/Tokyo")), "start_ns", NS),
    (pa.array([timedelta(seconds=2), None, timedelta(0)], pa.duration("ms")), "dur_ns", [2_000_000_000, None, 0]),
    (pa.array([1, 2, None], pa.int16()), "loss", [1.0, 2.0, None]),
    (pa.array([1.5, float("inf"), float("nan")], pa.float32()), "loss", [1.5, None, None]),
    (pa.array(["a", "b", None], pa.large_string()), "host", ["a", "b", None]),
    (pa.array(["a", "b", None]).dictionary_encode().cast(SHORT), "host", ["a", "b", None]),
    (pa.array([b"a", b"b", None], pa.binary()), "host", ["a", "b", None]),
    (pa.nulls(3), "host", [None] * 3),
    (pa.nulls(3), "step", [None] * 3),
]


@pytest.mark.parametrize(("column", "name", "expected"), WIDER, ids=lambda v: str(getattr(v, "type", v))[:30])
def test_other_types_that_hold_the_same_values(tmp_path, column, name, expected):
    assert get(tmp_path, {name: column}).column("steps", name) == expected


UNFIT = [
    (pa.array([1.5, 2.0]), "step", "holds values that do not fit"),
    (pa.array([float(START), 2.0]), "start_ns", "holds floats too large to be exact"),
    (pa.array([1 << 63, 2], pa.uint64()), "step", "holds values that do not fit"),
    (pa.array([1 << 31, 2]), "attempt", "holds values that do not fit"),
    (pa.array(["1", "2"]), "step", "is string|is dictionary"),
    (pa.array([True, False]), "step", "is bool"),
    (pa.array([1, 2]), "host", "is int64"),
    (pa.array([{"a": 1}, {"a": 2}]), "step", "is struct"),
    (pa.array([[1], [2]]), "host", "is list"),
    (pa.array([datetime(9999, 1, 1), None], pa.timestamp("us")), "start_ns", "holds values that do not fit"),
    (pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "step", "is timestamp"),
    (pa.array(["x"]), "loss", "is string|is dictionary"),
    (pa.array([b"\xff\xfe", b"a"]), "host", "holds"),
    (pa.array(["x" * (parquet_columns.MAX_TEXT + 1)]), "host", "holds a text of"),
]


@pytest.mark.parametrize(("column", "name", "message"), UNFIT, ids=lambda v: str(getattr(v, "type", v))[:30])
def test_what_does_not_fit_is_refused_by_name(tmp_path, column, name, message):
    with pytest.raises(InputError, match=f"column {name} (?:{message})") as caught:
        get(tmp_path, {name: column})
    assert "steps.parquet" in str(caught.value) and "\n" not in str(caught.value)


def test_lists_of_gaps(tmp_path):
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.uint8(), 2)):
        got = get(tmp_path, {"gaps_ns": pa.array([[1, 2], None, [3, 4]], kind)}, "requests.parquet")
        assert got.column("requests", "gaps_ns") == [[1, 2], None, [3, 4]]
    for wrong in (pa.array([["a"]]), pa.array([[1.5]]), pa.array([[[1]]]), pa.array([5])):
        with pytest.raises(InputError, match="column gaps_ns is"):
            get(tmp_path, {"gaps_ns": wrong}, "requests.parquet")


def test_columns_that_the_table_lacks_are_named(tmp_path):
    more = {"learning_rate": [0.1] * 3, "nested": [{"a": [1]}] * 3, "__index_level_0__": [0, 1, 2]}
    got = get(tmp_path, STEPS | more)
    assert [lost.what for lost in got.lost] == ["column 'learning_rate' (1)", "column 'nested' (1)"]
    assert len(got.rows["steps"]) == 3
    with pytest.raises(InputError, match=r"none of the table's columns.*expected columns of steps: attempt, step"):
        get(tmp_path, {"a": [1]})
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["step", "step"])
    with pytest.raises(InputError, match="two columns have the same name"):
        get(tmp_path, twice)


def test_one_long_text_a_million_times_stays_one(tmp_path):
    repeated = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, "i4")), pa.array(["y" * 500_000]))
    data = parquet({"op": repeated}, compression="zstd")
    assert len(data) < 10_000
    rows = 0
    for item in tables.read(written(tmp_path, data, "ops.parquet")):
        assert item.batch.nbytes < 10_000_000
        rows += item.batch.num_rows
    assert rows == 200_000
    # where the table repeats its texts row by row, the same is refused
    with pytest.raises(InputError, match="column detail holds 25,000,000,000 bytes"):
        get(tmp_path, {"detail": repeated}, "lifecycle.parquet")


def test_a_dictionary_larger_than_what_a_batch_uses_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 1_000)
    names = pa.array([f"name-{i}" for i in range(50_000)])
    for item in tables.read(written(tmp_path, parquet({"op": names}), "ops.parquet")):
        assert len(item.batch["op"].dictionary) == 1_000


def test_more_than_a_file_may_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    with pytest.raises(InputError, match="more than 2 rows"):
        get(tmp_path, STEPS)


def test_statistics_are_not_trusted(tmp_path):
    """A file whose statistics lie gives the rows that it holds."""
    data = parquet({"step": pa.array([41_414_141, 42_424_242])}, use_dictionary=False, compression="none")
    low, high = ((n).to_bytes(8, "little") for n in (41_414_141, 42_424_242))
    before, rows, behind = data.partition(low + high)
    assert rows and high in before + behind  # statistics of the page and of the column
    lying = before.replace(high, low) + rows + behind.replace(high, low)
    assert lying != data and get(tmp_path, lying).column("steps", "step") == [41_414_141, 42_424_242]


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("steps.parquet", 0.95),
        ("a/b/steps-0001.parquet", 0.95),
        ("lifecycle-00001-of-00008.parquet", 0.95),
        ("program_collectives.parquet", 0.95),
        ("my-steps.parquet", 0.0),
        ("step.parquet", 0.0),
        ("steps", 0.0),
        ("steps.parquet.crc", 0.0),
        ("train.parquet", 0.0),
    ],
)
def test_sniff(tmp_path, name, score):
    assert tables.sniff(written(tmp_path, STEPS, name)) == score


def test_other_bytes_under_a_tables_name(tmp_path):
    assert tables.sniff(written(tmp_path, b"PK\x03\x04")) == 0.0
    for data in (b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", parquet(STEPS)[:-9]):
        with pytest.raises(InputError, match="not a whole Parquet file") as caught:
            get(tmp_path, data)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="gzip"):
        get(tmp_path, gzip.compress(parquet(STEPS)))


def test_kinds_of_intervals_that_nobody_knows_are_named(tmp_path):
    got = get(tmp_path, {"kind": ["job", "lunch", "lunch", None], "start_ns": [1, 2, 3, 4]}, "lifecycle.parquet")
    assert len(got.rows["lifecycle"]) == 4
    assert [lost.what for lost in got.lost] == ["intervals of kind 'lunch' (2)"]


def test_capture_numbers_of_two_folders_and_of_profiles_do_not_meet(tmp_path):
    numbers = {}
    for folder in ("", "a/", "b/"):
        for table in ("captures", "ops"):
            columns = {"capture": pa.array([0, 1, None])}
            numbers[folder, table] = get(tmp_path, columns, f"{folder}{table}.parquet").column(table, "capture")
        assert numbers[folder, "captures"] == numbers[folder, "ops"]
        assert numbers[folder, "ops"][2] is None
    taken = [n for (_, table), ns in numbers.items() if table == "ops" for n in ns[:2]]
    assert len(set(taken)) == 6 and min(taken) >= MAX_FILES and max(taken) < 1 << 31
    for wrong in (-1, tables.CAPTURES):
        with pytest.raises(InputError, match="capture number"):
            get(tmp_path, {"capture": [wrong]}, "ops.parquet")


def test_a_folder_of_tables_becomes_a_run(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    for part in range(2):
        steps = {"step": [2 * part, 2 * part + 1], "start_ns": [START + part * 10, START + part * 10 + 5]}
        (folder / f"steps-{part:04}.parquet").write_bytes(parquet(steps))
    (folder / "lifecycle.parquet").write_bytes(parquet({"kind": ["job"], "start_ns": [START], "end_ns": [START + 100]}))
    (folder / "other.parquet").write_bytes(parquet({"x": [1]}))
    (folder / "chipledger.json").write_text(json.dumps({"chips": 8, "chip": "v5p"}))
    store = Store(tmp_path / "store")
    done = ingest([folder], store)
    assert done.tables == {"lifecycle": 1, "steps": 4}
    [said] = done.warnings
    assert said.startswith("other.parquet: not recognised, passed over. Looks like a Parquet table")
    run = store.get(done.run_id)
    assert run.manifest.facts["chips"].value == 8
    assert sorted(run.tables.arrow("steps")["step"].to_pylist()) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="a Parquet table without the columns.* expected a Chipledger table"):
        ingest([folder / "other.parquet"], store)


VALID = [
    parquet({**STEPS, "gone": [1, 2, 3], "loss": [0.1, None, 2.0]}),
    parquet(STEPS, compression="zstd", data_page_version="2.0", use_dictionary=False),
    parquet({"step": np.arange(5_000), "host": ["h"] * 5_000}, row_group_size=1_000, store_schema=False),
]


@settings(max_examples=200, deadline=None)
@given(data=damaged(VALID))
def test_damaged_files_give_rows_or_a_sentence(tmp_path_factory, data):
    source = written(tmp_path_factory.getbasetemp(), data)
    assert 0 <= tables.sniff(source) <= 1
    try:
        read(tables, source)
    except InputError as error:
        assert "\n" not in str(error) and "steps.parquet" in str(error)


def test_infinity_stays_where_it_means_something(tmp_path):
    stages = {
        "stage": ["a", "b", "c"],
        "requested_rate_per_s": [float("inf"), float("nan"), 2.0],
        "duration_s": [float("inf"), 1.0, 2.0],
    }
    got = get(tmp_path, stages, "stages.parquet")
    assert got.column("stages", "requested_rate_per_s") == [float("inf"), None, 2.0]
    assert got.column("stages", "duration_s") == [None, 1.0, 2.0]
    assert read(tables, written(tmp_path, {"accepted_per_position": [[1.5], None]}, "engine.parquet")).rows["engine"]
