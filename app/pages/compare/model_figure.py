"""The run's step and the model's, account beside account."""

import plotly.graph_objects as go

from app import theme
from app.comparing.modelled import BesideModel, Row
from app.comparing.modelled_words import title
from app.figures.axes import PLAIN, time_unit
from app.figures.base import layout, plain
from errors import format as fmt

MOST = 14
PLAINLY = {"beyond_useful_maths": "below_roofline"}  # drawn in the colour of the account that most of it is


def by_account(found: BesideModel) -> go.Figure:
    """Two bars an account, in its colour: the run's, and below it the model's, paler."""
    rows = found.rows[:MOST]
    unit, scale = time_unit(max(abs(v) for r in rows for v in (r.measured_s, r.modelled_s or 0.0)))
    figure = go.Figure()
    names = [title(r.account) for r in rows]
    for name, values, opacity, alone in (
        (found.run.how.capitalize(), [r.measured_s for r in rows], 1.0, True),
        ("Modelled", [r.modelled_s for r in rows], 0.45, False),
    ):
        figure.add_bar(
            y=names,
            x=[None if v is None else v * scale for v in values],
            orientation="h",
            name=name,
            marker={
                "color": [_colour(r) for r in rows],
                "opacity": opacity,
                "pattern": {"shape": ["/" if alone and r.modelled_s is None else "" for r in rows]},
            },
            hovertext=[_told(r) for r in rows],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    return layout(
        figure,
        100 + 46 * len(rows),
        barmode="group",
        xaxis={"title": {"text": f"of a step and chip ({unit})"}, **PLAIN},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "showgrid": False},
    )


def _colour(row: Row) -> str:
    last = row.account.rpartition("/")[2]
    return theme.COLOURS.get(PLAINLY.get(last, last), theme.GREY)


def _told(row: Row) -> str:
    modelled = "no term in the model" if row.modelled_s is None else fmt.duration(row.modelled_s)
    how = f"<br>{plain(row.how)}" if row.how else ""
    return f"<b>{plain(title(row.account))}</b><br>run {fmt.duration(row.measured_s)}, model {modelled}{how}"
