"""The library: runs as rows, searched, sorted and counted. Free of pages: API, command line and agents read it too.

found = library(place, "chip:v5p mfu<30", sort="-mfu", limit=50)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from app.library.columns import Row, named
from app.library.index import Index
from app.library.search import read
from app.library.seen import Slots
from app.library.table import FRESH, table
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
    if numbers == "now" and (asked.worked_out or column.worked_out):
        with kept.still() as seen:
            lacking = kept.index.ids_of(seen.slots[kept.index.flags["pending"][seen.slots]])
        kept.work_out_of(lacking)
    demo = hidden or asked.asks("demo") or not kept.hides_demo()
    with kept.still() as seen:
        view = seen.view(archived or asked.asks("archived"), demo)
        found = seen.found(asked, view, column, sort, NEWEST)
        ids = kept.index.ids_of(found[offset:] if limit is None else found[offset : offset + limit])
        pending, facets, waited = view.pending, view.facets, kept.index.waiting(ids)
    shown = kept.fresh_of(ids)
    if numbers == "now":
        kept.work_out(shown)
        shown = kept.fresh_of(ids)
    few = shown if len(shown) <= FRESH else ()
    if numbers == "later":
        kept.begin(few, pending)
    return Library(
        rows=shown,
        found=len(found),
        total=len(view.slots),
        archived=view.archived,
        damaged=dict(view.damaged) | {row.run_id: row.problem for row in few if row.problem},
        pending=len(pending) - sum(row.run_id in waited and not row.pending for row in few),  # meanwhile
        facets=facets,
    )


def found_ids(
    place: Workspace,
    query: str = "",
    *,
    sort: str = NEWEST,
    name: str = "",
    group: str = "",
    archived: bool = False,
    hidden: bool = False,
    unread: bool = False,
    pending: bool = False,
) -> list[str]:
    """The runs that `library` finds, by their ids: of this name, and in this group or project, where these are given.
    `unread`: with those that cannot be read; `pending`: those alone whose numbers are not known yet. Raises as
    `library` does."""
    asked, column, kept = read(query), named(sort.removeprefix("-")), table(place)
    demo = hidden or asked.asks("demo") or not kept.hides_demo()
    with kept.still() as seen:
        found = seen.found(asked, seen.view(archived or asked.asks("archived"), demo), column, sort, NEWEST)
        found = found[kept.index.flags["pending"][found]] if pending else found
        return kept.index.ids_of(_narrowed(kept.index, found, name, group, unread))


@dataclass(frozen=True, eq=False)
class Changed:
    """Runs by slot, in the order of these, with the serials of their rows."""

    slots: Slots
    run_ids: Sequence[str]
    serials: np.ndarray


def found_slots(place: Workspace, query: str, known: np.ndarray) -> tuple[Slots, Changed]:
    """(the slots of the runs that `found_ids` finds, archived ones too, and after them of all that cannot be read;
    those of them whose serial, another one when the row is, is not as `known`, by slot, has it). A run that cannot be
    read is in every search, since nothing tells that it is not meant."""
    asked, kept = read(query), table(place)
    demo = asked.asks("demo") or not kept.hides_demo()
    with kept.still() as seen:
        index = kept.index
        found = seen.found(asked, seen.view(archived=True, demo=demo), named("added"), NEWEST, NEWEST)
        others = seen.slots[~index.flags["readable"][seen.slots]]
        slots = np.concatenate((found, others[~np.isin(others, found)])) if len(others) else found
        before = np.zeros(len(index.serials), dtype=np.int64)
        before[: len(known)] = known[: len(before)]
        changed = np.sort(slots[index.serials[slots] != before[slots]])
        return slots, Changed(changed, index.ids_of(changed), index.serials[changed])


def _narrowed(index: Index, slots: Slots, name: str, group: str, unread: bool) -> Slots:
    mine = index.flags["there" if unread else "readable"][slots]
    if name:
        mine &= index.texts["name"].equal(name)[slots]
    if group:
        mine &= (index.texts["group"].equal(group) | index.texts["project"].equal(group))[slots]
    return slots[mine]


def most(place: Workspace, of: Sequence[str], count: int) -> dict[str, dict[str, int]]:
    """Of the runs in the list that can be read: how many have each name, group, key of a tag ..., the most frequent
    first and no more than so many."""
    kept = table(place)
    with kept.still() as seen:
        slots = seen.view(archived=False, demo=not kept.hides_demo()).slots
        slots = slots[kept.index.flags["readable"][slots]]
        return {name: kept.index.facet(name, slots, count) for name in of}
