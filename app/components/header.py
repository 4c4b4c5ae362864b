"""Who: the head of every page about a run, with the menu of such pages."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analyzers.subject import slices_of
from app.components.actions import copy_link
from app.components.contradicted import contradicted
from app.components.live import live_status
from app.components.run_menu import run_menu
from app.components.text import md
from app.components.things import things_to_know
from app.components.xprof_link import xprof_link
from app.summary import chips_text, model_text, tags_of
from app.workspace import workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import Extras
from runs.run import Run
from simulators.topology import parse


def header(run: Run, extras: Extras) -> DeltaGenerator:
    """Name, what the run is, its tags, the menu of its pages, and a button that copies the permalink.

    Returns the place beside that button, for what else can be done on a page.
    """
    manifest = run.manifest
    st.set_page_config(page_title=f"{manifest.name} · Chipledger")
    head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    head.subheader(md(manifest.name), anchor=False, width="content")
    with head.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", width="content"):
        actions = st.container(width="content")
        xprof_link(run)
        copy_link()
    known = [chips_text(run), manifest.fact("topology"), model_text(run), manifest.fact("precision")]
    facts = [md(f) for f in known if f] + [f"{manifest.kind}", f"added {fmt.date(manifest.created_ns)}"]
    badges = [":orange-badge[:material/science: simulated: nobody ran this]"] if manifest.simulated else []
    badges += [":orange-badge[:material/build: compiled: nobody ran this]"] if manifest.kind == "compiled" else []
    badges += [f":gray-badge[{md(f'{k}={v}' if v else k)}]" for k, v in tags_of(run, extras).items()]
    st.markdown(" · ".join(facts) + ("  " + " ".join(badges) if badges else ""))
    live_status(run)
    things_to_know(run)
    contradicted(run)
    run_menu(run, workspace(), slice_of(run))
    return actions


def slice_of(run: Run) -> str | None:
    """The run's slice as the topology lab names it; None where its facts name none that exists."""
    chip, shape = run.manifest.fact("chip"), str(run.manifest.fact("topology") or "")
    slices = slices_of(run.manifest.facts) or 1
    try:
        text = shape if ":" in shape else f"{chip}:{shape}"
        return parse(f"{text}:slices={slices}").text if chip and shape else None
    except ChipledgerError:
        return None
