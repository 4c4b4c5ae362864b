"""Rows as an address or a command line names them."""

import re

from errors import QuestionError

RANGE = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")


def ranges_of(text: str, count: int) -> list[tuple[int, int]]:
    """`0-39,52` as first and last of each. Raises QuestionError for what is no list of rows below `count`."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        form = RANGE.fullmatch(part.strip())
        if form is None:
            raise QuestionError(f"rows={text[:60]!r}", expected="rows such as 0-39,52")
        low, high = int(form[1]), int(form[2] or form[1])
        if high >= count or low > high:
            raise QuestionError(f"no rows {part.strip()[:30]!r}", expected=f"rows from 0 to {count - 1:,}")
        found.append((low, high))
    return found
