"""Groups by ranks: who has not entered what the others wait for."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.ranks.blocked import DONE, LATE, MISSING, OPEN, UNTOLD, BlockedResult
from app import theme
from app.figures.base import layout, plain

MAX_RANKS = 64  # columns; of more ranks, those that are named or not known, and those that wait for them
MAX_ROWS = 24  # kinds of group; of more, those in which most is not entered
ROW_PX = 34
LONGEST = 48  # characters of a group's name beside its row
P2P = ", send and receive"
HELD = "held"  # missing, of a rank that is not named
STATES = (  # state, legend, colour
    (MISSING, "not entered (how many)", theme.COLOURS["infrastructure_recovery"]),
    (HELD, "not entered, held up itself", theme.COLOURS["straggler_wait"]),
    (LATE, "completed by peers, not by it", theme.COLOURS["exposed_communication"]),
    (OPEN, "entered, not completed", theme.COLOURS["straggler_wait"]),
    (DONE, "nothing open", theme.COLOURS["productive"]),
    (UNTOLD, "not known", theme.COLOURS["unattributed"]),
)
HATCHED = {"shape": "/", "fgcolor": "rgba(0,0,0,0.35)", "size": 7, "solidity": 0.2, "fillmode": "overlay"}
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def shown_ranks(result: BlockedResult) -> list[int]:
    """The ranks that are drawn, rising."""
    every = [int(r) for r in result.ranks["rank"]]
    if len(every) <= MAX_RANKS:
        return every
    first = {**dict.fromkeys(result.named), **dict.fromkeys(r for c in result.causes for r in c.ranks)}
    first |= dict.fromkeys(int(r) for r in result.ranks.loc[result.ranks["reason"].notna(), "rank"])
    first |= dict.fromkeys(r for c in result.causes for r in c.waiting)
    return sorted([*dict.fromkeys((*first, *every))][:MAX_RANKS])


def groups(result: BlockedResult) -> go.Figure | None:
    """One row for each kind of group, one column for each rank; None where nothing is open."""
    rows = _rows(result)
    if not len(rows):
        return None
    ranks = shown_ranks(result)
    names = list(dict.fromkeys(rows["row"]))[:MAX_ROWS]
    x, y = {rank: n for n, rank in enumerate(ranks)}, {name: n for n, name in enumerate(names)}
    rows = rows[rows["rank"].isin(x) & rows["row"].isin(y)]
    held = (rows["state"] == MISSING) & ~rows["rank"].isin(result.named)
    rows = rows.assign(state=rows["state"].where(~held, HELD))
    figure = go.Figure()
    for state, words, colour in STATES:
        some = rows[rows["state"] == state]
        _cells(figure, some, words, colour, state, x, y)
    named = {*result.named}
    return layout(
        figure,
        len(names) * ROW_PX + 130,
        barmode="overlay",
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 60, "b": 8},
        xaxis={
            "title": {"text": "rank; those that are named are bold"},
            "tickvals": list(range(len(ranks))),
            "ticktext": [f"<b>{r}</b>" if r in named else str(r) for r in ranks],
            "range": [-0.5, len(ranks) - 0.5],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "tickvals": list(range(len(names))),
            "ticktext": [plain(_short(name)) for name in names],
            "range": [len(names) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "fixedrange": True,
        },
    )


def _short(name: str) -> str:
    """A row's name, cut so that what it ends in stays."""
    end = P2P if name.endswith(P2P) else ""
    room = LONGEST - len(end)
    name = name.removesuffix(end)
    return (name if len(name) <= room else name[: room - 1] + "…") + end


def _cells(
    figure: go.Figure, some: pd.DataFrame, words: str, colour: str, state: str, x: dict[int, int], y: dict[str, int]
) -> None:
    """Bars of full width as the cells of one state, with how many operations that are."""
    if not len(some):
        return
    count = some["missing"] if state in (MISSING, HELD) else some["unseen"] if state == LATE else some["unfinished"]
    quiet = state in (DONE, UNTOLD)
    figure.add_bar(
        name=words,
        x=[x[r] for r in some["rank"]],
        y=np.full(len(some), 0.86),
        base=[y[name] - 0.43 for name in some["row"]],
        width=0.9,
        marker={"color": colour, "line": {"width": 0}, "pattern": HATCHED if state in (HELD, UNTOLD) else {}},
        text=["" if quiet else f"−{n:,}" if state in (MISSING, HELD) else f"{n:,}" for n in count],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": theme.text_on(colour), "size": 12},
        hovertext=[_hover(row, words) for row in some.to_dict("records")],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _hover(row: dict, words: str) -> str:
    text = f"<b>rank {row['rank']}</b>, {plain(row['row'])} (group {plain(row['group'])})<br>{words.split(' (')[0]}"
    if pd.notna(row["entered"]):
        text += f"<br>entered {row['entered']:,} of {row['furthest']:,}"
    for name, said in (("missing", "not entered"), ("unseen", "completed by peers alone"), ("unfinished", "open")):
        text += f"<br>{said}: {row[name]:,}" if row[name] else ""
    return text


def _rows(result: BlockedResult) -> pd.DataFrame:
    """`places` with the row that each is drawn in: groups of one description share a row where no rank is in two, the
    rows in which most is not entered first."""
    rows = result.places
    if not len(rows):
        return rows.assign(row=[])
    name = rows["description"].where(rows["description"].notna(), "group " + rows["group"])
    name = name + np.where(rows["p2p"], P2P, "")
    twice = rows.assign(name=name).duplicated(["name", "rank"], keep=False).groupby(name).transform("any")
    name = name.where(~twice, name + " " + rows["group"])
    rows = rows.assign(row=name)
    weight = rows.groupby("row")[["missing", "unseen"]].sum().sort_values(["missing", "unseen"], ascending=False)
    rank = {row: n for n, row in enumerate(weight.index)}
    return rows.assign(at=rows["row"].map(rank)).sort_values(["at", "rank"], kind="stable").drop(columns="at")
