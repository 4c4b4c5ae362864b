"""What people do with runs in the library, for pages, commands and API alike. Each names runs as people do (by id, the
beginning of one, or a name), and changes all of them or, with one sentence, none.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.identity.asking import named as named_by
from app.identity.base import Role
from app.identity.may import changing, need
from app.library.columns import named
from app.library.search import read
from app.library.table import shelf
from app.workspace import Workspace
from errors import InputError, QuestionError
from runs import tidy
from runs.bin import KEPT_S, Binned
from runs.naming import elsewhere
from runs.registry import MAX_TEXT
from runs.run import Run
from runs.shelf import Note, Rename, Search, clean_group, clean_name
from runs.store import InBinError

MOST_RUNS, MOST_COLUMNS = 10_000, 30
FOLLOWED = ("following", "failing")  # states of a live run that a process adds to


@dataclass(frozen=True)
class Renamed:
    """What a run was called, and what it is called now."""

    run_id: str
    before: str
    after: str

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def _ids(place: Workspace, runs: Iterable[str]) -> list[str]:
    names = list(runs)
    if not 1 <= len(names) <= MOST_RUNS:
        raise QuestionError(f"{len(names):,} runs are named", expected=f"1 to {MOST_RUNS:,}")
    return [place.store.find(name).run_id for name in names]


@changing("rename a run")
def rename(place: Workspace, run: str, name: str, *, who: str = "", was: str | None = None) -> Renamed:
    """Call a run otherwise; an empty name gives it back the one that it was stored with. `was`: the name that whoever
    asks has seen: where somebody else renamed the run meanwhile, nothing is changed."""
    found = place.store.find(run)
    stored = found.written.name
    after = _own_name(name) if name.strip() else None
    place.registry.rename(found.run_id, None if after == stored else after, clean_who(who), was, stored)
    return Renamed(found.run_id, found.manifest.name, after or stored)


def _own_name(text: str) -> str:
    """A name that leads to a run. Raises InputError for one that would lead elsewhere."""
    name = clean_name(text)
    if word := elsewhere(name):
        raise InputError(
            f"a name that begins with {word}, as no run can be found", expected=f"a name without {word} before it"
        )
    return name


def renames(place: Workspace, run: str) -> list[Rename]:
    return shelf(place).renames(place.store.find(run).run_id)


def notes(place: Workspace, run: str) -> list[Note]:
    return shelf(place).notes(place.store.find(run).run_id)


@changing("write a note")
def add_note(place: Workspace, run: str, text: str, *, who: str = "") -> int:
    """Returns the note's number."""
    return shelf(place).add_note(place.store.find(run).run_id, text, clean_who(who))


@changing("edit a note")
def edit_note(place: Workspace, run: str, number: int, text: str, *, who: str = "", was: str | None = None) -> None:
    shelf(place).edit_note(place.store.find(run).run_id, number, text, clean_who(who), was)


@changing("delete a note")
def delete_note(place: Workspace, run: str, number: int) -> None:
    shelf(place).delete_note(place.store.find(run).run_id, number)


@changing("star runs")
def star(place: Workspace, runs: Iterable[str], on: bool = True) -> list[str]:
    """Returns the ids of the runs, as do those below."""
    ids = _ids(place, runs)
    shelf(place).star(ids, on)
    return ids


@changing("archive runs")
def archive(place: Workspace, runs: Iterable[str], on: bool = True) -> list[str]:
    ids = _ids(place, runs)
    shelf(place).archive(ids, on)
    return ids


@changing("group runs")
def move_to_group(place: Workspace, runs: Iterable[str], group: str) -> tuple[list[str], str]:
    """Put runs into `project/experiment` or `project`; an empty group takes them out of theirs. Returns the group as it
    is kept, too."""
    project, experiment = clean_group(group)
    ids = _ids(place, runs)
    shelf(place).group(ids, project, experiment)
    return ids, f"{project}/{experiment}" if experiment else project


@changing("tag runs")
def tag_many(place: Workspace, runs: Iterable[str], tags: Mapping[str, str | None]) -> list[str]:
    """Set tags of runs; None takes one away that people set."""
    checked, ids = checked_tags(tags), _ids(place, runs)
    shelf(place).tag(ids, checked)
    return ids


def checked_tags(tags: Mapping[str, str | None]) -> dict[str, str | None]:
    """Tags as they are kept. Raises InputError for one that cannot be."""
    if not tags:
        raise InputError("no tag is named", expected="key=value")
    return {_tag_key(key): None if value is None else _tag_value(key, value) for key, value in tags.items()}


def _tag_key(key: str) -> str:
    name = clean_name(key, "tag's name")
    if "=" in name or name.startswith("-"):
        raise InputError(f"tag {name[:80]!r} has a = in its name, or begins with -", expected="key=value")
    return name


def _tag_value(key: str, value: str) -> str:
    return clean_name(value, f"value of tag {key[:40]!r}", MAX_TEXT) if value.strip() else ""


def clean_who(who: str) -> str:
    """Who does it: whoever is known, else as far as told. Raises InputError for what cannot be a name."""
    who = named_by(who)
    return clean_name(who, "name of who does it", 100) if who.strip() else ""


@dataclass(frozen=True)
class InBin:
    """A run in the bin: by whom (empty: not told), since when, and until when it can be brought back."""

    run_id: str
    name: str
    who: str
    since_ns: int
    until_ns: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@changing("delete runs")
def bin_many(place: Workspace, runs: Iterable[str], *, who: str = "", now: bool = False) -> list[InBin]:
    """Put runs into the bin, each whole; with `now` they are gone for good, from the bin too, and with all that was
    added to them. Raises QuestionError where one is being followed, with nothing changed."""
    if now:
        need(Role.ADMIN, "delete a run for good")
    by = clean_who(who)
    found = _deletable(place, runs, now)
    if now:
        return [_gone(place, run, by) for run in found]
    return [_put(place, run, by) for run in found]


def _deletable(place: Workspace, runs: Iterable[str], now: bool) -> list[Run]:
    names = list(runs)
    if not 1 <= len(names) <= MOST_RUNS:
        raise QuestionError(f"{len(names):,} runs are named", expected=f"1 to {MOST_RUNS:,}")
    found: dict[str, Run] = {}
    for name in names:
        run = _to_delete(place, name) if now else place.store.find(name)
        live = place.store.live.current(run.run_id)
        if live and live.state_at(time.time_ns()) in FOLLOWED:
            raise QuestionError(
                f"{_called(run)} is being followed as {live.address}, and cannot be deleted",
                advice="End its `chipledger watch` first.",
            )
        found[run.run_id] = run
    return list(found.values())


def _to_delete(place: Workspace, name: str) -> Run:
    """The run that is to go for good, in the library or in the bin. Raises QuestionError where a name, or a beginning,
    leads to one in each: what is gone cannot be brought back."""
    lying = None if place.store.has(name) else place.store.find_binned(name)
    if lying is None or lying.run.run_id == name:
        return lying.run if lying else place.store.find(name)
    try:
        here = place.store.find(name)
    except InBinError:
        return lying.run
    raise QuestionError(
        f"{name[:80]!r} may be {_called(here)} in the library or {_called(lying.run)} in the bin; nothing was deleted",
        expected="the whole id",
    )


def _put(place: Workspace, run: Run, who: str) -> InBin:
    """The run is moved first: a note that cannot be kept, on a disk that is full, loses nothing but who it was."""
    name = _name(run)
    place.store.bin.put(run.run_id)
    with contextlib.suppress(InputError):
        shelf(place).note_binned(run.run_id, name, who)
    lying = place.store.bin.lying(run.run_id)
    since_ns = lying.since_ns if lying else time.time_ns()
    return InBin(run.run_id, name, who, since_ns, since_ns + int(KEPT_S * 1e9))


def _gone(place: Workspace, run: Run, who: str) -> InBin:
    name, now = _name(run), time.time_ns()
    with contextlib.suppress(InputError):
        shelf(place).note_binned(run.run_id, name, who)  # should this end before its additions are gone: swept later
    place.store.remove(run.run_id)
    place.store.bin.remove(run.run_id)
    shelf(place).forget([run.run_id])
    return InBin(run.run_id, name, who, now, now)


@changing("restore runs")
def restore(place: Workspace, runs: Iterable[str]) -> list[InBin]:
    """Bring runs back from the bin, with all that was added to them. Raises QuestionError for one that is not there,
    with none brought back."""
    who = shelf(place).who_binned()
    found = [_lying(place, name, who) for name in runs]
    ids = [told.run_id for told in found]
    for run_id in ids:
        place.store.bin.restore(run_id)  # or somebody else did meanwhile
    with contextlib.suppress(InputError):
        shelf(place).note_restored(ids)
    return found


def _lying(place: Workspace, name: str, who: Mapping[str, str]) -> InBin:
    lying = place.store.find_binned(name)
    if lying is None:
        raise QuestionError(f"no run {name[:80]!r} in the bin", advice="`chipledger runs --bin` lists what is there.")
    return _in_bin(lying, who)


def _in_bin(lying: Binned, who: Mapping[str, str]) -> InBin:
    run_id = lying.run.run_id
    return InBin(run_id, _name(lying.run), who.get(run_id, ""), lying.since_ns, lying.until_ns)


def binned(place: Workspace) -> list[InBin]:
    """What lies in the bin, what came last first."""
    lying = place.store.binned()
    who = shelf(place).who_binned() if lying else {}
    return [_in_bin(one, who) for one in lying]


@changing("empty the bin", Role.ADMIN)
def purge(place: Workspace, older_than_s: float = KEPT_S) -> list[str]:
    """Empty the bin of what has lain there longer, with all that was added to it. Returns the ids of what is gone."""
    return tidy.purge(place.store, place.registry.at, older_than_s)


def _name(run: Run) -> str:
    """What a run is called; its id where it cannot be read."""
    try:
        return run.manifest.name
    except InputError:
        return run.run_id


def _called(run: Run) -> str:
    """What a message calls a run."""
    return f"{_name(run)[:80]} ({run.run_id[:12]})"


def searches(place: Workspace) -> list[Search]:
    return shelf(place).searches()


def search_of(place: Workspace, name: str) -> Search:
    """Raises QuestionError where none of that name is kept."""
    kept = searches(place)
    for search in kept:
        if search.name == name:
            return search
    known = ", ".join(s.name for s in kept[:20]) or "none yet"
    raise QuestionError(f"no search {name[:80]!r} is kept", expected=known)


@changing("keep a search")
def save_search(
    place: Workspace, name: str, query: str, *, columns: Sequence[str] = (), sort: str = "", who: str = ""
) -> Search:
    """Keep a search under a name, in the place of one that had it. Raises where it could not be searched for."""
    read(query)
    if len(columns) > MOST_COLUMNS:
        raise QuestionError(f"{len(columns)} columns", expected=f"at most {MOST_COLUMNS}")
    shown = tuple(named(column).name for column in columns)
    if sort:
        sort = "-" * sort.startswith("-") + named(sort.removeprefix("-")).name
    kept = Search(name=clean_name(name, "search's name"), query=query, columns=shown, sort=sort, who=clean_who(who))
    shelf(place).save_search(kept)
    return kept


@changing("delete a search")
def delete_search(place: Workspace, name: str) -> None:
    shelf(place).delete_search(name)
