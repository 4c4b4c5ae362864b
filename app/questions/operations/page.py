"""The run's top operations: which take the devices' time, from which line, and how near are they to their roof?"""

from urllib.parse import urlencode

import streamlit as st

from analyzers.device.operations import OpsResult
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import choose, chosen, current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.op_choice import asked, choose_module, found, op_table, search
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.operations import OPERATIONS
from app.questions.operations.figure import BARS, bars, strip
from app.questions.operations.words import verdict as ops_verdict
from app.questions.roofline import ROOFLINE
from app.questions.roofline.figure import key_of
from runs.run import Run

VIEWS = {"op": "Operations", "source": "Source lines", "category": "Categories", "module": "Programs"}


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    given = asked()
    if (by := chosen("by", list(VIEWS), "op")) != "op":
        given["by"] = by
    with answering("Adding up operations", lambda: without(run, given)):
        result = ask(OPERATIONS, run, given, place.registry)
        programs = ask(
            OPERATIONS, run, {**{k: v for k, v in given.items() if k != "module"}, "by": "module"}, place.registry
        )
    verdict(ops_verdict(result))
    figures_row(figures(result))
    with st.container(horizontal=True, vertical_alignment="center"):
        switch("Rows", "by", VIEWS, "op")
        choose_module(list(programs.rows["module"]))
    picture(run, result, given)
    howto(run, OPERATIONS.terms, result.notes, OPERATIONS.inputs)


def without(run: Run, given: dict) -> None:
    """Below the reason why there is no answer: the way to all of the run, where the address asks for a part."""
    if given:
        st.page_link(OPERATIONS.file, label="Everything of this run", query_params={"run": run.run_id})
    howto(run, OPERATIONS.terms, (), OPERATIONS.inputs)


def figures(result: OpsResult) -> list[Figure]:
    """How much time, in how many operations, how much of it in the longest ten, and how much has a roof."""
    rows, timed = result.rows, result.device_seconds is not None
    basis = result.basis
    whole = fmt.duration(result.device_seconds if timed else float(rows["roof_seconds"].sum()))
    each = result.device_steps or result.devices or 1
    roofed = float(rows["roofed_seconds"].sum())
    shown = [
        Figure(
            "Device time" if timed else "Least time",
            whole,
            OPERATIONS.meaning("Device time") if timed else "Modelled: the sum of least times of one device.",
            basis,
        ),
        Figure("Operations", f"{int(rows['ops'].sum()):,}", "Different operations: module, name and shape.", basis),
        Figure(
            "Longest ten",
            fmt.share(float(rows["share"].head(10).sum())),
            "Share of the time in the ten longest rows.",
            basis,
        ),
    ]
    if timed:
        shown.insert(
            1,
            Figure(
                "Of a device and step" if result.device_steps else "Of a device",
                fmt.duration(result.device_seconds / each),
                "The mean.",
                "derived",
            ),
        )
        shown.append(
            Figure(
                "Has a roof",
                fmt.share(roofed / result.device_seconds if result.device_seconds else None),
                OPERATIONS.meaning("Of its roof"),
                "derived",
            )
        )
    return shown


def picture(run: Run, result: OpsResult, given: dict) -> None:
    """The categories as one strip, the longest rows as bars, and all of them as a table."""
    name, timed = f"{run.manifest.name}-ops-{result.by}", result.device_seconds is not None
    st.markdown(f"**{'Device time' if timed else 'Least time'} by category.**")
    chart(strip(result), "category strip", f"{name}-categories", ops_verdict(result))
    figure = bars(result)
    if figure is None:
        st.info(ops_verdict(result), icon=":material/info:")
        return
    shown = min(BARS, len(result.rows))
    st.markdown(
        f"**The {shown} longest of {len(result.rows):,}.** Solid: what the roof would take; hatched: beyond "
        "it; dotted: no roof is known."
        if timed
        else f"**The {shown} longest of {len(result.rows):,}**, each at its roof: nothing ran."
    )
    chart(figure, f"bars {result.by}", name, ops_verdict(result))
    with st.expander(f"Evidence: {fmt.count(len(result.rows), 'row')}", icon=":material/table:", expanded=True):
        rows = found(result.rows, search())
        opens = "its place under the roofs" if result.by == "op" else "the operations in it"
        st.caption(f"{fmt.count(len(rows), 'row')}. Choosing one opens {opens}.")
        if at := st.query_params.get("op"):
            st.page_link(
                ROOFLINE.file,
                label=f"{md(at.rpartition('/')[2])} under its roofs",
                icon=":material/stacked_line_chart:",
                query_params={"run": run.run_id, "op": at},
            )
        op_table(rows.dropna(axis=1, how="all"), f"ops rows {result.by}", lambda row: opened(result, row))
        address = f"/api/runs/{run.run_id}/show/operations" + (f"?{urlencode(given)}" if given else "")
        downloads(result.rows, name, address, lambda: standalone(figure, f"{run.manifest.name}: top operations", name))


def opened(result: OpsResult, row: dict) -> None:
    """What a click on a row opens: an operation its place under the roofs, anything else the operations in it."""
    if result.by == "op":
        choose("op", key_of(row))
        return
    for key in ("by", "op"):
        choose(key, "")
    st.session_state["switch_by"] = "op"
    if result.by == "module":
        choose("module", row["module"] or "")
    else:
        st.session_state["search_ops"] = row[result.by] or ""
        choose("q", row[result.by] or "")


if __name__ == "__main__":
    page()
