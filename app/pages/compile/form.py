"""The form that asks for a compilation: checked at once, run as a job of the server, its values kept in the address."""

import uuid

import streamlit as st

from app.components.current import choose
from app.components.follow import follow
from app.components.notice import notice
from app.components.option import by_name, field
from app.components.text import md
from app.identity.base import Role
from app.identity.may import may
from app.serve.compiling import REQUEST, compile_request, missing
from catalog import models
from errors import ChipledgerError
from simulators.tpu_compile.request import DEFAULT_SEQ

_OPTIONS = by_name(REQUEST)
EXAMPLE = {"model": "llama3.1-8b", "topology": "v6e:4x4", "mesh": "fsdp=4,model=4", "seq": str(DEFAULT_SEQ)}
DEFAULTS = {o.name: EXAMPLE.get(o.name) or str(o.default or "") for o in REQUEST}
ROWS, WIDTHS = (("model", "topology", "mesh"), ("seq", "batch", "remat", "slices")), ([2, 2, 3], 4)
EMPTY = {"batch": "one per data part"}
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
    words = {"model": tuple(models())}
    keys = {name: f"compile {name}" for row in ROWS for name in row}
    for name in keys:  # through the state: a default that changes would make a new, empty field
        value, kind = st.query_params.get(name, DEFAULTS[name]), _OPTIONS[name].kind
        offered = words.get(name) or (kind if isinstance(kind, tuple) else (value,))
        st.session_state.setdefault(keys[name], value if value in offered else DEFAULTS[name])
    entered: dict[str, str] = {}
    with st.form("compile", border=True):
        for widths, row in zip(WIDTHS, ROWS, strict=True):
            for column, name in zip(st.columns(widths), row, strict=True):
                how = {"empty": EMPTY.get(name, ""), "words": words.get(name, ())}
                with column:
                    entered[name] = field(_OPTIONS[name], **how, key=keys[name], disabled=disabled)
        if not st.form_submit_button(
            "Compile", type="primary", icon=":material/build:", disabled=disabled or not may(Role.UPLOADER)
        ):
            return None
    for name, value in entered.items():
        choose(name, value, DEFAULTS[name])
    return {name: value for name, value in entered.items() if value}
