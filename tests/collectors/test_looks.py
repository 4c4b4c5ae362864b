"""What a wrong file looks like: tiny real files of each kind, made here, under hostile names too."""

import gzip
import io
import json
import pickle
import sqlite3
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import COLLECTORS
from collectors.ingest import ingest
from collectors.ingesting.looks import LOOKS, MEANT, looks_like
from collectors.ingesting.told import REASON_CHARACTERS, Unknown
from errors import InputError
from tests.collectors.ingesting import LOG


def packed(write) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def a_zip(files) -> bytes:
    def write(out):
        with zipfile.ZipFile(out, "w") as z:
            for name, content in files.items():
                z.writestr(name, content)

    return packed(write)


def database(folder) -> bytes:
    path = folder / "made.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("create table notes (text text)")
    return path.read_bytes()


TABLE = pa.table({"x": [1]})
HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
LOGIN = b"<!DOCTYPE html>\n<html><body><form>Sign in <input type='password'></form></body></html>"
CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\x3e\x00" + bytes(40)
KINDS = [
    ("report.pdf", b"%PDF-1.7\n%\xe2\xe3\n", "a PDF document"),
    ("host.xplane.pb", b"%PDF-1.7\n", "a PDF document"),
    ("chart.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
    ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
    ("x.svg", b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG picture"),
    ("train.log", LOGIN, "an HTML page that asks to sign in"),
    ("train.log", b"<html><body>404</body></html>", "an HTML page, saved"),
    ("x.xplane.pb", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "a Git LFS pointer"),
    ("core.123", CORE, "a core dump"),
    ("a.out", CORE.replace(b"\x04\x00\x3e", b"\x02\x00\x3e"), "a program"),
    ("model.safetensors", len(HEADER).to_bytes(8, "little") + HEADER + bytes(4), "weights in safetensors"),
    ("model.gguf", b"GGUF\x03\0\0\0", "weights in GGUF"),
    ("weights.h5", b"\x89HDF\r\n\x1a\n", "arrays in HDF5"),
    ("x.npy", packed(lambda out: np.save(out, np.arange(3))), "an array of NumPy"),
    ("x.npz", packed(lambda out: np.savez(out, a=np.arange(3))), "arrays of NumPy"),
    ("model.pt", a_zip({"archive/data.pkl": "\x80", "archive/data/0": "x"}), "a checkpoint of"),
    ("old.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "a checkpoint of PyTorch"),
    ("runs.xlsx", a_zip({"[Content_Types].xml": "<x/>", "xl/workbook.xml": "<x/>"}), "an Excel table"),
    ("notes.docx", a_zip({"[Content_Types].xml": "<x/>", "word/document.xml": "<x/>"}), "an Office document"),
    ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(50), "an Office document"),
    (
        "events.out.tfevents.1700000000.host",
        b'\x18\0\0\0\0\0\0\0\xa3\x7fK"',
        "an event file of TensorBoard that holds no",
    ),
    ("events.out.tfevents.1700000000.host", b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
    ("x.feather", packed(lambda out: pyarrow.feather.write_feather(TABLE, out)), "a table of Arrow"),
    ("x.parquet", packed(lambda out: pyarrow.parquet.write_table(TABLE, out)), "a Parquet table without"),
    ("report1.nsys-rep", b"\x08\x01\x12", "a binary report of Nsight Systems"),
    ("k.ncu-rep", b"NVR\0\x01", "a report of Nsight Compute"),
    ("t.perfetto", b"\x0a\x05hello", "a trace of Perfetto"),
    ("h.overview_page.pb", b"\x0a\x05hello", "a page that XProf made"),
    ("m.pickle", pickle.dumps({"a": print}), "a pickle of Python"),
    ("memory.prof", gzip.compress(b"\x0a\x04\x08\x01\x10\x02"), "a pprof profile"),
    ("x.ipynb", b'{"cells": []}', "a notebook"),
    ("train.py", b"import jax\n", "a program's source"),
    ("README.md", b"# hello\n", "a text to be read by people"),
    ("x.xz", b"\xfd7zXZ\0\0", "a file packed with xz"),
    ("x.zst", b"\x28\xb5\x2f\xfd\x04", "a file packed with zstd"),
    ("x.7z", b"7z\xbc\xaf\x27\x1c", "a file packed with 7-Zip"),
    ("trace.json", b"", "an empty trace"),
    ("trace.json", b"{}\n", "JSON that holds nothing"),
    ("rank0.pt.trace.json", b'{"traceEvents": []}', "JSON that holds nothing"),
    ("rank0.trace.json", b'{"traceEvents": [{"ph": "Z", "name": "odd"}]}', "a trace without events"),
    (
        "et.json.gz",
        gzip.compress(b'{\n "schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": []}'),
        "an execution trace of",
    ),
    ("x.json", b'{"colour": "red"}', "JSON of a kind that is not known"),
    ("trainer", b"{'loss': 2.31, 'epoch': 0.1}\n", "text without a line that a reader knows"),
    ("x.csv", b"colour,taste\nred,sweet\n", "a table whose columns are not known"),
    ("empty.log", b"", "an empty file"),
    ("x.log.gz", gzip.compress(b""), "a gzip file that holds nothing"),
    ("x.log.gz", gzip.compress(LOG.encode())[:12], "a gzip file that is cut short"),
    ("x.pb", bytes(range(256)), "a binary file that is no profile"),
    ("x.bin", bytes(range(256)), "a binary file of no known kind"),
    ("serve-vllm.txt", b"sun and sea\n", "text without a line that a reader knows; expected a vLLM server log"),
    ("holiday.txt", b"sun and sea\n", "text without a line that a reader knows; expected a MaxText log"),
]


@pytest.mark.parametrize(("name", "content", "looks"), KINDS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(KINDS)])
def test_each_wrong_file_is_told_in_one_line(folder, store, name, content, looks):
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match="no file of a known format") as error:
        ingest([folder / name], store)
    said = str(error.value)
    assert said.startswith(f"{name}: ") and f"it looks like {looks}" in said
    assert "\n" not in said and len(said) < REASON_CHARACTERS and not any(c.HELP in said for c in COLLECTORS)


def test_a_database_of_nobody_s_profiler(folder, store):
    (folder / "x.sqlite").write_bytes(database(folder))
    with pytest.raises(InputError, match="a database of SQLite without a profiler's tables; expected a Nsight"):
        ingest([folder / "x.sqlite"], store)


def test_an_empty_profile_says_what_left_it_behind(folder, store):
    (folder / "host.xplane.pb").touch()
    with pytest.raises(InputError, match="empty .* beyond 2 GiB"):
        ingest([folder / "host.xplane.pb"], store)


def test_every_record_says_something_and_means_collectors_that_exist():
    names = {c.NAME for c in COLLECTORS}
    for one in LOOKS:
        assert one.title and (one.first or one.endings) and len(one.meant) <= MEANT and set(one.meant) <= names
        assert not one.title.endswith(".") and (not one.advice or one.advice.endswith("."))
    assert all(c.TITLE and len(c.TITLE) < 40 for c in COLLECTORS)


@given(st.text(max_size=300), st.binary(max_size=300))
def test_anything_at_all_has_one_line(name, content):
    told = Unknown(name, looks_like(name, content))
    assert "\n" not in told.reason and told.reason.startswith("Looks like ") and len(told.reason) <= REASON_CHARACTERS


def test_a_page_without_an_end_takes_no_time():
    assert looks_like("x.log", b"<html>" + b"<" * 65_000).title.startswith("an HTML page")
    assert looks_like("x.json", b"[" + b'"' * 65_000).title.startswith("JSON")


def test_bad_files_beside_good_ones_cost_a_line_each_and_not_the_run(folder, store):
    (folder / "train.log").write_text(LOG)
    (folder / "again.log").write_text(LOG)
    (folder / "x.pdf").write_bytes(b"%PDF-1.7")
    (folder / "host.xplane.pb").touch()
    for number in range(20):
        (folder / f"{number}.bin").write_bytes(bytes(9) + bytes([number]))
    (folder / "link").symlink_to("/etc/passwd")
    told = []
    done = ingest([folder], store, tell=told.append)
    by_name = {file.name: file for file in done.files}
    assert {name: f.state for name, f in by_name.items() if not name.endswith(".bin")} == {
        "again.log": "read",
        "train.log": "left_out",
        "x.pdf": "refused",
        "host.xplane.pb": "refused",
        "link": "left_out",
    }
    assert by_name["train.log"].reason == "The same bytes as again.log, read once"
    assert by_name["x.pdf"].reason.startswith("Looks like a PDF document.")
    assert by_name["again.log"].title == "MaxText log" and by_name["again.log"].progress == 1.0
    assert {f.name: f for f in told} == by_name, "what is told last of a file is what stands in the end"
    assert [f.state for f in told if f.name == "again.log"][:2] == ["waiting", "waiting"]
    assert sum("not recognised, passed over. Looks like" in w for w in done.warnings) == 10
    [rest] = [w for w in done.warnings if w.startswith("not recognised, passed over: ")]
    assert rest.count(", ") == 10 and rest.endswith("and 1 more")


def test_many_that_are_all_wrong_are_told_in_one_line(folder, store):
    for number in range(300):
        (folder / f"{number:03}{'x' * 200}.pdf").write_bytes(b"%PDF-1.7" + bytes([number % 256, number // 256]))
    with pytest.raises(InputError, match=r"^300 files: no file of a known format: .*; and 297 more") as error:
        ingest([folder], store)
    assert len(str(error.value)) < 700


def test_the_same_input_again_tells_its_files_too(folder, store):
    (folder / "train.log").write_text(LOG)
    (folder / "x.pdf").write_bytes(b"%PDF-1.7")
    first, again = ingest([folder], store), ingest([folder], store)
    assert again.existed and not first.existed
    assert [(f.name, f.state) for f in again.files] == [("train.log", "read"), ("x.pdf", "refused")]
    assert "stored already" in again.files[0].reason


def test_a_checkpoint_is_not_unpacked(folder, store):
    many = {f"archive/data/{n}": "x" for n in range(500)}
    (folder / "model.pt").write_bytes(a_zip({"archive/data.pkl": "x", **many}))
    told = []
    with pytest.raises(InputError, match="model.pt: .* a checkpoint of PyTorch"):
        ingest([folder], store, tell=told.append)
    assert {f.name for f in told} == {"model.pt"}


def test_a_gzip_stream_that_breaks_while_it_is_read_is_refused_with_why(folder, store):
    data = LOG.encode() + bytes(zlib.crc32(b"%d" % n) % 94 + 32 for n in range(200_000))
    (folder / "x.log.gz").write_bytes(gzip.compress(data)[:60_000])
    told = []
    with pytest.raises(InputError):
        ingest([folder], store, tell=told.append)
    assert told[-1].state == "refused" and told[-1].reason.startswith("Cannot be read beyond byte")
