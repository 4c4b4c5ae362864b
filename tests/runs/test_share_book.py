"""Groups of runs: what is hidden from whom, against a count by hand; other registries; and what cannot be."""

import itertools
import random

import pytest

from errors import InputError, QuestionError
from runs.postgres.server import Server
from runs.registry import Registry
from runs.share_book import MARK, MOST, Audience, ShareBook, clean_team, clean_teams, for_group
from runs.shelf import Shelf


@pytest.fixture
def book(registry_at, tmp_path):
    return ShareBook(registry_at, tmp_path)


def test_a_run_is_hidden_from_whom_no_group_of_it_has(book):
    """Against brute force over random runs, snapshots and people."""
    dice, groups = random.Random(7), ["a", "b", "c"]
    registry = Registry(book.at)
    own = {f"r{n}": set(dice.sample(groups, dice.randint(0, 3))) for n in range(40)}
    for run, teams in own.items():
        book.share([run], teams)
    stands = {f"r{n}": f"r{dice.randrange(20)}" for n in range(20, 30)}
    for run, owner in stands.items():
        registry.stand_for(run, owner)
    seen = {run: own[stands.get(run, run)] for run in own}
    for size in range(4):
        for mine in map(frozenset, itertools.combinations(groups, size)):
            assert book.hidden(mine) == {run for run, teams in seen.items() if teams and not teams & mine}
    for run, teams in seen.items():
        assert book.of(run) == teams
    assert book.all() == {run: teams for run, teams in own.items() if teams}
    assert book.known() == groups


def test_what_is_hidden_is_the_same_object_until_it_is_another(book, tmp_path):
    book.share(["r"], ["a"])
    first = book.hidden(frozenset("b"))
    Shelf(book.at).star(["r"])
    assert book.hidden(frozenset("b")) is first == {"r"}
    book.share(["r"], ["b"])
    assert book.hidden(frozenset("b")) == frozenset() and book.hidden(frozenset("a")) == {"r"}
    other = ShareBook(book.at, tmp_path)  # of another process
    other.share(["r"], [])
    assert book.hidden(frozenset("a")) == frozenset()


def test_a_change_is_all_or_nothing_and_outlives_the_run(book):
    """Baselines, promises and alerts of a run that is gone stay for who saw it, whoever adds its input again."""
    book.share(["x", "y"], ["a", "b", "a"])
    book.share(["y"], ["c"])
    assert (book.of("x"), book.of("y")) == ({"a", "b"}, {"c"})
    for _ in range(2):
        book.add("y", "a")
    assert book.of("y") == {"a", "c"}
    Shelf(book.at).forget(["x"])
    assert book.all() == {"x": {"a", "b"}, "y": {"a", "c"}}
    assert Audience(book, "").new_id("x", False) == for_group("x", "")
    book.share([for_group("x", "")], ["b"])  # and that one was shown to others too
    assert Audience(book, "").new_id("x", False) == for_group(for_group("x", ""), "")


def test_snapshots_have_the_groups_of_their_live_run(book):
    registry = Registry(book.at)
    registry.stand_for("one", "live:job")
    book.share(["one"], ["a"])  # said of a snapshot, meant of the live run
    assert book.of("live:job") == book.of("one") == {"a"}
    registry.stand_for("two", "live:job")
    assert book.hidden(frozenset()) == {"one", "two", "live:job"}
    registry.forget("one")
    assert book.hidden(frozenset()) == {"two", "live:job"}


def test_another_registry_in_the_place_of_the_one_with_groups_shows_nothing(book, tmp_path, request):
    """A registry that is lost must not show everything to all."""
    assert book.hidden(frozenset()) == frozenset() and not (tmp_path / MARK).exists()
    book.share(["r"], ["a"])
    assert (tmp_path / MARK).read_text()
    for file in tmp_path.glob("registry.db*"):
        file.unlink()
    if isinstance(book.at, Server):
        book = ShareBook(request.getfixturevalue("postgres").registry(), tmp_path)
    with pytest.raises(InputError, match="not the one in which was said who sees which run"):
        book.hidden(frozenset("a"))
    ShareBook(book.at, tmp_path).share(["s"], ["a"])  # nor does it help to say some of it anew
    with pytest.raises(InputError, match="Bring it back from a backup"):
        book.hidden(frozenset("a"))
    (tmp_path / MARK).unlink()
    assert book.hidden(frozenset()) == {"s"}


@pytest.mark.parametrize("text", ["", " ", "x" * 101, "a\nb\0", "a\u202eb", "\ud800"])
def test_what_cannot_be_a_group_is_refused(text):
    with pytest.raises(InputError, match="group's name"):
        clean_team(text)


def test_groups_are_named_once_and_are_not_too_many():
    assert clean_teams([" b", "a", "b "]) == ["a", "b"]
    with pytest.raises(QuestionError, match=f"expected at most {MOST}"):
        clean_teams(map(str, range(MOST + 1)))


def test_an_audience_sees_what_all_see_and_what_is_its_own(book):
    book.share(["a's"], ["a"])
    seen = {
        group: [run for run in ("a's", "open") if Audience(book, group).sees(run)] for group in ("a", "b", "", None)
    }
    assert seen == {"a": ["a's", "open"], "b": ["open"], "": ["open"], None: ["a's", "open"]}


def test_a_run_for_a_group_has_an_id_that_no_other_audience_gives(book):
    groups = ["a", "b", "", None]
    ids = {(group, taken): Audience(book, group).new_id("base", taken) for group in groups for taken in (False, True)}
    assert ids["a", False] == ids["a", True] == for_group("base", "a") != ids["b", False]
    assert ids["", False] == ids[None, False] == ids[None, True] == "base" != ids["", True]
    book.share(["x"], ["a", "c"])
    first = {g: for_group("base", g) for g in ("", "a", "c")}
    both = [name for g, name in first.items() for name in (name, for_group(name, g))]
    assert list(Audience(book).candidates("base")) == both
    second = for_group(for_group("base", "b"), "b")
    assert list(Audience(book, "b").candidates("base")) == [for_group("base", "b"), second]


def test_whom_somebody_usually_adds_runs_for(book):
    assert book.usual("ann") == ""
    for who, group in (("ann", "a"), ("bob", "b"), ("ann", "c")):
        book.set_usual(who, group)
    assert (book.usual("ann"), book.usual("bob")) == ("c", "b")
    book.set_usual("ann", "")
    assert (book.usual("ann"), book.usual("bob")) == ("", "b")
