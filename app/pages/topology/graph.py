"""The panel "Your own graph": an edge list pasted or uploaded becomes the topology of the page, and its address."""

import streamlit as st

from app import topologies
from app.components.current import open_workspace
from app.components.text import md
from app.pages.topology.lab import Lab, choose_specs
from errors import ChipledgerError, InputError
from simulators.topology.network import KIND_OF
from simulators.topology.systems import edge_list

SHORT = 1500  # characters of a name that an address carries without harm
REFUSED = "lab_graph_refused"
EXAMPLE = "# one link a line: chip chip [kind]\n0 1\n1 2\n2 3\n3 0\n0 2"
LARGER = "A file larger than that: `chipledger topology graph:FILE` reads it on the command line."
FORMS = (
    "One link a line: `0 1` or `0,1,copper`; `#` begins a comment, the same link twice is two links. Chips are "
    "whole numbers from 0 without gaps. NetworkX's `write_edgelist` and topology files of ns-3, ASTRA-sim and "
    "SimAI are read as they are."
)


def panel(lab: Lab) -> None:
    st.markdown("**Any network of your own**, as a list of its links: everything on this page then is about it.")
    st.caption(FORMS)
    with st.form("lab_graph", border=True):
        st.text_area(
            "Edge list", key="lab_graph_text", placeholder=EXAMPLE, height=180, max_chars=topologies.LARGEST_BYTES
        )
        st.file_uploader("or a file", key="lab_graph_file", help=LARGER)
        st.form_submit_button("Show it", icon=":material/hub:", type="primary", on_click=_show)
    if refused := st.session_state.pop(REFUSED, None):
        st.warning(md(refused), icon=":material/info:")
    if lab.spec.text.startswith(topologies.GRAPH):
        st.caption(md(f"Shown now: {lab.spec.text}, kept in this store; the address of this page opens it again."))


def _show() -> None:
    """Reads the list and makes it the page's topology; a list that cannot be read is told why."""
    try:
        choose_specs(named(_given()))
    except ChipledgerError as e:
        st.session_state[REFUSED] = str(e)


def _given() -> str:
    """The text pasted or uploaded. Raises InputError where there is none, or it is no text."""
    file = st.session_state.get("lab_graph_file")
    text = st.session_state.get("lab_graph_text", "")
    if file is None:
        if not text.strip():
            raise InputError("no edge list was given", expected="links pasted, or a file")
        return text
    if file.size > topologies.LARGEST_BYTES:
        raise InputError(
            f"more than {topologies.LARGEST_BYTES >> 20} MiB", where=file.name, expected="a smaller edge list"
        )
    try:
        return file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError("this is no text", where=file.name, expected="one link on each line, such as `0 1`") from e


def named(text: str) -> str:
    """A name for the graph: its links themselves where they are few, else the id under which the store keeps it."""
    network = edge_list.read(text.splitlines(), "the edge list")
    written = "edges:" + ",".join(f"{a}-{b}" for a, b in network.links)
    plain = not network.switches and not network.oneway_bytes_per_s and (network.link_kind == KIND_OF["given"]).all()
    return written if plain and len(written) <= SHORT else topologies.keep(open_workspace(), text)
