"""The run's top operations: which take the devices' time, from which line, and how near are they to their roof?"""

import streamlit as st

from analyzers.device.operations import OpsResult
from analyzers.device.tensor_cores import Products
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.on_timeline import on_timeline
from app.components.op_choice import MAX_ROWS, asked, choose_module, everything, found, op_table, search
from app.components.option import by_name, control, said
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.asking import ask
from app.questions.hlo_graph import HLO_GRAPH
from app.questions.operations import OPERATIONS
from app.questions.operations.figure import BARS, bars, strip
from app.questions.operations.words import products_text
from app.questions.roofline import ROOFLINE
from app.questions.roofline.figure import key_of
from app.timeline.places import place_of
from errors import format as fmt

VIEWS = {"op": "Operations", "source": "Source lines", "category": "Categories", "module": "Programs"}
BY = by_name(OPERATIONS.options)["by"]


def page() -> None:
    question_page(OPERATIONS, "Adding up operations", figures, body, options=_options, otherwise=everything(OPERATIONS))


def _options(about: About) -> dict[str, str]:
    """The part of the run, and what a row is, from the address."""
    by = said(BY, BY.default)
    return asked() | ({} if by == BY.default else {"by": by})


def body(told: Told[OpsResult]) -> None:
    """The choice of rows and of a program, and the pictures."""
    whole = {k: v for k, v in told.options.items() if k != "module"}
    programs = ask(OPERATIONS, told.run, {**whole, "by": "module"}, told.place.registry)
    with st.container(horizontal=True, vertical_alignment="center"):
        control(BY, BY.default, texts=VIEWS, buttons=True)
        choose_module(list(programs.rows["module"]))
    picture(told)


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
    if result.device_seconds is not None:
        held = result.device_seconds / each
        shown.insert(
            1,
            Figure(
                "Of a device and step" if result.device_steps else "Of a device",
                fmt.duration(held),
                "The mean.",
                "derived",
                held if result.device_steps else None,
                "less",
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


def picture(told: Told[OpsResult]) -> None:
    """The categories as one strip, the longest rows as bars, and all of them as a table."""
    result = told.result
    name, timed = f"{told.name}-{result.by}", result.device_seconds is not None
    st.markdown(f"**{'Device time' if timed else 'Least time'} by category.**")
    chart(strip(result), "category strip", f"{name}-categories", told.verdict)
    figure = bars(result)
    if figure is None:
        st.info(told.verdict, icon=":material/info:")
        return
    shown = min(BARS, len(result.rows))
    st.markdown(
        f"**The {shown} longest of {len(result.rows):,}.** Solid: what the roof would take; hatched: beyond "
        "it; dotted: no roof is known."
        if timed
        else f"**The {shown} longest of {len(result.rows):,}**, each at its roof: nothing ran."
    )
    chart(figure, f"bars {result.by}", name, told.verdict)
    with st.expander(f"Evidence: {fmt.count(len(result.rows), 'row')}", icon=":material/table:", expanded=True):
        rows = found(result.rows, search())
        opens = "its place under the roofs" if result.by == "op" else "the operations in it"
        st.caption(f"{fmt.count(len(rows), 'row')}. Choosing one opens {opens}.")
        if at := st.query_params.get("op"):
            st.page_link(
                ROOFLINE.file,
                label=f"{md(at.rpartition('/')[2])} under its roofs",
                icon=":material/stacked_line_chart:",
                query_params={"run": told.run.run_id, "op": at},
            )
            module, _, op = at.rpartition("/")
            on_timeline(told.run, place_of(op=op), "Its longest execution on the timeline")
            if HLO_GRAPH.tells_of(told.run):
                st.page_link(
                    HLO_GRAPH.file,
                    label=f"{md(op)} in its program",
                    icon=HLO_GRAPH.icon,
                    query_params={"run": told.run.run_id, "op": op} | ({"program": module} if module else {}),
                )
        op_table(rows.dropna(axis=1, how="all"), f"ops rows {result.by}", lambda row: opened(result, row))
        told.downloads(result.rows, figure, "top operations", result.by)
    if result.products:
        _products(result.products)


def _products(made: Products) -> None:
    """Matrix products by the unit that they ran on, by shape."""
    with st.expander("Matrix products and tensor cores", icon=":material/grid_on:"):
        st.markdown(f"**{products_text(made)}** {OPERATIONS.meaning('On tensor cores')}")
        shown = made.by_shape.dropna(axis=1, how="all").head(MAX_ROWS)
        draw_table(shown)


def opened(result: OpsResult, row: dict) -> None:
    """What a click on a row opens: an operation its place under the roofs, anything else the operations in it."""
    if result.by == "op":
        choose("op", key_of(row))
        return
    for key in ("by", "op"):
        choose(key, "")
    if result.by == "module":
        choose("module", row["module"] or "")
    else:
        st.session_state["search_ops"] = row[result.by] or ""
        choose("q", row[result.by] or "")


if __name__ == "__main__":
    page()
