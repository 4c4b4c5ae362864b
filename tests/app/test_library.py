"""What the library's list is given, and tags."""

from types import SimpleNamespace

import pytest

from app.library.rows import library
from app.pages.library import dialogs
from app.pages.library.listing import is_over
from app.pages.library.shown import USUAL, drawn
from app.pages.library.tags import parse, parse_changes
from app.summary import matches, run_dict
from errors import InputError
from tests.app import made_runs


def shown(place, numbers="now"):
    """What the list is given of each run; `now`: once their numbers are known."""
    return [drawn(row, USUAL) for row in library(place, numbers=numbers).rows]


def test_a_row_shows_the_ledger_in_four_parts_that_fill_it(place):
    made_runs.interrupted(place.store)
    (first,) = shown(place, numbers="kept")
    assert first["cells"]["time"] == "being computed" and first["bar"] == []
    (row,) = shown(place)
    assert sum(part["share"] for part in row["bar"]) == pytest.approx(1)
    assert row["cells"]["time"] == "484 chip-hours, 73.8 % kept"
    assert [p["hatched"] for p in row["bar"]] == [False, True, False]
    (told,) = library(place).rows
    assert told.to_dict()["numbers"]["goodput"] == pytest.approx(0.738, abs=1e-3)


def test_the_price_that_a_run_came_with_is_told_where_nobody_said_another(place):
    steps = {"steps": made_runs.step_columns([10**9] * 30)}
    run = made_runs.write(place.store, "priced", steps, {"chips": 4, "chip": "v5p", "usd_per_chip_hour": 2.5})
    for price in (2.5, 4.0):
        (row,) = library(place, numbers="now").rows
        listed, alone = row.to_dict(), run_dict(run, place.registry.extras(run.run_id))
        assert listed["usd_per_chip_hour"] == alone["usd_per_chip_hour"] == price
        assert listed["numbers"]["cost"] == pytest.approx(price * listed["numbers"]["chip_hours"])
        place.registry.price(run.run_id, 4.0)


def test_a_run_without_a_ledger_says_so(place):
    made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    assert shown(place)[0]["cells"]["time"] == "no ledger: opens with why"


def test_the_loss_of_a_run_that_diverged_is_none_that_it_had_before(place):
    nan = float("nan")
    for name, last in (("fine", [2.5] * 4), ("diverged", [2.0, nan, nan, None]), ("back", [nan, 2.2, None, None])):
        made_runs.write(
            place.store, name, {"steps": made_runs.step_columns([10**9] * 40, loss=[3.0] * 36 + last)}, {"chips": 4}
        )
    rows = library(place, sort="loss", numbers="now").rows
    assert [(row.name, row.numbers.get("loss")) for row in rows] == [("back", 2.2), ("fine", 2.5), ("diverged", None)]


def test_tags_set_here_override_and_are_found(place):
    run = made_runs.interrupted(place.store)
    place.registry.tag(run.run_id, "team", "serving")
    extras = place.registry.extras(run.run_id)
    assert run_dict(run, extras)["tags"] == {"team": "serving"}
    assert matches(run, extras, "TEAM=serving 70b") and not matches(run, extras, "pretraining")


def test_a_model_given_by_its_dimensions_is_told_by_its_size(place):
    def model(value):
        made_runs.write(place.store, f"m {value}", {"scalars": {"name": ["x"], "value": [1.0]}}, {"model": value})
        return next(row["cells"]["model"] for row in shown(place, "kept") if row["name"] == f"m {value}")

    assert model({"parameters": 1736704, "layers": 2}) == "1.74 million parameters"
    assert model({"name": "tiny"}) == "tiny"
    assert model({"layers": 2}) == model(None) == "–"
    assert model("llama-70b") == "llama-70b"


def test_tags_are_parsed_line_by_line():
    assert parse("team=a\n\n note = b=c \n") == {"team": "a", "note": "b=c"}
    for wrong in ("team", "=x", "k="):
        with pytest.raises(InputError):
            parse(wrong)


def test_changes_of_tags_are_set_or_taken_away():
    assert parse_changes("team=a\n-old\n-x=y") == {"old": None, "team": "a", "-x": "y"}


def test_a_run_that_cannot_be_read_is_a_row_that_says_so(place):
    bad, worn = made_runs.interrupted(place.store, "bad"), made_runs.interrupted(place.store, "worn")
    (bad.folder / "run.json").write_bytes(b"\xff")
    worn.tables.path("steps").unlink()
    other, row = shown(place)
    assert row["id"] == bad.run_id and "not a run manifest" in row["cells"]["time"] and row["starred"] is None
    assert [act["act"] for act in row["menu"]] == ["delete"]
    assert other.keys() == row.keys() and "steps.parquet: is missing" in other["marks"][0]["hover"]
    assert other["cells"]["time"] == "no ledger: opens with why" and other["starred"] is False


def test_what_is_counted_of_all_runs_follows_what_is_said_damaged_or_gone(place):
    from app.library import changes

    first, second = (made_runs.interrupted(place.store, name=n) for n in ("first", "second"))
    before = library(place, numbers="kept")
    assert library(place, "first", numbers="kept").facets is before.facets, "counted once for all searches"
    changes.tag_many(place, ["first"], {"prod": "1"})
    changes.archive(place, ["second"])
    told = library(place, numbers="kept")
    assert (told.total, told.archived, told.facets["tag"]) == (1, 1, {"team=pretraining": 1, "prod=1": 1})
    assert library(place, archived=True, numbers="kept").facets["tag"]["team=pretraining"] == 2
    (first.folder / "tables" / "steps.parquet").unlink()
    assert library(place, numbers="kept").damaged.keys() == {first.run_id}
    assert library(place, "nothing is called so", numbers="kept").damaged.keys() == {first.run_id}
    changes.bin_many(place, [second.run_id])
    assert library(place, archived=True, numbers="kept").total == 1


@pytest.mark.parametrize("before", [False, True])
def test_the_page_is_not_drawn_anew_while_something_is_asked(monkeypatch, before):
    """Numbers that are there by then would else close what a person writes in."""
    state: dict[str, bool] = {}
    monkeypatch.setattr(dialogs.st, "session_state", state)
    found = SimpleNamespace(rows=[SimpleNamespace(pending=False), SimpleNamespace(pending=not before)])
    assert is_over(before, found) and not is_over(not before, found)
    state[dialogs.ASKING] = True
    assert not is_over(before, found)
    dialogs.closed()
    assert is_over(before, found)
