"""Logs with zeros in them, as a machine that went down or a log that was cut while it was written to leaves them."""

import random

import pytest

from collectors.ingest import ingest
from collectors.ingesting import holes
from collectors.ingesting.holes import filled
from collectors.ingesting.unpack import SafeSource
from collectors.training import maxtext
from errors import InputError
from runs.tables import frame
from tests.collectors.reading import read
from tests.collectors.test_maxtext import steps
from tests.collectors.test_recognise import recognised

CUT = steps(20)[:40].encode()  # in the middle of its line


def steps_of(folder, store, text, name="train.log"):
    (folder / name).write_bytes(text)
    run = store.get(ingest([folder], store).run_id)
    return frame(run.tables, "steps", ["attempt", "step"]), run.manifest.warnings


@pytest.mark.parametrize("zeros", [8, 4096, 3_000_000])
def test_a_log_that_was_cut_while_it_was_written_to_is_read_from_where_it_goes_on(folder, store, zeros):
    found, warnings = steps_of(folder, store, b"\0" * zeros + steps(*range(40, 60)).encode())
    assert found["step"].tolist() == list(range(40, 60))
    assert any(f"zeros ({zeros:,} bytes)" in warning for warning in warnings)


def test_a_line_that_a_machine_going_down_cut_off_is_of_no_step(folder, store):
    text = steps(*range(20)).encode() + CUT + b"\0" * 512 + steps(*range(10, 30)).encode()
    found, _ = steps_of(folder, store, text)
    assert found["step"].tolist() == [*range(20), *range(10, 30)] and found["attempt"].tolist() == [0] * 20 + [1] * 20


def test_a_hole_far_into_a_log_cuts_off_no_more_than_its_line(tmp_path):
    before, after = steps(*range(2_000)).encode(), steps(*range(1_900, 2_100)).encode()
    best = recognised(tmp_path, before + CUT + b"\0" * 512 + after)
    got = read(maxtext, best.source)
    assert got.column("steps", "step") == [*range(2_000), *range(1_900, 2_100)]


def test_zeros_that_were_printed_say_nothing(folder, store):
    text = steps(*range(20)).encode().replace(b"completed step: 7", b"\0completed\0 step: 7")
    assert steps_of(folder, store, text)[0]["step"].tolist() == list(range(20))


@pytest.mark.parametrize(
    "data", [b"\0" * 5000, b"\x01\0" + steps(1).encode(), random.Random(0).randbytes(5000) + steps(1).encode()]
)
def test_what_is_no_text_is_no_log(folder, store, data):
    (folder / "train.log").write_bytes(data)
    with pytest.raises(InputError, match="no file of a known format"):
        ingest([folder], store)


@pytest.mark.parametrize("piece", [1, 7, 8, 9, 64])
def test_holes_lie_where_they_lie_however_the_file_is_read(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(holes, "CHUNK", piece)
    hole, out = b"\0" * 21, tmp_path / "out"
    (tmp_path / "log").write_bytes(
        hole + b"one\ntw" + hole + b"cut" + hole + b"three\nfo\0ur\n" + hole + hole + b"\nfive"
    )
    assert filled(SafeSource(tmp_path / "log", "log"), out) == 5 * 21 + 1
    assert out.read_bytes() == b"one\nthree\nfour\n\nfive"
