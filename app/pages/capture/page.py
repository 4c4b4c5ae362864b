"""Capture: jobs that run, recorded at the addresses that the operator allowed, straight into a run."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app.capture import agent
from app.capture.addresses import Address, allowed
from app.capture.options import ADDRESS, USUAL_S
from app.components.current import choose, open_workspace
from app.components.follow import follow
from app.components.held import held
from app.components.notice import notice
from app.components.option import by_name, field
from app.components.text import md
from app.pages.all import pages_of
from app.serve.capturing import ADDRESSES, REQUEST, capture_arguments
from app.summary import chips_text
from app.workspace import Workspace
from collectors.own.sidecar import FILE_NAME
from errors import ChipledgerError
from errors import format as fmt

_OPTIONS = by_name(REQUEST)
JOB, MADE = "job", "made"
ASKED = "capture asked"  # the request that was just submitted: (key, body)
JAX = "jax.profiler.start_server(9012)   # one line in the job, on every host"
TORCH = """chipledger capture --print-agent > chipledger_agent.py          # one file, without dependencies
CHIPLEDGER_CAPTURE=127.0.0.1:9012 CHIPLEDGER_CAPTURE_TOKEN=... \\
    python chipledger_agent.py train.py                         # instead of python train.py"""
SERVE = "chipledger serve --capture trainer-0:9012 --capture agent://gpu-0:9012-9019"


def page() -> None:
    place = open_workspace()
    st.subheader("Capture", anchor=False)
    st.caption(
        "Record what a running job does right now, on all its hosts at once, into one run. Recording slows the job "
        "down while it lasts."
    )
    try:
        known = allowed()
    except ChipledgerError as e:
        notice(e, library=False)
        return
    if known:
        _capture(known)
        _made(place)
    else:
        st.info(
            "This server may capture from no address. Whoever starts it says which; none can be entered here.",
            icon=":material/info:",
        )
        st.code(SERVE, language="shell")
    _teach(open_=not known)


def _capture(known: Sequence[Address]) -> None:
    """The form, and the progress of its job."""
    body = _form(known)
    if body is not None:
        try:
            capture_arguments(body, known)
        except ChipledgerError as e:
            notice(e, library=False)
        else:
            choose(JOB, "")
            choose(MADE, "")
            st.session_state[ASKED] = (uuid.uuid4().hex, body)
    job = st.query_params.get(JOB, "")
    key, body = st.session_state.get(ASKED) or (job, None)
    if not key:
        return
    begun, made, failed = follow(key, "/api/capture", body, job if body is None else "")
    if begun:
        choose(JOB, begun)
    if made or failed:
        choose(JOB, "")
        if made:
            st.session_state.pop(ASKED, None)
            choose(MADE, made)
            st.rerun()


def _form(known: Sequence[Address]) -> dict[str, Any] | None:
    """The fields; what was entered, right after it was submitted."""
    names = [str(a) for a in known]
    entered: dict[str, Any] = {}
    with st.form("capture", border=True):
        entered[ADDRESSES] = st.pills(
            "Hosts", names, selection_mode="multi", default=names, key="capture hosts", help=f"{ADDRESS.help}."
        )
        columns = st.columns([2, 2, 4])
        with columns[0]:
            entered["duration_s"] = field(_OPTIONS["duration_s"], empty=f"{USUAL_S:g}")
        with columns[1]:
            agents = any(a.kind == "agent" for a in known)
            entered["steps"] = field(
                _OPTIONS["steps"], empty="of agents alone" if agents else "no agent here", disabled=not agents
            )
        with columns[2]:
            entered["name"] = field(_OPTIONS["name"], empty="where and when it was captured")
        row = st.container(horizontal=True, vertical_alignment="center")
        for name in ("python", "all_or_nothing"):
            option = _OPTIONS[name]
            entered[name] = row.checkbox(option.title, help=f"{option.help[0].upper()}{option.help[1:]}.")
        if not st.form_submit_button("Capture", type="primary", icon=":material/radio_button_checked:", **held()):
            return None
    return {name: value for name, value in entered.items() if value}


def _made(place: Workspace) -> None:
    """The run that was just captured: what came, and the ways to it."""
    run = place.store.get(wanted) if (wanted := st.query_params.get(MADE, "")) else None
    if run is None:
        return
    traces = [s for s in run.manifest.sources if not str(s["name"]).endswith(FILE_NAME)]
    with st.container(border=True):
        st.markdown(f"**{md(run.manifest.name)}** · {md(chips_text(run))} · {fmt.count(len(traces), 'trace')}")
        if said := run.manifest.fact("note"):
            missing = "captured" in run.manifest.tags
            icon = ":material/warning:" if missing else ":material/check:"
            (st.warning if missing else st.success)(md(str(said)), icon=icon)
        links = st.container(horizontal=True)
        for one in pages_of(run):
            links.page_link(one.file, query_params={"run": run.run_id})


def _teach(open_: bool) -> None:
    """How a job lets itself be recorded."""
    with st.expander("How a job can be recorded", icon=":material/school:", expanded=open_):
        st.markdown("**JAX, MaxText, vLLM on TPU**: its own profiler server. Whoever reaches its port can record.")
        st.code(JAX, language="python")
        st.markdown("**PyTorch**: a module beside the job, which asks for a token. Steps are counted at the optimizer.")
        st.code(TORCH, language="shell")
        st.download_button(
            "chipledger_agent.py",
            lambda: Path(agent.__file__).read_bytes(),
            "chipledger_agent.py",
            "text/x-python",
            icon=":material/download:",
            on_click="ignore",
        )
        st.markdown("From a shell, the same without a server:")
        st.code("chipledger capture trainer-0:9012 trainer-1:9012 --duration-s 2", language="shell")


if __name__ == "__main__":
    page()
