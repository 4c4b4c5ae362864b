"""The job's calendar: its attempts as a strip of time, and the gaps between them."""

import plotly.graph_objects as go

from analyzers.time.ledger import LedgerResult
from app import theme
from app.figures.base import GRID, layout
from errors import format as fmt

NS_PER_MS = 1_000_000  # plotly's dates are milliseconds since 1970


def calendar(result: LedgerResult) -> go.Figure | None:
    """Attempts and the recovery after each interruption, to scale; None without a restart or a time of day."""
    if result.start_ns is None or result.end_ns is None or not result.interruptions:
        return None
    spans: list[tuple[str, int, int, str]] = []  # account, from, to, what it was
    begin = result.start_ns
    for stop in sorted(result.interruptions, key=lambda i: i.last_sign_ns):
        lost = f"<br>{fmt.count(stop.wasted_steps, 'step')} lost" if stop.wasted_steps else ""
        spans.append(("productive", begin, stop.last_sign_ns, f"Attempt {stop.attempt}{lost}"))
        spans.append(
            ("infrastructure_recovery", stop.last_sign_ns, stop.restart_ns, f"Interrupted after attempt {stop.attempt}")
        )
        begin = stop.restart_ns
    last = max(i.attempt for i in result.interruptions) + 1
    spans.append(("productive", begin, result.end_ns, f"Attempt {last}"))
    spans = [s for s in spans if s[2] > s[1]]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=["attempts"] * len(spans),
            base=[a / NS_PER_MS for _, a, _, _ in spans],
            x=[(b - a) / NS_PER_MS for _, a, b, _ in spans],
            width=0.9,
            marker={
                "color": [theme.colour([n]) for n, *_ in spans],
                "line": {"color": "rgba(128,128,128,0.55)", "width": 0.5},
            },
            text=[t.partition("<br>")[0] if n == "productive" else "" for n, _, _, t in spans],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": "white"},
            hovertext=[
                f"<b>{t}</b><br>{fmt.date(a)} to {fmt.date(b)}<br>{fmt.duration((b - a) / 1e9)}" for _, a, b, t in spans
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    return layout(
        figure,
        height=110,
        margin={"l": 56, "r": 8, "t": 8, "b": 8},  # room for half of the first time
        barmode="overlay",
        uniformtext={"minsize": 10, "mode": "hide"},
        xaxis={
            "type": "date",
            "gridcolor": GRID,
            "fixedrange": True,
            "range": [result.start_ns / NS_PER_MS, result.end_ns / NS_PER_MS],
        },
        yaxis={"visible": False, "fixedrange": True},
    )
