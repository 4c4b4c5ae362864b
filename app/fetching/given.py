"""What `chipledger ingest` was given: patterns looked up, addresses fetched, or left to workers who read them there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.fetching.addresses import FILE, Address, address, within
from app.fetching.allowed import prefixes, refusal
from app.fetching.local import paths_of
from app.workspace import Workspace
from collectors.ingesting.far.files import FarFile
from collectors.ingesting.gather import Cancelled, shown
from collectors.ingesting.told import Tell
from runs.objects.bucket import CLOUDS
from runs.shelf import NAME_LENGTH

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Given:
    """`name`: what the run is called where nothing else is said; empty: by its first path. `far`: files that lie in a
    bucket, and were not fetched."""

    paths: tuple[Path, ...]
    name: str = ""
    far: tuple[FarFile, ...] = ()


def given(
    texts: Sequence[str],
    below: Sequence[str] | None,
    place: Workspace,
    progress: Progress,
    tell: Tell | None,
    cancelled: Callable[[], bool],
    there: bool = False,
) -> Given:
    """`below`: folders and prefixes beyond which nothing is read; None: wherever this user may read. `there`: files of
    buckets are only listed. Raises InputError for what is no address, lies beyond them, or is not there."""
    known = prefixes(below) if below else None

    def check() -> None:
        if cancelled():
            raise Cancelled("cancelled; nothing was stored")

    addresses = [address(text) for text in texts]
    for text, one in zip(texts, addresses, strict=True):
        if known is not None and one.scheme != FILE and not within(one, known):
            raise refusal(text)
    paths: list[Path] = []
    far: list[FarFile] = []
    for one in addresses:
        check()
        if there and one.scheme in CLOUDS:
            far += _listed(one, known)
            continue
        paths += _paths(one, known, place, progress, tell, check)
    named = addresses[0] if addresses and (addresses[0].scheme != FILE or len(paths) > len(addresses)) else None
    return Given(tuple(paths), shown(named.name).strip()[:NAME_LENGTH] if named else "", tuple(far))


def _listed(one: Address, known: tuple[Address, ...] | None) -> list[FarFile]:
    from app.fetching.remote import listed

    return listed(one, known)


def _paths(
    one: Address,
    known: tuple[Address, ...] | None,
    place: Workspace,
    progress: Progress,
    tell: Tell | None,
    check: Callable[[], None],
) -> list[Path]:
    if one.scheme == FILE:
        return paths_of(one, known, check)
    from app.fetching.remote import fetch  # with what it keeps them in, which nobody needs whose files lie here
    from app.serve.uploads import Uploads

    return [fetch(one, known, Uploads(place.store.uploads_folder, place), progress, tell, check)]
