"""Who: the head of every page about a run, and the way between such pages."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import format as fmt
from app.components.actions import copy_link
from app.components.text import md
from app.summary import chips_text, model_text, tags_of
from runs.registry import Extras
from runs.run import Run

RUN_PAGES = ("pages/ledger.py", "pages/steps.py")  # each is about one run, the one in its address


def header(run: Run, extras: Extras) -> DeltaGenerator:
    """Name, what the run is, its tags, links to its pages, and a button that copies the permalink.

    Returns the place beside that button, for what else can be done on a page.
    """
    manifest = run.manifest
    st.set_page_config(page_title=f"{manifest.name} · Chipledger")
    name, right = st.columns([3, 2], vertical_alignment="center")
    name.subheader(md(manifest.name), anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        actions = st.container(width="content")
        copy_link()
    known = [chips_text(run), manifest.fact("topology"), model_text(run), manifest.fact("precision")]
    facts = [md(f) for f in known if f] + [f"{manifest.kind}", f"added {fmt.date(manifest.created_ns)}"]
    badges = [":orange-badge[:material/science: simulated: nobody ran this]"] if manifest.simulated else []
    badges += [f":gray-badge[{md(f'{k}={v}' if v else k)}]" for k, v in tags_of(run, extras).items()]
    st.markdown(" · ".join(facts) + ("  " + " ".join(badges) if badges else ""))
    links = st.container(horizontal=True)
    for page in RUN_PAGES:
        links.page_link(page, query_params={"run": run.run_id})
    return actions
