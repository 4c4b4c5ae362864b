"""What lies in a store of objects and belongs to no run: what a writer left that was killed, and what a removal left.

A day after it was written it goes. A run that is whole and of which the index does not tell, since its writer was
killed between the two, is told of instead. Here alone the objects of runs are listed.
"""

import contextlib
import time
from collections import defaultdict
from dataclasses import dataclass, field

from errors import InputError
from runs.bin import RUN_ID
from runs.objects.base import CLOCK, COMING, Entry, MissingError
from runs.objects.index import COMMIT, Happened, now_of, without_manifest
from runs.objects.keys import MARK, RUNS, file_key, manifest_key, marked, pointer_key
from runs.objects.known import Known
from runs.run import Manifest

OLD_S = 86_400.0


@dataclass
class Swept:
    """Runs of which the index tells now; bytes and objects that are gone."""

    found: list[str] = field(default_factory=list[str])
    objects: int = 0
    bytes: int = 0


def sweep(store: Known, older_than_s: float = OLD_S) -> Swept:
    """Raises InputError where the store cannot be asked or written."""
    done, now_s = Swept(), now_of(store.objects)
    there = _there(store)
    store.follow()  # after the listing: what was committed meanwhile is known
    for (run_id, mark), entries in there.items():
        if store.known_mark(run_id) == mark or now_s - max(e.modified_s for e in entries) < older_than_s:
            continue
        if not store.known_mark(run_id) and _tell(store, run_id, mark, entries):
            done.found.append(run_id)
        elif store.known_mark(run_id) != mark:
            _without_pointer(store, run_id, mark)
            store.objects.delete([e.key for e in entries])
            done.objects += len(entries)
            done.bytes += sum(e.bytes for e in entries)
    for below in (COMING, CLOCK):
        old = [e for e in store.objects.entries(below) if now_s - e.modified_s >= older_than_s]
        store.objects.delete([e.key for e in old])
        done.objects += len(old)
        done.bytes += sum(e.bytes for e in old)
    return done


def _without_pointer(store: Known, run_id: str, mark: str) -> None:
    """The manifest goes before the files that it lists: whoever writes the same run would take it for a whole one."""
    with contextlib.suppress(MissingError):
        if marked(store.objects.read(pointer_key(run_id))) == mark:
            store.objects.delete([pointer_key(run_id)])


def _there(store: Known) -> dict[tuple[str, str], list[Entry]]:
    """The objects of each writing of each run."""
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in store.objects.entries(RUNS):
        parts = entry.key.split("/")
        if len(parts) >= 4 and RUN_ID.fullmatch(parts[1]) and MARK.fullmatch(parts[2]):
            found[parts[1], parts[2]].append(entry)
    return found


def _tell(store: Known, run_id: str, mark: str, entries: list[Entry]) -> bool:
    """Tell the index of a run that is whole; False where it is not, or was removed."""
    try:
        raw = store.objects.read(pointer_key(run_id))
        manifest = Manifest.from_json(raw, run_id)
    except (MissingError, InputError):
        return False
    sizes = {e.key: e.bytes for e in entries}
    whole = all(
        known is not None and sizes.get(file_key(run_id, mark, relative)) == known.bytes
        for relative, known in manifest.marks.items()
    )
    if marked(raw) != mark or manifest.run_id != run_id or not whole:
        return False

    def entry() -> Happened | None:
        if store.known_mark(run_id):
            return None
        at, now_ns = manifest_key(run_id, mark), time.time_ns()
        told = Happened(do=COMMIT, run_id=run_id, mark=mark, at_ns=now_ns, at=at, manifest=raw.decode())
        return without_manifest(told)

    store.objects.create(manifest_key(run_id, mark), raw)
    return store.tell(entry) is not None
