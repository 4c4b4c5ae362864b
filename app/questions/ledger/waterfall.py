"""The ledger as a waterfall: from the chip time held down to what moved the model, one loss at a time."""

from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.questions.ledger.accounts import KEPT, hover, opened, path_text
from app.questions.ledger.words import units
from errors import format as fmt
from runs.ledger import Account, Ledger

HEADINGS = ("held", "productive", "profiled", "badput", "custom", "served", "lost_work")  # their parts need no name
ROW_PX = 30
HAIR = 5e-5  # a loss below this share of the account opened is no bar that could be seen


@dataclass(frozen=True)
class Fall:
    """One bar: from `end` up to `start` chip-seconds. A total stands on zero."""

    account: Account
    path: tuple[str, ...]
    start: float
    end: float
    total: bool


def falls(root: Account, at: str = "") -> list[Fall]:
    """The bars for the account at path `at`: its total, the leaves that take from it, and each level kept.

    Every loss begins where the one before it ended, so the bars close to the account exactly as its children do.
    """
    chain = opened(root, at)
    account, path = chain[-1], tuple(a.name for a in chain)
    bars = [Fall(account, path, account.chip_seconds, 0.0, True)]
    while account.children:
        kept = next((c for c in account.children if c.name in KEPT and c.chip_seconds > 0), None)
        losses = [leaf for c in account.children if c is not kept for leaf in _leaves(c, path)]
        losses.sort(key=lambda entry: (entry[1].name == "unattributed", -entry[1].chip_seconds))
        level = account.chip_seconds
        for loss_path, loss in losses:
            bars.append(Fall(loss, loss_path, level, level - loss.chip_seconds, False))
            level -= loss.chip_seconds
        if kept is None:
            break
        account, path = kept, (*path, kept.name)
        bars.append(Fall(account, path, account.chip_seconds, 0.0, True))
    return bars


def _leaves(account: Account, above: tuple[str, ...]) -> list[tuple[tuple[str, ...], Account]]:
    """(path from the root, account) of every account below that holds time and is not broken down further."""
    return [(p, a) for p, a in account.walk(above) if not a.children and a.chip_seconds > 0]


def name(path: tuple[str, ...]) -> str:
    """What stands beside a bar: the account's title, with what it is a part of where that would not be clear."""
    title = theme.title(path[-1])
    if len(path) < 2 or path[-2] in HEADINGS:
        return title
    return f"{theme.title(path[-2])}: {title[0].lower()}{title[1:]}"


def waterfall(ledger: Ledger, at: str = "") -> go.Figure:
    """The waterfall of a ledger from the account with path `at` (as `path_text` writes it)."""
    bars = falls(ledger.account, at)
    whole, top = ledger.chip_seconds or 1.0, bars[0].start or 1.0
    bars = [b for b in bars if b.total or b.start - b.end >= HAIR * top]
    seconds, hours = units(ledger)
    unit, factor = (hours, 3600.0) if top >= 360 else (seconds, 1.0)
    names = [f"<b>{plain(name(b.path))}</b>" if b.total else plain(name(b.path)) for b in bars]
    rows = list(range(len(bars)))
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=rows,
            x=[(b.start - b.end) / factor for b in bars],
            base=[b.end / factor for b in bars],
            customdata=[path_text(b.path) for b in bars],
            hovertext=[hover(ledger, b.account, b.path) for b in bars],
            hovertemplate="%{hovertext}<extra></extra>",
            marker={
                "color": [theme.colour(b.path) for b in bars],
                "line": {"color": "rgba(128,128,128,0.55)", "width": 1},
                "pattern": {
                    "shape": [theme.pattern(b.path) for b in bars],
                    "fgcolor": "rgba(90,90,90,0.25)",
                    "fillmode": "overlay",
                    "size": 12,
                    "solidity": 0.12,
                },
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    )
    for row, bar in zip(rows, bars, strict=True):
        amount = fmt.held_time(bar.account.chip_seconds, ledger.chips_known)
        figure.add_annotation(
            x=bar.start / factor,
            y=row,
            xanchor="left",
            showarrow=False,
            xshift=6,
            font={"size": 12},
            text=f"{fmt.share(bar.account.chip_seconds / whole)} · {amount}",
        )
    return layout(
        figure,
        height=len(bars) * ROW_PX + 56,
        bargap=0.25,
        xaxis={
            "title": {"text": unit},
            "range": [0, top / factor * 1.24],
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": rows,
            "ticktext": names,
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
        },
    )
