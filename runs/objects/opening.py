"""From an address to the objects below it, and to the folder of this machine that goes with it.

<local>/objects.json     the address: who opens the folder opens the store of that address
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from errors import InputError
from errors.shapes import is_object
from runs.durable import PRIVATE, write_whole, writing
from runs.objects.base import Objects

NOTE = "objects.json"
MOST_CHARACTERS = 1024
EXPECTED = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or file:///folder"
_FORM = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>.*)", re.DOTALL)
_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9=._-]+)*")
_OTHER_NAMES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az"}


def is_url(text: str) -> bool:
    return "://" in text


def plain(url: str) -> tuple[str, str]:
    """(scheme, place) of an address. Raises InputError for what is none: for one with a name or password in it too,
    which would be told wherever the address is."""
    match = _FORM.fullmatch(url) if len(url) <= MOST_CHARACTERS else None
    scheme = match["scheme"].lower() if match else ""
    scheme, place = _OTHER_NAMES.get(scheme, scheme), match["place"].rstrip("/") if match else ""
    if scheme == "file" and place.startswith("/") and place.isprintable() and ".." not in place.split("/"):
        real = os.path.realpath(f"/{place.lstrip('/')}")  # one folder has one address
        if real != "/" and real.isprintable():
            return scheme, real
    if scheme not in _SCHEMES or scheme == "file" or not _PLACE.fullmatch(place) or {".", ".."} & set(place.split("/")):
        shown = re.split(r"[?#;]", url.strip().rpartition("@")[2])[0][:120]
        raise InputError("no address of a store", where=shown, expected=EXPECTED)
    return scheme, place


def objects_at(url: str) -> Objects:
    """What lies below an address; nothing is asked of it yet."""
    scheme, place = plain(url)
    return _SCHEMES[scheme](place)


def _folder(place: str) -> Objects:
    from runs.objects.folder import FolderObjects

    return FolderObjects(Path(place))


def _bucket(scheme: str) -> Callable[[str], Objects]:
    def made(place: str) -> Objects:
        from runs.objects.bucket import CLOUDS, BucketObjects

        return BucketObjects(CLOUDS[scheme], place)

    return made


_SCHEMES: dict[str, Callable[[str], Objects]] = {
    "file": _folder,
    **{scheme: _bucket(scheme) for scheme in ("s3", "gs", "az")},
}


def local_folder(url: str, below: Path) -> Path:
    """The folder of this machine that goes with an address, below the one for all of them."""
    scheme, place = plain(url)
    name = re.sub(r"[^A-Za-z0-9]+", "-", place).strip("-")[-40:]
    return below / f"{scheme}-{name}-{hashlib.sha256(f'{scheme}://{place}'.encode()).hexdigest()[:8]}"


def note(url: str, folder: Path) -> None:
    """Have `folder` go with an address from now on."""
    scheme, place = plain(url)
    if address_of(folder) is None:
        with writing(folder):
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            write_whole(folder / NOTE, json.dumps({"url": f"{scheme}://{place}"}))


def address_of(folder: Path) -> str | None:
    """The address with which a folder goes; None: it is a store by itself. Raises InputError for a note that was
    damaged: what lies there is no store by itself either."""
    try:
        raw = (folder / NOTE).read_bytes()
    except OSError:
        return None
    told: Any = None
    with contextlib.suppress(ValueError):
        told = json.loads(raw)
    if not is_object(told) or not isinstance(told.get("url"), str):
        raise InputError("was damaged", where=str(folder / NOTE), advice="Remove it and open the store by its address.")
    return str(told["url"])
