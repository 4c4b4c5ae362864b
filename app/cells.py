"""Cells of the CSV files that are handed out: what a spreadsheet would run becomes text."""

import csv
import io
from typing import Any

from errors.numbers import ANY

FORMULA = ("=", "+", "-", "@", "\t", "\n")  # how a cell begins that a spreadsheet may run
LONGEST = (1 << 31) - 1  # characters of a cell that is read: the text of an operation may be longer than csv's default


def harmless(cell: Any) -> Any:
    """The cell, with an apostrophe in front where it is text that a spreadsheet would run as a formula. Numbers, also
    those written as text, stay as they are."""
    if not isinstance(cell, str) or ANY.reads(cell):
        return cell
    # a lone carriage return is not quoted by the writer, and would begin a row of its own
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(FORMULA) else text


def harmless_csv(text: str) -> str:
    """A CSV file that something else wrote, every cell of it harmless and quoted."""
    csv.field_size_limit(LONGEST)
    written = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(text, newline=""))
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return written.getvalue()
