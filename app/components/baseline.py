"""The baseline: a run that headline figures are held against on every page of a question, as the address says.

It is chosen on the page *Many runs*, kept for the session, and stands in the address of each page (`baseline=`). A
change is shown only of a figure that has one better direction and is measured alike in both runs, and never against a
run of another kind or model: of that the page says why.
"""

from collections.abc import Callable, Sequence

import streamlit as st

from analyzers.several.against import held, unlike
from analyzers.several.differing import Member
from app.baselines import find_run
from app.comparing.job_words import signed
from app.comparing.several.growing import batch_of
from app.components.figures_row import Figure, figures_row
from app.components.text import md
from app.summary import model_text
from app.words import short
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

LOADS = "What was asked of the two may differ: the page A or B tells."
NAME = "baseline"  # in the address, and in the session


def keep(run_id: str) -> None:
    """Hold figures of other pages against this run, until it is taken away."""
    st.session_state[NAME] = run_id


def row(figures: list[Figure], run: Run | None, place: Workspace, of: Callable[[Run], Sequence[Figure]]) -> None:
    """The headline figures of a run, held against those of the baseline where one is chosen. `of`: the same figures of
    another run."""
    base, why = (None, "") if run is None else _chosen(run, place)
    if base is None or run is None or run.run_id == base.run_id:
        figures_row(figures)
        if why:
            _said(why)
        return
    before: Sequence[Figure] = ()
    name, why = short(base.manifest.name), unlike(_member(base), _member(run))
    if not why:
        try:
            before = of(base)
        except ChipledgerError as e:
            why = f"it does not tell this: {e}"
    changes = changed(figures, before)
    figures_row(figures, changes)
    if why:
        _said(f"Not held against {name}: {why}.")
    else:
        told = f"Changes are against {name}." if changes else f"None of these figures can be held against {name}."
        _said(f"{told} {_work(base, run)}".strip())


def _work(base: Run, run: Run) -> str:
    """That what the two did is not the same work: steps whose batches say so, and requests, of which nothing here says
    that they came alike."""
    if run.manifest.kind == "serving":
        return LOADS
    before, now = batch_of(base), batch_of(run)
    if before is None or now is None or before == now:
        return ""
    return f"A step is not the same work: the batch is {fmt.number(now)}, there {fmt.number(before)}."


def changed(now: Sequence[Figure], before: Sequence[Figure]) -> dict[str, tuple[str, str]]:
    """(change, which way is better) by label, of figures that both have, measured alike and with a better direction."""
    told = {f.label: f for f in before}
    found = dict[str, tuple[str, str]]()
    for figure in now:
        other = told.get(figure.label)
        if other is None or not figure.better or (figure.basis, figure.alike) != (other.basis, other.alike):
            continue
        if change := held(other.amount, figure.amount, figure.better):
            found[figure.label] = signed(change.change).replace("−", "-"), figure.better
    return found


def _chosen(run: Run, place: Workspace) -> tuple[Run | None, str]:
    """(the baseline, why there is none though one was named)."""
    wanted = st.query_params.get(NAME) or st.session_state.get(NAME)
    if not wanted:
        return None, ""
    try:
        base = find_run(place, wanted)
        base.manifest  # noqa: B018 - read here, so that one that cannot be read is told as such
    except ChipledgerError as e:
        return None, f"There is no baseline: {e}"
    keep(base.run_id)
    if st.query_params.get(NAME) != base.run_id:
        st.query_params[NAME] = base.run_id
    return base, ""


def _said(text: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(md(text), width="content")
        if st.button("No baseline", type="tertiary", icon=":material/close:", key="no baseline"):
            st.session_state.pop(NAME, None)
            st.query_params.pop(NAME, None)
            st.rerun()


def _member(run: Run) -> Member:
    manifest = run.manifest
    return Member(
        run_id=run.run_id,
        name=manifest.name,
        kind=manifest.kind,
        simulated=manifest.simulated,
        model=model_text(run),
    )
