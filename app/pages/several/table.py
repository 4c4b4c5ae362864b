"""Several runs: the table of what differs, runs down or across, with what each is against the baseline."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from analyzers.several.differing import Line
from app.comparing.several import words
from app.comparing.several.answer import Several
from app.components.columns import Like, draw_table
from app.pages.compare import COMPARE
from errors import format as fmt

KEYS = {  # of figures: as files call them, by which tables know their units
    "step_time": "step_s",
    "mfu": "mfu",
    "throughput": "tokens_per_s",
    "goodput": "goodput_share",
    "loss": "loss",
    "hours": "hours",
    "chip_hours": "chip_hours",
    "cost": "cost_usd",
}
CHANGE = "_change_share"


def down(found: Several) -> pd.DataFrame:
    """A row a run, a column a setting or figure that differs, figures as numbers with their change beside them."""
    rows: dict[str, list[Any]] = {"run": [m.name for m in found.members]}
    for line in found.table.differs:
        if line.figure:
            rows[KEYS[line.name]] = [_number(v) for v in line.values]
            changes = found.changes(line)
            if any(changes):
                rows[KEYS[line.name] + CHANGE] = [_number(h and h.change) for h in changes]
        else:
            rows[f"setting {line.name}"] = _settings(line)
    if any(found.steps):
        rows["settled step"] = [_step(found, n) for n in range(len(found.members))]
    return pd.DataFrame(rows)


def across(found: Several) -> pd.DataFrame:
    """A row a setting or figure, a column a run; figures with their change."""
    rows = []
    for line in found.table.differs:
        changes = found.changes(line) if line.figure else (None,) * len(line.values)
        cells = [_text(line, n) + (f" ({words.signed(h.change)})" if h else "") for n, h in enumerate(changes)]
        rows.append([words.title(line.name), *cells])
    if any(found.steps):
        rows.append(["Mean settled step, change and range", *(_step(found, n) for n in range(len(found.members)))])
    return pd.DataFrame(rows, columns=["", *_headings(found)])


def draw(found: Several, turned: bool) -> None:
    """`turned`: runs across. The first column stays where it is when the table is moved."""
    if turned:
        rows = across(found)
        heads = {name: {"label": name} for name in rows.columns[1:]}  # names as they are, not as words
        draw_table(rows, {"": {"label": "Setting or figure", "pinned": True}, **heads})
        return
    rows = down(found)
    rows.insert(1, "open", [_page(found, n) for n in range(len(found.members))])
    draw_table(rows, _columns(found, rows))


def _columns(found: Several, rows: pd.DataFrame) -> Mapping[str, Any]:
    told: dict[str, Any] = {
        "run": {"label": "Run", "pinned": True},
        "open": st.column_config.LinkColumn("A or B", display_text="against it", help="Beside the baseline, in full."),
        "settled step": {"label": "Mean settled step", "help": "Against the baseline, with its range."},
    }
    for line in found.table.differs:
        if not line.figure:
            told[f"setting {line.name}"] = {"label": words.setting(line.name).capitalize(), "help": f"`{line.name}`"}
            continue
        column = words.column(line.name)
        meaning, title = (column.meaning, column.title) if column else ("", line.name)
        told[KEYS[line.name]] = Like(KEYS[line.name], f"{meaning}.".capitalize(), title)
        held = f"{title} over that of the baseline, less 1."
        told[KEYS[line.name] + CHANGE] = Like("change_share", held, f"{title}, change")
    return {name: how for name, how in told.items() if name in rows}


def _page(found: Several, n: int) -> str | None:
    """Where a run is laid beside the baseline alone; None for the baseline, and for what cannot be."""
    if n == found.first or found.unlike[n]:
        return None
    told = {"run": found.baseline.run_id, "with": found.members[n].run_id}
    return f"/{COMPARE.path}?{urlencode(told)}"


def _headings(found: Several) -> list[str]:
    """Names of the runs, told apart where two are called alike."""
    names = [m.name for m in found.members]
    return [n if names.count(n) == 1 else f"{n} ({m.run_id[:8]})" for n, m in zip(names, found.members, strict=True)]


def _settings(line: Line) -> list[Any]:
    """Numbers stay numbers where all of them are."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in line.told):
        return [_number(v) for v in line.values]
    return [None if v is None else words.value(line, v) for v in line.values]


def _text(line: Line, n: int) -> str:
    return words.value(line, line.values[n])


def _step(found: Several, n: int) -> str:
    return "baseline" if n == found.first else words.change(found.steps[n]) or fmt.NO_VALUE


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def same(found: Several) -> pd.DataFrame:
    """What is the same in all, and what some alone tell."""
    rows = [(words.title(x.name), words.value(x, x.told[0]), "all") for x in found.table.common]
    rows += [
        (words.title(x.name), words.value(x, x.told[0]), f"{len(x.told)} of {len(x.values)}") for x in found.table.some
    ]
    return pd.DataFrame(rows, columns=["setting or figure", "value", "told by"])
