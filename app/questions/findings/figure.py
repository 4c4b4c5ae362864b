"""Two ledgers one above the other, to the same scale: the run as it was, and as it would be."""

import plotly.graph_objects as go

from app import theme
from app.figures.base import layout
from errors import format as fmt
from runs.ledger import Ledger

ROW_PX = 64
WHOLES = ("straggler_wait", "unattributed")
"""Accounts that are told as wholes, whatever they are made of: one name is one number on a page."""
NAMED = 0.06  # of the whole: a part as wide has room for its name


def on_paper(now: Ledger, after: Ledger) -> go.Figure:
    """A bar each, by account: the same colours as everywhere."""
    rows = (("as it was", by_account(now)), ("mended", by_account(after)))
    whole = now.chip_seconds
    names = sorted(set(rows[0][1]) | set(rows[1][1]), key=lambda n: (n != "useful_maths", -rows[0][1].get(n, 0.0)))
    figure = go.Figure()
    for name in names:
        amounts = [held.get(name, 0.0) for _, held in rows]
        shares = [a / whole * 100 for a in amounts]
        figure.add_bar(
            orientation="h",
            y=[label for label, _ in rows],
            x=shares,
            name=theme.title(name),
            marker={"color": theme.colour([name]), "line": {"color": theme.GREY, "width": 0.4}},
            text=[theme.title(name) if s > NAMED * 100 else "" for s in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            customdata=[fmt.held_time(a, now.chips_known) for a in amounts],
            hovertemplate=f"<b>{theme.title(name)}</b><br>%{{customdata}}, %{{x:,.3r}} %<extra>%{{y}}</extra>",
        )
    return layout(
        figure,
        height=2 * ROW_PX + 70,
        barmode="stack",
        showlegend=False,
        uniformtext={"minsize": 10, "mode": "hide"},
        xaxis={"title": "share of the chip time held (%)", "range": [0, 100], "fixedrange": True},
        yaxis={"autorange": "reversed", "fixedrange": True},
    )


def by_account(ledger: Ledger) -> dict[str, float]:
    """Chip-seconds of the leaves of a ledger by the account that they look like."""
    found: dict[str, float] = {}
    for path, account in ledger.account.walk():
        if not account.children and account.chip_seconds > 0:
            whole = next((n for n in WHOLES if n in path), None)
            name = whole or theme.known(
                path
            )  # parts without a colour of their own, such as waiting for one host, are one
            found[name] = found.get(name, 0.0) + account.chip_seconds
    return found
