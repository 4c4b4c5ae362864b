"""What the commands share: options of a terminal, printing JSON and tables, and reading `key=value`."""

import contextlib
import getpass
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app.words import rest_of
from errors import InputError
from errors.options import SWITCH, Option
from runs.durable import write_whole

STORE = Option(
    "store",
    str,
    None,
    "folder or address of the store, such as s3://bucket/prefix (default: $CHIPLEDGER_STORE, else ~/.chipledger)",
    local=True,
    form="STORE",
)
CACHE = Option(
    "cache",
    str,
    None,
    "folder below which what a store in a bucket has on this machine lies "
    "(default: $CHIPLEDGER_CACHE, else ~/.local/share/chipledger)",
    local=True,
    form="FOLDER",
)
JSON = Option("json", SWITCH, False, "print the answer as JSON", local=True)
RUN = Option("run", str, None, "id, beginning of an id, or name of a run", of_run=True, local=True)
RUNS = Option("run", str, (), "id, beginning of an id, or name of each run", of_run=True, local=True, several=True)
CONFIG_BYTES = 1 << 20  # a page of dimensions, not a checkpoint


def user() -> str:
    """Who asks, as this machine calls them; empty where it does not say."""
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))


def print_verdict(text: str) -> None:
    """A verdict with all that follows it, and a line left free."""
    for part in (text, " ".join(rest_of(text))):
        if part:
            print(printable(part))
    print()


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Columns aligned; those whose number is in `right` to the right. Control characters never reach the terminal."""
    cells = [[printable(str(c)) for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        parts = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(parts).rstrip())


def printable(text: str) -> str:
    """Text from an input without what a terminal would act on."""
    if text.isprintable():  # nearly all of a table's cells, of which there may be millions
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


def write_file(path: str, text: str) -> None:
    """Write an answer to a file, in the place of one that is there: whole or not at all where it is a plain file.
    Raises InputError."""
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():  # a pipe, or a terminal; of a folder opening it says what it is
            target.open("w", encoding="utf-8").write(text)
        else:
            write_whole(target, text)
    except (OSError, ValueError) as e:  # ValueError: a null character in its name
        raise InputError(f"cannot be written ({getattr(e, 'strerror', None) or e})", where=path) from e


def pairs(given: Sequence[str] | None, what: str) -> dict[str, str]:
    """`["k=v"]` as a dict. Raises InputError for one without a key or `=`."""
    result = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"{what} {text!r} is not understood", expected="key=value")
        if key.strip() in result:
            raise InputError(f"{what} {key.strip()!r} is given twice", expected="once")
        result[key.strip()] = value
    return result


def model_config(path: Path, named: str) -> dict[str, Any]:
    """A model's own config.json. Raises InputError, by the name that was given, where it cannot be read."""
    try:
        config = json.loads(path.read_bytes()[: CONFIG_BYTES + 1])
    except (OSError, ValueError, RecursionError) as e:
        raise InputError(f"cannot be read as JSON ({e})", where=named, expected="a model's config.json") from e
    if not isinstance(config, dict):
        raise InputError("no JSON object", where=named, expected="a model's config.json")
    return config
