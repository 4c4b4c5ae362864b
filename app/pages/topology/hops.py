"""The panel "Hops": how far pairs of chips are apart, systems overlaid, and how loaded each kind of link is."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.components.chart import chart
from app.components.columns import Like, draw_table
from app.components.downloads import downloads
from app.components.text import md
from app.figures.base import standalone
from app.pages.topology.hops_figure import histogram, link_loads
from app.pages.topology.lab import Lab, answer_of, reports
from app.topologies.words import ROUTED, within
from app.topologies.words import hops as hops_said
from errors import format as fmt
from simulators.topology.report import Report


def panel(lab: Lab) -> None:
    found = reports(lab)
    names = " ".join(r.spec.text for r in found)
    st.markdown(f"**How far apart are two chips?** {md(' '.join(within(r) for r in found))}")
    figure = histogram(found)
    words = "; ".join(f"{r.spec.text}: {hops_said(r)}" for r in found)
    chart(figure, f"hops {names} {lab.failures}", "hops", words)
    st.markdown(
        "**How loaded is each kind of link?** Every chip sends to every other: ordered pairs on each direction "
        f"of a link, from the least to the busiest{_routed(found)}."
    )
    for report in found:
        if len(found) > 1:
            st.caption(md(report.spec.text))
        if report.loads:
            chart(link_loads(report), f"loads {report.spec.text} {lab.failures}", "link-loads", _loads_said(report))
        else:
            why = "there are too many ways to follow each." if report.links else "it has no links."
            st.info(f"Not counted: {why}", icon=":material/info:")
    _evidence(lab, found, figure)


def _loads_said(report: Report) -> str:
    return "; ".join(
        f"{row.kind}, {ROUTED[row.routing]}: {row.least:,.1f} to {row.most:,.1f}, on average "
        f"{row.mean:,.1f} ordered pairs"
        for row in report.loads
    )


def _evidence(lab: Lab, found: Sequence[Report], figure: go.Figure) -> None:
    """The histogram and the loads as tables to take away."""
    rows = counted(found)
    with st.expander(
        f"Evidence: {fmt.count(len(rows), 'row')} of hops, and loads by kind of link", icon=":material/table:"
    ):
        draw_table(
            rows,
            hide_index=True,
            columns={
                "within": Like("share", "Pairs at most so many hops apart.", "Within"),
            },
        )
        loads = pd.DataFrame([{"spec": r.spec.text} | vars(row) for r in found for row in r.loads])
        draw_table(loads)
        answer = answer_of(tuple(r.spec.text for r in found), lab.failures if len(found) == 1 else ())
        downloads(rows, "topology-hops", answer, lambda: standalone(figure, "Hops", "topology-hops"))


def counted(found: Sequence[Report]) -> pd.DataFrame:
    """spec, hops, ordered_pairs, share of the pairs that have a path, share within so many hops."""
    frames = []
    for report in found:
        counts = report.hops.counts[1:]
        total = max(int(counts.sum()), 1)
        frames.append(
            pd.DataFrame(
                {
                    "spec": report.spec.text,
                    "hops": np.arange(1, len(counts) + 1),
                    "ordered_pairs": counts,
                    "share": counts / total,
                    "within": np.cumsum(counts) / total,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _routed(found: Sequence[Report]) -> str:
    """The routing, where there is only one; else the figures name them."""
    names = {routing for report in found for routing in report.busiest}
    return f", {ROUTED[names.pop()]}" if len(names) == 1 else ""
