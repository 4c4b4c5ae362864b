"""Below which folders and prefixes this server may read files by address: what its operator named, and nothing else."""

import os
from collections.abc import Iterable
from pathlib import Path

from app.fetching.addresses import FILE, Address, address, within
from app.fetching.local import resolved
from errors import InputError

ALLOWED_VARIABLE = "CHIPLEDGER_INGEST_FROM"  # set by `chipledger serve` for pages and API
HOW = "Start it with `chipledger serve --ingest-from /data`."


def prefixes(texts: Iterable[str]) -> tuple[Address, ...]:
    """Folders and prefixes as an operator names them. Raises InputError for what is none."""
    found = []
    for text in texts:
        one = address(text)
        if one.is_pattern:
            raise InputError(f"{text[:80]!r} is a pattern", expected="a folder, or a bucket with the start of its keys")
        if one.scheme == FILE:
            folder = Path(one.rest).expanduser().absolute()
            if not folder.is_dir():
                raise InputError("no such folder", where=str(folder), advice="--ingest-from takes folders that exist.")
            one = Address(FILE, str(folder))
        elif not one.parts:
            raise InputError(f"{text[:80]!r} names no bucket", expected="gs://bucket or gs://bucket/prefix")
        found.append(one)
    return tuple(dict.fromkeys(found))


def allowed() -> tuple[Address, ...]:
    """What whoever started this server allows; nothing unless that was said."""
    return tuple(address(text) for text in os.environ.get(ALLOWED_VARIABLE, "").split("\n") if text)


def asked_for(text: str, known: tuple[Address, ...]) -> Address:
    """An address that a request may name. Raises InputError for one beyond what the operator allowed; where links lead
    is looked at again by who reads."""
    one = address(text)
    if not known:
        raise InputError("this server reads no files by address", where=text[:120], advice=HOW)
    if one.scheme == FILE:
        resolved(one, known)
    elif not within(one, known):
        raise refusal(text)
    return one


def refusal(text: str) -> InputError:
    return InputError(
        "outside of what this server may read",
        where=text[:120],
        expected="an address below what its operator named with --ingest-from",
    )
