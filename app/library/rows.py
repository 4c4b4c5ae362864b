"""The library: runs as rows, searched, sorted and counted. Free of pages: API, command line and agents read it too.

found = library(place, "chip:v5p mfu<30", sort="-mfu", limit=50)
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from app.library.columns import Row, named
from app.library.search import read
from app.library.table import Rows, table
from app.workspace import Workspace

NEWEST = "-added"
Numbers = Literal["later", "now", "kept"]


@dataclass(frozen=True, kw_only=True)
class Library:
    """What was found. `rows`: those asked for; `found`: how many match; `total`: how many there are to search, without
    archived ones unless these are asked for, of which there are `archived`. `damaged`: runs of which something is
    damaged, by id, each with one sentence. `pending`: runs whose numbers are still being worked out: a search or a
    sort by such a number may find more, or another order, once they are there. `facets`: for chip, kind, model, tag and
    group the values there are among all that are searched, each with its number of runs, the most frequent first.
    """

    rows: Sequence[Row]
    found: int
    total: int
    archived: int
    damaged: Mapping[str, str]
    pending: int
    facets: Mapping[str, Mapping[str, int]] = field(repr=False)


def library(
    place: Workspace,
    query: str = "",
    *,
    sort: str = NEWEST,
    limit: int | None = None,
    offset: int = 0,
    archived: bool = False,
    hidden: bool = False,
    numbers: Numbers = "later",
) -> Library:
    """The runs that a search finds. `sort`: a column, `-` before it for the largest first; what is not known stands
    last. `archived`: archived runs too; `hidden`: demo runs too where people hid them. A search with `is:archived` or
    `is:demo` asks for these itself. `numbers` that lack are worked out `later`, in the background, or `now` as far as
    the search, the order and the rows that are shown need them; `kept`: not at all.

    Raises QuestionError for a search or a column that cannot be, InputError where the store cannot be read.
    """
    asked, column = read(query), named(sort.removeprefix("-"))
    kept = table(place)
    rows = kept.rows()
    if numbers == "now" and (asked.worked_out or column.worked_out):
        kept.work_out(rows)
        rows = kept.rows()
    demo = hidden or asked.asks("demo") or not kept.hides_demo()
    view = _view(rows, archived or asked.asks("archived"), demo)
    there = view.rows
    found = [row for row in there if asked.matches(row)] if asked.tests else there
    if sort != NEWEST:
        found = _sorted(found, column.value, sort.startswith("-"))
    shown = kept.fresh(found[offset:] if limit is None else found[offset : offset + limit])
    if numbers == "now":
        kept.work_out(shown)
        shown = kept.fresh(shown)
    told = {row.run_id for row in shown if not row.pending}  # meanwhile
    pending = [row for row in view.pending if row.run_id not in told]
    if numbers == "later":
        kept.begin(shown, pending)
    return Library(
        rows=shown,
        found=len(found),
        total=len(there),
        archived=view.archived,
        damaged={row.run_id: row.problem for row in chain(view.damaged, shown) if row.problem},
        pending=len(pending),
        facets=view.facets,
    )


@dataclass(frozen=True)
class _View:
    """What is searched, and what is told of all of it, whatever is found."""

    rows: Sequence[Row]
    pending: Sequence[Row]
    facets: Mapping[str, Mapping[str, int]]
    archived: int
    damaged: Sequence[Row]


def _view(rows: Rows, archived: bool, demo: bool) -> _View:
    """Kept with its rows: to count ten thousand takes longer than most searches."""
    views = rows.views
    if (archived, demo) not in views:
        there = _in_view(rows, archived, demo)
        views[archived, demo] = _View(
            rows=there,
            pending=[row for row in there if row.pending],
            facets=facets(there),
            archived=sum(row.archived for row in rows),
            damaged=[row for row in rows if row.problem],
        )
    return views[archived, demo]


def _in_view(rows: Sequence[Row], archived: bool, demo: bool) -> Sequence[Row]:
    """Without what is not shown; the same rows where nothing is hidden."""
    hides = (not archived and any(r.archived for r in rows)) or (not demo and any(r.demo for r in rows))
    return [r for r in rows if (archived or not r.archived) and (demo or not r.demo)] if hides else rows


def _sorted(rows: Sequence[Row], value: Callable[[Row], Any], down: bool) -> list[Row]:
    """By a column; the newest first among equals, and last of all what is not known."""
    told = [(None if (v := value(row)) == "" else v, row) for row in rows]
    known = [(v.casefold() if isinstance(v, str) else v, row) for v, row in told if v is not None]
    known.sort(key=lambda pair: pair[0], reverse=down)
    return [row for _, row in known] + [row for v, row in told if v is None]


def facets(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How many runs have each chip, kind, model, tag and group."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in ("chip", "kind", "model", "tag", "group")}
    for row in rows:
        for name in ("chip", "kind", "model", "group"):
            if value := getattr(row, name):
                counted[name][value] += 1
        counted["tag"].update(f"{k}={v}" for k, v in row.tags.items())
    return {name: dict(values.most_common()) for name, values in counted.items()}
