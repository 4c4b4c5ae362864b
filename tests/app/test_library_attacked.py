"""What the library tells is what the run's own pages tell, whatever was said of it."""

import re
import time
import unicodedata

import pytest

from app.facts.told import declare
from app.library import answers, changes
from app.library.columns import Row
from app.library.rows import library
from app.library.search import read
from errors import InputError, QuestionError
from tests.app import made_runs
from tests.app.test_facts import profiled


def test_a_row_counts_chips_as_the_run_does_where_fewer_were_said_than_profiles_show(place):
    run = profiled(place, 4)
    declare(run, {"chips": 2}, "ann", place)
    library(place, numbers="now")
    found = library(place, numbers="kept")
    assert found.rows[0].chips == place.store.find(run.run_id).manifest.fact("chips") == 4
    assert found.pending == 0 and not found.rows[0].pending


@pytest.mark.parametrize("share", range(1, 100))
def test_a_share_is_at_least_and_at_most_what_it_is(share):
    row = Row(run_id="a", address="a", name="a", numbers={"mfu": share / 100})
    assert all(read(f"mfu{op}{share}").matches(row) for op in (">=", "<=", "=", ":"))
    assert not any(read(f"mfu{op}{share}%").matches(row) for op in (">", "<"))


def test_a_name_is_found_however_its_letters_are_composed_and_spaced():
    row = Row(run_id="a", address="a", name=unicodedata.normalize("NFD", "Zürich  Été"), tags={"ort": "Zürich"})
    for asked in ("zürich", "name:ZÜRICH", '"zürich été"', '"Zürich  Été"', 'name="zürich été"', "tag:zürich"):
        for form in ("NFC", "NFD"):
            assert read(unicodedata.normalize(form, asked)).matches(row), (asked, form)


def test_what_goes_for_good_is_asked_for_by_its_id_where_a_name_leads_to_two(place):
    old, new = made_runs.interrupted(place.store, "prod"), made_runs.interrupted(place.store, "next")
    changes.bin_many(place, [old.run_id])
    changes.rename(place, new.run_id, "prod")
    with pytest.raises(QuestionError, match=f"{new.run_id[:12]}.* in the library or .*{old.run_id[:12]}.* in the bin"):
        changes.bin_many(place, ["prod"], now=True)
    assert place.store.has(new.run_id) and place.store.find_binned(old.run_id)
    changes.rename(place, new.run_id, "next")
    assert changes.bin_many(place, ["prod"], now=True)[0].run_id == old.run_id  # it alone can be meant
    assert place.store.has(new.run_id) and not place.store.find_binned(old.run_id)


@pytest.mark.parametrize("name", ["live:x", "model:llama2-7b", "  live: y"])
def test_no_run_is_called_what_leads_elsewhere(place, name):
    run = made_runs.interrupted(place.store, "mine")
    with pytest.raises(InputError, match="a name that begins with"):
        changes.rename(place, run.run_id, name)
    assert place.store.find("mine").run_id == run.run_id


def test_a_beginning_of_an_id_and_of_a_name_written_like_it_fits_two(place):
    one, other = made_runs.interrupted(place.store, "one"), made_runs.interrupted(place.store, "other")
    changes.rename(place, other.run_id, one.run_id)
    assert place.store.find(one.run_id).run_id == one.run_id
    with pytest.raises(QuestionError, match="beginning of 2"):
        place.store.find(one.run_id[:12])


def test_what_is_empty_stands_last_as_what_is_not_known(place):
    worn, _ = made_runs.interrupted(place.store, "worn"), made_runs.interrupted(place.store, "whole")
    (worn.folder / "run.json").write_bytes(b"\xff")
    for sort in ("kind", "-kind"):
        assert [row.readable for row in library(place, sort=sort, numbers="kept").rows] == [True, False]


def test_what_is_asked_not_to_be_archived_counts_no_archived_run(place):
    run = made_runs.interrupted(place.store, "old")
    made_runs.interrupted(place.store, "new")
    changes.archive(place, [run.run_id])
    found = library(place, "-is:archived", numbers="now")
    assert (found.total, found.found, found.archived, found.pending) == (1, 1, 1, 0)
    assert library(place, "is:archived", numbers="kept").found == 1


def test_another_catalogue_makes_other_answers(tmp_path, monkeypatch):
    for folder in answers.ANSWERING:
        (tmp_path / folder).mkdir(parents=True)
    data = tmp_path / "catalog" / "chips.json"
    data.write_text("{}")
    here = tmp_path / "app" / "library" / "answers.py"
    here.parent.mkdir()
    here.write_text("")
    monkeypatch.setattr(answers, "__file__", str(here))
    before = answers.answering.__wrapped__()
    data.write_text('{"peak": 1}')
    assert answers.answering.__wrapped__() != before


def test_a_search_that_is_no_text_is_refused():
    with pytest.raises(QuestionError, match=r"U\+DCFF"):
        read("name:a\udcff")


def test_values_count_as_terms_do_and_none_is_looked_for_at_length_in_each_run():
    assert read("tag:" + ",".join(["ab"] * 50)).terms
    for text in ("tag:" + ",".join("ab" for _ in range(51)), "tag:a,b " * 26):
        with pytest.raises(QuestionError, match="5[12] values"):
            read(text)


def cpu_s(asked, rows: list[Row]) -> float:
    """What one search costs; the least of a few is without what else the process does, such as its collection."""
    begun_s = time.process_time()
    assert not any(asked.matches(row) for row in rows)
    return time.process_time() - begun_s


def test_the_longest_search_of_tags_and_notes_is_answered_at_once_over_many_runs():
    notes = ("Ein Wort " * 40,) * 3
    rows = [
        Row(run_id=f"{n}", address="", name="a", tags={f"k{i}": f"v{n}" for i in range(10)}, notes=notes)
        for n in range(2000)
    ]
    for text in ("tag:" + ",".join(["zz"] * 50), "note:" + ",".join(["zz"] * 50)):
        assert min(cpu_s(read(text), rows) for _ in range(3)) < 0.5, text
    one = Row(run_id="a", address="", name="a", tags={"Ort": "Zürich See"}, notes=("Erste  Zeile", "zweite"))
    found = ("tag:ort", 'tag:"zürich see"', 'tag:"ort=zürich see"', 'note:"erste zeile"', "note:zweite")
    assert all(read(text).matches(one) for text in found)
    assert not any(read(text).matches(one) for text in ("tag:zürich", "tag:or", 'note:"zeile zweite"'))


@pytest.mark.parametrize(
    ("text", "right"), [("cost=1,000", "1000"), ("chips:12,024", "12024"), ("chips=1,000,000", "1000000")]
)
def test_a_comma_of_thousands_is_refused_where_it_would_make_two_numbers(text, right):
    with pytest.raises(QuestionError, match=f"would be read as .* numbers; expected {right}. Leave out the comma"):
        read(text)
    field, op, number = re.match(r"(\w+)([=:])(.*)", text).groups()
    assert read(f'{field}{op}"{number}"').terms[0].values == (number,)


def test_numbers_that_stand_apart_by_commas_are_any_of_them():
    assert read("chips=256,512").terms[0].values == ("256", "512")
    assert read("cost<1,000").terms[0].values == ("1,000",)
