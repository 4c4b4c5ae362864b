"""The ledger as an icicle: the account at the top as wide as the figure, its parts below it, to scale."""

import textwrap
from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.figures.base import layout, plain
from app.questions.ledger.accounts import KEPT, hover, opened, path_text
from app.questions.ledger.words import units
from errors import format as fmt
from runs.ledger import Account, Ledger

ROW_PX = 76
WIDTH_PX = 1100  # about the width of the page; labels are chosen for it and hidden by plotly where it is narrower
CHARACTER_PX = 7.4
MAX_LINES = 2  # of a title; with the share that fills a row


@dataclass(frozen=True)
class Box:
    """One drawn rectangle: an account, its path, its row and its extent in chip-seconds."""

    account: Account
    path: tuple[str, ...]
    row: int
    start: float
    width: float


def boxes(root: Account, at: str = "") -> list[Box]:
    """The rectangles of the icicle opened at path `at`: every ancestor full width, then the account and all below.

    What was kept stands first, then siblings from the largest to the smallest, what is not known last; accounts
    without time are left out.
    """
    chain = opened(root, at)
    drawn = [Box(a, tuple(x.name for x in chain[: i + 1]), i, 0.0, chain[-1].chip_seconds) for i, a in enumerate(chain)]

    def below(parent: Box) -> None:
        start = parent.start
        for part in sorted(parent.account.children, key=_order):
            if part.chip_seconds <= 0:
                continue
            box = Box(part, (*parent.path, part.name), parent.row + 1, start, part.chip_seconds)
            drawn.append(box)
            below(box)
            start += part.chip_seconds

    below(drawn[-1])
    return drawn


def _order(account: Account) -> tuple[bool, bool, float]:
    return account.name not in KEPT, account.name == "unattributed", -account.chip_seconds


def label(box: Box, shown: float, whole: float) -> str:
    """Title (wrapped where it must be) and share, the share alone, or nothing, by the room there is."""
    if not shown:
        return ""
    room = box.width / shown * WIDTH_PX / CHARACTER_PX
    amount = fmt.share(box.account.chip_seconds / whole)
    lines = textwrap.wrap(theme.title(box.account.name), max(int(room) - 1, 1), break_long_words=False)
    if len(lines) <= MAX_LINES and all(len(line) < room for line in lines):
        return "<br>".join([*map(plain, lines), amount])
    return amount if len(amount) + 1 <= room else ""


def icicle(ledger: Ledger, at: str = "") -> go.Figure:
    """The icicle of a ledger, opened at the account with path `at` (as `path_text` writes it)."""
    drawn = boxes(ledger.account, at)
    whole, shown = ledger.chip_seconds or 1.0, drawn[0].width or 1.0
    seconds, hours = units(ledger)
    unit, factor = (hours, 3600.0) if shown >= 360 else (seconds, 1.0)
    rows = max(b.row for b in drawn) + 1
    fills = [theme.colour(b.path) for b in drawn]
    bar = go.Bar(
        orientation="h",
        x=[b.width / factor for b in drawn],
        base=[b.start / factor for b in drawn],
        y=[b.row for b in drawn],
        width=0.94,
        customdata=[path_text(b.path) for b in drawn],
        text=[label(b, shown, whole) for b in drawn],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": [theme.text_on(f) for f in fills], "size": 13},
        hovertext=[hover(ledger, b.account, b.path) for b in drawn],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "color": fills,
            "line": {"color": "rgba(128,128,128,0.55)", "width": 1},
            "pattern": {
                "shape": [theme.pattern(b.path) for b in drawn],
                "fgcolor": "rgba(90,90,90,0.25)",
                "fillmode": "overlay",
                "size": 12,
                "solidity": 0.12,
            },
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )
    return layout(
        go.Figure(bar),
        height=rows * ROW_PX + 48,
        barmode="overlay",
        bargap=0,
        uniformtext={"minsize": 11, "mode": "hide"},
        xaxis={
            "title": {"text": unit},
            "range": [0, shown / factor],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "visible": False, "fixedrange": True},
    )
