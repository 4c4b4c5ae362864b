"""The store: runs on the local disk, each written once and complete or not at all.

    <root>/runs/<run_id>/run.json, tables/<table>.parquet, blobs/...
    <root>/partial/<random>/            what is being written; swept when its process is gone
    <root>/uploads/<upload_id>/         files as they were uploaded; never changed
    <root>/live/<name>/                 a job being followed: its entries, and a pointer to its newest run
    <root>/bin/<run_id>/                a run that was deleted, and can be brought back for a while
    <root>/derived/<run_id>/            what was worked out from a run's tables; may be deleted at any time
    <root>/registry.db                  what may change: notes, tags, prices, who sees which run

All of it can be read by its owner alone.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from errors import InputError, QuestionError
from errors import format as fmt
from errors.nearest import did_you_mean
from runs.bin import RUN_ID, Bin, Binned
from runs.derived import forget
from runs.durable import PRIVATE, keep_private, writing
from runs.live import PREFIX, LiveRuns
from runs.naming import begun, unknown
from runs.objects.keys import ABOUT
from runs.run import MANIFEST, NOTHING, Run, Said
from runs.scratch import Held, Scratch

if TYPE_CHECKING:
    from runs.objects.coming import Coming
    from runs.writer import RunWriter

Saying = Callable[
    [Sequence[str] | None], Mapping[str, Said]
]  # of these runs, or of all: those of which something was said
Hidden = Callable[[], frozenset[str]]  # runs, by id, and live runs, by address, that whoever asks may not see
_LOOKS = 5  # at a run that is another each time
_SHOWN = 80  # characters of a name that a message repeats


@dataclass(frozen=True)
class Listing:
    """The runs of a store, newest first, and one sentence about each that is damaged, by its id. Of those some can be
    read but for a file, and are among the runs too."""

    runs: list[Run] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)


class Store:
    """A folder of runs. Opening it makes the folder and sweeps what a killed ingest left behind; one that is there and
    cannot be written is read.

    What `hidden` holds does not exist for whoever asks: it is in no list, leads nowhere, and no message names it.
    """

    def __init__(self, root: Path, said: Saying = lambda run_ids: {}, hidden: Hidden = frozenset[str]):
        self.root = Path(root).expanduser().absolute()
        self.said, self.hidden = said, hidden
        self.runs_folder = self.root / "runs"
        self.uploads_folder = self.root / "uploads"
        partial = self.root / "partial"
        self.live = LiveRuns(self.root / "live", lambda: self.hidden())
        self._scratch = Scratch(partial)
        self.bin = Bin(self.root, self.runs_folder, self.hold)
        if os.path.exists(self.root / ABOUT):
            raise InputError(
                "is a store of objects", where=str(self.root), advice=f"Give it by its address, file://{self.root}."
            )
        try:
            _open_root(self.root, self.runs_folder)
            for folder in (self.runs_folder, self.uploads_folder, partial):
                folder.mkdir(mode=PRIVATE, exist_ok=True)
            self.bin.make()
        except OSError as e:
            if not _readable(self.runs_folder):
                raise InputError(
                    f"cannot use this folder as a store ({e.strerror})",
                    where=str(self.root),
                    advice="Give another with --store or $CHIPLEDGER_STORE.",
                ) from e
        for folder in (self.runs_folder, self.uploads_folder, partial, self.live.folder, self.bin.folder):
            keep_private(folder)
        self._scratch.sweep(self._rescue)

    @property
    def where(self) -> str:
        """Where it lies, as messages say it."""
        return str(self.root)

    @property
    def identity(self) -> str:
        """Which store it is, whatever it is called: two that have the same are one."""
        self.check()
        told = os.stat(self.root)
        return f"{told.st_dev}:{told.st_ino}"

    @property
    def kept_identity(self) -> str:
        """Which store it is, as told by what lies in it, to whichever machine; empty where nothing does."""
        return ""

    @property
    def has_all_uploads(self) -> bool:
        """Whether every machine that has this store has all uploads too."""
        return True

    def sweep(self) -> None:
        """Take away what writers left that were killed."""
        self._scratch.sweep(self._rescue)

    def check(self) -> None:
        """Raises InputError where the store is no longer there, or can no longer be read."""
        if not _readable(self.runs_folder):
            raise InputError(
                "the store is gone, or can no longer be read",
                where=str(self.root),
                advice="Is its disk mounted? Bring it back, or start again with another --store.",
            )

    def hold(self) -> Held:
        """A folder for what is being written, removed with its process. Raises OSError where none can be made."""
        return self._scratch.hold()

    def coming(self) -> "Coming | None":
        """A place in the store where workers of other machines leave what is for a run of it; None: they need to see
        the folder of the store."""
        return None

    def bring_outgoing(self, run_id: str | None = None) -> None:
        """Bring to their places runs that processes without a network wrote, where that takes one. Raises InputError
        where it cannot be done with this one, or of all with any."""

    def ids(self) -> list[str]:
        """Identifiers of all runs, in no particular order. Raises InputError where the store is gone."""
        self.check()
        names = [p.name for p in self.runs_folder.iterdir() if RUN_ID.fullmatch(p.name) and os.path.isdir(p)]
        return self._seen(names)

    def _seen(self, names: list[str]) -> list[str]:
        """Those that are not hidden. A run is hidden before it is there: what is hidden is looked up last."""
        hidden = self.hidden()
        return [name for name in names if name not in hidden] if hidden else names

    def runs(self) -> list[Run]:
        """All runs whose manifest can be read, newest first."""
        return self.look().runs

    def listing(self) -> tuple[list[Run], list[str]]:
        """(runs whose manifest can be read, newest first; one sentence about each that is damaged)."""
        found = self.look()
        return found.runs, list(found.broken.values())

    def look(self) -> Listing:
        """All runs, and what is wrong with those that are damaged. One broken run hides no other.

        Of a live run there is the newest snapshot alone.
        """
        found, superseded = Listing(), self.live.retiring()
        for run_id in self.ids():
            if run_id in superseded:
                continue
            with contextlib.suppress(FileNotFoundError):  # removed between the listing and the reading
                run, problem = _looked_at(self.runs_folder / run_id)
                found.runs.extend([run] if run else [])
                found.broken.update({run_id: problem} if problem else {})
        found.runs.sort(key=lambda r: -r.written.created_ns)
        said = self.said(None)
        found.runs[:] = [r.told(said.get(r.run_id, NOTHING)) for r in found.runs]
        return found

    def states(self) -> dict[str, tuple[int, ...]]:
        """Of every run what tells that it is another, or was touched, without reading it; empty of one that has no
        manifest. Raises InputError where the store is gone."""
        self.check()
        found: dict[str, tuple[int, ...]] = {}
        folder = os.open(self.runs_folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(folder) as there:
                names = [e.name for e in there if RUN_ID.fullmatch(e.name) and e.is_dir()]
            for name in self._seen(names):
                found[name] = _told(f"{name}/{MANIFEST}", folder)
        finally:
            os.close(folder)
        return found

    def folders(self) -> dict[str, int]:
        """Of every run what tells its folder from one that comes into its place, without looking at any. Raises
        InputError where the store is gone."""
        self.check()
        with os.scandir(self.runs_folder) as there:
            found = {e.name: e.inode() for e in there if RUN_ID.fullmatch(e.name) and e.is_dir()}
        hidden = self.hidden()
        return {name: inode for name, inode in found.items() if name not in hidden} if hidden else found

    def state(self, run_id: str) -> tuple[int, ...]:
        """What `states` tells of a run."""
        return _told(self.runs_folder / run_id / MANIFEST)

    def look_at(self, run_id: str) -> tuple[Run | None, str]:
        """(a run, where its manifest can be read; what is damaged of it, else empty). Without what people said of it.
        Raises FileNotFoundError where it is not there."""
        found = _looked_at(self.runs_folder / run_id)
        if run_id in self.hidden():
            raise FileNotFoundError(run_id)
        return found

    def is_stored(self, run_id: str) -> bool:
        """Whether a run is here or in the bin, whoever sees it."""
        return os.path.isdir(self.runs_folder / run_id) or os.path.isdir(self.bin.folder / run_id)

    def get(self, run_id: str) -> Run | None:
        if not self.has(run_id):
            return None
        return Run(self.runs_folder / run_id, self.said([run_id]).get(run_id, NOTHING))

    def find(self, name: str) -> Run:
        """A run by its id, its name (the newest of that name, else one that was called so before), an unambiguous
        beginning of either, or `live:NAME`.

        The id of a superseded snapshot of a live run leads to the newest one. Raises QuestionError where there is
        none or the beginning fits several.
        """
        if name.startswith(PREFIX):
            return self._find_live(name.removeprefix(PREFIX))
        if (live := self.live.current(name)) and live.run_id and (run := self.get(live.run_id)):
            return run
        if run := self.get(name):
            return run
        runs = self.runs()
        named = [r for r in runs if r.manifest.name == name] or [r for r in runs if name in _names(r)]
        if named:
            return named[0]
        if run := begun(name, runs):
            return run
        if (live := self.live.leading(name)) and live.run_id and (run := self.get(live.run_id)):
            return run
        with self.bin.still():  # else it might be moved between two looks, again and again
            run, lying = self.get(name), self.find_binned(name)
        if run:
            return run
        if lying:
            raise _is_binned(lying)
        raise unknown(name, runs, self.live.all(), self.where)

    def _find_live(self, name: str) -> Run:
        live = self.live.read(name)
        if live is None:
            known = ", ".join(v.name for v in self.live.all()) or "none yet"
            near = did_you_mean(name, [v.name for v in self.live.all()])
            raise QuestionError(
                f"no live run {name[:_SHOWN]!r} in this store", where=self.where, expected=known, advice=near
            )
        if live.run_id and (lying := self.find_binned(live.run_id)):
            raise _is_binned(lying)
        if live.run_id is None or (run := self.get(live.run_id)) is None:
            problem = f" ({live.problem})" if live.problem else ""
            raise QuestionError(
                f"live run {name!r} has no entries yet{problem}",
                advice="It appears with the job's first goodput entry.",
            )
        return run

    def binned(self) -> list[Binned]:
        """The runs in the bin, with what people said of them, those that came last first."""
        return self._told_of(self.bin.runs())

    def _told_of(self, lying: list[Binned]) -> list[Binned]:
        """Those that are not hidden, nor in the store as well, with what people said of them."""
        hidden = self.hidden()
        found = [b for b in lying if b.run.run_id not in hidden and not self.has(b.run.run_id)]
        said = self.said([b.run.run_id for b in found])
        return [replace(b, run=b.run.told(said.get(b.run.run_id, NOTHING))) for b in found]

    def find_binned(self, name: str) -> Binned | None:
        """A run in the bin by its id, an unambiguous beginning of it, or its name (the last that came of that name)."""
        if (lying := self.bin.lying(name)) and (found := self._told_of([lying])):
            return found[0]  # without a look at the others: of many that are brought back each is named by its id
        runs = self.binned()
        named = [b for b in runs if name in _names(b.run)]
        begun = [b for b in runs if len(name) >= 4 and b.run.run_id.startswith(name)]
        return named[0] if named else begun[0] if len(begun) == 1 else None

    def has(self, run_id: str) -> bool:
        there = RUN_ID.fullmatch(run_id) is not None and os.path.isdir(self.runs_folder / run_id)
        return there and run_id not in self.hidden()

    def kept(self, run_id: str) -> Run | None:
        """A run in the store or in its bin."""
        found = self.get(run_id) or self.bin.get(run_id)
        return None if run_id in self.hidden() else found

    def remove(self, run_id: str) -> None:
        """Take a run out of the store, at once for whoever looks; nothing happens where it is not there. Raises
        InputError where the store cannot be written."""
        if run := self.get(run_id):
            with writing(run.folder), self.hold() as held, contextlib.suppress(FileNotFoundError):  # somebody else did
                run.folder.rename(held.folder / "removed")
            forget(self.root, run_id)

    def _rescue(self, folder: Path) -> None:
        from runs.writer import rescue  # late: few processes find what another left behind, and none pays for pyarrow

        rescue(folder, self.runs_folder)

    def writer(self) -> "RunWriter":
        from runs.writer import RunWriter

        return RunWriter(self.hold, self.runs_folder)


def _names(run: Run) -> set[str]:
    """What a run is called and was ever called; nothing where it cannot be read."""
    try:
        return {run.manifest.name, run.written.name, *run.said.earlier}
    except InputError:
        return set()


class InBinError(QuestionError):
    """What was asked for lies in the bin, and nothing else could be meant."""


def _is_binned(lying: Binned) -> InBinError:
    run_id, until = lying.run.run_id[:12], fmt.date(lying.until_ns)
    return InBinError(
        f"run {run_id} is in the bin, until {until}", advice=f"`chipledger restore {run_id}` brings it back."
    )


def _open_root(root: Path, runs_folder: Path) -> None:
    """Make the store's folder. One that was there and holds other things than a store keeps its permissions."""
    root.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    if os.path.isdir(runs_folder) or not any(root.iterdir()):
        keep_private(root)


def _readable(runs_folder: Path) -> bool:
    return os.path.isdir(runs_folder) and os.access(runs_folder, os.R_OK | os.X_OK)


def _looked_at(folder: Path) -> tuple[Run | None, str]:
    """(a run, where its manifest can be read; what is damaged of it). One that is read anew at the same time is looked
    at again. Raises FileNotFoundError where it is gone."""
    run, problem = None, ""
    for _ in range(_LOOKS):
        run, problem, state = None, "", _state(folder)
        try:
            run = _read_once(folder, state)
            problem = run.damage or ""
        except (InputError, OSError) as e:
            problem = str(e)
        if not problem or _state(folder) == state:
            break
    return run, problem


def _state(folder: Path) -> tuple[int, ...]:
    """What tells that a manifest is another, without reading it. Raises FileNotFoundError where the run is gone."""
    found = _told(folder / MANIFEST)
    if not found:
        folder.stat()
    return found


def _told(manifest: Path | str, folder: int | None = None) -> tuple[int, ...]:
    """`folder`: a descriptor of the one that the path starts from."""
    try:
        told = os.stat(manifest, dir_fd=folder)
    except OSError:  # none there, or a link that leads nowhere: reading it says so
        return ()
    return told.st_mtime_ns, told.st_ctime_ns, told.st_size, told.st_ino


@functools.lru_cache(maxsize=10_000)
def _read_once(folder: Path, state: tuple[int, ...]) -> Run:
    """A run with its manifest read. It is read once, as long as the same file lies there."""
    run = Run(folder)
    run.written  # noqa: B018 - read now, so that what cannot be read is told here
    return run
