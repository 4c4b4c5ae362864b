"""Exports of Nsight Systems as a folder of Parquet files: one input, and the same run as of the database."""

import contextlib
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors.device import nsys
from collectors.ingest import ingest
from collectors.ingesting.folders import TableFolder, joined
from collectors.ingesting.gather import gather
from collectors.ingesting.unpack import SafeSource
from collectors.reading.parquet_tables import ParquetTables
from errors import InputError
from runs.store import Store
from tests.collectors.nsys_exports import Export, everything
from tests.collectors.reading import read, source_of
from tests.collectors.test_nsys import ops


@pytest.fixture
def got(tmp_path):
    def reading(export: Export, name="report1.sqlite"):
        return read(nsys, source_of(tmp_path, export.data(tmp_path), name))

    return reading


def folder_source(folder) -> TableFolder:
    files = [SafeSource(f, f"{folder.name}/{f.name}") for f in sorted(folder.iterdir())]
    (joined_source,) = joined(files)
    assert isinstance(joined_source, TableFolder)
    return joined_source


def test_a_folder_of_parquet_is_the_same_export(tmp_path, got):
    source = folder_source(everything().parquet(tmp_path / "report1_pqtdir"))
    assert nsys.sniff(source) > 0.9
    made, of = read(nsys, source), got(everything())
    assert made.facts == of.facts and made.reasons() == of.reasons()
    assert {t: len(rows) for t, rows in made.rows.items()} == {t: len(rows) for t, rows in of.rows.items()}
    for table, rows in made.rows.items():
        plain = [{k: v for k, v in row.items() if k != "source"} for row in rows]
        assert plain == [{k: v for k, v in row.items() if k != "source"} for row in of.rows[table]], table


@pytest.mark.parametrize("given", ["the folder", "the one around it", "its files", "an archive"])
def test_a_folder_of_tables_is_one_input_however_it_is_given(tmp_path, given):
    folder = everything().parquet(tmp_path / "job" / "report1_pqtdir")
    if given == "an archive":
        with tarfile.open(tmp_path / "job.tar", "w") as archive:
            archive.add(folder, "report1_pqtdir")
    paths = {
        "the folder": [folder],
        "the one around it": [folder.parent],
        "its files": sorted(folder.iterdir()),
        "an archive": [tmp_path / "job.tar"],
    }[given]
    store = Store(tmp_path / "store")
    made = ingest(paths, store)
    run = store.get(made.run_id)
    (told,) = run.manifest.sources
    assert told["collector"] == "nsys" and told["name"].endswith("report1_pqtdir")
    assert told["bytes"] == sum(f.stat().st_size for f in folder.iterdir())
    assert made.tables["steps"] == 2 and not any("not recognised" in w for w in made.warnings)
    assert ingest(paths, store).existed
    table = pq.read_table(folder / "NVTX_EVENTS.parquet")
    pq.write_table(table.slice(0, 2), folder / "NVTX_EVENTS.parquet")
    if given != "an archive":
        assert ingest(paths, store).run_id != made.run_id


def test_two_folders_of_tables_are_two_inputs(tmp_path):
    for n in range(2):
        Export().ran(f"kernel {n}", 1000, 10 + n, 1).parquet(tmp_path / "job" / f"rank_{n}_pqtdir")
    (tmp_path / "job" / "steps.parquet").write_bytes(b"PAR1")
    gathered = gather([tmp_path / "job"], tmp_path, lambda: None)
    assert [s.name for s in gathered.sources] == ["rank_0_pqtdir", "rank_1_pqtdir", "steps.parquet"]
    made = ingest([tmp_path / "job" / f"rank_{n}_pqtdir" for n in range(2)], Store(tmp_path / "store"))
    assert made.tables["captures"] == 2


def test_tables_of_ones_own_beside_them_stay_inputs_of_their_own(tmp_path):
    folder = everything().parquet(tmp_path / "report1_pqtdir")
    pq.write_table(pa.table({"step": [1, 2], "start_ns": [5, 9], "dur_ns": [3, 3]}), folder / "steps-0001.parquet")
    store = Store(tmp_path / "store")
    run = store.get(ingest([folder], store).run_id)
    assert sorted(s["collector"] for s in run.manifest.sources) == ["nsys", "tables"]
    assert run.tables.rows("steps") == 4


def test_a_damaged_folder_is_read_in_part_or_refused(tmp_path):
    folder = everything().parquet(tmp_path / "report1_pqtdir")
    (folder / "OSRT_API.parquet").write_bytes(b"PAR1 and nothing else")
    data = (folder / "NVTX_EVENTS.parquet").read_bytes()
    (folder / "NVTX_EVENTS.parquet").write_bytes(data[: len(data) // 2])
    result = read(nsys, folder_source(folder))
    assert "the table OSRT_API: it cannot be read" in result.reasons()
    assert "the table NVTX_EVENTS: it cannot be read" in result.reasons() and result.rows["launches"]
    for file in folder.iterdir():
        file.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="parquetdir"):
        read(nsys, folder_source(folder))


@pytest.mark.parametrize("cut", range(0, 100, 5))
def test_a_table_cut_or_changed_anywhere_breaks_nothing(tmp_path, cut):
    folder = everything().parquet(tmp_path / "report1_pqtdir")
    for n, file in enumerate(sorted(folder.iterdir())):
        data = bytearray(file.read_bytes())
        data[4 + (cut * 7919 + n * 13) % (len(data) - 4)] ^= 1 << (cut % 8)
        file.write_bytes(bytes(data))
    with contextlib.suppress(InputError):
        read(nsys, folder_source(folder))


def test_columns_of_other_types_are_not_known(tmp_path):
    folder = everything().parquet(tmp_path / "report1_pqtdir")
    table = pq.read_table(folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    n = table.num_rows
    other = {
        "start": pa.array([float(v) for v in table["start"].to_pylist()]),
        "end": table["end"].cast(pa.uint64()),
        "deviceId": pa.array([True] * n),
        "streamId": pa.array(["seven"] * n),
        "correlationId": pa.array([[1]] * n),
        "demangledName": table["demangledName"].cast(pa.int32()),
    }
    pq.write_table(pa.table(other), folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    result = read(nsys, folder_source(folder))
    assert sum(o["count"] for o in ops(result, role="compute") if o["category"] == "matmul") == 2


def test_one_long_text_in_all_rows_stays_one(tmp_path):
    """A file of 1 MB whose rows spelt out would take 33 GB."""
    rows = 65_536
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * (rows - 1) + [None], pa.int32()), pa.array(["x" * 500_000]))
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "value": texts})
    path = tmp_path / "StringIds.parquet"
    pq.write_table(table, path, compression="none", store_schema=False)
    held = pa.total_allocated_bytes()
    with ParquetTables("a", {"StringIds": path}, "", "") as tables:
        got = tables.rows("StringIds", ("id", "value"))
        first = next(got)
        assert first == (0, "x" * 500_000) and pa.total_allocated_bytes() - held < 100e6
        last = first
        for last in got:
            assert last[1] is None or last[1] is first[1]
        assert last == (rows - 1, None) and not tables.lost


def test_texts_told_by_what_they_share_are_not_read(tmp_path):
    path = tmp_path / "StringIds.parquet"
    table = pa.table({"id": pa.array([0, 1]), "value": ["a" * 1000, "a" * 1001]})
    pq.write_table(table, path, use_dictionary=False, column_encoding={"value": "DELTA_BYTE_ARRAY", "id": "PLAIN"})
    with ParquetTables("a", {"StringIds": path}, "", "") as tables:
        assert [part["id"].tolist() for part in tables.numbers("StringIds", ("id",))] == [[0, 1]]
        assert not tables.lost and not [*tables.rows("StringIds", ("id", "value"))]
        assert "DELTA_BYTE_ARRAY" in tables.lost[0].reason
