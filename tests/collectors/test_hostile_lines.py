"""Lines made to be slow to match, where no reader of `tests/fuzz` meets them."""

import time

import pytest

from catalog.causes import cause_of
from collectors.device import tpu_info
from collectors.device.hlo.text import groups_of_text
from collectors.ingesting.order import begins
from collectors.reading.line_prefix import host_prefix, pieces
from collectors.reading.textlog import Tally
from collectors.serving.vllm_bench.objects import objects
from collectors.training import maxtext
from tests.collectors.reading import read, source_of

MANY = 200_000
SOON_S = 3.0  # of CPU, for what takes milliseconds: matched again from each character, most take minutes


@pytest.fixture(autouse=True)
def soon():
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SOON_S


def test_the_order_of_files(tmp_path):
    assert begins(source_of(tmp_path, b"step" + b" " * MANY)) == (float("inf"), float("inf"))
    assert begins(source_of(tmp_path, b"step : 7 of 9"))[1] == begins(source_of(tmp_path, b"step 7"))[1] == 7


def test_the_names_of_hosts():
    assert host_prefix("a" + "-1.a" * MANY) is None
    assert host_prefix("a" + "-1.a" * 40 + "-2: x") == "a" + "-1.a" * 40 + "-2"


def test_bars_drawn_anew_behind_a_prefix_that_is_none():
    count = sum(len(piece) for piece in pieces("[pod/" + "a" * MANY + "/x] " + "\r" * 20_000))
    assert count < 2 * MANY


def test_meshes_that_do_not_close():
    assert groups_of_text("replica_groups=mesh[] {" * (MANY // 8)) is None


def test_the_end_of_a_line_cut_off(tmp_path):
    line = "completed step: 1, seconds: 1.500, loss: 2.250"
    found = read(maxtext, source_of(tmp_path, f"{line}\n{line.replace('1,', '2,')}, x: " + "%" * MANY + "a"))
    assert found.column("steps", "step") == [1, 2] and found.column("steps", "loss") == [2.25, 2.25]


def test_harmless_lines():
    for _ in range(500):
        assert cause_of("uncorrectable ecc error" + "\t " * 900 + "x") == "hbm"
    assert cause_of("uncorrectable ecc errors \t = \t 0") is None


def test_names_that_run_into_one_another():
    for begin, piece in (("", "ibv_a"), ("device or resource busy ", "tpu")):
        for _ in range(60):
            assert cause_of((begin + piece * 2_000)[:2_000]) is None
    assert cause_of("ibv_create_qp failed") == "network"


def test_the_first_row_of_a_table(tmp_path):
    assert tpu_info.sniff(source_of(tmp_path, b"TPU Chips" + b"\n" * MANY)) == 0.0
    assert tpu_info.sniff(source_of(tmp_path, b"TPU Chips\n\n \t| a |")) == 0.9


def test_what_follows_a_broken_object(tmp_path):
    assert not list(objects(source_of(tmp_path, b'{"a"' + b"\n" * MANY), Tally()))
    found = list(objects(source_of(tmp_path, b'{"a"\n\n\n  {"b": 1}'), Tally()))
    assert found == [(9, {"b": 1})]


def test_offsets_of_many_objects_are_counted_once(tmp_path):
    text = '{"a": "é"}\n' * 60_000
    found = [offset for offset, _ in objects(source_of(tmp_path, text), Tally())]
    assert found[:3] == [0, 12, 24] and found[-1] == 12 * 59_999
