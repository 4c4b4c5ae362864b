"""What can be read without asking: what questions mean, what what-ifs take, what tables hold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from app import querying
from app.questions import QUESTIONS, question
from app.questions.base import described
from app.summary import run_details
from app.whatif import WHATIFS
from app.whatif.base import WhatIf, named
from app.workspace import Workspace
from errors import QuestionError
from runs.columns import TableSchema
from runs.query import sql_type
from runs.schema import TABLES

SCHEME = "chipledger"


@dataclass(frozen=True)
class Readable:
    """Something that can be read: its address, its name, and what it tells."""

    uri: str
    name: str
    help: str


@dataclass(frozen=True)
class Kind:
    """A kind of thing that can be read.

    help   what is told of one of them
    names  those that are listed, each with what it is; none: there are too many
    read   what is told of one, by its name, as JSON
    """

    help: str
    names: Callable[[], dict[str, str]]
    read: Callable[[str, Workspace], Any]


def listed() -> list[Readable]:
    """All that has an address of its own."""
    return [
        Readable(_uri(kind, name), f"{kind}/{name}", help_)
        for kind, what in KINDS.items()
        for name, help_ in what.names().items()
    ]


def templates() -> list[Readable]:
    """The forms of all addresses."""
    return [Readable(f"{SCHEME}://{kind}/{{name}}", kind, what.help) for kind, what in KINDS.items()]


def read(uri: str, place: Workspace) -> Any:
    """What stands at an address, as JSON. Raises QuestionError where there is nothing."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        parts = urlsplit("")
    kind, name = KINDS.get(parts.netloc), unquote(parts.path.removeprefix("/"))
    if parts.scheme != SCHEME or kind is None or not name:
        forms = ", ".join(t.uri.replace("{name}", "NAME") for t in templates())
        raise QuestionError(f"nothing stands at {uri[:200]!r}", expected=f"one of {forms}")
    return kind.read(name, place)


def _uri(kind: str, name: str) -> str:
    return f"{SCHEME}://{kind}/{quote(name, safe='')}"


def _question(name: str, place: Workspace) -> Any:
    return described(question(name))


def _whatif(name: str, place: Workspace) -> Any:
    found: WhatIf[Any, Any] = named(WHATIFS, name)
    options = [o.to_dict() for o in found.options if not o.local]
    return {"name": found.name, "title": found.title, "help": found.help, "options": options}


def _table(name: str, place: Workspace) -> Any:
    found: TableSchema | None = next((t for t in TABLES if t.name == name), None)
    if found is None:
        raise QuestionError(f"no table {name[:80]!r}", expected=f"one of {', '.join(t.name for t in TABLES)}")
    columns = [{"name": c.name, "type": sql_type(c.type), "meaning": c.meaning} for c in found.columns]
    return {"name": found.name, "row": found.row, "columns": columns}


def _run(name: str, place: Workspace) -> Any:
    run = place.store.find(name)
    live = place.store.live.current(run.run_id)
    details = run_details(run, place.registry.extras(run.run_id), live)
    rows = [{"name": t["name"], "rows": t["rows"]} for t in querying.tables(run)]
    return details | {"tables": rows}


KINDS: dict[str, Kind] = {
    "questions": Kind(
        "a question of `show`: what it is for, its options, and what its figures mean",
        lambda: {q.name: q.asks for q in QUESTIONS},
        _question,
    ),
    "whatifs": Kind("a what-if: what it can be asked", lambda: {w.name: w.help for w in WHATIFS}, _whatif),
    "tables": Kind("a table of runs: what a row is, and its columns", lambda: {t.name: t.row for t in TABLES}, _table),
    "runs": Kind("a run: its facts, sources, warnings, and the rows of its tables", dict, _run),
}
