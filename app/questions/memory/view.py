"""The pictures of the memory page, and the rows behind them."""

import pandas as pd
import streamlit as st

from analyzers.device.memory import MemoryResult
from app.components.chart import chart
from app.components.columns import Like
from app.components.question_page import Told
from app.components.text import md
from app.figures.base import plain
from app.questions.asking import ask
from app.questions.memory import MEMORY
from app.questions.memory.controls import REMAT
from app.questions.memory.figure import fill, over_time, treemap
from app.questions.memory.snapshot_view import pictures as snapshot_pictures
from app.questions.memory.words import title as title_of
from errors import format as fmt


def pictures(told: Told[MemoryResult]) -> None:
    """The bar against the limit, the buffers, samples over time, advice, and the rows to take away."""
    if told.result.snapshot is not None:
        snapshot_pictures(told, told.result.snapshot)
        return
    result, name, drawn = told.result, told.name, None
    if len(result.parts):
        st.markdown(f"**What fills a device.** {filled(result)}")
        drawn = fill(alternatives(told))
        chart(drawn, f"fill {name} {told.options}", f"{name}-fill", told.verdict)
    if len(result.parts) and result.subject != "formula":
        when = "" if result.inputs_only else " at that moment"
        st.markdown(f"**Buffer by buffer.** Area is bytes as placed{when}; click a block to open it.")
        drawn = treemap(result)
        chart(drawn, f"treemap {name} {told.options}", name, told.verdict)
    if line := over_time(result):
        more = len(result.devices) - 12
        st.markdown(
            "**Over time.** What allocators had handed out; the fullest device in colour"
            + (f", {more:,} further devices not drawn." if more > 0 else ".")
        )
        chart(line, f"time {name}", f"{name}-time", "Bytes in use over time.")
    if result.advice:
        st.markdown("**What would give some back.**")
        st.markdown(
            "\n".join(f"- **{'up to ' if a.at_most else ''}{fmt.size(a.bytes)}**: {md(a.text)}" for a in result.advice)
        )
    if drawn is not None:
        title = fmt.count(len(result.parts), "entry", "entries")
        told.evidence(result.parts, title, drawn, "memory", shown=evidence(result), columns=COLUMNS)


def filled(result: MemoryResult) -> str:
    """The sentence above the bar: how much of what it shows, and what is hatched."""
    program = md(result.program or "")
    if result.untold_bytes:
        inputs, padding = fmt.size(result.parts_bytes), ", and padding" if result.padding_bytes else ""
        return (
            f"Of what {program} needs, {inputs} are inputs; hatched: {fmt.size(result.untold_bytes)} of which the "
            f"compiler told the sum alone{padding}."
        )
    held = fmt.size(result.parts_bytes) + (" as inputs" if result.inputs_only else " at its fullest")
    hatched = "; hatched: padding" if result.padding_bytes else ""
    return f"{f'{program} holds' if program else 'Training holds'} {held}{hatched}."


def alternatives(told: Told[MemoryResult]) -> dict[str, MemoryResult]:
    """By formula also what the other choices of recomputation would hold; of a run itself alone."""
    result = told.result
    if result.subject != "formula":
        return {"": result}
    return {
        f"<b>{plain(words)}</b>" if key == result.setting["remat"] else plain(words): ask(
            MEMORY, told.about.subject, {**told.options, "remat": key}, told.place.registry
        )
        for key, words in REMAT.items()
    }


COLUMNS = {
    "Share": st.column_config.ProgressColumn(
        help="Part of all that are listed.", min_value=0, max_value=100, format="%.3g %%"
    ),
    "Bytes": Like("bytes", "Of the elements alone.", "Size"),
    "As placed": Like("bytes", "Padding included.", "As placed"),
    "Copies": st.column_config.NumberColumn(help=MEMORY.meaning("Copies")),
    "Source": st.column_config.TextColumn(help="Line of the user's program.", width="medium"),
}


def evidence(result: MemoryResult) -> pd.DataFrame:
    """The parts as the table shows them."""
    parts = result.parts
    return pd.DataFrame(
        {
            "Buffer": parts["name"],
            "Category": [title_of(c) for c in parts["category"]],
            "Share": parts["padded_bytes"].astype(float) / max(result.parts_bytes, 1) * 100,
            "Bytes": parts["bytes"],
            "As placed": parts["padded_bytes"],
            "Copies": parts["copies"],
            "Shape": parts["shape"],
            "Operation": parts["op"],
            "Source": parts["source"],
        }
    )
