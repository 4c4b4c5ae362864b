"""The form that asks for a compilation: checked at once, run as a job of the server, its values kept in the address."""

import uuid
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.current import choose
from app.components.notice import notice
from app.components.text import md
from app.pages.compile.follow import follow
from app.serve.compiling import FIELDS, WHOLE, compile_request, missing
from app.words import sentence
from catalog import models
from errors import ChipledgerError
from simulators.tpu_compile.request import DEFAULT_SEQ, REMATS

DEFAULTS = {
    "model": "llama3.1-8b",
    "topology": "v6e:4x4",
    "mesh": "fsdp=4,model=4",
    "seq": str(DEFAULT_SEQ),
    "batch": "",
    "remat": REMATS[0],
    "slices": "1",
}
MESH = "Axes and sizes, outermost first: data, fsdp, model (tensor), expert, context. They multiply to the devices."
JOB = "job"
ASKED = "compile asked"  # the request that was just submitted: (key, body)


def compile_form() -> str | None:
    """The form and the progress of its job; returns the id of a run once, right after it was made."""
    lacks = missing()
    if lacks:
        st.info(md(lacks), icon=":material/info:")
    body = _form(disabled=bool(lacks))
    if body is not None:
        try:
            compile_request(body)
        except ChipledgerError as e:
            notice(e, library=False)
        else:
            choose(JOB, "")
            st.session_state[ASKED] = (uuid.uuid4().hex, body)
    job = st.query_params.get(JOB, "")
    key, body = st.session_state.get(ASKED) or (job, None)
    if not key:
        return None
    begun, made, failed = follow(key, "/api/compile", body, job if body is None else "")
    if begun:
        choose(JOB, begun)
    if made or failed:
        choose(JOB, "")
        if made:
            st.session_state.pop(ASKED, None)
    return made


def _form(disabled: bool) -> dict[str, str] | None:
    """The fields; what was entered, right after it was submitted."""
    there = list(models())
    keys = {name: f"compile {name}" for name in DEFAULTS}
    for name, default in DEFAULTS.items():  # through the state: a default that changes would make a new, empty field
        value = st.query_params.get(name, default)
        known = {"model": there, "remat": REMATS}.get(name)
        st.session_state.setdefault(keys[name], value if known is None or value in known else default)
    with st.form("compile", border=True):
        first, second = st.columns([2, 2, 3]), st.columns(4)

        def field(column: DeltaGenerator, name: str, label: str, **more: str) -> str:
            return column.text_input(
                label, key=keys[name], disabled=disabled, **{"help": f"{sentence(FIELDS[name])}.", **more}
            )

        def choice(column: DeltaGenerator, name: str, label: str, words: Sequence[str], **more: str) -> str:
            return column.selectbox(label, words, key=keys[name], disabled=disabled, **more)

        entered = {
            "model": choice(first[0], "model", "Model", there),
            "topology": field(first[1], "topology", "Topology"),
            "mesh": field(first[2], "mesh", "Mesh", help=MESH),
            "seq": field(second[0], "seq", "Sequence length"),
            "batch": field(second[1], "batch", "Global batch", placeholder="one per data part"),
            "remat": choice(second[2], "remat", "Recomputation", REMATS, help="What the backward pass makes again."),
            "slices": field(second[3], "slices", "Slices"),
        }
        if not st.form_submit_button("Compile", type="primary", icon=":material/build:", disabled=disabled):
            return None
    for name, value in entered.items():
        choose(name, str(value).strip(), DEFAULTS[name])
    return {n: v.strip() if n in WHOLE else v for n, v in entered.items() if v}
