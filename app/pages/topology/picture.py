"""The lab's network in three dimensions: by kind of link or by load, with what failed and the route of two chips."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import streamlit as st

from app import topologies
from app.components.by_itself import fragment
from app.components.current import choose, switch
from app.components.notice import notice
from app.components.text import md
from app.pages.topology.lab import Lab
from app.pages.topology.network3d import network3d
from app.pages.topology.network3d.packing import message, pack
from app.pages.topology.network_colours import CHIP, CHOSEN, FAILED, HEAT, SWITCH
from app.pages.topology.network_layout import still_there
from errors import ChipledgerError
from errors import format as fmt
from simulators.topology.failures import FAILS
from simulators.topology.loads import ALL_TO_ALL, PATTERNS, ROUTINGS, LinkLoads, routings
from simulators.topology.network import KIND_OF, Network
from simulators.topology.route import Route, route

COLOURS = {"kind": "Kinds of links", "load": "Load on links", "none": "Plain"}
T = TypeVar("T")
KEY, CHANGED, SEEN = "network3d", "network3d_changed", "network3d_seen"
HEAD_START_S = 0.7  # of a first visit: the library of the charts below keeps a browser busy before it can draw this
LOOKS = {
    name: {"light": look.light, "dark": look.dark}
    for name, look in (("failed", FAILED), ("chip", CHIP), ("switch", SWITCH), ("chosen", CHOSEN))
}


@fragment
def picture(lab: Lab) -> None:
    """Draws it. A click on it that fails or repairs a part, or asks for a route, changes the address and the page."""
    if st.session_state.pop(CHANGED, False):
        st.rerun()
    with st.container(horizontal=True):
        colour = switch("Colour", "color", COLOURS, "kind")
        loads = _tried(lambda: _loads(lab.broken)) if colour == "load" else None
    way = _tried(lambda: route(lab.broken, *lab.route)) if lab.route else None
    st.markdown(caption(lab, loads, way))
    network3d(message(lab.network, shown(lab, loads, way, colour)), KEY, lambda event: _told(lab, event))
    if not st.session_state.get(SEEN):
        st.session_state[SEEN] = True
        time.sleep(HEAD_START_S)


def pictures(systems: Sequence[tuple[Network, Network]]) -> None:
    """Small ones side by side, each without faults and as broken; their cameras are kept in no address."""
    for number, (column, (network, broken)) in enumerate(zip(st.columns(len(systems)), systems, strict=True)):
        with column:
            st.markdown(f"**{md(network.spec)}**")
            blob = pack(_header(network, broken) | {"aside": True}, _left(network, broken))
            network3d(message(network, blob), f"{KEY}_{number}", lambda event: None)


def caption(lab: Lab, loads: LinkLoads | None, way: Route | None) -> str:
    """What the picture shows, as Markdown."""
    said = [
        f"**{md(lab.spec.text)}.** Drag to turn, wheel to zoom, click a chip or a link to fail it or to begin a route."
    ]
    if loads is not None:
        said.append(
            f"Colour and width: what the busier direction of each link carries when {PATTERNS[loads.pattern]}, "
            f"{ROUTINGS[loads.routing]}; at most {fmt.number(loads.max)}."
        )
    elif (kinds := set(lab.network.link_kind.tolist())) & {KIND_OF["wrap"], KIND_OF["twist"]}:
        said.append("Wraps leave as stubs; along edges, or where few, as whole arcs. Point at a chip to see its own.")
    elif KIND_OF["board"] in kinds:
        said.append("Squares are boards of four, circles groups of eight boards; chords between groups are optical.")
    if way is not None:
        said.append(f"Route: {fmt.count(way.hops, 'hop')}, {_ways(way)}.")
    if lab.failures:
        said.append(f"Red: failed ({md(', '.join(lab.failures))}).")
    return " ".join(said)


def shown(lab: Lab, loads: LinkLoads | None, way: Route | None, colour: str) -> bytes:
    """What may change while the network stays: failures, loads, the route, and colours."""
    network, broken = lab.network, lab.broken
    rows = np.arange(len(network.links))
    header: dict[str, object] = {"plain": colour == "none", "failures": list(lab.failures)}
    arrays = _left(network, broken)
    if "left" in arrays:
        rows = np.flatnonzero(arrays["left"])
    if way is not None:
        header |= {"route": list(way.nodes), "routeLinks": rows[list(way.links)].tolist()}
    if loads is not None:
        header |= {"unit": loads.unit, "most": loads.max}
        for name, values in (("forward", loads.forward), ("backward", loads.backward)):
            arrays[name] = np.zeros(len(network.links), np.float32)
            arrays[name][rows] = values
    return pack(_header(network, broken, way) | header, arrays)


def _header(network: Network, broken: Network, way: Route | None = None) -> dict[str, object]:
    """`aside`: a small picture beside others, to look at and turn only."""
    return {
        "looks": {**LOOKS, "ramp": HEAT, "chosenWidth": CHOSEN.width_px},
        "plain": False,
        "aside": False,
        "fails": [name for name, _ in FAILS],
        "failures": [],
        "alt": alt(network, broken, way),
        "route": [],
        "routeLinks": [],
    }


def _left(network: Network, broken: Network) -> dict[str, np.ndarray]:
    """Which links and nodes are still there; nothing where all are."""
    return {} if broken is network else {"left": still_there(network, broken), "alive": broken.alive}


def alt(network: Network, broken: Network, way: Route | None) -> str:
    """The picture in words."""
    said = f"Three-dimensional picture of {network.spec}: {fmt.count(network.chips, 'chip')}, "
    said += fmt.count(len(network.links), "link")
    if network.switches:
        said += f", {network.switches:,} packet switches"
    if broken is not network:
        lost = fmt.count(network.chips_alive - broken.chips_alive, "chip")
        said += f"; failed: {lost} and {fmt.count(len(network.links) - len(broken.links), 'link')}"
    if way is not None:
        said += "; a route over " + ", ".join(map(str, way.nodes))
    return said + "."


def _tried(ask: Callable[[], T]) -> T | None:
    """The answer; where there is none the page says why, and draws the picture without it."""
    try:
        return ask()
    except ChipledgerError as e:
        notice(e, library=False)
        return None


def _loads(network: Network) -> LinkLoads:
    """Loads by the pattern and the routing of the address. Raises QuestionError."""
    pattern = switch("Pattern", "pattern", {p: p.replace("_", " ").capitalize() for p in PATTERNS}, ALL_TO_ALL)
    names = {r: r.replace("_", " ").capitalize().replace("ocs", "OCS hop") for r in routings(network)}
    routing = switch("Routing", "routing", names, "shortest") if len(names) > 1 else "shortest"
    with st.spinner("Counting what each link carries"):
        return topologies.loads(network, pattern, routing)


def _ways(way: Route) -> str:
    if way.paths == 1:
        return "the only way as short"
    return f"one of {way.paths:,.0f} ways as short" if way.paths < 1e9 else "one of more than a billion ways as short"


def _told(lab: Lab, event: str) -> None:
    """A click of the picture goes into the address."""
    value = str(st.session_state[KEY].get(event) or "")
    if event == "route":
        choose("route", value)
    elif event == "fail":
        st.query_params["fail"] = list(dict.fromkeys([*lab.failures, value]))
    else:
        kept = [f for f in lab.failures if f != value]
        st.query_params["fail"] = kept
    st.session_state[CHANGED] = True
