"""What people added to the runs of a store, kept between drawings: of what changed only that is read again."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.workspace import Workspace
from runs.registry import Extras
from runs.run import NOTHING, Said
from runs.share_book import NONE, Groups
from runs.shelf import Place, Shelf

MANY = 1_000  # runs that were touched at once: of more all is read


@dataclass(frozen=True)
class Added:
    """What people added to a run."""

    extras: Extras = Extras()
    where: Place = Place()
    said: Said = NOTHING
    demo: bool = False
    groups: Groups = NONE


NOTHING_ADDED = Added()


class Additions:
    """By run; a run to which nothing was added is not among them. A snapshot of a live run has what was added to it."""

    def __init__(self, place: Workspace, shelf: Shelf):
        self._place, self._shelf = place, shelf
        self._state: tuple[int, int] | None = None
        self._touched, self._noted = 0, False  # the last change that is known, and whether changes tell of which run
        self._bundled: set[str] = set()
        self._added: dict[str, Added] = {}
        self._owners: dict[str, str] = {}
        self._standing: dict[str, set[str]] = {}  # the runs that share an owner's additions

    def of(self, run_id: str) -> Added:
        return self._added.get(run_id, NOTHING_ADDED)

    def changed(self) -> set[str]:
        """Bring it up to date: the runs to which other things are added than were."""
        state, bundled = self._shelf.state(), self._place.demo.ids()
        other, self._bundled = bundled ^ self._bundled, bundled
        before, self._state = self._state, None  # where what follows fails all is read next time
        changed = self._since(before, state, other)
        self._state = state
        return changed

    def _since(self, before: tuple[int, int] | None, state: tuple[int, int], other: set[str]) -> set[str]:
        if before is None or before[0] != state[0] or state[1] < before[1]:  # fewer: a backup came into its place
            return self._read_all()
        if before != state:
            touched = self._shelf.touched(self._touched) if self._noted else None
            if touched is None or len(touched[1]) > MANY:
                return self._read_all()
            self._touched, other = touched[0], other | touched[1]
        return self._read(other) if other else set()

    def _read_all(self) -> set[str]:
        before, self._noted = self._added, self._shelf.notes_touched()
        self._touched = self._shelf.last_touched()  # before what it is about is read
        self._owners, self._standing = self._place.registry.standing(), {}
        for run_id, owner in self._owners.items():
            self._standing.setdefault(owner, set()).add(run_id)
        told = self._told(None)
        self._added = told | {i: told[owner] for i, owner in self._owners.items() if owner in told}
        for run_id in self._owners.keys() & told.keys():  # what was added to itself stays hidden
            if self._owners[run_id] not in told:
                del self._added[run_id]
        return {i for i in before.keys() | self._added.keys() if before.get(i) != self._added.get(i)}

    def _read(self, touched: Collection[str]) -> set[str]:
        standing = self._place.registry.standing(touched)
        for run_id in touched:
            self._stand(run_id, standing.get(run_id))
        mine = {*touched, *(i for owner in touched for i in self._standing.get(owner, ()))}
        told = self._told({self._owners.get(i, i) for i in mine})
        for run_id in mine:
            added = told.get(self._owners.get(run_id, run_id))
            if added is None:
                self._added.pop(run_id, None)
            else:
                self._added[run_id] = added
        return mine

    def _stand(self, run_id: str, owner: str | None) -> None:
        if (before := self._owners.pop(run_id, None)) is not None:
            self._standing[before].discard(run_id)
        if owner is not None:
            self._owners[run_id] = owner
            self._standing.setdefault(owner, set()).add(run_id)

    def _told(self, owners: Collection[str] | None) -> dict[str, Added]:
        """By whose additions they are; None: of all."""
        registry = self._place.registry
        said: Mapping[str, Said] = registry.said(None if owners is None else list(owners))
        places, extras = self._shelf.places(owners), registry.added(owners)
        groups, bundled = self._place.shares.all(owners), self._bundled
        there = {*said, *places, *extras, *groups, *bundled}
        return {
            i: Added(
                extras=extras.get(i, NOTHING_ADDED.extras),
                where=places.get(i, NOTHING_ADDED.where),
                said=said.get(i, NOTHING),
                demo=i in bundled,
                groups=groups.get(i, NONE),
            )
            for i in (there if owners is None else there.intersection(owners))
        }
