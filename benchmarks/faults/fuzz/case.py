"""One damaged file: made, given to whoever knows it and to the reader that it was made for, and what came of it."""

import contextlib
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.fuzz.damage import damaged
from benchmarks.faults.fuzz.shaped import reshaped
from collectors import COLLECTORS
from collectors.base import Blob, Fact, Lost, Rows
from collectors.ingest import ingest
from collectors.ingesting.gather import gather
from collectors.ingesting.items import items_of
from collectors.ingesting.recognise import SURE, recognise
from collectors.ingesting.unpack import SafeSource
from errors import ChipledgerError
from runs.schema import SCHEMAS
from runs.store import Store

Seeds = Mapping[str, Sequence[tuple[str, bytes]]]
RECOGNISED_EVERY = 3  # of these files one goes the way that an ingest goes, past all readers
WHOLE_EVERY = 25  # of these one is ingested into a store as well
READ, PART, REFUSED, STRANGE = "read", "read in part", "refused", "not recognised"
DEFECT, MEMORY, LEFT = "defect", "memory", "left a file"
GOOD = (READ, PART, REFUSED, STRANGE)


@dataclass(frozen=True)
class Case:
    """A damaged file. `how`: what was done to it."""

    number: int
    reader: str
    name: str
    how: str
    data: bytes


@dataclass(frozen=True)
class Outcome:
    """What came of it. `why`: of what is no good outcome, the innermost lines."""

    number: int
    reader: str
    how: str
    outcome: str
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def case(number: int, seed: int, seeds: Seeds, only: Sequence[str] = ()) -> Case:
    """The same number and seed give the same file."""
    chance = random.Random(f"{seed}:{number}")
    readers = only or [c.NAME for c in COLLECTORS]
    reader = readers[number % len(readers)]
    name, data = chance.choice(seeds[reader])
    others = [content for _, content in seeds[chance.choice(readers)]]
    words: list[str] = []
    if chance.random() < 0.5 and (shaped := reshaped(data, chance)) is not None:
        data, word = shaped
        words.append(word)
    if not words or chance.random() < 0.3:
        data, word = damaged(data, chance, others)
        words.append(word)
    return Case(number, reader, name, "+".join(words), data)


def try_case(one: Case, folder: Path) -> Outcome:
    """Read it in `folder`, which is empty again after that, or the outcome says so."""
    path = folder / "in" / one.name
    path.parent.mkdir(parents=True)
    path.write_bytes(one.data)
    with tempfile.TemporaryDirectory(dir=folder) as scratch, _watched(folder) as strays:
        try:
            outcome, why = _read(path, one, Path(scratch)), ""
        except MemoryError as e:
            outcome, why = MEMORY, _where(e)
        except Exception as e:
            outcome, why = (MEMORY if "memory" in type(e).__name__.lower() else DEFECT), _where(e)
    shutil.rmtree(folder / "in")
    left = [*strays, *(p.name for p in folder.iterdir())]
    for path in folder.iterdir():  # or the next would be told of it
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if left and outcome in GOOD:
        outcome, why = LEFT, ", ".join(left)[:300]
    return Outcome(one.number, one.reader, one.how, outcome, why)


def _read(path: Path, one: Case, scratch: Path) -> str:
    told = _as_ingest_does(path, scratch) if one.number % RECOGNISED_EVERY == 0 else ("", STRANGE)
    if told[0] != one.reader or told[1] == REFUSED:
        source = SafeSource(path, one.name)
        collector = next(c for c in COLLECTORS if one.reader == c.NAME)
        assert 0 <= collector.sniff(source) <= 1
        told = one.reader, _items(source, collector)  # also where it would not have been asked
    if one.number % WHOLE_EVERY == 0:
        store = Store(scratch / "store")
        with contextlib.suppress(ChipledgerError):
            ingest([path], store)
        assert not list((store.root / "partial").iterdir()), "something is left below partial/"
        assert not [problem for _, problem in store.look().broken.items()], "a stored run is damaged"
    return told[1]


def _as_ingest_does(path: Path, scratch: Path) -> tuple[str, str]:
    """(who read it, what came of it) on the way that an ingest goes."""
    (scratch / "unpacked").mkdir()
    (scratch / "lines").mkdir()
    try:
        gathered = gather([path], scratch / "unpacked", lambda: None)
        reader, outcome = "", STRANGE
        for n, source in enumerate(gathered.sources):
            best = recognise(source, scratch / "lines")
            if best.score >= SURE and n < 20:
                reader, outcome = best.collector.NAME, _items(best.source, best.collector)
        return reader, REFUSED if gathered.failures and outcome == STRANGE else outcome
    except ChipledgerError as e:
        _one_line(e)
        return "", REFUSED


def _items(source: SafeSource, collector: Any) -> str:
    rows = lost = 0
    try:
        for item in items_of(source, collector):
            if isinstance(item, Rows):
                assert item.batch.schema.equals(SCHEMAS[item.table].arrow), f"schema of {item.table}"
                item.batch.validate(full=True)
                rows += item.batch.num_rows
            elif isinstance(item, Lost):
                assert item.what and item.reason, f"a loss without words: {item}"
                lost += 1
            else:
                assert isinstance(item, Blob | Fact), f"no item: {item!r:.80}"
    except ChipledgerError as e:
        _one_line(e)
        return PART if rows else REFUSED
    return PART if lost else READ


def _one_line(error: ChipledgerError) -> None:
    said = str(error)
    assert said and "\n" not in said, f"a sentence of several lines: {said[:200]!r}"
    assert len(said) < 4_000, f"a sentence of {len(said):,} characters: {said[:200]!r}"


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "site-packages" not in f.filename]
    root = str(Path(__file__).parents[3]) + os.sep
    places = " < ".join(f"{f.filename.removeprefix(root)}:{f.lineno} {f.name}" for f in reversed(ours[-3:]))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} at {places}"


_folder: list[Path] = []
_strays: list[str] = []
_hooked: list[Callable[..., None]] = []
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _hook(event: str, given: tuple[Any, ...]) -> None:
    """Notes whatever is opened for writing, made or renamed outside the folder of the case."""
    if not _folder or event not in ("open", "os.mkdir", "os.rename", "os.symlink", "os.link", "os.chmod"):
        return
    if event == "open" and not (isinstance(given[2], int) and given[2] & _WRITES):
        return
    for path in given[:2] if event in ("os.rename", "os.symlink", "os.link") else given[:1]:
        if isinstance(path, str | bytes | os.PathLike):
            text = os.path.abspath(os.fsdecode(path))
            if not text.startswith((str(_folder[0]), "/dev/null")) and "__pycache__" not in text:
                _strays.append(f"{event} {text}")


@contextlib.contextmanager
def _watched(folder: Path) -> Iterator[list[str]]:
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(_hook)
    _strays.clear()
    _folder[:] = [folder]
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield _strays
    finally:
        tempfile.tempdir = before
        _folder.clear()
