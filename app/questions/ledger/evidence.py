"""The evidence: the ledger as a table that sorts, leads back into the figure, and can be taken away."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from app import theme
from app.components.columns import NUMBER, draw_table
from app.questions.ledger.accounts import path_text
from app.questions.ledger.words import units
from runs.ledger import Ledger

MAX_HEIGHT_PX = 1100  # some thirty rows: what a usual ledger has; more scroll inside the table
BASIS_PX = 120  # room for the longest, "unattributed", with its mark
INDENT = "\u2003"  # an em space: the table shows text only, and leading plain spaces would be cut off


def ledger_table(ledger: Ledger) -> pd.DataFrame:
    """One row per account that holds time, parents first: what the page shows and what is exported.

    Columns: path, depth, account, title, chip_seconds, chip_hours, usd, share (0 to 1), basis, source.
    """
    whole = ledger.chip_seconds or 1.0
    rows = [
        {
            "path": path_text(path),
            "depth": len(path) - 1,
            "account": a.name,
            "title": theme.title(a.name),
            "chip_seconds": a.chip_seconds,
            "chip_hours": a.chip_seconds / 3600,
            "usd": a.usd,
            "share": a.chip_seconds / whole,
            "basis": a.basis,
            "source": a.source,
        }
        for path, a in ledger.account.walk()
        if a.chip_seconds > 0 or len(path) == 1
    ]
    return pd.DataFrame(rows).astype({"usd": "Float64"})


def evidence(ledger: Ledger, table: pd.DataFrame, choose: Callable[[str], None]) -> None:
    """Shows the table; `choose` is called with the path of an account whose row is picked."""
    key, (seconds, hours) = "evidence", (unit.capitalize() for unit in units(ledger))

    def picked() -> None:
        if rows := st.session_state[key].selection.rows:
            choose(str(table["path"].iloc[rows[0]]))

    shown = pd.DataFrame(
        {
            "Account": [INDENT * d + t for d, t in zip(table["depth"], table["title"], strict=True)],
            "Share": table["share"] * 100,
            seconds: table["chip_seconds"],
            hours: table["chip_hours"],
            "Dollars": table["usd"],
            "Basis": [f"{theme.mark(b).glyph} {b}" for b in table["basis"]],
            "Source": table["source"],
        }
    )
    if table["usd"].isna().all():
        shown = shown.drop(columns="Dollars")
    draw_table(
        shown,
        key=key,
        hide_index=True,
        height=min(35 * (len(shown) + 1) + 3, MAX_HEIGHT_PX),
        on_select=picked,
        selection_mode="single-row",
        columns={
            "Account": st.column_config.TextColumn(width="medium", help="What the chips did; parts are indented."),
            "Share": st.column_config.ProgressColumn(
                help="Part of all chip time held.", min_value=0, max_value=100, format="%.3g %%"
            ),
            seconds: st.column_config.NumberColumn(
                help="Chips held times seconds." if ledger.chips_known else "", format=NUMBER
            ),
            hours: st.column_config.NumberColumn(help=f"{seconds} / 3600.", format=NUMBER),
            "Dollars": st.column_config.NumberColumn(help="Chip-hours times the price.", format=f"${NUMBER}"),
            "Basis": st.column_config.TextColumn(
                width=BASIS_PX,
                help="How it is known: " + "; ".join(f"{m.glyph} {m.word}, {m.meaning}" for m in theme.BASES.values()),
            ),
            "Source": st.column_config.TextColumn(width="large", help="From which input and by which rule."),
        },
    )
