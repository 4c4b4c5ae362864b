"""Published readings of training data and limits of stores: well formed, as printed, and consistent."""

import pytest

from catalog import MARKS
from catalog.storage import UNITS, series, stores

BY_ID = {one.id: one for one in series()}


def test_every_series_has_a_source_a_mark_and_a_note():
    for one in series():
        assert one.mark in MARKS and one.source and one.note and one.title and one.epochs >= 1
        assert all(row.file_bytes > 0 and row.bytes_per_s > 0 for row in one.rows)


def test_the_table_of_the_connector_is_as_printed():
    sizes = [100 * 1024, 500 * 1024, 3 * 1024**2, 150 * 1024**2]
    for name, seconds in (("gcs-direct", [1299, 6499, 399, 1396]), ("gcs-connector", [515, 2058, 277, 1173])):
        rows = BY_ID[name].rows
        assert [r.file_bytes for r in rows] == sizes and [r.seconds for r in rows] == seconds
        assert [r.files for r in rows] == [500_000, 2_200_000, 50_000, 5_000]
        for r in rows:
            assert r.bytes_per_s * r.seconds == pytest.approx(5 * r.files * r.file_bytes)
            assert r.reader_s == pytest.approx(r.seconds / (5 * r.files))


def test_the_same_files_read_again_took_from_a_fifth_less_to_a_little_more():
    pairs = zip(BY_ID["gcs-direct"].rows, BY_ID["gcs-direct-again"].rows, strict=True)
    changes = [again.seconds / first.seconds - 1 for first, again in pairs]
    assert (min(changes), max(changes)) == (pytest.approx(-0.204, abs=1e-3), pytest.approx(0.035, abs=1e-3))


def test_a_reader_takes_as_many_times_longer_as_read_at_once():
    row = BY_ID["gcsfuse-sequential"].rows[2]
    assert row.reader_s == pytest.approx(30 * 1024**2 / 6204.93e6)
    assert BY_ID["gcs-hosts"].rows[0].bytes_per_s == pytest.approx(454.2e9 / 8)


def test_stores_have_figures_of_known_units_with_their_sources():
    for name, figures in stores().items():
        assert "latency_s" in figures, name
        for key, number in figures.items():
            assert number.unit == UNITS[key][0] and number.source and number.note
            assert number.value is None or number.value > 0
    assert stores()["parallelstore"]["read_bytes_per_s_per_tib"].value == pytest.approx(1.15 * 2**30)
