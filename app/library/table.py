"""The rows of all runs of a store, kept between drawings and brought up to date when anything changed.

What changed is told by the folder of runs (its time, then each manifest's), the registry's count of changes and the
pointers of live runs, so that a drawing of ten thousand runs reads none of them again. Files of runs that were damaged
in their place are seen for the rows that are shown, and of all others within LOOK_S.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from app.facts.settled import settled
from app.identity.asking import acting_as
from app.identity.base import SERVER
from app.library.columns import Row
from app.library.working import UNDER_PENDING, Numbers, key_of
from app.summary import chip_text, chips_text, model_text, tags_of
from app.workspace import Workspace
from errors import ChipledgerError
from runs.live import Live
from runs.registry import Extras
from runs.run import NOTHING, Run, Said
from runs.share_book import NONE, Groups
from runs.shelf import Place, Shelf

LOOK_S = 60.0  # how often files of runs that nobody looks at are looked at
FRESH = 500  # rows whose files are looked at whenever they are shown
MOST_SEEN = 64  # sets of people who see the same, of whose rows lists are kept
_SETTLED_NS = 2_000_000_000  # a folder touched more recently may change again without another time


@cache
def shelf(place: Workspace) -> Shelf:
    return Shelf(place.registry.at)


@cache
def table(place: Workspace) -> "Table":
    """The table of a store, one in a process."""
    return Table(place)


@dataclass(frozen=True)
class _Added:
    """What people added to a run."""

    extras: Extras = Extras()
    where: Place = Place()
    said: Said = NOTHING
    demo: bool = False
    groups: Groups = NONE


_NONE = _Added()


@dataclass(frozen=True)
class _Known:
    """A run as its row was made: `state` of its manifest, `key` of its numbers."""

    state: tuple[int, ...]
    added: _Added
    live: Live | None
    key: str
    row: Row


class Rows(list[Row]):
    """Rows that one set of people sees, not to be changed; and what whoever lists keeps of them, in `views`."""

    def __init__(self, rows: Iterable[Row] = ()):
        super().__init__(rows)
        self.views: dict[tuple[bool, bool], Any] = {}


class Table:
    """Rows of a store, the newest first, those that cannot be read after them.

    The server looks at all of them once for whoever asks; each is given those that they see.
    """

    def __init__(self, place: Workspace):
        self._place, self._shelf = place, shelf(place)
        self._lock = threading.Lock()
        self._numbers = Numbers(place, self._shelf)
        self._known: dict[str, _Known] = {}
        self._states: dict[str, tuple[int, ...]] = {}
        self._added: dict[str, _Added] = {}
        self._folder: tuple[int, ...] = ()  # of the runs, as it was at the last scan, where it was settled
        self._registry: tuple[int, int] | None = None
        self._demo, self._bundled = place.demo, set[str]()
        self._live: list[Live] = []
        self._rows = Rows()
        self._seen: dict[Groups, Rows] = {}  # of these rows, those that are left where so many are hidden
        self._looked_s = time.monotonic()
        self._looker: threading.Thread | None = None

    def rows(self) -> Rows:
        """All rows that whoever asks sees, as they are now. Raises InputError where the store cannot be read."""
        with self._lock:
            with acting_as(SERVER):
                self._update()
            rows = self._rows_seen()
        if time.monotonic() - self._looked_s > LOOK_S:
            self._look_at_all()
        return rows

    def _rows_seen(self) -> Rows:
        """The same object as long as the rows are the same and the same is hidden. A run is hidden before it is there:
        whoever looks up what is hidden last misses none."""
        hidden = self._place.store.hidden()
        if not hidden:
            return self._rows
        if hidden not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen[hidden] = Rows(row for row in self._rows if row.run_id not in hidden)
        return self._seen[hidden]

    def fresh(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Rows that are shown, as they are now: unless they are very many, with what is damaged of them since."""
        with self._lock:
            with acting_as(SERVER):
                self._update()
                if any([self._look_at(row.run_id) for row in rows] if len(rows) <= FRESH else ()):
                    self._list()
            there = [row.run_id for row in rows if row.run_id in self._known]
            hidden = self._place.store.hidden()
            return [self._known[run_id].row for run_id in there if run_id not in hidden]

    def work_out(self, rows: Iterable[Row]) -> None:
        """Work out now the numbers that these rows lack."""
        for row in rows:
            if row.pending:
                self._numbers.work_out(row.run_id)

    def begin(self, shown: Iterable[Row], pending: Sequence[Row]) -> None:
        """Have numbers worked out in the background, first of all those of rows that are shown."""
        if pending:
            self._numbers.begin([row.run_id for row in (*shown, *pending) if row.pending])

    def hides_demo(self) -> bool:
        return self._demo.hidden()

    def _update(self) -> None:
        store, changed = self._place.store, False
        store.check()
        live = store.live.all()
        registry, bundled = self._shelf.state(), self._demo.ids()
        told = store.runs_folder.stat()
        folder = (told.st_ino, told.st_mtime_ns, told.st_ctime_ns)
        if folder != self._folder:
            now_ns, self._states = time.time_ns(), store.states()
            settled = abs(now_ns - told.st_mtime_ns) > _SETTLED_NS
            self._folder, changed = folder if settled else (), True
        if (registry, bundled) != (self._registry, self._bundled):
            self._registry, self._bundled, changed = registry, bundled, True
            self._added = self._additions()
        done = self._numbers.done()
        if changed or done or live != self._live:
            self._live = live
            self._renew(done)

    def _additions(self) -> dict[str, _Added]:
        """What people added, by run; of a snapshot of a live run, what was added to that."""
        registry = self._place.registry
        said, places, extras = registry.said(None), self._shelf.places(), registry.added()
        owners, groups = registry.standing(), self._place.shares.all()
        told = {
            i: _Added(
                *(extras.get(i, _NONE.extras), places.get(i, _NONE.where), said.get(i, NOTHING)),
                *(i in self._bundled, groups.get(i, NONE)),
            )
            for i in {*said, *places, *extras, *groups, *self._bundled}
        }
        return told | {i: told.get(owner, _NONE) for i, owner in owners.items()}

    def _renew(self, done: set[str]) -> None:
        """Make the rows anew that are others than they were."""
        superseded = {i for v in self._live for i, _ in v.retiring}
        live = {v.run_id: v for v in self._live if v.run_id}
        there = self._states.keys() - superseded
        for run_id in self._known.keys() - there:
            del self._known[run_id]
        for run_id in there:
            known, added = self._known.get(run_id), self._added.get(run_id, _NONE)
            same = known and (known.state, known.added, known.live) == (self._states[run_id], added, live.get(run_id))
            if known and same and run_id in done:
                self._known[run_id] = replace(known, row=self._numbers.filled(known.row, known.key))
            elif not same:
                self._make(run_id, self._states[run_id], added, live.get(run_id))
        self._list()

    def _make(self, run_id: str, state: tuple[int, ...], added: _Added, live: Live | None) -> None:
        try:
            run, problem = self._place.store.look_at(run_id)
        except FileNotFoundError:  # removed between the listing and the reading
            self._known.pop(run_id, None)
            return
        if run is None:
            row, key = Row(run_id=run_id, address=run_id, name=run_id, readable=False, problem=problem), ""
        else:
            run = run.told(settled(run, added.said))  # as whoever asks for the run finds it
            key = key_of(run, added.extras)
            row = self._numbers.filled(_row_of(run, added, live, problem or None), key)
        self._known[run_id] = _Known(state, added, live, key, row)

    def _list(self) -> None:
        """The rows in their order; the same object where none is another."""
        known = [k.row for k in self._known.values()]
        rows = sorted((r for r in known if r.readable), key=lambda r: -(r.created_ns or 0))
        rows += sorted((r for r in known if not r.readable), key=lambda r: r.run_id)
        if len(rows) != len(self._rows) or any(a is not b for a, b in zip(rows, self._rows, strict=True)):
            self._rows, self._seen = Rows(rows), {}

    def _look_at(self, run_id: str) -> bool:
        """Look whether a run is damaged, and make its row anew where that is not as it was known: whether it was."""
        if (known := self._known.get(run_id)) is None:
            return False
        try:
            run, problem = self._place.store.look_at(run_id)
        except FileNotFoundError:
            del self._known[run_id]
            return True
        if (run is not None, problem or None) == (known.row.readable, known.row.problem):
            return False
        self._make(run_id, known.state, known.added, known.live)
        return True

    def _look_at_all(self) -> None:
        if self._looker is None or not self._looker.is_alive():
            self._looker = threading.Thread(target=self._look, name="library looks", daemon=True)
            self._looker.start()

    def _look(self) -> None:
        with contextlib.suppress(ChipledgerError, OSError), acting_as(SERVER):  # is it gone, whoever looks is told
            for run_id in list(self._known):
                with self._lock:
                    self._look_at(run_id)
            with self._lock:
                self._list()
        self._looked_s = time.monotonic()


def _row_of(run: Run, added: _Added, live: Live | None, problem: str | None) -> Row:
    """A run's row without the numbers that are worked out."""
    manifest, where = run.manifest, added.where
    return Row(
        run_id=run.run_id,
        address=live.address if live else run.run_id,
        name=manifest.name,
        stored_name=run.written.name,
        kind=manifest.kind,
        simulated=manifest.simulated,
        created_ns=manifest.created_ns,
        chip=chip_text(run),
        chips=manifest.fact("chips"),
        chips_text=chips_text(run),
        model=model_text(run),
        topology=str(manifest.fact("topology") or ""),
        job=str(manifest.fact("job_name") or ""),
        project=where.project,
        experiment=where.experiment,
        tags=tags_of(run, added.extras),
        notes=tuple(added.extras.notes),
        starred=where.starred,
        archived=where.archived,
        demo=added.demo,
        groups=tuple(sorted(added.groups)),
        usd_per_chip_hour=added.extras.usd_per_chip_hour,
        tables=manifest.tables,
        live=live,
        problem=problem,
        under=UNDER_PENDING,
        pending=True,
    )
