"""The same input for several audiences: neither learns of the other's run, and nobody loses an upload."""

import pytest

from collectors.ingest import ingest
from runs.registry import Registry
from runs.run import MANIFEST
from runs.share_book import Audience, ShareBook
from runs.store import Store
from tests.collectors.ingesting import LOG


class Seen:
    """A store of which somebody sees what the members of one group see."""

    def __init__(self, root):
        self.groups = None
        self.store = Store(root, hidden=lambda: frozenset() if self.groups is None else self.book.hidden(self.groups))
        Registry(root / "registry.db")
        self.book = ShareBook(root / "registry.db")

    def by(self, *groups):
        """The runs that members of these groups see, by name."""
        self.groups = frozenset(groups)
        try:
            return {run.manifest.name for run in self.store.runs()}
        finally:
            self.groups = None


@pytest.fixture
def seen(tmp_path):
    return Seen(tmp_path / "store")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


def put(seen, log, group, name, **more):
    return ingest([log], seen.store, name=name, audience=Audience(seen.book, group), **more)


def test_each_group_finds_its_own_run_again_and_no_other(seen, log):
    runs = {group: put(seen, log, group, f"of {group}") for group in ("a", "b")}
    assert len({done.run_id for done in runs.values()}) == 2 and not any(done.existed for done in runs.values())
    assert (seen.by("a"), seen.by("b"), seen.by()) == ({"of a"}, {"of b"}, set())
    for group, done in runs.items():
        again = put(seen, log, group, "again")
        assert (again.run_id, again.existed) == (done.run_id, True)
        assert f"'of {group}'" in " ".join(again.warnings)
    opened = put(seen, log, "", "open")  # what two groups have is no reason to hide a third's
    assert seen.by() == {"open"} and opened.run_id not in {done.run_id for done in runs.values()}
    assert put(seen, log, "c", "of c").run_id == opened.run_id  # all see it: there is nothing to hide
    assert put(seen, log, "a", "later").existed


def test_what_only_others_see_is_not_found_even_under_the_id_of_its_input(seen, log):
    first = put(seen, log, None, "theirs")
    seen.book.share([first.run_id], ["a"])
    mine = put(seen, log, "", "mine")
    assert mine.run_id != first.run_id and not mine.existed and "theirs" not in str(mine)
    assert (seen.by(), seen.by("a")) == ({"mine"}, {"mine", "theirs"})
    assert put(seen, log, "", "more").run_id == mine.run_id
    assert put(seen, log, "a", "more").run_id == first.run_id


def test_whoever_sees_all_finds_the_run_wherever_it_is_and_opens_it_to_nobody(seen, log):
    first = put(seen, log, "a", "theirs")
    for again in (False, True):
        done = put(seen, log, None, None, again=again)
        assert (done.run_id, done.existed, done.replaced) == (first.run_id, not again, again)
    assert seen.by() == set() and seen.by("a") == {"theirs"}


def test_a_run_in_the_bin_comes_back_for_who_saw_it_alone(seen, log):
    first = put(seen, log, "a", "theirs")
    seen.store.bin.put(first.run_id)
    other = put(seen, log, "b", "mine")
    assert not other.restored and seen.store.bin.has(first.run_id)
    assert put(seen, log, "a", "x").restored and seen.by("a") == {"theirs"}


def test_a_run_is_hidden_before_it_is_there(seen, log, monkeypatch):
    """At the instant when its folder is moved into place, it is known whose it is."""
    placed = []

    def place(writer, target, replace):
        placed.append((target.name, seen.book.of(target.name), (target / MANIFEST).exists()))
        return original(writer, target, replace)

    from runs.writer import RunWriter

    original = RunWriter._place
    monkeypatch.setattr(RunWriter, "_place", place)
    done = put(seen, log, "a", "theirs")
    assert placed == [(done.run_id, {"a"}, False)]


def test_a_file_that_changes_while_it_is_read_is_hidden_as_well(seen, log):
    def write(done, total, what):
        with log.open("a") as f:
            f.write("more\n")

    done = put(seen, log, "a", "theirs", progress=write)
    assert "was written to" in " ".join(done.warnings)
    assert seen.book.of(done.run_id) == {"a"} and seen.by() == set()
