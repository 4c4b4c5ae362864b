"""The upload that a job reads: on which machine it lies, and what a job that reads it may say anything of."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.ingest_options import EVERYONE, GROUP
from app.serve.job import LIES_AT
from app.workspace import Workspace
from runs.job_book import Entry
from runs.postgres.sealed import Own

GROUP_IS = f"{GROUP.flag}="
STORE, PATHS = "--store=", "--paths-from="


def lying(place: Workspace | None, about: dict[str, Any]) -> dict[str, str]:
    """Where an upload lies, if another machine's workers cannot read it."""
    shared = place is None or place.store.has_all_uploads
    return {} if shared or not about.get("upload_id") else {LIES_AT: socket.gethostname()}


def is_here(place: Workspace | None, upload_id: str) -> bool:
    """Whether the files of a job are here: where each machine has uploads of its own, it reads those alone."""
    store = place.store if place else None
    return not upload_id or store is None or store.has_all_uploads or (store.uploads_folder / upload_id).is_dir()


def own_of(place: Workspace | None, entry: Entry) -> Own | None:
    """What a job that reads an upload may say anything of."""
    if place is None:
        return None
    store, words = place.store, [w for w in entry.arguments if w.startswith((GROUP_IS, EVERYONE.flag))]
    group = next((w.removeprefix(GROUP_IS) for w in words if w.startswith(GROUP_IS)), "" if words else None)
    inputs = store.uploads_folder / str(entry.about["upload_id"])
    return Own(inputs=inputs, is_stored=store.is_stored, group=group, who=entry.who)


def as_now(words: Sequence[str], store: Path, paths: Sequence[str] | None) -> list[str]:
    """The arguments of a job that is done again, in this store. `paths`: of an upload, the words that say what it holds
    now."""
    kept = [f"{STORE}{store}" if w.startswith(STORE) else w for w in _before_paths(words, paths)]
    return [*kept, *(paths or ())]


def _before_paths(words: Sequence[str], paths: Sequence[str] | None) -> Sequence[str]:
    """The arguments of an ingest without those that say which files; all where these stay."""
    if paths is None:
        return words
    end = words.index("--") if "--" in words else len(words)
    return [w for w in words[:end] if not w.startswith(PATHS)]
