"""A store whose runs are objects below an address.

What every run is, its manifest, is known in a folder of this machine as the index tells it; its files are fetched there
when they are read. What belongs to this machine lies there too: what is being written, uploads, live runs, what was
worked out of runs, and the registry where it is a file.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from errors import ChipledgerError, InputError
from runs.bin import RUN_ID
from runs.derived import forget
from runs.durable import sync, writing
from runs.integrity import ELSEWHERE, Files
from runs.limits import NO_NETWORK_VARIABLE
from runs.objects.base import MissingError
from runs.objects.bin import ObjectBin
from runs.objects.cache import Cache
from runs.objects.files import FetchedFiles
from runs.objects.index import COMMIT, REMOVE, Happened, Index
from runs.objects.keys import below, file_key, manifest_key, marked, pointer_key
from runs.objects.opening import note, objects_at
from runs.objects.outgoing import Outgoing
from runs.run import MANIFEST, NOTHING, Manifest, Run
from runs.store import Hidden, Listing, Saying, Store

if TYPE_CHECKING:
    from runs.objects.coming import Coming
    from runs.writer import RunWriter

FRESH_S = 1.0  # what the index told is believed this long
MOST_BYTES = 20 << 30  # of files that are kept here


class ObjectStore(Store):
    """The store at `url`, with what this machine knows of it in `root`."""

    def __init__(
        self,
        url: str,
        root: Path,
        most_bytes: int = MOST_BYTES,
        said: Saying = lambda run_ids: {},
        hidden: Hidden = frozenset[str],
    ):
        self.objects = objects_at(url)
        super().__init__(root, said, hidden)
        note(url, self.root)
        self.cache = Cache(self.root, most_bytes)
        self.bin = ObjectBin(
            self.root,
            self.runs_folder,
            self.hold,
            append=self.tell,
            mark=_mark_in,
            vanish=self._vanish,
        )
        self._index = Index(self.objects, self.root, self._apply, self._known, self.is_stored)
        self._healed: set[str] = set()
        self._brought: dict[tuple[str, str], Path] = {}  # runs that were written here, until the index tells of them
        self._asked = float("-inf")
        self._problem: InputError | None = None
        self._refreshing = threading.Lock()
        ELSEWHERE[self.root] = self._files_of
        self.online = not os.environ.get(NO_NETWORK_VARIABLE)
        self.outgoing = Outgoing(self.root / "outgoing")
        if self.online:
            self._index.open()
            self._refresh()

    @property
    def where(self) -> str:
        return self.objects.url

    @property
    def identity(self) -> str:
        return self._index.store

    @property
    def kept_identity(self) -> str:
        return self._index.store

    @property
    def has_all_uploads(self) -> bool:
        return False

    def check(self) -> None:
        super().check()
        if not self.bin.is_still:
            self._refresh()

    def _refresh(self) -> None:
        """Learn what happened since. Raises InputError where it cannot be asked: what is here may be old then."""
        if not self.online:
            return
        with self._refreshing:  # of several threads one asks
            if time.monotonic() - self._asked > FRESH_S:
                self._problem = None
                try:
                    self._index.follow()
                except InputError as e:
                    self._problem = e
                self._asked = time.monotonic()
            if self._problem is not None:
                raise self._problem

    def _known(self) -> list[str]:
        """The runs that are known here, those in the bin included."""
        below = [self.runs_folder, self.bin.folder]
        return [name for folder in below for name in os.listdir(folder) if RUN_ID.fullmatch(name)]

    def _heals(self, run_ids: Iterable[str]) -> bool:
        """Whether what is known here of damaged runs was told anew, each once: the store may have their manifests."""
        new = {*run_ids} - self._healed if self.online else set[str]()
        self._healed |= new
        for run_id in new:
            with contextlib.suppress(InputError, MissingError, UnicodeDecodeError):
                raw = self.objects.read(pointer_key(run_id))
                about = {"run_id": run_id, "mark": marked(raw), "manifest": raw.decode()}
                own = manifest_key(run_id, marked(raw))
                self.objects.read(own, 0, 1)  # gone where the run was taken away
                self._index.again(Happened(do=COMMIT, at_ns=0, at=own, **about))
        return bool(new)

    def look(self) -> Listing:
        found = super().look()
        return super().look() if self._heals(found.broken) else found

    def look_at(self, run_id: str) -> tuple[Run | None, str]:
        found = super().look_at(run_id)
        return super().look_at(run_id) if found[1] and self._heals([run_id]) else found

    def mark_here(self, run_id: str) -> str:
        """Which writing of a run is in the store, as far as this machine knows; empty: none."""
        return _mark_in(self.runs_folder / run_id)

    def known_mark(self, run_id: str) -> str:
        """As `mark_here`, of runs in the bin too."""
        return self.mark_here(run_id) or _mark_in(self.bin.folder / run_id)

    def follow(self) -> None:
        """Learn at once what happened there. Raises InputError where it cannot be asked."""
        self._index.follow()

    def run_here(self, run_id: str) -> tuple[str, Manifest] | None:
        """(which writing of a run is in the store, its manifest); None where there is none that can be read."""
        with contextlib.suppress(OSError, InputError):
            raw = (self.runs_folder / run_id / MANIFEST).read_bytes()
            return marked(raw), Manifest.from_json(raw, run_id)
        return None

    @contextlib.contextmanager
    def bringing(self, run_id: str, mark: str, folder: Path) -> Generator[None]:
        """Within it `folder`, which holds the run with all its files, is taken once the index tells of it."""
        self._brought[run_id, mark] = folder
        try:
            yield
        finally:
            self._brought.pop((run_id, mark), None)

    def writer(self) -> "RunWriter":
        from runs.objects.writer import ObjectWriter

        return ObjectWriter(self.hold, self.runs_folder, self.publish)

    def coming(self) -> "Coming | None":
        from runs.objects.coming import Coming

        return Coming.new(self.objects) if self.online else None

    def publish(
        self,
        folder: Path,
        run_id: str,
        replace: bool,
        copied: bool = False,
        there: Mapping[str, str] | None = None,
    ) -> bool:
        """Bring a run that was written here, or copied from another store, to its place. Whether it is this one that
        is there then. `there`: keys of the files that lie in the store by now. A process without a network leaves it
        to the one that started it."""
        from runs.objects.writer import Publishing

        if not self.online:
            self.outgoing.put(folder, run_id, replace)
            return True
        self._index.follow()
        placed = Publishing(self, self._index, folder, run_id, copied, there).publish(replace)
        self.cache.trim()
        return placed

    def bring_outgoing(self, run_id: str | None = None) -> None:
        """Bring to their places what processes without a network wrote: one that cannot be brought keeps back no
        other, and is tried again the next time. Raises InputError where it is this one, or of all any."""
        problems: dict[str, str] = {}
        with self.outgoing.taken() as waiting:
            for folder, replace in waiting:
                try:
                    self.publish(folder, folder.name, replace)
                except (ChipledgerError, MissingError, OSError) as e:
                    problems[folder.name] = str(e) if isinstance(e, ChipledgerError) else f"{type(e).__name__}: {e}"
                else:
                    self.outgoing.done(folder)
        for waits, problem in problems.items():
            if run_id in (None, waits):
                more = f", and {len(problems) - 1:,} more of such" if run_id is None and len(problems) > 1 else ""
                raise InputError(
                    f"run {waits} waits to be brought to the store, and cannot be{more} ({problem[:300]})",
                    where=str(self.root / "outgoing"),
                    advice="It is tried again with the next run and once a day; one that was damaged may be removed.",
                )

    def get(self, run_id: str) -> Run | None:
        if (folder := self.outgoing.mine.get(run_id)) is not None:
            return Run(folder, self.said([run_id]).get(run_id, NOTHING))
        run = super().get(run_id)
        damaged = run is not None and run.folder.is_dir() and _is_damaged(run)
        return super().get(run_id) if damaged and self._heals([run_id]) else run

    def remove(self, run_id: str) -> None:
        folder = self.runs_folder / run_id

        def tell() -> bool:
            def entry() -> Happened | None:
                mark = self.mark_here(run_id)
                return Happened(do=REMOVE, run_id=run_id, mark=mark, at_ns=time.time_ns(), at="runs") if mark else None

            return self.tell(entry) is not None

        if self.get(run_id):
            self._vanish(folder, tell)

    def tell(self, make: Callable[[], Happened | None]) -> Happened | None:
        """Tell the index of what `make` gives, which is asked once all before it is done here (`Index.append`)."""
        return self._index.append(make)

    def sweep(self) -> None:
        from runs.objects.sweeping import sweep

        super().sweep()
        try:
            self.bring_outgoing()
        finally:
            try:
                sweep(self)
            except MissingError as e:
                raise InputError("went while it was swept", where=f"{self.where}/{e}", advice="Ask again.") from e

    def _vanish(self, folder: Path, tell: Callable[[], bool]) -> bool:
        """Take a run away for good: first its manifest, so that nobody who writes the same run takes this one for
        it; then the index is told; then its files."""
        try:
            raw = (folder / MANIFEST).read_bytes()
        except OSError:
            return tell()
        run_id, mark, pointer = folder.name, marked(raw), pointer_key(folder.name)
        self.objects.delete([pointer])
        if not tell():
            self.objects.create(pointer, raw)
            return False
        with contextlib.suppress(InputError):  # of a manifest that was damaged nobody knows the files; they are swept
            files = [file_key(run_id, mark, relative) for relative in Manifest.from_json(raw, run_id).marks]
            self.objects.delete([*files, manifest_key(run_id, mark)])
        return True

    def _apply(self, entry: Happened) -> None:
        """Do here what happened there."""
        if entry.do == COMMIT:
            self._committed(entry)
        else:
            self.cache.forget(entry.run_id)
            self.bin.apply(entry)

    def _committed(self, entry: Happened) -> None:
        target = self.runs_folder / entry.run_id
        if _mark_in(target) == entry.mark:
            return
        with writing(target), self.hold() as held:
            folder = self._brought.pop((entry.run_id, entry.mark), None)
            brought = folder is not None
            if folder is None:
                folder = held.folder / "run"
                folder.mkdir()
                if raw := self._manifest_of(entry):
                    (folder / MANIFEST).write_bytes(raw)
            if os.path.isdir(target):
                target.rename(held.folder / "before")
                self.cache.forget(entry.run_id)
                forget(self.root, entry.run_id)
            folder.rename(target)
            sync(self.runs_folder)
        self.bin.drop(entry.run_id)
        if brought:
            self._adopt(target)

    def _manifest_of(self, entry: Happened) -> bytes:
        """Empty where it is gone, as that of a run that was removed since, or another than was told: the run is
        listed as damaged then, as long as no later entry takes it away."""
        raw = entry.manifest.encode()
        if not raw:
            with contextlib.suppress(MissingError):
                raw = self.objects.read(entry.at)
        return raw if marked(raw) == entry.mark else b""

    def _adopt(self, folder: Path) -> None:
        for path in folder.rglob("*"):
            if path.is_file() and path.name != MANIFEST:
                self.cache.adopt(path.relative_to(self.root).as_posix())

    def _files_of(self, run: Run) -> Files:
        mark = _mark_in(run.folder)
        return FetchedFiles(
            run.folder,
            run.written.marks,
            run.moved,
            objects=self.objects,
            cache=self.cache,
            below=below(run.run_id, mark),
            online=self.online,
        )


def _is_damaged(run: Run) -> bool:
    """Whether its manifest cannot be read."""
    try:
        _ = run.written
    except InputError:
        return True
    return False


def _mark_in(folder: Path) -> str:
    """Which writing of a run is known in a folder; empty where none is."""
    try:
        return marked((folder / MANIFEST).read_bytes())
    except OSError:
        return ""
