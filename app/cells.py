"""What is handed out as files: cells of CSV that a spreadsheet would run become text, names of files are plain."""

import csv
import io
import unicodedata
from typing import Any

from errors.numbers import ANY

# how a cell begins that a spreadsheet may run, in the wide forms of East Asian keyboards too
FORMULA = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FILE_NAME_BYTES = 120  # file systems hold 255; an ending and a browser's "(1)" follow
_IN_FILE_NAMES = " ._-,()"  # beside letters, digits and the marks that belong to letters
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


def file_name(text: str) -> str:
    """A file's name, without its ending, of any text: one line of letters, digits and plain marks, that leads nowhere
    and is no markup. What else stood there is a dash."""
    kept = "".join(c if c in _IN_FILE_NAMES or unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    plain = unicodedata.normalize("NFC", kept).encode()[:FILE_NAME_BYTES].decode(errors="ignore")
    return plain.strip(" .-") or "file"
