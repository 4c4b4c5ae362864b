"""The audit log as it is handed out: to the command line and to the API."""

import csv
import io
from collections.abc import Iterable
from typing import Any

from app.cells import harmless
from app.workspace import Workspace
from errors.numbers import Number
from errors.options import Option
from errors.times import Moment
from runs.audit_book import MOST_TOLD, AuditBook, Entry

SINCE = Option("since", Moment(), None, "only what happened since then: a date, or a time ago such as 7d", form="TIME")
MOST = Option("most", Number(1, MOST_TOLD, whole=True), MOST_TOLD, "at most so many entries, the newest")
AS = Option("format", ("json", "csv"), "json", "as JSON, or as a table for a spreadsheet")
COLUMNS = ("at_ns", "who", "how", "role", "token_id", "what", "about", "address", "outcome", "more")


def entries(place: Workspace, since_ns: int | None = None, most: int | None = None) -> list[Entry]:
    """The newest first."""
    return AuditBook(place.registry.at).entries(since_ns or 0, most or MOST_TOLD)


def csv_of(told: Iterable[Entry]) -> str:
    """A table; no cell of it is one that a spreadsheet would run."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(entry, name) for name in COLUMNS] for entry in told)
    return written.getvalue()


def _cell(entry: Entry, name: str) -> Any:
    return harmless(getattr(entry, name))
