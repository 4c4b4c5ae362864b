"""What a run is made of, and so its id: the same input twice is one run; what may give another answer is another."""

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from collectors import ANY_LOG, TEXT_LOGS
from collectors.base import Source
from errors import InputError
from runs.run import Manifest, Run
from runs.share_book import Audience
from runs.store import Store

_LABELS = ("name", "tags")  # options that change nothing of what a run says
_NAME_DATE = re.compile(r"(?<!\d)\d{4}([-_.]?)\d\d\1\d\d(?!\d)", re.ASCII)
BY_DATE_ALONE = frozenset((*TEXT_LOGS, ANY_LOG, "goodput_log", "resiliency", "sidecar", "wandb_log", "slurm_sacct"))
"""Collectors of logs, to which a file's name tells at most the year. To any other it may tell more: a table's name, a
host, a load."""


class Job(Protocol):
    """A file that is read: with its collector, and the SHA-256 of its content."""

    @property
    def source(self) -> Source: ...

    @property
    def collector(self) -> Any: ...

    @property
    def digest(self) -> str: ...


def made_of(jobs: Sequence[Job], options: dict[str, Any]) -> str:
    """What the run is made of: its files in the order in which they are read, what reads each, what its name tells,
    and the options that change what the run says. The run's name or a tag does not."""
    files = [[job.digest, job.collector.NAME, told_by_name(job.collector.NAME, job.source.name)] for job in jobs]
    return _short_hash([files, _said(options)])


def made_anew(run_id: str) -> str:
    """The id of a run whose files were written to while they were read: nobody can tell of what it is made, and no
    other input may be taken for it."""
    return _short_hash([run_id, uuid.uuid4().hex])


def stored_before(
    store: Store, run_id: str, jobs: Sequence[Job], options: dict[str, Any], audience: Audience | None = None
) -> Run | None:
    """The run of this input, if there is one that its audience sees, in the store or in its bin: under its id, under
    one that it has for that audience, or under the one that it had when only content counted."""

    def seen(name: str) -> Run | None:
        run = store.kept(name)
        return run if run is not None and (audience is None or audience.sees(name)) else None

    for name in (run_id, *(audience.candidates(run_id) if audience else ())):
        if (run := seen(name)) is not None:
            return run
    before = _short_hash([sorted(job.digest for job in jobs), _said(options)])
    if (run := seen(before)) is None:
        return None
    try:
        before = {(s["name"], s["sha256"]) for s in run.manifest.sources}
    except InputError:
        return run
    return run if before <= {(job.source.name, job.digest) for job in jobs} else None


def faults(run: Run) -> Iterator[InputError]:
    """What of a stored run is damaged: its manifest, or any file, each of which is read through."""
    try:
        yield from run.files.verify()
    except InputError as e:
        yield e


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in _LABELS}


def not_applied(known: Manifest, options: dict[str, Any]) -> list[str]:
    """What of the run that is stored already is not as it would be now: runs are never changed."""
    notes = []
    if options.get("name", known.name) != known.name or not options.get("tags", {}).items() <= known.tags.items():
        notes.append(f"this input is stored already, as {known.name!r}; the name and tags given now are not applied")
    if known.readers != readers():
        notes.append(
            "this input is stored already, as another version of Chipledger read it; "
            "`chipledger ingest --again` reads it anew"
        )
    return notes


def told_by_name(collector: str, name: str) -> Any:
    """What of a file's name may change what is read from it; None where nothing does."""
    if collector not in BY_DATE_ALONE:
        return name
    return sorted({m[0] for m in _NAME_DATE.finditer(name)}) or None


def _below(folder: Path) -> Iterator[str]:
    """The sources in a folder and in those below it; quicker than a pattern, and each ingest asks."""
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (os.path.join(at, name) for name in files if name.endswith(".py"))


@cache
def readers() -> str:
    """What reads the inputs: a hash of the text of every reader, so that what an earlier one read is known as such."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    for path in sorted(_below(root / "collectors"), key=lambda path: path.split(os.sep)):
        with open(path, "rb") as file:
            digest.update(file.read())
    for pattern in (
        "runs/*schema.py",
        "catalog/cause*.py",
        "catalog/chip*.py",
        "catalog/traits.py",
        "catalog/data/chips_*.json",
        "catalog/data/cause*.json",
    ):
        for file in sorted(root.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _short_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
