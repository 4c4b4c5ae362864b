"""What the library's table is given, and tags."""

import pytest

from app.pages.library.page import PENDING, broken_rows, rows
from app.pages.library.tags import parse
from app.questions import asking as questions
from app.summary import matches, run_dict
from errors import InputError
from tests.app import made_runs


def shown(place, runs):
    extras = place.registry.all_extras([r.run_id for r in runs])
    rows(runs, extras, place)
    questions._background.submit(lambda: None).result()
    return rows(runs, extras, place)


def test_a_row_shows_the_ledger_in_four_parts_that_fill_it(place):
    run = made_runs.interrupted(place.store)
    first = rows([run], place.registry.all_extras([run.run_id]), place)
    assert first[0]["under"] == PENDING and first[0]["bar"] == []
    (row,) = shown(place, [run])
    assert sum(part["share"] for part in row["bar"]) == pytest.approx(1)
    assert row["under"] == "484 chip-hours, 73.8 % kept"
    assert [p["hatched"] for p in row["bar"]] == [False, True, False]
    assert row["sort"]["goodput"] == pytest.approx(0.738, abs=1e-3)


def test_a_run_without_a_ledger_says_so(place):
    run = made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    assert shown(place, [run])[0]["under"] == "no ledger: opens with why"


def test_tags_set_here_override_and_are_found(place):
    run = made_runs.interrupted(place.store)
    place.registry.tag(run.run_id, "team", "serving")
    extras = place.registry.extras(run.run_id)
    assert run_dict(run, extras)["tags"] == {"team": "serving"}
    assert matches(run, extras, "TEAM=serving 70b") and not matches(run, extras, "pretraining")


def test_a_model_given_by_its_dimensions_is_told_by_its_size(place):
    def model(value):
        run = made_runs.write(place.store, f"m {value}", {"scalars": {"name": ["x"], "value": [1.0]}}, {"model": value})
        (row,) = rows([run], place.registry.all_extras([run.run_id]), place)
        return row["model"]

    assert model({"parameters": 1736704, "layers": 2}) == "1.74 million parameters"
    assert model({"name": "tiny"}) == "tiny"
    assert model({"layers": 2}) == model(None) == "–"
    assert model("llama-70b") == "llama-70b"


def test_tags_are_parsed_line_by_line():
    assert parse("team=a\n\n note = b=c \n") == {"team": "a", "note": "b=c"}
    for wrong in ("team", "=x", "k="):
        with pytest.raises(InputError):
            parse(wrong)


def test_a_run_that_cannot_be_read_is_a_row_that_says_so(place):
    bad, worn = made_runs.interrupted(place.store, "bad"), made_runs.interrupted(place.store, "worn")
    (bad.folder / "run.json").write_bytes(b"\xff")
    worn.tables.path("steps").unlink()
    there = place.store.look()
    (row,) = broken_rows(there)
    assert row["run_id"] == bad.run_id and "not a run manifest" in row["under"] and row["broken"]
    (other,) = shown(place, there.runs)
    assert other.keys() == row.keys() and "steps.parquet: is missing" in other["problem"] and not other["broken"]
    assert other["under"] == "no ledger: opens with why"
