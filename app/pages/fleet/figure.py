"""A fleet in pictures: where its time went over time, who held it, what it was lost to, what is left of budgets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from analyzers.fleet import FleetResult
from analyzers.fleet.base import NOT_TOLD
from analyzers.fleet.budget import Left
from analyzers.fleet.causes import Cause
from analyzers.fleet.sums import KEPT, Sum
from app import theme
from app.figures.base import layout, plain
from app.fleet.budgets import amount
from app.words import short
from errors import format as fmt

SMALL = 0.01  # of all time: accounts below it are drawn as one
MOST_GROUPS = 15
HOVER = 120  # characters of a name
SMALLER, SMALLER_TITLE = "not_broken_down", "All smaller accounts"
HEIGHT, ROW_PX, HEAD_PX = 420, 34, 90
USEFUL, IN_STEPS, LOST, UNKNOWN = "useful_maths", "below_roofline", "badput", "unattributed"
PARTS = {
    USEFUL: "Useful maths",
    IN_STEPS: "Other known time in kept steps or answers",
    UNKNOWN: "Unattributed",
    LOST: "Lost, waiting or idle",
}
LEGEND = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"}


def account_of(path: str) -> str:
    """The account whose colour a path has; an idle device is one, whatever its host did."""
    names = path.split("/")
    return "device_idle" if "device_idle" in names else theme.known(names)


def folded(accounts: Mapping[str, float]) -> dict[str, float]:
    """Chip-seconds by account as drawn."""
    found = defaultdict[str, float](float)
    for path, chip_s in accounts.items():
        found[account_of(path)] += chip_s
    return dict(found)


def drawn_accounts(result: FleetResult) -> list[str]:
    """Accounts with a colour of their own: useful maths first, unattributed last, the largest between."""
    whole = folded(result.total.accounts)
    large = [name for name, chip_s in whole.items() if chip_s >= SMALL * result.total.chip_s]
    return sorted(large, key=lambda name: (name == UNKNOWN, name != USEFUL, -whole[name]))


def over_time(result: FleetResult) -> go.Figure:
    """Chip-hours by period, each account in its colour."""
    names, figure = drawn_accounts(result), go.Figure()
    periods = [plain(p.name) for p, _ in result.trend]
    parts = [folded(part.accounts) for _, part in result.trend]
    rest = [sum(s for name, s in part.items() if name not in names) / 3600 for part in parts]
    for name in names:
        hours = [part.get(name, 0.0) / 3600 for part in parts]
        _stack(figure, periods, hours, name, theme.title(name))
    if any(rest):
        _stack(figure, periods, rest, SMALLER, SMALLER_TITLE)
    figure.update_xaxes(type="category", title=result.asked.every)
    figure.update_yaxes(title="chip-hours", rangemode="tozero")
    return layout(figure, HEIGHT, barmode="stack", showlegend=True, legend=LEGEND, bargap=0.15)


def _stack(figure: go.Figure, periods: Sequence[str], hours: Sequence[float], account: str, title: str) -> None:
    figure.add_bar(
        x=periods,
        y=hours,
        name=title,
        marker={"color": theme.COLOURS[account], "pattern": {"shape": theme.PATTERNS.get(account, "")}},
        hovertemplate=f"%{{x}}<br>{title}: %{{y:,.3~g}} chip-hours<extra></extra>",
    )


def parts_of(part: Sum) -> dict[str, float]:
    """A sum's chip-seconds in four parts, which are all of it."""
    found = dict.fromkeys(PARTS, 0.0)
    for path, chip_s in part.accounts.items():
        names = path.split("/")
        if UNKNOWN in names:
            found[UNKNOWN] += chip_s
        elif names[-1] == USEFUL:
            found[USEFUL] += chip_s
        else:
            found[IN_STEPS if names[0] in (*KEPT, "profiled") else LOST] += chip_s
    return found


def by_group(result: FleetResult) -> go.Figure:
    """Chip-hours of each key, the largest on top, in four parts."""
    shown, rest = result.groups[:MOST_GROUPS], result.groups[MOST_GROUPS:]
    rows = [(key, parts_of(part)) for key, part in shown]
    if rest:
        rows.append((f" {len(rest):,} others", _together(parts_of(part) for _, part in rest)))  # no key begins so
    names, figure = [key for key, _ in rows], go.Figure()
    for name, title in PARTS.items():
        figure.add_bar(
            y=[plain(name) for name in names],
            x=[parts[name] / 3600 for _, parts in rows],
            name=title,
            orientation="h",
            marker={"color": theme.COLOURS[name], "pattern": {"shape": theme.PATTERNS.get(name, "")}},
            customdata=[plain(short(name, HOVER)) for name in names],
            hovertemplate=f"%{{customdata}}<br>{title}: %{{x:,.3~g}} chip-hours<extra></extra>",
        )
    _bars(figure, {plain(name): plain(short(name.strip())) for name in names})
    figure.update_xaxes(title="chip-hours", rangemode="tozero")
    height = HEAD_PX + ROW_PX * max(len(rows), 3)
    return layout(figure, height, barmode="stack", showlegend=True, legend=LEGEND, bargap=0.25)


def _bars(figure: go.Figure, names: Mapping[str, str]) -> None:
    """A bar for each whole name, with what is shown of it beside: two that are cut alike stay two."""
    figure.update_yaxes(type="category", autorange="reversed", automargin=True)
    figure.update_yaxes(tickmode="array", tickvals=list(names), ticktext=list(names.values()))


def _together(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found = dict.fromkeys(PARTS, 0.0)
    for part in parts:
        for name, chip_s in part.items():
            found[name] += chip_s
    return found


def named(causes: Iterable[Cause]) -> bool:
    """Whether any of the runs names an owner."""
    return any(owner != NOT_TOLD for c in causes for owner, _ in c.owners)


def _whose(cause: Cause) -> str:
    """Owners with their parts of it; nothing where nobody is named."""
    if not named([cause]):
        return ""
    return plain(", ".join(f"{short(o, 24)} {fmt.whole_share(s / cause.chip_s)}" for o, s in cause.owners))


def lost_to(result: FleetResult) -> go.Figure:
    """The most expensive causes, each in its account's colour, with whose they are beside it."""
    causes = result.causes
    figure = go.Figure()
    figure.add_bar(
        y=[theme.title(c.account) for c in causes],
        x=[c.chip_s / 3600 for c in causes],
        orientation="h",
        marker={"color": [theme.colour([c.account]) for c in causes]},
        text=[_whose(c) for c in causes],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:,.3~g} chip-hours<br>%{text}<extra></extra>",
    )
    most = max((c.chip_s / 3600 for c in causes), default=1.0)
    figure.update_yaxes(type="category", autorange="reversed", automargin=True)
    figure.update_xaxes(title="chip-hours", range=[0, 1.6 * most])  # room for the owners
    return layout(figure, HEAD_PX + ROW_PX * max(len(causes), 3), bargap=0.3)


def spent_of(told: Sequence[Left]) -> go.Figure:
    """Spent as a share of each budget, with where the month may end as a whisker."""
    known = [b for b in told if b.spent is not None]
    ends = [[100 * p / b.amount for p in b.projected] for b in known if b.projected is not None]
    units = ["dollars" if b.unit == "usd" else "chip-hours" for b in known]
    names = [plain(f"{b.team} ({unit})") for b, unit in zip(known, units, strict=True)]
    shown = [plain(f"{short(b.team)} ({unit})") for b, unit in zip(known, units, strict=True)]
    figure = go.Figure()
    figure.add_bar(
        y=names,
        x=[100 * (b.spent or 0.0) / b.amount for b in known],
        orientation="h",
        marker={"color": theme.COLOURS["held"]},
        customdata=[
            [plain(amount(b, b.spent)), plain(amount(b, b.amount)), plain(short(b.team, HOVER))] for b in known
        ],
        hovertemplate="%{customdata[2]}: %{customdata[0]} of %{customdata[1]}, %{x:.3~g} %<extra></extra>",
    )
    figure.add_scatter(
        y=[name for name, b in zip(names, known, strict=True) if b.projected is not None],
        x=[likely for _, likely, _ in ends],
        mode="markers",
        marker={"symbol": "diamond-open", "size": 10, "color": theme.GREY},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - likely for _, likely, high in ends],
            "arrayminus": [likely - low for low, likely, _ in ends],
            "color": theme.GREY,
        },
        customdata=[plain(short(b.team, HOVER)) for b in known if b.projected is not None],
        hovertemplate="%{customdata}: %{x:.3~g} % by the month's end, modelled<extra></extra>",
    )
    figure.add_vline(x=100, line_dash="dash", line_color=theme.GREY)
    _bars(figure, dict(zip(names, shown, strict=True)))
    figure.update_xaxes(title="% of the month's budget", rangemode="tozero")
    return layout(figure, HEAD_PX + ROW_PX * max(len(known), 2), bargap=0.4)
