"""How much a person, a group and all together may keep: looked at before an upload begins, and before each file of it.

What somebody keeps is their uploads and the runs that were made of these, those in the bin too. Runs that the command
line made are nobody's, and count for all together. What an ingest makes of an upload that was let in is not cut short.
"""

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.identity.asking import who
from app.identity.base import Identity
from app.serve.coming import reserved_bytes
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors import format as fmt
from errors.numbers import Number
from errors.options import Option
from runs.integrity import ELSEWHERE
from runs.run import Run
from runs.upload_book import UploadBook

BYTES = Number(1, whole=True)
BEGINNING_S = 3600.0  # of an upload: whose it is is noted first
FRESH_S = 10.0  # what was added up is believed this long, with what came since
OPTIONS = tuple(
    Option(
        name,
        BYTES,
        None,
        f"the most bytes of uploads and their runs that {whose} may keep (default: ${variable}, else no end)",
        unit="bytes",
        local=True,
    )
    for name, whose, variable in (
        ("quota_bytes", "all together", "CHIPLEDGER_QUOTA_BYTES"),
        ("quota_person_bytes", "a person", "CHIPLEDGER_QUOTA_PERSON_BYTES"),
        ("quota_group_bytes", "a group", "CHIPLEDGER_QUOTA_GROUP_BYTES"),
    )
)


class OverQuota(InputError):
    """There is no more room for whoever asks."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Bytes at most; None: no end."""

    in_all: int | None = None
    person: int | None = None
    group: int | None = None


@dataclass
class Kept:
    """Bytes that are kept in all, by person and by group."""

    in_all: int = 0
    people: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def add(self, identity: Identity, n_bytes: int) -> None:
        self.in_all += n_bytes
        if identity.name:
            self.people[identity.name] = self.people.get(identity.name, 0) + n_bytes
        for group in identity.groups:
            self.groups[group] = self.groups.get(group, 0) + n_bytes


def quota(environment: Mapping[str, str] = os.environ) -> Quota:
    """As whoever started the server set it. Raises InputError for a setting that is no number."""

    def read(option: Option) -> int | None:
        variable = f"CHIPLEDGER_{option.name.upper()}"
        if not (text := environment.get(variable, "").strip()):
            return None
        try:
            return int(BYTES.read(text, variable))
        except QuestionError as e:
            what, expected = f"{text[:80]!r} is no quota", f"{BYTES.expected}, in bytes"
            raise InputError(what, where=f"${variable}", expected=expected) from e

    in_all, person, group = map(read, OPTIONS)
    return Quota(in_all=in_all, person=person, group=group)


_added_up: dict[Path, tuple[float, Kept]] = {}
_adding = threading.Lock()


def begin(place: Workspace, upload_id: str) -> None:
    """Note whose an upload is. Raises OverQuota where they may keep no more."""
    identity = who()
    admit(place, 1)
    if identity.name or identity.groups:
        UploadBook(place.registry.at).note(upload_id, identity.name, identity.groups)


def admit(place: Workspace, coming: int) -> None:
    """Raises OverQuota where so many bytes are more than whoever asks, one of their groups or all may keep."""
    allowed = quota()
    if allowed == Quota():
        return
    identity = who()
    with _adding:
        kept = _kept(place)
        for whose, has, most in _limits(kept, allowed, identity):
            if has + coming > most:
                raise OverQuota(
                    f"{whose} {fmt.size(has)} of {fmt.size(most)} already; {fmt.size(coming)} more do not fit",
                    advice="Delete runs and uploads that nobody needs; what is in the bin counts until it is gone.",
                )
        kept.add(identity, coming)


def _limits(kept: Kept, allowed: Quota, identity: Identity) -> Iterator[tuple[str, int, int]]:
    if allowed.in_all is not None:
        yield "this store holds", kept.in_all, allowed.in_all
    if allowed.person is not None and identity.name:
        yield f"{identity.name[:80]} keeps", kept.people.get(identity.name, 0), allowed.person
    if allowed.group is not None:
        for group in sorted(identity.groups):
            yield f"group {group[:80]} keeps", kept.groups.get(group, 0), allowed.group


def _kept(place: Workspace) -> Kept:
    """Added up anew once what was added up is old."""
    since, kept = _added_up.get(place.store.root, (float("-inf"), Kept()))
    if time.monotonic() - since > FRESH_S:
        kept = add_up(place)
        _added_up[place.store.root] = time.monotonic(), kept
    return kept


def forget() -> None:
    """Add up anew the next time: something was deleted."""
    with _adding:
        _added_up.clear()


def add_up(place: Workspace) -> Kept:
    """What is kept now. Of uploads that are gone nobody needs to know whose they were."""
    book, kept = UploadBook(place.registry.at), Kept()
    owners = book.owners()
    seen = set[tuple[int, int]]()  # a content that was sent twice lies there once
    runs = {p.name: _run_bytes(p, seen) for folder in ("runs", "bin") for p in _below(place.store.root / folder)}
    folders = [p for p in _below(place.store.uploads_folder) if p.is_dir()]
    uploads = {p.name: _bytes(p / "files", seen) + _on_the_way(p) for p in folders}
    kept.in_all = sum(runs.values()) + sum(uploads.values())
    made_of = defaultdict[tuple[str, str], set[str]](set)  # the same input sent twice is one run, which counts once
    for upload_id, owner in owners.items():
        if upload_id in uploads:
            own = Kept(people=kept.people, groups=kept.groups)
            own.add(Identity(name=owner.who, role=who().role, groups=owner.groups), uploads[upload_id])
            made = _made_of(place, upload_id)
            for whose in (("person", owner.who), *(("group", group) for group in owner.groups)):
                made_of[whose] |= made
    for (kind, name), ids in made_of.items():
        counts = kept.people if kind == "person" else kept.groups
        if name:
            counts[name] = counts.get(name, 0) + sum(runs.get(i, 0) for i in ids)
    long_ago_ns = time.time_ns() - int(BEGINNING_S * 1e9)
    if place.store.has_all_uploads:  # else others lie on other machines
        book.forget([i for i, owner in owners.items() if i not in uploads and owner.began_ns < long_ago_ns])
    return kept


def _made_of(place: Workspace, upload_id: str) -> set[str]:
    with contextlib.suppress(OSError):
        return set((place.store.uploads_folder / f"{upload_id}.runs").read_text().split())
    return set()


def _below(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _on_the_way(upload: Path) -> int:
    """What came of files that are not whole, and what is promised of those that come in pieces."""
    parts = 0
    for part in upload.glob("*.part"):
        with contextlib.suppress(OSError):
            parts += part.stat().st_size
    return parts + reserved_bytes(upload)


def _run_bytes(folder: Path, seen: set[tuple[int, int]]) -> int:
    """Of a run whose files lie elsewhere what they take there."""
    if folder.parent.parent not in ELSEWHERE:
        return _bytes(folder, seen)
    with contextlib.suppress(InputError):
        return Run(folder).files.bytes_there() or 0
    return 0


def _bytes(folder: Path, seen: set[tuple[int, int]]) -> int:
    """Of what is not `seen` yet."""
    total = 0
    for below, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                told = os.stat(os.path.join(below, file))
                if (told.st_dev, told.st_ino) not in seen:
                    seen.add((told.st_dev, told.st_ino))
                    total += told.st_size
    return total
