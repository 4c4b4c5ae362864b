"""The index of a store of objects: which runs there are, told by small objects that are numbered and never changed.

    <url>/chipledger.json            that a store lies here, and which
    <url>/index/<number>.json        what happened: a run was committed, put into the bin, restored or removed
    <url>/index/of64/<number>.gz     64 of them that follow each other, in one object
    <url>/index/of4096/<number>.gz   64 of those

A reader asks for the number that follows the last it knows: nothing is listed, but once by a machine that never read
it, whether a number in between is gone. A writer creates that number, where nobody did so before; where somebody did,
it reads that first, and looks again whether its own still holds. So all see the same order, and what is written is true
at its place in it.
"""

import contextlib
import fcntl
import gzip
import json
import re
import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from errors import InputError
from errors.shapes import is_object
from runs.bin import RUN_ID
from runs.durable import write_whole, writing
from runs.objects.base import CLOCK, MissingError, Objects
from runs.objects.keys import ABOUT, MARK, RUNS, manifest_key
from runs.scratch import unlock

FORMAT = 1  # of index and keys
COMMIT, BIN, RESTORE, REMOVE = "commit", "bin", "restore", "remove"
HELD_BYTES = 64 << 10  # a manifest up to that length goes with its entry: who reads the index need not ask for it
TOGETHER = 64  # entries in one object, and such objects in one
AT_ONCE = 16  # are asked for
_AT = {BIN: ("", RUNS), RESTORE: ("", "bin"), REMOVE: (RUNS, "bin")}  # where a run lay before
_OF_A_STORE = (RUNS, "index", "bin", "uploads")  # below these lies what a plain store or one of objects holds
_NUMBERED = re.compile(r"index/(\d{12})\.json")
LOOK_S = 30.0  # between two looks whether the store is still the same


@dataclass(frozen=True, kw_only=True)
class Happened:
    """One entry. `mark`: of the manifest (`marked`), which tells one writing of a run from another; `manifest`: its
    text, empty where it is long or none is meant; `at`: its key."""

    do: str
    run_id: str
    mark: str
    at_ns: int
    at: str = ""
    manifest: str = ""
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()


def happened(raw: bytes, where: str) -> Happened:
    """Raises InputError where it is no entry."""
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        return _entry(json.loads(raw))
    raise InputError(
        "is no entry of the index of a store",
        where=where,
        advice="Was it changed by hand? `chipledger mirror` makes another store of the runs that can be read.",
    )


def _entry(told: Any) -> Happened:
    if not is_object(told) or told.get("do") not in (COMMIT, BIN, RESTORE, REMOVE):
        raise ValueError("no entry")
    if not all(type(v) is (int if k == "at_ns" else str) for k, v in told.items()):
        raise ValueError("no entry")
    entry = Happened(**told)
    entry.manifest.encode()  # raises for what is no text
    named = RUN_ID.fullmatch(entry.run_id) and 0 <= entry.at_ns < 1 << 63
    if not named or not (MARK.fullmatch(entry.mark) or (entry.do != COMMIT and not entry.mark)):
        raise ValueError("no entry")
    if entry.at not in _AT.get(entry.do, (manifest_key(entry.run_id, entry.mark),)):
        raise ValueError("no entry")
    return entry


class Index:
    """The index as far as this machine read it. `folder`: where it is noted how far that is; `apply`: what is done
    here about an entry, which may be done again where this process is killed meanwhile; `known`: the runs that are
    known here for it."""

    def __init__(
        self,
        objects: Objects,
        folder: Path,
        apply: Callable[[Happened], None],
        known: Callable[[], Collection[str]],
        is_known: Callable[[str], bool],
    ):
        self._objects, self._apply, self._all_known, self._is_known = objects, apply, known, is_known
        self._noted, self._lock = folder / "index.json", folder / "index.lock"
        self._looked_at = float("-inf")
        self._listed = False  # by this process

    def open(self) -> None:
        """Make the store where there is none. Raises InputError where it cannot be reached, is of a newer version, or
        is not the one that this folder knows."""
        self._look(make=True)
        self._looked_at = time.monotonic()
        with self._alone():
            noted, there = self._runs(), len(self._all_known())
            if noted != there:
                self._write(runs=there, **({"next": 0} if noted > there else {}))  # what is lost here is not gone

    def _runs(self) -> int:
        """How many runs should be known here."""
        told = self._note().get("runs", 0)
        return told if isinstance(told, int) else 0

    def _look(self, make: bool = False) -> None:
        try:
            about = self._objects.read(ABOUT)
        except MissingError:
            if not make or self._known():
                raise self._other("the store is gone") from None
            about = self._made()
        store = _store(about, self._objects.url)
        known = self._known()
        if known and known != store:
            raise self._other("another store lies there now")
        if not known:
            with writing(self._noted):
                write_whole(self._noted, json.dumps({"store": store, "next": 0}))
        if (number := self._next()) and not self._there(number - 1):
            raise self._gone(number - 1)

    def _gone(self, number: int) -> InputError:
        return InputError(
            "what was written there before is gone",
            where=f"{self._objects.url}/{_key(number)}",
            advice="Does a rule of the bucket delete what is old? Nothing is concluded from what is left of it.",
        )

    def _made(self) -> bytes:
        """Make the store, unless others did so at this moment. A folder or prefix that holds something of a store
        already, and does not say which, is left as it is: its runs would look like what killed writers left."""
        if any(any(True for _ in self._objects.entries(below)) for below in _OF_A_STORE):
            with contextlib.suppress(MissingError):
                return self._objects.read(ABOUT)
            raise InputError(
                "holds runs, but is no store of objects",
                where=self._objects.url,
                advice="A plain folder is given by its path, without file://. `chipledger mirror` copies it into a new "
                "address.",
            )
        about = json.dumps({"format": FORMAT, "store": uuid.uuid4().hex}, sort_keys=True).encode()
        return about if self._objects.create(ABOUT, about) else self._objects.read(ABOUT)

    def _other(self, what: str) -> InputError:
        return InputError(
            what,
            where=self._objects.url,
            advice=f"Is the address right? Else remove {self._noted.parent}, or give another --cache.",
        )

    @property
    def store(self) -> str:
        """Which store this machine found there."""
        return self._known()

    def follow(self) -> int:
        """Do here what happened since. Returns how many entries were new. Raises InputError where that cannot be
        asked."""
        if time.monotonic() - self._looked_at > LOOK_S:
            self._look()
            self._looked_at = time.monotonic()
        with self._alone():
            return self._follow()

    def append(self, make: Callable[[], Happened | None]) -> Happened | None:
        """Tell what `make` gives, once all that happened before is done here; it is asked again where something else
        came first. None: there is nothing to tell."""
        with self._alone():
            while True:
                self._follow(writes=True)
                entry = make()
                if entry is None:
                    return None
                number = self._next()
                if self._objects.create(_key(number), entry.to_json()):
                    self._done(number + 1, entry)
                    self._join(number)
                    return entry

    def all(self) -> Iterator[Happened]:
        """Everything that happened, from the beginning."""
        number = 0
        while found := self._some(number):
            yield from found
            number += len(found)

    def _follow(self, writes: bool = False) -> int:
        number = first = self._next()
        while found := self._some(number):
            number += len(found)
            self._done(number, *found)
        self._held_to_the_list(number, writes)
        return number - first

    def _held_to_the_list(self, number: int, writes: bool) -> None:
        """Once on a machine, and of an index that is empty before it is written: that there are no entries after the
        one that is not there. Raises InputError where one in between is gone: the store would look smaller."""
        if self._note().get("listed") is True or (self._listed and not writes):
            return
        numbers = [int(m[1]) for e in self._objects.entries("index") if (m := _NUMBERED.fullmatch(e.key))]
        if any(n > number for n in numbers) and not self._there(number):
            raise self._gone(number)
        self._listed = True
        if number:
            self._write(listed=True)

    def _done(self, following: int, *entries: Happened) -> None:
        runs = self._runs()
        for entry in entries:
            was_known = self._is_known(entry.run_id)
            self._apply(entry)
            runs += self._is_known(entry.run_id) - was_known
        self._write(next=following, runs=runs)

    def _write(self, **told: Any) -> None:
        with writing(self._noted):
            write_whole(self._noted, json.dumps({**self._note(), "store": self._known(), **told}))

    def _some(self, number: int) -> list[Happened]:
        """The entries from a number on, as many as one look finds; none: there is none."""
        raw = self._raw(number)
        if raw is None:
            return []
        for level, span in (("of4096", TOGETHER**2), ("of64", TOGETHER)):
            if number % span == 0 and self._there(number + span - 1):
                with contextlib.suppress(MissingError):
                    return self._joined(level, number // span)
        first = happened(raw, f"{self._objects.url}/{_key(number)}")
        return [first, *self._read(range(number + 1, (number // TOGETHER + 1) * TOGETHER))]

    def _there(self, number: int) -> bool:
        try:
            self._objects.read(_key(number), 0, 1)
        except MissingError:
            return False
        return True

    def _read(self, numbers: range) -> list[Happened]:
        """The entries of these numbers up to the first that is not there."""
        found: list[Happened] = []
        while len(found) < len(numbers):  # at first one, then ever more: mostly there is nothing new
            some = numbers[len(found) : len(found) + min(len(found) + 1, AT_ONCE)]
            for number, raw in zip(some, _at_once(self._raw, some), strict=True):
                if raw is None:
                    return found
                found.append(happened(raw, f"{self._objects.url}/{_key(number)}"))
        return found

    def _raw(self, number: int) -> bytes | None:
        try:
            return self._objects.read(_key(number))
        except MissingError:
            return None

    def _joined(self, level: str, number: int) -> list[Happened]:
        key = _joined_key(level, number)
        raw, where = self._objects.read(key), f"{self._objects.url}/{key}"
        try:
            lines = gzip.decompress(raw).splitlines()
        except (OSError, EOFError, ValueError) as e:
            raise MissingError(key) from e  # what it joins is still there
        return [happened(line, where) for line in lines]

    def _join(self, number: int) -> None:
        """Whoever writes the last of so many puts them into one object. Where that fails they stay apart."""
        for level, span in (("of64", TOGETHER), ("of4096", TOGETHER**2)):
            if (number + 1) % span == 0:
                with contextlib.suppress(InputError, MissingError):
                    entries = self._parts(level, number + 1 - span)
                    data = gzip.compress(b"\n".join(e.to_json() for e in entries), 6, mtime=0)
                    if len(entries) == span:
                        self._objects.create(_joined_key(level, number // span), data)

    def _parts(self, level: str, first: int) -> Sequence[Happened]:
        if level == "of64":
            return self._read(range(first, first + TOGETHER))
        start = first // TOGETHER
        return [e for n in range(start, start + TOGETHER) for e in self._joined("of64", n)]

    def _known(self) -> str:
        return str(self._note().get("store", ""))

    def _next(self) -> int:
        told = self._note().get("next", 0)
        return told if isinstance(told, int) and told >= 0 else 0

    def _note(self) -> dict[str, Any]:
        """What was noted here; nothing where that was damaged: then all is done again."""
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(self._noted.read_bytes())
            return told if is_object(told) else {}
        return {}

    def again(self, entry: Happened) -> None:
        """Do here once more what happened once."""
        with self._alone():
            self._apply(entry)

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """Of the processes and threads of this machine one follows at a time."""
        with writing(self._lock):
            file = self._lock.open("ab")
        with file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                unlock(file)


def _at_once(act: Callable[[int], bytes | None], numbers: range) -> Iterator[bytes | None]:
    if len(numbers) == 1:
        yield act(numbers.start)
        return
    with ThreadPoolExecutor(len(numbers)) as pool:
        yield from pool.map(act, numbers)


def _key(number: int) -> str:
    return f"index/{number:012d}.json"


def _joined_key(level: str, number: int) -> str:
    return f"index/{level}/{number:010d}.gz"


def _store(raw: bytes, url: str) -> str:
    """Which store it is. Raises InputError where it is none, or of a newer version."""
    told: Any = None
    with contextlib.suppress(ValueError):
        told = json.loads(raw)
    if not is_object(told) or not isinstance(told.get("format"), int) or not isinstance(told.get("store"), str):
        raise InputError("is no store of Chipledger", where=f"{url}/{ABOUT}", advice="Give another address.")
    if told["format"] > FORMAT:
        raise InputError("written by a newer version", where=f"{url}/{ABOUT}", advice="Upgrade Chipledger.")
    return str(told["store"])


def now_of(objects: Objects) -> float:
    """The time by the clock of the place, which tells the age of what lies there whatever this machine's says."""
    key = f"{CLOCK}/{uuid.uuid4().hex}"
    objects.create(key, key.encode())
    try:
        return max((e.modified_s for e in objects.entries(CLOCK) if e.key == key), default=0.0)
    finally:
        objects.delete([key])


def without_manifest(entry: Happened) -> Happened:
    return entry if len(entry.manifest.encode()) <= HELD_BYTES else replace(entry, manifest="")
