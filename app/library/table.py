"""The runs of a store as an index that is kept between drawings and brought up to date when anything changed.

What changed is told by the folder of runs (its time, then each manifest's), the registry's count of changes with the
runs that were touched, and the pointers of live runs, so that a drawing of a million runs reads none of them again.
Rows are made of those that are shown. Files of runs that were damaged in their place are seen for the rows that are
shown, and of all others within LOOK_S, or as long as it takes where they are many.
"""

import contextlib
import threading
import time
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from analyzers.fleet.columns import Known
from analyzers.fleet.packed import NOTHING, Packed
from app.facts.settled import settled
from app.identity.asking import acting_as
from app.identity.base import SERVER
from app.library.additions import Added, Additions
from app.library.ahead import work_ahead
from app.library.columns import Row
from app.library.index import Index
from app.library.laid import Spending, known_of
from app.library.listed_rows import Rows
from app.library.remembered import LEAST, Remembered, Told, told_of
from app.library.seen import Seen
from app.library.snapshot import Same, Snapshot, number_of_added, taken
from app.library.working import UNDER_PENDING, Numbers, key_of_told
from app.workspace import Workspace
from errors import ChipledgerError
from runs.live import TAG, Live
from runs.share_book import Groups
from runs.shelf import Shelf

LOOK_S = 60.0  # how often files of runs that nobody looks at are looked at
FRESH = 500  # rows whose files are looked at whenever they are shown
MOST_SEEN = 64  # sets of people who see the same, of whose lists something is kept
CHUNK = 500  # rows that are made at a time
FEW = 5_000  # runs, of which every manifest is looked at when one is another; of more those whose folders are
AT_ONCE = 20_000  # runs, of whose folder nobody waits for the reading
MOST_MADE = 100_000  # rows that are kept
_SETTLED_NS = 2_000_000_000  # a folder touched more recently may change again without another time
_REST = 3.0  # of the time that looking at many runs takes, before the next
_SHARE = 4  # of all rows, that were made since the index was kept: then it is kept anew
_FEW_ROWS = 8  # rows whose manifests are read


@cache
def shelf(place: Workspace) -> Shelf:
    return Shelf(place.registry.at)


@cache
def table(place: Workspace) -> "Table":
    """The table of a store, one in a process."""
    return Table(place)


class Table:
    """Runs of a store, the newest first, those that cannot be read after them.

    The server looks at all of them once for whoever asks; each is given those that they see.
    """

    def __init__(self, place: Workspace):
        self._place, self._shelf = place, shelf(place)
        self._lock = threading.RLock()
        self._numbers = Numbers(place, self._shelf)
        self._additions = Additions(place, self._shelf)
        self._remembered = Remembered(place.store.root)
        self._snapshot = Snapshot(place.store.root)
        self._recalled, self._since = False, 0  # rows that were made since the index was kept
        self._spending = Spending(self._remembered, self._numbers, self.made)
        self.index = Index()
        self._made: dict[str, Row] = {}
        self._marks: dict[str, int] = {}  # what tells a manifest from another
        self._folders: dict[str, int] = {}  # what tells a run's folder from another, where they are many
        self._folder: tuple[int, ...] = ()  # of the runs, as it was at the last scan, where it was settled
        self._demo = place.demo
        self._live: dict[str, Live] = {}
        self._superseded: set[str] = set()
        self._stale: set[str] = set()  # runs whose rows are still to be made anew: where that fails it is tried again
        self._seen: dict[Groups, Seen] = {}
        self._stilled = 0  # how often whoever holds the lock has it still
        self._looked_s = time.monotonic()
        self._looker: threading.Thread | None = None
        self._scanner: threading.Thread | None = None

    @contextlib.contextmanager
    def still(self) -> Generator[Seen]:
        """What whoever asks sees, as it is now: nothing of it changes until it was looked at, so that what is asked
        within looks at the store no further time. Raises InputError where the store cannot be read."""
        with self._lock:
            if not self._stilled:
                with acting_as(SERVER):
                    self._update()
            self._stilled += 1
            try:
                yield self._seen_now()
            finally:
                self._stilled -= 1
        if time.monotonic() - self._looked_s > LOOK_S:
            self._look_at_all()

    def rows(self) -> Rows:
        """All rows that whoever asks sees. The same object as long as they and what is hidden are the same."""
        with self.still() as seen:
            if not isinstance(seen.rows, Rows):
                seen.rows = Rows(self, self.index.ids_of(seen.slots))
            return seen.rows

    def work_ahead(self) -> None:
        """Work out what the first search and the first sort would wait for."""
        work_ahead(self.index, self._lock)

    def _seen_now(self) -> Seen:
        """A run is hidden before it is there: whoever looks up what is hidden last misses none."""
        hidden = self._place.store.hidden()
        seen = self._seen.get(hidden)
        if seen is None or seen.version != self.index.version:
            others = self._seen.items() if len(self._seen) < MOST_SEEN else ()
            self._seen = {who: one for who, one in others if one.version == self.index.version}
            seen = self._seen[hidden] = Seen(self.index, hidden)
        return seen

    def made(self, run_ids: Iterable[str]) -> list[Row]:
        """The rows of runs, as they are known. Of those that are gone there is none."""
        with self._lock, acting_as(SERVER):
            ids = [i for i in run_ids if i in self.index.slots]
            rows = {i: self._made[i] for i in ids if i in self._made}
            if lacking := [i for i in ids if i not in rows]:
                for run_id, row in self._read(lacking).items():
                    if self.index.differs(row):
                        self.index.put(row)
                    rows[run_id] = self._made[run_id] = row
                self._make_room()
            return [rows[i] for i in ids if i in rows]

    def laid(self, run_ids: Iterable[str]) -> tuple[list[str], Known, list[Packed]]:
        """Of those of the runs that are still there their ids, what is known of them, and what they spent."""
        with self._lock, acting_as(SERVER):
            ids = [i for i in run_ids if i in self.index.slots]
            slots = np.array([self.index.slots[i] for i in ids], dtype=np.int64)
            marks = {i: mark for i, mark in zip(ids, self.index.spent[slots].tolist(), strict=True) if mark}
            spent = self._spending.of(marks, keep=len(self._marks) > LEAST)
            return ids, known_of(self.index, slots, self._live), [spent.get(i, NOTHING) for i in ids]

    def fresh(self, rows: Iterable[Row]) -> Sequence[Row]:
        """Rows that are shown, as they are now."""
        return self.fresh_of([row.run_id for row in rows])

    def fresh_of(self, run_ids: Sequence[str]) -> Sequence[Row]:
        """Rows of runs that are shown, as they are now: unless they are very many, with what is damaged of them
        since."""
        with self._lock:
            with acting_as(SERVER):
                self._update()
                for run_id in run_ids if len(run_ids) <= FRESH else ():
                    self._look_at(run_id)
            hidden = self._place.store.hidden()
            there = [run_id for run_id in run_ids if run_id in self.index.slots and run_id not in hidden]
            return self.made(there) if len(there) <= FRESH else Rows(self, there)

    def work_out(self, rows: Iterable[Row]) -> None:
        """Work out now the numbers that these rows lack."""
        self.work_out_of([row.run_id for row in rows if row.pending])

    def work_out_of(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._numbers.work_out(run_id)

    def begin(self, shown: Iterable[Row], pending: Sequence[str]) -> None:
        """Have numbers of these runs worked out in the background, first of all those of rows that are shown."""
        if pending:
            self._numbers.begin([row.run_id for row in shown if row.pending], pending)

    def hides_demo(self) -> bool:
        return self._demo.hidden()

    def serials(self, run_ids: Iterable[str]) -> list[int]:
        """Of each run a number that is another when its row is; -1 of one that is gone."""
        slots, serials = self.index.slots, self.index.serials
        return [int(serials[slots[i]]) if i in slots else -1 for i in run_ids]

    def addressed(self, addresses: Collection[str]) -> Rows:
        """The rows that whoever asks sees of those that these lead to, in the order of the list."""
        with self.still() as seen:
            live = {v.address: run_id for run_id, v in self._live.items()}
            found = (self.index.slots.get(live.get(address, address)) for address in addresses)
            mine = np.isin(seen.slots, [slot for slot in found if slot is not None])
            return Rows(self, self.index.ids_of(seen.slots[mine]))

    def called(self, text: str) -> Row | None:
        """The row that whoever asks sees of the run with this id or live address, else of the newest of this name."""
        with self.still() as seen:
            live = {v.address: run_id for run_id, v in self._live.items()}
            slot = self.index.slots.get(live.get(text, text))
            mine = seen.slots == slot if slot is not None else np.zeros(0, dtype=bool)
            if not mine.any():
                mine = self.index.texts["name"].equal(text)[seen.slots]
            return next(iter(self.made(self.index.ids_of(seen.slots[mine][:1]))), None)

    def unread(self) -> list[str]:
        """The runs that whoever asks sees and that cannot be read."""
        with self.still() as seen:
            return self.index.ids_of(seen.slots[~self.index.flags["readable"][seen.slots]])

    def groups(self) -> list[str]:
        """Those that runs stand in which whoever asks sees, the most frequent first."""
        with self.still() as seen:
            return list(seen.view(archived=True, demo=True).facets["group"])

    def counts(self) -> tuple[int, int]:
        """(runs that whoever asks sees, those of them that came with the product)."""
        with self.still() as seen:
            return len(seen.slots), int(self.index.flags["demo"][seen.slots].sum())

    def _update(self) -> None:
        self._place.store.check()
        if not self._recalled:
            self._recall()
        live = self._place.store.live.all()
        for told in (self._additions.changed, self._scanned, self._numbers.done, partial(self._followed, live)):
            self._stale |= told()  # each tells it once, and what is asked after it may fail
        if self._stale:
            self._renew()
        if self._since > max(LEAST, len(self.index) // _SHARE):
            self._keep()

    def _recall(self) -> None:
        """Begin with the rows that were kept and are the same: of a store of many the others alone are made."""
        self._stale |= self._additions.changed()
        kept = self._snapshot.read()
        if kept is not None:
            others = {i for i, added in kept.added.items() if added != number_of_added(self._additions.of(i))}
            with contextlib.suppress(KeyError):  # of a version with other columns
                self.index.begin(kept.run_ids, kept.columns, kept.values)
                self._marks, self._folders = kept.marks, kept.folders
                self._stale = others | self._stale.difference(self.index.slots) | self._scan()
        self._recalled = True

    def _keep(self) -> None:
        """Keep the index as it is for whoever starts next, where runs are many."""
        if told := self._taken():
            self._snapshot.write(told)

    def _taken(self) -> dict[str, np.ndarray]:
        self._since, same = 0, Same(self._marks, self._folders, self._additions.of)
        return taken(self.index, same, self._numbers.unkept()) if len(self._marks) > LEAST else {}

    def _followed(self, live: Iterable[Live]) -> set[str]:
        """Runs of which a live run tells something else than it did."""
        told, superseded = {v.run_id: v for v in live if v.run_id}, {i for v in live for i, _ in v.retiring}
        changed = superseded ^ self._superseded
        changed |= {i for i in told.keys() | self._live.keys() if told.get(i) != self._live.get(i)}
        self._live, self._superseded = told, superseded
        return changed

    def _scanned(self) -> set[str]:
        """Runs that came, went or are others. Where they are very many, the folder is read in the background."""
        told = self._place.store.runs_folder.stat()
        if (told.st_ino, told.st_mtime_ns, told.st_ctime_ns) == self._folder:
            return set()
        if len(self._marks) > AT_ONCE:
            self._scan_soon()
            return set()
        return self._scan()

    def _scan(self) -> set[str]:
        return self._taken_in(*self._looked_up())

    def _looked_up(self) -> tuple[tuple[int, ...], dict[str, int], dict[str, int]]:
        """(the folder, where it is settled, the mark of each manifest, and what tells each folder from another)."""
        store, now_ns = self._place.store, time.time_ns()
        told = store.runs_folder.stat()
        settled_ = abs(now_ns - told.st_mtime_ns) > _SETTLED_NS
        folder = (told.st_ino, told.st_mtime_ns, told.st_ctime_ns) if settled_ else ()
        folders = store.folders()
        if len(self._marks) <= FEW:
            marks = {i: hash(state) for i, state in store.states().items()}
            return folder, marks, {i: folders[i] for i in marks if i in folders}
        known, marks = self._folders, self._marks
        same = {i for i, inode in folders.items() if known.get(i) == inode and i in marks}
        return folder, {i: marks[i] if i in same else hash(store.state(i)) for i in folders}, folders

    def _taken_in(self, folder: tuple[int, ...], marks: dict[str, int], folders: dict[str, int]) -> set[str]:
        before, self._marks = self._marks, marks
        if not before and len(marks) > LEAST:
            self._remembered.forget(self._remembered.ids() - marks.keys())
        self._folder, self._folders = folder, folders
        return {i for i, mark in marks.items() if before.get(i) != mark} | (before.keys() - marks.keys())

    def _scan_soon(self) -> None:
        if self._scanner is None or not self._scanner.is_alive():
            self._scanner = threading.Thread(target=self._scan_aside, name="library scans", daemon=True)
            self._scanner.start()

    def _scan_aside(self) -> None:
        with contextlib.suppress(ChipledgerError, OSError), acting_as(SERVER):  # whoever looks is told
            began = time.monotonic()
            found = self._looked_up()
            with self._lock:
                self._renew(self._taken_in(*found))
            time.sleep(_REST * (time.monotonic() - began))

    def _renew(self, changed: Iterable[str] = ()) -> None:
        """Make the rows of these runs anew, and of those that are stale."""
        self._stale.update(changed)
        ids = sorted(i for i in self._stale if i in self._marks and i not in self._superseded)
        self._drop(self._stale.difference(ids))
        self._stale.intersection_update(ids)
        for at in range(0, len(ids), CHUNK):
            some = ids[at : at + CHUNK]
            for run_id in some:
                self._made.pop(run_id, None)
            rows = self._read(some)
            self._put(rows.items())
            self._lose(i for i in some if i not in rows)
            self._stale.difference_update(some)
            self._make_room()
        self._since += len(ids)
        self.index.tidy()

    def _put(self, rows: Iterable[tuple[str, Row]]) -> None:
        for run_id, row in rows:
            self.index.put(row)
            self._made[run_id] = row

    def _make_room(self) -> None:
        if len(self._made) > MOST_MADE:
            for run_id in list(self._made)[: MOST_MADE // 2]:
                del self._made[run_id]

    def _lose(self, run_ids: Iterable[str]) -> None:
        """Of runs that went since they were scanned: one that comes back as it was is new."""
        gone_since = [*run_ids]
        for run_id in gone_since:
            self._marks.pop(run_id, None)
        self._drop(gone_since)

    def _drop(self, run_ids: Iterable[str]) -> None:
        dropped = [i for i in run_ids if i in self.index.slots]
        for run_id in dropped:
            self.index.remove(run_id)
            self._made.pop(run_id, None)
        if dropped:
            self._remembered.forget(dropped)
            self._snapshot.forget()
            self._since += LEAST + 1  # it is kept anew once all was looked at

    def _read(self, run_ids: Sequence[str]) -> dict[str, Row]:
        """The rows of these runs, without those that are gone."""
        many = len(self._marks) > LEAST
        marks = {i: self._marks[i] for i in run_ids if not self._additions.of(i).said.facts}
        kept = self._remembered.get(marks) if many and len(run_ids) > _FEW_ROWS else {}
        told = {i: kept[i] if i in kept else self._told(i) for i in run_ids}
        if many and (new := {i: one for i in marks if i not in kept and isinstance(one := told[i], dict)}):
            self._remembered.keep(new, self._marks)
        glimpses = self._numbers.kept(run_ids)
        rows = {i: self._row(i, one) for i, one in told.items() if one is not None}
        return {i: self._numbers.filled(row, key, glimpses) for i, (row, key) in rows.items()}

    def _told(self, run_id: str) -> "Told | str | None":
        """What the manifest tells with what was said of it, or why it cannot be read; None where the run is gone."""
        try:
            run, problem = self._place.store.look_at(run_id)
        except FileNotFoundError:  # removed between the listing and the reading
            return None
        if run is None:
            return problem
        said = self._additions.of(run_id).said
        run = run.told(settled(run, replace(said, name="")))  # as whoever asks for the run finds it
        return told_of(run, problem or None)

    def _row(self, run_id: str, told: "Told | str") -> tuple[Row, str]:
        """(a run's row without the numbers that are worked out, by what these are kept)."""
        if isinstance(told, str):
            return Row(run_id=run_id, address=run_id, name=run_id, readable=False, problem=told), ""
        added = self._additions.of(run_id)
        return _row_of(run_id, told, added, self._live.get(run_id)), key_of_told(told, added.extras)

    def _look_at(self, run_id: str) -> None:
        """Look whether a run is damaged, and make its row anew where that is not as it was known."""
        slot = self.index.slots.get(run_id)
        if slot is None:
            return
        try:
            run, problem = self._place.store.look_at(run_id)
        except FileNotFoundError:
            self._lose([run_id])
            return
        known = bool(self.index.flags["readable"][slot]), self.index.texts["problem"].at(slot)
        mark = hash(self._place.store.state(run_id))  # of very many runs one that came into its place may look the same
        if mark != self._marks.get(run_id) or (run is not None, problem or None) != known:
            self._marks[run_id] = mark
            self._renew([run_id])

    def _look_at_all(self) -> None:
        if self._looker is None or not self._looker.is_alive():
            self._looker = threading.Thread(target=self._look, name="library looks", daemon=True)
            self._looker.start()

    def _look(self) -> None:
        with contextlib.suppress(ChipledgerError, OSError), acting_as(SERVER):  # is it gone, whoever looks is told
            many = len(self.index) > FEW
            for run_id in list(self.index.slots):
                began = time.monotonic()
                with self._lock:
                    self._look_at(run_id)
                if many:
                    time.sleep(_REST * (time.monotonic() - began))
            with self._lock:
                told = self._taken() if self._since > LEAST else {}
            if told:
                self._snapshot.write(told)
        self._looked_s = time.monotonic()


def _row_of(run_id: str, told: Told, added: Added, live: Live | None) -> Row:
    known: dict[str, Any] = {name: value for name, value in told.items() if name not in ("facts_price", "mark")}
    tags = {k: v for k, v in {**told["tags"], **added.extras.tags}.items() if k != TAG}
    price = added.extras.usd_per_chip_hour
    return Row(
        **known | {"name": added.said.name or told["name"], "tags": tags},
        run_id=run_id,
        address=live.address if live else run_id,
        project=added.where.project,
        experiment=added.where.experiment,
        notes=tuple(added.extras.notes),
        starred=added.where.starred,
        archived=added.where.archived,
        demo=added.demo,
        groups=tuple(sorted(added.groups)),
        usd_per_chip_hour=told["facts_price"] if price is None else price,
        live=live,
        under=UNDER_PENDING,
        pending=True,
    )
