"""A number or a date that no run reaches, anywhere in a file of any text format: a run, or one error that says why."""

import random
import re

import pytest

from collectors.ingest import ingest
from errors import InputError
from runs.store import Store
from tests.app.small_files import small_files, written

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)|\d{4,}")
NO_RUN_REACHES = (
    *(b"1e30", b"-1e30", b"1e308", b"1e-320", b"NaN", b"Infinity", b"-1", b"0"),
    *(b"99999999999999999999", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808"),
    *(b"4000000000", b"253402300799", b"-62135596801", b"99991231-235959", b"9999-12-31T23:59:59Z"),
)
EACH = 6  # of the places of one file
TEXTS = [
    (reader, name, content)
    for reader, files in sorted(small_files().items())
    for name, content in files
    if b"\0" not in content and not name.endswith(".gz") and NUMBER.search(content)
]


@pytest.mark.parametrize("n", range(len(TEXTS)), ids=[f"{reader}-{name}" for reader, name, _ in TEXTS])
def test_it_is_read_or_refused_in_words(tmp_path, n):
    _, name, content = TEXTS[n]
    rng = random.Random(n)
    places = [m.span() for m in NUMBER.finditer(content)]
    for k in range(EACH):
        (start, end), value = rng.choice(places), rng.choice(NO_RUN_REACHES)
        odd = written(tmp_path / str(k), name, content[:start] + value + content[end:])
        try:
            assert ingest([odd], Store(tmp_path / "store")).run_id
        except InputError as refused:
            assert str(refused).strip()
