"""Topology lab: which network do chips form, how far apart are they, how loaded, and what if a part fails?"""

from collections.abc import Callable

import streamlit as st

from app.components.actions import copy_link
from app.components.current import chosen, open_workspace, switch
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.pages.topology import collectives as lab_collectives
from app.pages.topology import compare as lab_compare
from app.pages.topology import failures as lab_failures
from app.pages.topology import graph as lab_graph
from app.pages.topology import hops as lab_hops
from app.pages.topology import manifest as lab_manifest
from app.pages.topology import placement as lab_placement
from app.pages.topology.choice import chooser
from app.pages.topology.examples import examples
from app.pages.topology.lab import Lab, counted, failed, load, report, reports, whole
from app.pages.topology.picture import picture
from app.topologies.compare_words import beside
from app.topologies.words import halves, host_mark, pairs, table
from app.topologies.words import verdict as topology_verdict
from app.words import headline
from errors import ChipledgerError
from errors import format as fmt
from simulators.topology.report import Report
from simulators.topology.terms import BISECTION, BUSIEST_LINK, DIAMETER, FIGURES, MEAN, TERMS

PANELS: tuple[tuple[str, str, Callable[[Lab], None]], ...] = (  # name in the address, title, what draws it
    ("hops", "Hops and loads", lab_hops.panel),
    ("compare", "Compare", lab_compare.panel),
    ("failures", "Break it", lab_failures.panel),
    ("collectives", "Collectives", lab_collectives.panel),
    ("placement", "Placement", lab_placement.panel),
    ("create", "Create it", lab_manifest.panel),
    ("graph", "Your own graph", lab_graph.panel),
)


def page() -> None:
    head()
    examples()
    chooser()
    try:
        lab = load(open_workspace())
        top = st.empty()
        if not counted(lab):
            with top.container():  # keeps the room of what is still being counted
                verdict("Counting hops, loads and bisection …")
                figures_row([Figure(term.name, "…", term.meaning, "derived") for term in FIGURES])
        picture(lab)
        found = report(lab)
    except ChipledgerError as e:
        notice(e, library=False)
        if failed() or st.query_params.get("route"):
            st.button("Without failures and route", icon=":material/undo:", on_click=whole)
        return
    shown = chosen("show", [name for name, *_ in PANELS], PANELS[0][0])
    with top.container():
        said = topology_verdict(found)
        said = headline(*said.said, *said.rest, beside(reports(lab)) if shown == "compare" else "")
        verdict(said)
        figures_row(figures(found))
        beyond(said)
    panels(lab)
    explained(found)


def head() -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Topology lab", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()
    st.caption(
        "Choose a network of chips, see it, break it, and compare it. Everything here is counted on the wiring "
        "as modelled; nothing was measured on a machine."
    )


def figures(found: Report) -> list[Figure]:
    """Chips, diameter, mean, bisection, busiest link."""
    basis = "modelled" if found.inferred else "derived"
    held = ((f"hosts{host_mark(found)}", found.hosts), ("cubes", found.cubes))
    parts = ", ".join(f"{n:,} {name}" for name, n in held if n)
    links = ", ".join(f"{n:,} {kind}" for kind, n in found.links_by_kind.items())
    cut, exact = found.bisection.links, found.bisection.exact
    bisection = fmt.NO_VALUE if cut is None else fmt.count(cut, "link") if exact else f"≤ {cut:,} links"
    load = found.max_link_load
    return [
        Figure("Chips", f"{found.chips:,}", f"{parts or 'No hosts known'}. {found.links:,} links: {links}.", basis),
        Figure("Diameter", fmt.count(found.hops.diameter, "hop"), DIAMETER.meaning, basis),
        Figure("Mean", f"{fmt.number(found.hops.mean)} hops", MEAN.meaning, basis),
        Figure("Bisection", bisection, f"{BISECTION.meaning} Here: {halves(found)} ({found.bisection.basis}).", basis),
        Figure("Busiest link", f"{pairs(load) if load else fmt.NO_VALUE} pairs", BUSIEST_LINK.meaning, basis),
    ]


def panels(lab: Lab) -> None:
    """One of the panels at a time; which one is in the address."""
    drawn = {name: draw for name, _, draw in PANELS}
    shown = switch("Show", "show", {name: title for name, title, _ in PANELS}, PANELS[0][0])
    try:
        drawn[shown](lab)
    except ChipledgerError as e:
        notice(e, library=False)


def explained(found: Report) -> None:
    with st.expander("How this is computed", icon=":material/function:"):
        for note in (f"{found.basis}.", *found.notes):
            st.markdown(f"- {md(note)}")
        terms_list(TERMS)
        shown = table([found])
        st.table({"": [row[0] for row in shown.rows], shown.head[1]: [row[1] for row in shown.rows]})


if __name__ == "__main__":
    page()
