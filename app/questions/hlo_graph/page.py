"""An operation's neighbourhood: a graph to walk in, with fusions and loops that can be opened."""

import pandas as pd
import streamlit as st

from analyzers.program.graph import GraphResult
from analyzers.program.wiring import OPENS
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, in_address
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.hlo import HLO
from app.questions.hlo_graph import HLO_GRAPH
from app.questions.hlo_graph.figure import graph
from app.questions.hlo_graph.words import centre
from app.questions.operations import OPERATIONS
from errors import format as fmt

_OPTIONS = by_name(HLO_GRAPH.options)
WAYS = {"both": "Operands and users", "operands": "Operands", "users": "Users"}
DEEP = {str(n): fmt.count(n, "level") for n in (1, 2, 3, 4, 6, 8)}


def page() -> None:
    question_page(HLO_GRAPH, "Reading the program", figures, body, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """All from the address."""
    return in_address(HLO_GRAPH.options)


def figures(result: GraphResult) -> list[Figure]:
    """What the operation costs."""
    row = centre(result)
    one = "Of one execution, what a fusion holds with it."
    shown = [
        Figure("FLOPs", fmt.flops(_known(row["flops"])), one, "derived"),
        Figure("Bytes", fmt.size(_known(row["bytes"])), "To and from main memory, of one execution.", "derived"),
        Figure("Result", fmt.size(_known(row["result_bytes"])), "Logical bytes of what it makes.", "derived"),
    ]
    if pd.notna(row["count"]):
        said = "Executions in one run of the program, trip counts of loops multiplied."
        shown.append(Figure("Executions", f"{int(row['count']):,}", said, "derived"))
    if pd.notna(row["seconds"]):
        shown.append(Figure("Time", fmt.duration(row["seconds"]), HLO_GRAPH.meaning("Time of operations"), "measured"))
    return shown


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def body(told: Told[GraphResult]) -> None:
    """How far to look, the picture, the ways on, and the rows."""
    result = told.result
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = {p: p for p in result.programs["program"]}
        control(_OPTIONS["program"], result.program, texts=names, hidden=True, width=280, entered=lambda _: _forget())
        control(_OPTIONS["op"], empty=result.op, hidden=True, width=280, icon=":material/search:", key="op of graph")
        control(_OPTIONS["levels"], 2, texts=DEEP, hidden=True, width=130)
        control(_OPTIONS["way"], "both", texts=WAYS, buttons=True)
    _ways_on(told)
    drawn = graph(result)

    def picked() -> None:
        for point in st.session_state["hlo graph"].selection.points:
            if op := point.get("customdata"):
                choose("op", op[0] if isinstance(op, list) else op)

    more = f"; {result.more:,} more within {fmt.count(result.levels, 'level')}" if result.more else ""
    st.markdown(
        f"**{fmt.count(len(result.nodes), 'operation')} around {md(result.op)}**{more}. Below a name stands what it "
        "makes, which every line from it carries. A click puts another one in the middle."
    )
    chart(drawn, "hlo graph", told.name, told.verdict, on_select=picked)
    told.evidence(result.nodes, fmt.count(len(result.nodes), "operation"), drawn, "neighbourhood")
    with st.expander(f"Evidence: {fmt.count(len(result.edges), 'value')}", icon=":material/table:"):
        draw_table(result.edges.drop(columns="corners"))


def _forget() -> None:
    """Another program holds other operations."""
    for name in ("op", "open"):
        choose(name, "")


def _ways_on(told: Told[GraphResult]) -> None:
    """What can be opened or closed, who calls it, what it calls, its text, and its time."""
    result, row = told.result, centre(told.result)
    run = told.run.run_id
    with st.container(horizontal=True, vertical_alignment="center"):
        if row["opcode"] in OPENS and row["calls"]:
            _to(f"Open {result.op}", "open", [*result.opened, result.op], ":material/unfold_more:")
        for name in result.opened:
            _to(f"Close {name}", "open", [n for n in result.opened if n != name], ":material/unfold_less:")
        for name in result.called_by[:3]:
            _to(f"Called by {name}", "op", [name], ":material/arrow_upward:")
        at = {"run": run, "program": result.program, "op": result.op}
        st.page_link(HLO.file, label="Its line in the text", icon=HLO.icon, query_params=at)
        if pd.notna(row["seconds"]):
            st.page_link(
                OPERATIONS.file, label="Its time", icon=OPERATIONS.icon, query_params={"run": run, "q": result.op}
            )


def _to(label: str, name: str, values: list[str], icon: str) -> None:
    def go() -> None:
        choose(name, ",".join(values))

    st.button(md(label), on_click=go, icon=icon, key=f"graph {label}")


if __name__ == "__main__":
    page()
