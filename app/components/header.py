"""Who: the head of every page about a run, and the way between such pages."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analyzers.subject import slices_of
from app import format as fmt
from app.components.actions import copy_link
from app.components.live import address, live_status
from app.components.text import md
from app.components.xprof_link import xprof_link
from app.summary import chips_text, model_text, tags_of
from app.workspace import workspace
from errors import ChipledgerError
from runs.registry import Extras
from runs.run import Run
from simulators.topology import parse

RUN_PAGES = (  # each is about one run, the one in its address
    "questions/ledger/page.py",
    "questions/goodput/page.py",
    "questions/interruptions/page.py",
    "questions/checkpoints/page.py",
    "questions/steps/page.py",
    "questions/mfu/page.py",
    "questions/padding/page.py",
    "questions/memory/page.py",
    "questions/roofline/page.py",
    "questions/operations/page.py",
    "questions/overlap/page.py",
    "questions/collectives/page.py",
    "questions/stragglers/page.py",
    "questions/slowdown/page.py",
    "questions/input/page.py",
    "questions/latency/page.py",
    "questions/objectives/page.py",
    "questions/load/page.py",
    "questions/traffic/page.py",
    "questions/engine/page.py",
    "questions/kv_cache/page.py",
    "questions/speculation/page.py",
    "questions/prefix_cache/page.py",
    "pages/compare/page.py",
)
COMPILED_PAGE = "pages/compile/page.py"
TIMED = {  # of time that only a job that ran has
    "questions/goodput/page.py",
    "questions/interruptions/page.py",
    "questions/checkpoints/page.py",
    "questions/steps/page.py",
    "questions/mfu/page.py",
    "questions/overlap/page.py",
    "questions/input/page.py",
    "questions/stragglers/page.py",
    "questions/slowdown/page.py",
}


SERVING = {  # of requests served
    "questions/latency/page.py",
    "questions/objectives/page.py",
    "questions/load/page.py",
    "questions/traffic/page.py",
    "questions/engine/page.py",
    "questions/kv_cache/page.py",
    "questions/speculation/page.py",
    "questions/prefix_cache/page.py",
    "pages/compare/page.py",
}
PROFILED = {
    "questions/memory/page.py",
    "questions/padding/page.py",
    "questions/roofline/page.py",
    "questions/operations/page.py",
    "questions/overlap/page.py",
    "questions/collectives/page.py",
}  # of what a device did, whatever for
NEEDS = {  # a page about inputs that few runs have, and the tables one of which must be there
    "questions/slowdown/page.py": ("pipeline",),
    "questions/latency/page.py": ("requests", "stages", "histograms", "scalars"),
    "questions/objectives/page.py": ("requests", "histograms"),
    "questions/load/page.py": ("requests", "stages"),
    "questions/traffic/page.py": ("requests",),
    "questions/engine/page.py": ("engine", "iterations"),
    "questions/speculation/page.py": ("engine", "iterations", "requests", "stages"),
    "questions/prefix_cache/page.py": ("requests", "engine"),
    "pages/compare/page.py": ("requests",),
}


def pages_of(run: Run) -> tuple[str, ...]:
    """The pages that can tell something of a run of this kind."""
    held = run.manifest.tables
    pages = tuple(p for p in RUN_PAGES if p not in NEEDS or any(held.get(table) for table in NEEDS[p]))
    if run.manifest.kind == "serving":
        profiled = PROFILED if held.get("ops") else {"questions/memory/page.py"} if held.get("memory") else set()
        return (RUN_PAGES[0], *(p for p in pages if p in SERVING), *(p for p in pages if p in profiled))
    pages = tuple(p for p in pages if p not in SERVING)
    if run.manifest.kind == "compiled":
        return (COMPILED_PAGE, *(p for p in pages if p not in TIMED))
    return pages


def header(run: Run, extras: Extras) -> DeltaGenerator:
    """Name, what the run is, its tags, links to its pages, and a button that copies the permalink.

    Returns the place beside that button, for what else can be done on a page.
    """
    manifest = run.manifest
    st.set_page_config(page_title=f"{manifest.name} · Chipledger")
    name, right = st.columns([1, 1], vertical_alignment="center")
    name.subheader(md(manifest.name), anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
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
    links = st.container(horizontal=True)
    named = address(run, workspace())
    for page in pages_of(run):
        links.page_link(page, query_params={"run": named})
    if spec := slice_of(run):
        links.page_link("pages/topology/page.py", query_params={"spec": spec})
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
