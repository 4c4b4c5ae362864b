"""Compile for TPU: what the compiler makes of a training step, without a TPU; one compiled run, or two side by side."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from analyzers.compiled.compiled import CompiledResult
from app.components.actions import copy_link
from app.components.columns import draw_table
from app.components.current import choose, open_workspace
from app.components.header import header
from app.components.notice import notice
from app.pages.compile.form import compile_form
from app.questions.asking import ask
from app.questions.compiled import COMPILED
from app.questions.compiled.view import told
from app.questions.compiled.words import summary
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run

KIND = "compiled"
LISTED = 50  # compiled runs in the table, newest first


def page() -> None:
    place = open_workspace()
    runs = [r for r in place.store.runs() if r.manifest.kind == KIND]
    head(runs, place)
    first_read = st.container()
    st.caption(
        "The real TPU compiler on a machine without a TPU: does a training step fit, which collectives does it "
        "need, what is padded, and how fast can it be at best?"
    )
    if made := compile_form():
        before = st.query_params.get("run", "")
        choose("against", before if st.query_params.get("against") != made and before != made else "")
        choose("run", made)
        st.rerun()
    if not runs:
        teach()
        return
    asked = [results(runs, place, st.query_params.get(n, "")) for n in ("run", "against")]
    shown = [one for one in asked if one is not None]
    if not st.query_params.get("run"):
        shown = first(runs, place)
    table(runs, place)
    if shown:
        with first_read if asked[0] is not None else st.container():
            told(shown)


def head(runs: Sequence[Run], place: Workspace) -> None:
    """The frame of the run in the address, where there is one; else the page's own name."""
    wanted = st.query_params.get("run", "")
    run = next((r for r in runs if wanted and r.run_id.startswith(wanted)), None)
    if run is not None:
        header(run, place.registry.extras(run.run_id))
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.subheader("Compile for TPU", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right"):
        copy_link()


def teach() -> None:
    """No compiled run yet."""
    st.info("No compiled run is in this store yet.", icon=":material/info:")
    st.code("chipledger compile llama3.1-8b --topology v6e:4x4 --mesh fsdp=4,model=4", language="shell")


def results(runs: Sequence[Run], place: Workspace, wanted: str) -> tuple[Run, CompiledResult] | None:
    """The compiled run whose id begins so, with its answer; None where the address names none."""
    run = next((r for r in runs if wanted and r.run_id.startswith(wanted)), None)
    try:
        return None if run is None else (run, ask(COMPILED, run, {}, place.registry))
    except ChipledgerError as e:
        notice(e, library=False)
        return None


def first(runs: Sequence[Run], place: Workspace) -> list[tuple[Run, CompiledResult]]:
    """What is shown before anybody chose: the newest run that fits, else the newest."""
    fitting = [r for r in runs if r.manifest.fact("fits")] or list(runs)
    return [one for one in [results(runs, place, fitting[0].run_id)] if one is not None]


def table(runs: Sequence[Run], place: Workspace) -> None:
    """The compiled runs; the one or two picked go into the address."""
    rows = []
    for run in runs[:LISTED]:
        try:
            rows.append({"Run": run.manifest.name, **summary(ask(COMPILED, run, {}, place.registry))})
        except ChipledgerError as e:
            rows.append({"Run": run.manifest.name, "Fits": str(e)})
    key = "compiled runs"

    def picked() -> None:
        chosen = [runs[i].run_id for i in st.session_state[key].selection.rows][:2]
        for name, run_id in zip(("run", "against"), [*chosen, "", ""], strict=False):
            choose(name, run_id)

    more = f" (the newest {LISTED})" if len(runs) > LISTED else ""
    st.markdown(f"**Compiled runs**{more}. Pick one, or two to compare.")
    draw_table(pd.DataFrame(rows), key=key, on_select=picked, selection_mode="multi-row")


if __name__ == "__main__":
    page()
