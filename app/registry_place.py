"""Where a store's registry is: the file beside its runs, or PostgreSQL.

    <store>/registry.at     of one on PostgreSQL: its address without what is secret, what tells it from another, and
                            what tells this store from another

An address is taken from a file, or from the environment, where a password may stand in it; from the command line
without one. What `registry.at` says is enough where libpq finds the password itself. A store has one registry: another
address is taken as long as it leads to the same.
"""

import json
import os
import uuid
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from errors import InputError, QuestionError
from errors.options import Option
from runs.database import NOTE, At, Elsewhere
from runs.durable import write_whole, writing
from runs.postgres.address import FORM, SECRET, address, is_address
from runs.postgres.relay import VARIABLE as RELAY_VARIABLE

FILE = "registry.db"
VARIABLE, FILE_VARIABLE = "CHIPLEDGER_REGISTRY", "CHIPLEDGER_REGISTRY_FILE"
MOST_BYTES = 10_000
ADDRESS = Option(
    "registry",
    str,
    None,
    f"where the registry is, without a password: {FORM} (default: ${VARIABLE}, else as the store has noted, else a "
    "file in the store)",
    local=True,
    form="ADDRESS",
)
ADDRESS_FILE = Option(
    "registry_file",
    str,
    None,
    f"a file that holds that address, in which a password may stand (default: ${FILE_VARIABLE})",
    local=True,
    form="FILE",
)
OPTIONS = (ADDRESS, ADDRESS_FILE)


@dataclass(frozen=True)
class Noted:
    """What a store says of its registry. `store`: which store it is; empty as an earlier version noted it."""

    url: str
    which: int
    store: str = ""


def settle(given: str | None, file: str | None) -> None:
    """Have this process, and those that it starts, find the registry there. Raises QuestionError for an address with a
    password, which whoever lists processes would read, and for two."""
    if given and file:
        raise QuestionError("the registry is named twice", expected="--registry or --registry-file")
    if given:
        if address(given).has_secret:
            raise QuestionError(
                "a password stands in --registry, where all who list processes read it",
                expected="an address without one",
                advice="Put the whole address into a file that you alone can read, and name that: --registry-file.",
            )
        os.environ[VARIABLE] = given
        os.environ.pop(FILE_VARIABLE, None)
    if file:
        os.environ[FILE_VARIABLE] = str(Path(file).absolute())
        os.environ.pop(VARIABLE, None)


def asked() -> str | None:
    """The address that this process was told, its password included. Raises InputError for a file that holds none."""
    if file := os.environ.get(FILE_VARIABLE):
        return read_address(Path(file))
    return os.environ.get(VARIABLE) or None


def read_address(file: Path) -> str:
    """The address in a file. Raises InputError; nothing of what the file holds is told."""
    try:
        text = file.read_bytes()[:MOST_BYTES].decode().strip()
    except (OSError, UnicodeDecodeError) as e:
        reason = getattr(e, "strerror", None) or "it is no text"
        raise InputError(f"the address of the registry cannot be read ({reason})", where=str(file)) from e
    if not is_address(text) or "\n" in text:
        raise InputError("this is no address of a registry", where=str(file), expected=f"one line: {FORM}")
    return text


def registry_at(root: Path, store: str = "", place: str = "") -> At:
    """Where the registry of the store in this folder is. `store`: which one, where that is not told by the folder;
    `place`: where it lies, for people. Raises InputError where it cannot be used, or is another's."""
    if relay := os.environ.get(RELAY_VARIABLE):
        return _relay(int(relay))
    url, noted = asked(), read_note(root)
    if url is None and noted is None:
        return root / FILE
    from runs.postgres.belonging import belong
    from runs.postgres.server import server

    at = server(url or (noted.url if noted else ""))
    which = which_of(at)
    if noted is None:
        _has_none(root)
    elif noted.which != which:
        raise InputError(
            "this is not the registry of this store",
            where=at.name,
            expected=f"the one that was at {address(noted.url).name}",
            advice=f"`chipledger registry move` moves it. Where that one is lost for good, take {NOTE} away in the "
            "store.",
        )
    belong(at, lambda first: store or _which_store(root, at.address.plain, which, first), place or str(root))
    if noted is None and store:
        _note_if_it_can(root, Noted(at.address.plain, which, store))
    return at


def which_of(at: Elsewhere) -> int:
    with at.connect("") as db:
        return at.which(db)


@cache
def _relay(descriptor: int) -> At:
    from runs.postgres.relay import Relay

    return Relay(descriptor)


def _has_none(root: Path) -> None:
    """Raises InputError where the store has a registry in a file."""
    if (root / FILE).exists():
        raise InputError(
            f"this store has a registry already, in the file {FILE}",
            where=str(root),
            advice="`chipledger registry move --registry-file FILE` moves it to the address in that file, with "
            "all that people added.",
        )


def _which_store(root: Path, plain: str, which: int, first: bool) -> str:
    """Which store lies in this folder: a number that is noted there for all who have it, at whatever path; `first`:
    drawn where none is. Empty where there is none."""
    noted = read_note(root)
    if not first or (noted and noted.store):
        return noted.store if noted else ""
    drawn = uuid.uuid4().hex
    return drawn if _note_if_it_can(root, Noted(noted.url if noted else plain, which, drawn)) else ""


def _note_if_it_can(root: Path, noted: Noted) -> bool:
    try:
        write_note(root, noted)
    except InputError:  # of a store that can only be read
        return False
    return True


def read_note(root: Path) -> Noted | None:
    """Raises InputError for a note that was damaged: without it another registry would be begun."""
    path = root / NOTE
    try:
        told = json.loads(path.read_bytes())
        return Noted(str(told["url"]), int(told["which"]), str(told.get("store", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as e:
        reason = getattr(e, "strerror", None) or "it holds something else"
        raise InputError(
            f"where the registry is cannot be read ({reason})",
            where=str(path),
            expected='{"url": "postgresql://...", "which": number}',
            advice="Bring it back from a backup.",
        ) from e


def write_note(root: Path, noted: Noted) -> None:
    if any(f"{name}=" in noted.url for name in SECRET):
        raise AssertionError("an address with a secret is not noted")
    with writing(root / NOTE):
        write_whole(root / NOTE, json.dumps(asdict(noted)))
