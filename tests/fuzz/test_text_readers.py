"""Whatever bytes a text reader meets, it hands back rows of its tables or says what is wrong: never anything else."""

import gzip
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors import goodput_log, maxtext, maxtext_metrics, sidecar
from tests.collectors.reading import read, source_of
from tests.collectors.test_goodput_log import A_JOB, save
from tests.collectors.test_maxtext import ERAS
from tests.collectors.test_maxtext_metrics import record
from tests.collectors.test_sidecar import EVERYTHING
from tests.fuzz.damage import damaged, survive

VALID = {
    maxtext: [
        "".join(f"{line}\n" for line, _, _ in ERAS.values()).encode(),
        b"2026-12-31T23:59:59.5Z completed step: 1, seconds: 2.000, loss: 1.000\n"
        b"I0101 00:00:01.25 7 metric_logger.py:226] completed step: 2, seconds: 2.000, loss: 1.000\n"
        b"[pod/a-0/c] Completed eval step: 0, seconds: 1.250, running loss=3.000\n"
        b"2027-01-01 00:00:09,5 Completed eval after train step 2, loss=3.125, total_weights=64.0\n"
        b"Config param model_name: llama2-7b\nElastic attempt 2 out of 10\nNum_devices: 32, shape (1)\n",
    ],
    maxtext_metrics: ["".join(json.dumps(record(n)) + "\n" for n in (0, 1, 1, 0)).encode()],
    goodput_log: [
        "".join(json.dumps(e) + "\n" for e in [*A_JOB, save()]).encode(),
        json.dumps([*A_JOB, save()], indent=1).encode(),
        json.dumps([save(directory="é"), *A_JOB], ensure_ascii=False, separators=(",", ":")).encode(),
    ],
    sidecar: [json.dumps(EVERYTHING).encode()],
}
NAME = "chipledger.json"  # of the input
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)


@READERS
def test_the_undamaged_originals_are_known_and_read(reader, tmp_path):
    for data in VALID[reader]:
        source = source_of(tmp_path, data, NAME)
        assert reader.sniff(source) >= 0.5
        assert read(reader, source).rows or reader is sidecar


@READERS
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage(reader, data, tmp_path_factory):
    survive(reader, tmp_path_factory.getbasetemp(), data.draw(damaged(VALID[reader])), NAME)


@READERS
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=2_000))
@example(data=b"")
@example(data=b"{" * 100_000)
@example(data=b'{"a":' * 100_000)
@example(data=b"[" * 100_000)
@example(data=b"\xef\xbb\xbf")
@example(data=b"\x1f\x8b")
def test_noise(reader, data, tmp_path_factory):
    if data[:2] != b"\x1f\x8b":  # a broken archive is the business of whoever opens it, see test_ingest
        survive(reader, tmp_path_factory.getbasetemp(), data, NAME)


@READERS
def test_every_cut(reader, tmp_path):
    data = VALID[reader][0]
    for end in range(0, len(data), max(1, len(data) // 200)):
        survive(reader, tmp_path, data[:end], NAME)


@READERS
def test_a_line_without_end_is_refused_in_bounded_memory(reader, tmp_path):
    survive(reader, tmp_path, gzip.compress(VALID[reader][0] + b" " * (80 << 20), 1), NAME)
