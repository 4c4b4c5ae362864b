"""What the list shows: which columns, in which order, and each run as the table draws it."""

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from app import theme
from app.components.live import live_mark
from app.identity.asking import who
from app.identity.base import Role
from app.identity.may import may
from app.library.changes import InBin
from app.library.columns import Row, named
from app.library.rows import NEWEST
from app.notes import first_line
from app.sharing import seen_by
from errors import QuestionError
from errors import format as fmt

TIME = "time"  # the bar, which is no column of the library: it is sorted by goodput
OFFERED = (
    "chips",
    "model",
    "kind",
    "group",
    "added",
    TIME,
    "goodput",
    "mfu",
    "step_time",
    "throughput",
    "loss",
    "hours",
    "chip_hours",
    "cost",
    "largest_loss",
)
USUAL = ("chips", "model", "kind", "added", TIME)
TITLES = {TIME: "Chip time", "chip_hours": "Chip-hours", "hours": "Hours"}
BAR_MEANS = "where the chip time went; sorted by goodput"
UP_FIRST = ("text",)  # kinds of columns of which the least is looked for first

RUN = (("rename", "Rename"), ("note", "Notes"), ("tags", "Tags"), ("group", "Group"))
SHARE = ("share", "Who sees it")  # where people are known
DELETE = ("delete", "Delete")
MENU = (*RUN, ("archive", "Archive"), DELETE)
ARCHIVED = (*RUN, ("unarchive", "Take out of the archive"), DELETE)
SEVERAL = (("compare", "Compare"), ("tags", "Tag"), ("group", "Group"))
BULK = (*SEVERAL, ("archive", "Archive"), DELETE, ("export", "Export"))
BULK_ARCHIVED = (*SEVERAL, ("unarchive", "Take out of the archive"), DELETE, ("export", "Export"))
BINNED = (("restore", "Restore"), ("gone", "Delete for good"))
NEEDS = {"compare": Role.VIEWER, "export": Role.VIEWER, "note": Role.VIEWER, "gone": Role.ADMIN}  # others change runs
BIN_COLUMNS = (("who", "Deleted by"), ("since", "Deleted"), ("left", "Goes for good"))


def chosen_columns() -> tuple[str, ...]:
    """The columns that the address names, in the order in which they are offered; the usual ones where it is silent."""
    asked = set(st.query_params.get("columns", "").split(","))
    return tuple(c for c in OFFERED if c in asked) or USUAL


def chosen_sort() -> str:
    """By what the list is sorted, as the address says; the newest first where it names no column."""
    asked = st.query_params.get("sort", NEWEST)
    try:
        return "-" * asked.startswith("-") + named(asked.removeprefix("-")).name
    except QuestionError:
        return NEWEST


def turned(column: str, now: str) -> str:
    """The order after a click on a column's head: the other way round, else as one looks for it first."""
    if now.removeprefix("-") == column:
        return column if now.startswith("-") else f"-{column}"
    return column if named(column).kind in UP_FIRST else f"-{column}"


def title(column: str) -> str:
    return TITLES.get(column) or named(column).title


def heads(columns: Sequence[str]) -> list[dict[str, str]]:
    return [{"key": c, "title": _head(c), "sort": _sorts(c), "hover": _meaning(c)} for c in columns]


def _head(column: str) -> str:
    return TITLES[TIME] if column == TIME else named(column).head


def _sorts(column: str) -> str:
    return "goodput" if column == TIME else column


def _meaning(column: str) -> str:
    return BAR_MEANS if column == TIME else named(column).meaning


def offered(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """What can be done, with who sees runs where people are known."""
    return acts(pairs if who().how in ("open", "server") else (SHARE, *pairs))


def acts(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Those that whoever asks may do."""
    return [{"act": act, "label": label} for act, label in pairs if may(NEEDS.get(act, Role.UPLOADER))]


def drawn(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    """A run as the table shows it. Of one that cannot be read its id and what is wrong are all that is known."""
    can = (DELETE,) if not row.readable else ARCHIVED if row.archived else MENU
    return {
        "id": row.address,
        "name": row.name,
        "href": "/findings?" + urlencode({"run": row.address}),
        "marks": _marks(row),
        "tags": [f"{k}={v}" if v else k for k, v in row.tags.items()],
        "cells": {c: _cell(row, c) for c in columns},
        "bar": [_part(*part) for part in row.bar] if TIME in columns else [],
        "starred": row.starred if row.readable else None,
        "notes": {"count": len(row.notes), "first": first_line(row.notes[0])} if row.notes else None,
        "menu": offered(can),
    }


def _cell(row: Row, column: str) -> str:
    if column == TIME:
        return (row.problem or "") if not row.readable else row.under
    if column == "chips":
        return row.chips_text or fmt.NO_VALUE
    return "…" if row.pending and named(column).worked_out else row.text(column)


def _part(account: str, says: str, share: float) -> dict[str, Any]:
    return {
        "title": f"{says}: {fmt.share(share)}",
        "share": share,
        "colour": theme.colour([account]),
        "hatched": bool(theme.pattern([account])),
    }


def _marks(row: Row) -> list[dict[str, str]]:
    marks = [{"text": "damaged", "hover": row.problem, "state": ""}] if row.problem else []
    if row.simulated:
        marks.append({"text": "simulated", "hover": "nobody ran this", "state": ""})
    if row.groups:
        marks.append({"text": ", ".join(row.groups), "hover": f"seen by {seen_by(row.groups)}", "state": "quiet"})
    if row.archived:
        marks.append({"text": "archived", "hover": "", "state": "quiet"})
    if row.live:
        told = live_mark(row.live)
        marks.append({"text": told["text"], "hover": "", "state": f"live {told['state']}"})
    return marks


def binned_row(lying: InBin) -> dict[str, Any]:
    """A run in the bin."""
    left_s = (lying.until_ns - time.time_ns()) / 1e9
    days = max(int(left_s // 86_400), 0)
    return {
        "id": lying.run_id,
        "name": lying.name,
        "href": None,
        "marks": [],
        "tags": [],
        "cells": {
            "who": lying.who or fmt.NO_VALUE,
            "since": fmt.date(lying.since_ns),
            "left": f"in {fmt.count(days, 'day')}" if days else "within a day",
        },
        "bar": [],
        "starred": None,
        "notes": None,
        "menu": acts(BINNED),
    }
