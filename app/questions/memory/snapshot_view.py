"""The pictures of the memory page for a recorded history of allocations, and the rows behind them."""

import pandas as pd
import streamlit as st

from analyzers.device.memory import MemoryResult
from analyzers.device.snapshot.answer import Snapshot
from app.components.chart import chart
from app.components.columns import Like, draw_table
from app.components.figures_row import Figure
from app.components.question_page import Told
from app.components.text import md
from app.questions.memory import MEMORY
from app.questions.memory.snapshot_figure import over_time, treemap
from app.questions.memory.snapshot_words import PHASES, accounts
from errors import format as fmt

_PERCENT = st.column_config.ProgressColumn(help="Part of the peak.", min_value=0, max_value=100, format="%.3g %%")


def _bytes(meaning: str, title: str) -> Like:
    return Like("bytes", meaning, title)


HOLDERS = {
    "Share": _PERCENT,
    "Bytes": _bytes("Asked for, and held at the peak.", "Size"),
    "Freed later": _bytes("Of these, freed before the history ends.", "Freed later"),
    "Source": st.column_config.TextColumn(help="The line with its whole path.", width="medium"),
}
DEVICES = {
    "Peak": _bytes("The most that was in use at once.", "Peak"),
    "Reserved": _bytes("What the allocator had from the device then.", "Reserved"),
    "At the end": _bytes("In use at the snapshot.", "At the end"),
}
GROWTH = {
    "Before": _bytes("Held at the first of the two points.", "Before"),
    "After": _bytes("Held at the second.", "After"),
    "Grew": _bytes("After less before.", "Grew"),
}


def figures(result: MemoryResult, history: Snapshot) -> list[Figure]:
    """Peak, what was reserved and not in use, what nobody recorded, and what advice gives back."""
    shown = [Figure("Peak", fmt.size(history.peak_bytes), MEMORY.meaning("Peak"), "measured")]
    if not history.recorded:
        shown = [Figure("In use", fmt.size(history.peak_bytes), "Asked for, and held at the snapshot.", "measured")]
    if history.recorded and history.reserved_bytes is not None:
        shown.append(Figure("Reserved", fmt.size(history.reserved_bytes), MEMORY.meaning("Reserved"), "measured"))
        text = fmt.size(history.unused_bytes)
        shown.append(Figure("Reserved, not in use", text, MEMORY.meaning("Reserved, not in use"), "derived"))
    if result.limit_bytes:
        said = f"{MEMORY.meaning('Limit')} Here by {result.limit_source}."
        shown.append(Figure("Limit", fmt.size(result.limit_bytes), said, "published"))
    elif history.unrecorded_bytes:
        text = fmt.size(history.unrecorded_bytes)
        shown.append(Figure("Calls not recorded", text, MEMORY.meaning("Calls not recorded"), "unattributed"))
    if result.advice:
        best = result.advice[0]
        shown.append(Figure("Best change gives back", f"up to {fmt.size(best.bytes)}", best.text, "modelled"))
    return shown


def pictures(told: Told[MemoryResult], history: Snapshot) -> None:
    """The peak by line, over time, what grew, what was reserved and not used, advice, and the rows to take away."""
    name = told.name
    of = "the peak" if history.recorded else "what was in use"
    st.markdown(f"**Who held {of}.** Area is bytes in use at that moment; click a block to see what called it.")
    drawn = treemap(history)
    chart(drawn, f"holders {name}", name, told.verdict)
    rows = holders(history)
    told.evidence(
        history.holders, fmt.count(len(rows), "line"), drawn, "memory at the peak", shown=rows, columns=HOLDERS
    )
    if line := over_time(told.result, history):
        device = history.devices.iloc[0]
        st.markdown(f"**Over time.** Bytes in use on device {device['device']} of {md(str(device['host']))}.")
        chart(line, f"time {name}", f"{name}-time", "Bytes in use over time.")
    if len(history.devices) > 1:
        told.evidence(
            history.devices, "each device", None, "devices", "devices", shown=devices(history), columns=DEVICES
        )
    _reserved(history)
    if history.recorded:
        _growth(told, history)
    if told.result.advice:
        st.markdown("**What would give some back.**")
        st.markdown("\n".join(f"- **up to {fmt.size(a.bytes)}**: {md(a.text)}" for a in told.result.advice))


def _reserved(history: Snapshot) -> None:
    """What was reserved when the snapshot was taken, by what it was."""
    if not history.end["reserved"]:
        return
    st.markdown(
        f"**Reserved at the snapshot: {fmt.size(history.end['reserved'])}.** These are the accounts of that moment, "
        "not of the peak."
    )
    columns = {"Bytes": _bytes("At the snapshot.", "Size"), "Share": _PERCENT_OF_RESERVED}
    draw_table(accounts(history), columns=columns)


_PERCENT_OF_RESERVED = st.column_config.ProgressColumn(
    help="Part of what was reserved.", min_value=0, max_value=100, format="%.3g %%"
)


def growth_words(history: Snapshot) -> str:
    """Between which two points growth is told, and how much it is."""
    at, grew = history.points, history.grew_bytes
    more = (
        f"{fmt.size(abs(grew))} {'more' if grew > 0 else 'less'} was in use than" if grew else "as much was in use as"
    )
    if at.equal:
        return (
            f"At the last of {at.rounds:,} low points {more} at the first: these are equal points of "
            "what the program repeats."
        )
    return (
        f"At the end of the history {more} at its beginning. The history shows no two low points, so "
        "these may be different points of a step: no leak can be told from it."
    )


def _growth(told: Told[MemoryResult], history: Snapshot) -> None:
    st.markdown(f"**What grew.** {growth_words(history)}")
    if len(history.growth):
        rows = growth(history)
        title = fmt.count(len(rows), "line")
        told.evidence(history.growth, title, None, "growth", "growth", shown=rows, columns=GROWTH)


def holders(history: Snapshot) -> pd.DataFrame:
    """Who held the peak, as the table shows it."""
    rows = history.holders
    return pd.DataFrame(
        {
            "Line": rows["where"],
            "Phase": [PHASES.get(p, p) for p in rows["phase"]],
            "Share": rows["share"] * 100,
            "Bytes": rows["bytes"],
            "Blocks": rows["blocks"],
            "Freed later": rows["freed_bytes"],
            "Source": rows["source"],
        }
    )


def devices(history: Snapshot) -> pd.DataFrame:
    """The peak of each device, the fullest first."""
    rows = history.devices
    return pd.DataFrame(
        {
            "Process": rows["host"],
            "Device": rows["device"],
            "Peak": rows["peak_bytes"],
            "Reserved": rows["reserved_at_peak_bytes"],
            "At the end": rows["end_bytes"],
        }
    )


def growth(history: Snapshot) -> pd.DataFrame:
    """What grew, as the table shows it."""
    rows = history.growth
    return pd.DataFrame(
        {
            "Line": rows["where"],
            "Phase": [PHASES.get(p, p) for p in rows["phase"]],
            "Grew": rows["grew_bytes"],
            "Before": rows["before_bytes"],
            "After": rows["after_bytes"],
        }
    )
