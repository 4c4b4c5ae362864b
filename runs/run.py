"""A run: one folder, written once and never changed, with its manifest and its tables."""

import contextlib
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errors import ChipledgerError, InputError
from errors.shapes import is_list, is_object
from runs.integrity import AGAIN, ELSEWHERE, Files, Mark

if TYPE_CHECKING:
    from runs.tables import ParquetTables

MANIFEST = "run.json"
SCHEMA_VERSION = 5  # of manifest and tables (runs/schema.py)
PARTS_VERSION = 6  # of a run with tables in parts (runs/parts.py), which earlier programs would take for empty
KINDS = ("training", "serving", "rl", "compiled", "simulated")
CHECKSUM = "crc32"  # the manifest's own, over all else that it says
REMOVED = "the run was removed meanwhile, or is being read anew"


@dataclass(frozen=True)
class FactValue:
    """Something known of the run as a whole; `basis` is measured, derived, published or declared."""

    value: Any
    basis: str
    source: str


@dataclass(frozen=True)
class Said:
    """What people said of a run since it was stored: another name, and facts that its files could not tell. It lies
    over what is written, which never changes."""

    name: str = ""
    facts: Mapping[str, FactValue] = field(default_factory=dict[str, FactValue])
    earlier: frozenset[str] = frozenset()  # names that people gave it before

    @property
    def mark(self) -> str:
        """What answers computed with these facts may be kept by; empty where no fact was said."""
        told = {n: (f.value, f.basis, f.source) for n, f in self.facts.items()}
        return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8).hexdigest() if told else ""


NOTHING = Said()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `run.json` holds.

    `facts`: chip, chips, model, topology, precision, parallelism, peak_flops_per_s, job_name, ...
    `sources`: name, sha256, bytes and collector of every input file.
    `tables`: rows by table. `warnings`: what could not be read, each a sentence.
    `files`: what each file of the run was when it was written; None of a run of an earlier version, which did not note
    it. `readers`: what read the inputs, a hash of the readers' text; empty where it was not noted.
    """

    run_id: str
    name: str
    kind: str
    created_ns: int
    facts: dict[str, FactValue] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, Mark] | None = None
    readers: str = ""
    schema_version: int = SCHEMA_VERSION

    def fact(self, name: str, default: Any = None) -> Any:
        return self.facts[name].value if name in self.facts else default

    @property
    def simulated(self) -> bool:
        return self.kind == "simulated" or bool(self.fact("simulated", False))

    @property
    def marks(self) -> dict[str, Mark | None]:
        """The mark of each file; None for those of which only the name is known."""
        if self.files is not None:
            return dict(self.files)
        return {f"tables/{name}.parquet": None for name, rows in self.tables.items() if rows}

    def to_json(self) -> str:
        body = json.loads(json.dumps(asdict(self)))  # as it will be read: keys become text, tuples lists
        return json.dumps({**body, CHECKSUM: _checksum(body)}, indent=1, sort_keys=True)

    @staticmethod
    def from_json(raw: bytes | str, where: str) -> "Manifest":
        """Raises InputError where it is no manifest of a version that this program reads, or was damaged."""
        try:
            data = json.loads(raw if isinstance(raw, str) else raw.decode())
            _whole(data)
            version = data["schema_version"]
            if isinstance(version, int) and version > PARTS_VERSION:
                raise InputError(
                    f"written by a newer version (schema {version}, this one reads up to {PARTS_VERSION})",
                    where=where,
                    advice="Upgrade Chipledger.",
                )
            return _manifest(data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            reason = " ".join(f"{type(e).__name__}: {e}".split())[:200]
            raise InputError(f"not a run manifest ({reason})", where=where, advice=AGAIN) from e


def _checksum(body: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(body, sort_keys=True).encode()):08x}"


def _whole(data: Any) -> None:
    """Take the checksum out of a manifest that was read. Raises where it is of something else, or has to be there."""
    if not is_object(data):
        raise ValueError("no JSON object")
    told = data.pop(CHECKSUM, None)
    if told is None and "files" not in data:  # written before there were checksums
        return
    if told != _checksum(data):
        raise ValueError("it was changed: its checksum differs")


def _manifest(data: dict[str, Any]) -> Manifest:
    """Raises ValueError, KeyError or TypeError for a field that is unknown, lacking or not of its type."""
    for name, (allowed, expected) in _FIELDS.items():
        if name in data and not allowed(data[name]):
            raise ValueError(f"{name} is not {expected}")
    facts = {n: FactValue(**f) for n, f in data.pop("facts").items()}
    wrong = next((n for n, f in facts.items() if n in _FACTS and not _FACTS[n](f.value)), None)
    if wrong:
        raise ValueError(f"the fact {wrong} is of a wrong type")
    files = data.pop("files", None)
    marks = None if files is None else {relative: Mark(**told) for relative, told in files.items()}
    return Manifest(facts=facts, files=marks, **data)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _all(allowed: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: is_object(value) and all(map(allowed, value.values()))


def _source(value: Any) -> bool:
    return (
        is_object(value)
        and all(_text(value.get(k)) for k in ("name", "sha256", "collector"))
        and _whole_number(value.get("bytes"))
    )


def _fact(value: Any) -> bool:
    return is_object(value) and _text(value.get("basis")) and _text(value.get("source"))


def _mark(value: Any) -> bool:
    return is_object(value) and _whole_number(value.get("bytes")) and _text(value.get("crc32"))


def _below(name: str) -> bool:
    """Whether it is the path of a file below the folder of the run, or a part of one: it may come from elsewhere."""
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & set(name.split("/"))


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "run_id": (_text, "text"),
    "name": (_text, "text"),
    "kind": (_text, "text"),
    "readers": (_text, "text"),
    "created_ns": (_whole_number, "a whole number"),
    "schema_version": (_whole_number, "a whole number"),
    "facts": (_all(_fact), "facts"),
    "tags": (_all(_text), "text by text"),
    "tables": (lambda v: _all(_whole_number)(v) and all(map(_below, v)), "rows by table"),
    "files": (lambda v: v is None or (_all(_mark)(v) and all(map(_below, v))), "marks of files of the run"),
    "sources": (lambda v: is_list(v) and all(map(_source, v)), "a list of inputs"),
    "warnings": (lambda v: is_list(v) and all(map(_text, v)), "a list of sentences"),
}
_FACTS: dict[str, Callable[[Any], bool]] = {  # those that every list of runs shows
    "chips": lambda v: v is None or (isinstance(v, int | float) and 0 <= v < 1 << 63),
    "chip": lambda v: v is None or _text(v),
    "model": lambda v: v is None or isinstance(v, str | dict),
}


@dataclass(frozen=True)
class Run:
    """A stored run, and what people said of it since."""

    folder: Path
    said: Said = field(default=NOTHING, hash=False)

    def told(self, said: Said) -> "Run":
        """The same run with what people said of it; what was read of it already is not read again."""
        if said == self.said:
            return self
        other = Run(self.folder, said)
        other.__dict__.update({n: self.__dict__[n] for n in ("written", "files") if n in self.__dict__})
        return other

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest as people see it: with the name and the facts that they said. Raises as `written` does."""
        written, said = self.written, self.said
        if said == NOTHING:
            return written
        return replace(written, name=said.name or written.name, facts={**written.facts, **said.facts})

    @cached_property
    def written(self) -> Manifest:
        """What `run.json` holds. Raises InputError where it is missing, damaged, another's or of a newer version, and
        where the run was removed since it was found."""
        path, where = self.folder / MANIFEST, f"{self.folder.name}/{MANIFEST}"
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
                raise InputError("is no file", where=where, advice=AGAIN)
            raw = path.read_bytes()
        except FileNotFoundError as e:
            if not os.path.isdir(self.folder):
                raise self._moved(REMOVED) from e
            raise InputError("is missing", where=where, advice=AGAIN) from e
        except OSError as e:
            raise InputError(
                f"cannot be read ({e.strerror})", where=where, advice="Is the disk whole, and may this user read it?"
            ) from e
        told = Manifest.from_json(raw, where)
        if told.run_id != self.folder.name:
            raise InputError(f"is that of another run, {told.run_id[:80]!r}", where=where, advice=AGAIN)
        return told

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def writing(self) -> tuple[str, int, str]:
        """What answers may be kept by: the folder, when it was written, and the facts that were said since. A run that
        is read anew is another."""
        return str(self.folder), self.written.created_ns, self.said.mark

    @cached_property
    def files(self) -> Files:
        if ELSEWHERE and (there := ELSEWHERE.get(self.folder.parent.parent)):
            return there(self)
        return Files(self.folder, self.written.marks, self.moved)

    def moved(self) -> str:
        """What became of the run since its manifest was read; empty where it is the same, or was damaged."""
        try:
            now = Run(self.folder).written
        except InputError:
            return "" if os.path.isdir(self.folder) else REMOVED
        same = (now.created_ns, now.files) == (self.written.created_ns, self.written.files)
        return "" if same else "the run was read anew meanwhile"

    @contextlib.contextmanager
    def reading(self) -> Generator[None]:
        """What reads the run otherwise than through `tables` and `blob`: where it fails because the run was removed or
        read anew meanwhile, it says that."""
        try:
            yield
        except (ChipledgerError, OSError) as e:
            if moved := self.moved():
                raise self._moved(moved) from e
            raise

    def _moved(self, what: str) -> InputError:
        return InputError(what, where=self.run_id, advice="Ask again.")

    @property
    def damage(self) -> str | None:
        """One sentence about the files that a look finds missing or damaged, or that the run was removed or read anew
        meanwhile; None where all are there."""
        found = [str(e) for e in self.files.look()]
        if found and (moved := self.moved()):
            return str(self._moved(moved))
        more = f" {len(found) - 1:,} more files of this run are damaged." if len(found) > 1 else ""
        return found[0] + more if found else None

    @cached_property
    def tables(self) -> "ParquetTables":
        from runs.tables import ParquetTables  # late: what only lists runs needs no pyarrow

        return ParquetTables(self.files, self.written.tables)

    def blob(self, name: str) -> Path:
        """The path of a kept file, such as an HLO module, once it is known to be whole.

        Raises InputError for a name outside the run, and for a file that was damaged.
        """
        root = (self.folder / "blobs").resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise InputError(f"blob name {name!r} leaves the run's folder")
        return self.files.whole(f"blobs/{path.relative_to(root).as_posix()}") or path


def facts_of(values: Mapping[str, Any], basis: str = "declared", source: str = "") -> dict[str, FactValue]:
    """Facts from plain values, all with one basis and source."""
    return {n: FactValue(v, basis, source) for n, v in values.items() if v is not None}
