"""A program's heap: memory over its events, the largest buffers, and who allocates."""

import pandas as pd
import streamlit as st

from analyzers.program.heap import HeapResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, in_address
from app.components.question_page import Told, question_page
from app.questions.heap import HEAP
from app.questions.heap.figure import BARS, over_program
from app.questions.memory import MEMORY
from errors import format as fmt

_OPTIONS = by_name(HEAP.options)


def page() -> None:
    question_page(HEAP, "Reading the program's buffers", figures, body, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """The program, from the address."""
    return in_address([_OPTIONS["program"]])


def figures(result: HeapResult) -> list[Figure]:
    """The peak and what it is made of."""
    parts = (
        ("Program's peak", result.peak_bytes),
        ("Held all the time", result.always_bytes),
        ("Alive at the peak", result.live_bytes),
        ("Room at the peak", result.room_bytes),
    )
    shown = parts if result.peak_event is not None else parts[:2]
    return [Figure(name, fmt.size(value), HEAP.meaning(name), "modelled") for name, value in shown]


def body(told: Told[HeapResult]) -> None:
    """Which program, memory over it, allocations by operation, and all buffers."""
    result = told.result
    with st.container(horizontal=True, vertical_alignment="center"):
        fullest = result.programs.sort_values("memory_bytes", ascending=False, kind="stable")["program"]
        control(_OPTIONS["program"], fullest.iloc[0], texts={p: p for p in fullest}, hidden=True, width=340)
        st.page_link(MEMORY.file, label="The peak, buffer by buffer", icon=MEMORY.icon, query_params=_at(told))
    drawn = over_program(result)
    if drawn is None:
        st.info("No trace tells when its buffers live: all that is known is what it holds.", icon=":material/info:")
    else:
        shown = min(BARS, int(result.buffers["first_event"].notna().sum()))
        st.markdown(f"**Memory over the program**, and the {shown} largest buffers from where to where they live.")
        chart(drawn, f"heap {result.program}", told.name, told.verdict)
    if len(result.by_op):
        st.markdown("**Allocations by operation**: those that hold most at the peak first.")
        draw_table(_by_op(result.by_op.head(200)))
    told.evidence(result.buffers, fmt.count(len(result.buffers), "buffer"), drawn, "heap", "buffers")
    with st.expander(f"Evidence: {fmt.count(len(result.by_op), 'operation')}", icon=":material/table:"):
        told.downloads(result.by_op, None, "allocations by operation", "operations")


def _at(told: Told[HeapResult]) -> dict[str, str]:
    return {"run": told.run.run_id}


def _by_op(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Operation": rows["op"],
            "Opcode": rows["opcode"],
            "Buffers": rows["buffers"],
            "At the peak": [fmt.size(float(n)) for n in rows["at_peak_bytes"]],
            "Allocated in all": [fmt.size(float(n)) for n in rows["allocated_bytes"]],
            "op_name": rows["op_name"],
            "Source": rows["source"],
        }
    )


if __name__ == "__main__":
    page()
