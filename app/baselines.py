"""Baselines by name, for commands, API, agents and pages alike: `baseline:main` wherever two runs are compared.

What begins with `baseline:` is a name, never the beginning of a run's. A run that was called so before there were
baselines is found as long as no baseline has that name; where one has, neither is guessed.
"""

import time
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from app.identity.may import changing
from app.library.changes import FOLLOWED, clean_who
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors import format as fmt
from runs.baseline_book import BaselineBook, Move, clean_baseline, unknown_baseline
from runs.run import Run

PREFIX = "baseline:"
HERE, IN_BIN, GONE = "in the library", "in the bin", "no longer in the store"


@dataclass(frozen=True)
class Baseline:
    """A name, the move that led it where it leads, and where that run is: HERE, IN_BIN or GONE. `now_called`: what the
    run is called today; `until_ns`: of one in the bin, when it goes for good."""

    move: Move
    state: str
    now_called: str
    until_ns: int | None = None

    @property
    def name(self) -> str:
        return self.move.name

    @property
    def where(self) -> str:
        """`in the library`, `in the bin, until 2026-12-01 10:00 UTC`."""
        return f"{self.state}, until {fmt.date(self.until_ns)}" if self.until_ns is not None else self.state

    def to_dict(self) -> dict[str, Any]:
        more = {"state": self.state, "now_called": self.now_called, "until_ns": self.until_ns}
        return {"address": PREFIX + self.name, **self.move.to_dict(), **more}


def book(place: Workspace) -> BaselineBook:
    return BaselineBook(place.registry.at)


def _of(place: Workspace, name: str) -> Move | None:
    """What a name leads to, as far as whoever asks sees it."""
    move = book(place).of(name)
    return move if move and place.tells_of(str(move.run_id)) else None


def _known(place: Workspace, name: str) -> Move:
    """Raises QuestionError where it is none, naming those that whoever asks sees."""
    found = _of(place, name)
    if found is None:
        raise unknown_baseline(name, [m.name for m in _standing(place)])
    return found


def _standing(place: Workspace) -> list[Move]:
    return [move for move in book(place).standing() if place.tells_of(str(move.run_id))]


def _history(place: Workspace, name: str) -> list[Move]:
    """All that a name ever led to, newest first, as far as whoever asks sees it; that it was taken away is told with
    the move before."""
    moves = book(place).history(name)
    led = [move.run_id or (before.run_id if before else None) for move, before in zip_longest(moves, moves[1:])]
    return [move for move, run_id in zip(moves, led, strict=True) if place.tells_of(str(run_id))]


def find_run(place: Workspace, text: str) -> Run:
    """A run as `Store.find` finds it, or by `baseline:NAME`. Raises QuestionError where there is none, where it lies in
    the bin, and where a run is called as a baseline is."""
    if not text.startswith(PREFIX):
        return _by_its_own_name(place, text)
    name = _meant(text)
    move = _of(place, name)
    called = next((r for r in place.store.runs() if text in (r.manifest.name, r.written.name)), None)
    if called is not None and move is not None and called.run_id != move.run_id:
        raise QuestionError(
            f"{text[:80]!r} is a baseline, and a run is called so",
            expected=f"{str(move.run_id)[:12]} for the baseline's run, or {called.run_id[:12]} for the other",
            advice="Rename the run: `chipledger rename RUN NAME`.",
        )
    if called is not None:
        return called
    return _led_to(place, move or _known(place, name))


def _by_its_own_name(place: Workspace, text: str) -> Run:
    try:
        return place.store.find(text)
    except QuestionError as e:
        name = _meant(text)
        if _of(place, name) is None:
            raise
        advice = f"A baseline is called so: {PREFIX}{name[:80]}."
        raise QuestionError(e.what, where=e.where, expected=e.expected, advice=advice) from e


def _led_to(place: Workspace, move: Move) -> Run:
    if (run := _the_run(place, move)) is not None:
        return run
    told = _absent(place, move)
    back = f"`chipledger restore {str(move.run_id)[:12]}` brings it back; " if told.state == IN_BIN else ""
    raise QuestionError(
        f"baseline {move.name[:80]!r} leads to {move.run_name[:80]} ({str(move.run_id)[:12]}), which is {told.where}",
        advice=f"{back}`chipledger baseline accept NAME RUN` leads it to another.",
    )


def _the_run(place: Workspace, move: Move) -> Run | None:
    """The very run, or what the live run that it is a snapshot of has become; never one that is called like its id."""
    run_id, store = str(move.run_id), place.store
    if (live := store.live.current(run_id)) and live.run_id and (run := store.get(live.run_id)):
        return run
    if run := store.get(run_id):
        return run
    live = store.live.leading(run_id)
    return store.get(live.run_id) if live and live.run_id else None


def _baseline(place: Workspace, move: Move) -> Baseline:
    run = _the_run(place, move)
    return Baseline(move, HERE, run.manifest.name) if run else _absent(place, move)


def _absent(place: Workspace, move: Move) -> Baseline:
    """Of a run that is not among the others."""
    lying = place.store.find_binned(str(move.run_id))
    if lying is None or lying.run.run_id != move.run_id:
        return Baseline(move, GONE, move.run_name)
    return Baseline(move, IN_BIN, move.run_name, lying.until_ns)


def baselines(place: Workspace) -> list[Baseline]:
    """All of them, by name."""
    return [_baseline(place, move) for move in _standing(place)]


def shown(place: Workspace, name: str) -> tuple[Baseline | None, list[Move]]:
    """(what a name leads to, None where it was taken away; all that it ever led to, the newest first). Raises
    QuestionError where there never was one."""
    name = _meant(name)
    past = _history(place, name)
    move = _of(place, name) if past else _known(place, name)
    return (_baseline(place, move) if move else None), past


@changing("set a baseline")
def set_baseline(place: Workspace, name: str, run: str, *, who: str = "", why: str = "") -> Baseline:
    """Give a run a name. Raises QuestionError where the name leads to another run, or the run still grows."""
    found, plain = _settled(place, run), _plain(name)
    try:
        move = book(place).set(plain, found.run_id, found.manifest.name, who=clean_who(who), why=why)
    except QuestionError as e:
        if book(place).of(plain) is None or _of(place, plain) is not None:
            raise
        raise QuestionError(f"baseline {plain[:80]!r} is taken", expected="a name that is free") from e
    return _baseline(place, move)


@changing("move a baseline")
def accept(place: Workspace, name: str, run: str, *, who: str = "", why: str = "") -> tuple[Move, Baseline]:
    """Lead a name to another run. Returns what it led to before, and what it leads to."""
    found, plain = _settled(place, run), _plain(name)
    _known(place, plain)
    before, move = book(place).accept(plain, found.run_id, found.manifest.name, who=clean_who(who), why=why)
    return before, _baseline(place, move)


@changing("remove a baseline")
def remove(place: Workspace, name: str, *, who: str = "", why: str = "") -> Move:
    """Take a name away. Returns what it led to."""
    plain = _plain(name)
    _known(place, plain)
    return book(place).remove(plain, who=clean_who(who), why=why)


def _plain(name: str) -> str:
    return clean_baseline(name.removeprefix(PREFIX))


def _meant(text: str) -> str:
    """The name that somebody asks for, written as names are kept; what none can be stays, for the sentence that there
    is none of that name."""
    text = text.removeprefix(PREFIX)
    try:
        return clean_baseline(text)
    except InputError:
        return text.encode("utf-8", "backslashreplace").decode()  # a registry is asked in whole characters


def _settled(place: Workspace, text: str) -> Run:
    """A run that does not change any more."""
    run = find_run(place, text)
    live = place.store.live.current(run.run_id)
    if live is not None and live.state_at(time.time_ns()) in FOLLOWED:
        raise QuestionError(
            f"{run.manifest.name[:80]} is still running: what others would be held against changes with it",
            advice="Name it when its `chipledger watch` has ended.",
        )
    return run
