"""What a list of runs can be asked, on the command line and over the API."""

from errors.numbers import Number
from errors.options import SWITCH, Option

QUERY = Option("q", str, "", "search: words, and terms such as chip:v5p mfu<30 tag:prod -is:archived", form="QUERY")
SORT = Option(
    "sort",
    str,
    "-added",
    "column to sort by, - before it for the largest first",
    form="COLUMN",
)
LIMIT = Option("limit", Number(1, 1_000_000, whole=True), None, "most runs that are listed (default: all)")
OFFSET = Option("offset", Number(0, 1_000_000, whole=True), 0, "runs to pass over before that")
ARCHIVED = Option("archived", SWITCH, False, "archived runs too")
ASKED = (QUERY, SORT, LIMIT, OFFSET, ARCHIVED)
