"""The store of many runs: what is made is as whole as what an ingest makes, and its numbers are known."""

from app.library.rows import library
from app.workspace import workspace
from benchmarks.library import make, measure


def test_each_run_that_is_made_is_whole_and_has_its_numbers(tmp_path):
    make(tmp_path / "store", 60)
    place = workspace(str(tmp_path / "store"))
    found = library(place, numbers="kept")
    assert (found.total + found.archived, found.damaged) == (60, {})
    copies = [row for row in found.rows if not row.name.startswith("pattern")]
    assert all(not row.pending and row.numbers["mfu"] > 0.2 for row in copies)
    assert library(place, "tag:prod", numbers="kept").found and library(place, "is:starred", numbers="kept").found
    run = place.store.get(copies[0].run_id)
    assert run is not None and run.damage is None and run.tables.arrow("steps").num_rows >= 60


def test_a_server_answers_searches_of_it(tmp_path):
    make(tmp_path / "store", 30)
    told = list(measure(tmp_path / "store", 1, browser=False))
    assert [line.split("  ")[0] for line in told] == [
        "cold: the server's start",
        "cold: first list of all (API)",
        "search (API)",
        "memory of the server",
        "load of the machine",
    ]
