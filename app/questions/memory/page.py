"""Memory: what a device holds when it holds most, how near that is to its limit, and what would give some back."""

import pandas as pd
import streamlit as st

from analyzers.device.memory import MemoryResult
from app import format as fmt
from app.components.chart import chart
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.model_picker import About, explained, model_or_run
from app.components.notice import notice
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import plain, standalone
from app.questions.asking import ask
from app.questions.memory import MEMORY
from app.questions.memory.controls import REMAT, formula_controls, program_control
from app.questions.memory.figure import fill, over_time, treemap
from app.questions.memory.words import title
from app.questions.memory.words import verdict as memory_verdict
from errors import ChipledgerError, QuestionError

SHOWN = 1000


def page() -> None:
    view(model_or_run())


@st.fragment
def view(about: About) -> None:
    """Everything below the head: a choice draws it again and leaves the head alone."""
    top = st.container()
    by_formula = about.run is None or about.model is not None
    try:
        given = formula_controls(about) if by_formula else {}
        with st.spinner("Reading the memory"):
            result = ask(MEMORY, about.subject, given, about.place.registry)
        if not by_formula and (program := program_control(result)):
            given = {"program": program}
            result = ask(MEMORY, about.subject, given, about.place.registry)
    except QuestionError as e:
        st.info(md(e), icon=":material/info:")
        explained(about, MEMORY.terms, (), ("captures",))
        return
    except ChipledgerError as e:
        notice(e)
        explained(about, MEMORY.terms, (), ("captures",))
        return
    with top:
        verdict(memory_verdict(result))
        figures_row(figures(result))
    pictures(about, result, given)
    explained(about, MEMORY.terms, result.notes, ("captures",))


def figures(result: MemoryResult) -> list[Figure]:
    """Peak, limit, room, padding, and what the advice gives back."""
    basis = result.peak_basis
    limit = {"the device's own allocator": "measured", "the compiler": "modelled"}.get(result.limit_source, "published")
    shown = [Figure("Peak", fmt.size(result.peak_bytes), MEMORY.meaning("Peak"), basis)]
    if result.peak_bytes is None:
        shown = [Figure("Inputs", fmt.size(result.parts_bytes), MEMORY.meaning("Inputs"), basis)]
    if result.limit_bytes:
        said = f"{MEMORY.meaning('Limit')} Here by {result.limit_source}."
        shown.append(Figure("Limit", fmt.size(result.limit_bytes), said, limit))
    if result.free_bytes is not None:
        word = "Too much" if result.free_bytes < 0 else "Left"
        shown.append(Figure(word, fmt.size(abs(result.free_bytes)), "Limit less peak.", basis))
    if result.padding_bytes is not None and result.subject != "formula":
        shown.append(Figure("Padding", fmt.size(result.padding_bytes), MEMORY.meaning("Layout padding"), "modelled"))
    if result.advice:
        best = result.advice[0]
        text = f"{'up to ' if best.at_most else ''}{fmt.size(best.bytes)}"
        shown.append(Figure("Best change gives back", text, best.text, "modelled"))
    return shown


def pictures(about: About, result: MemoryResult, given: dict) -> None:
    """The bar against the limit, the buffers, samples over time, advice, and the rows to take away."""
    name = f"{about.name}-memory"
    drawn = None
    if len(result.parts):
        of = f"{md(result.program)} holds" if result.program else "Training holds"
        held = fmt.size(result.parts_bytes) + (" as inputs" if result.peak_bytes is None else " at its fullest")
        hatched = "; hatched: padding" if result.padding_bytes else ""
        st.markdown(f"**What fills a device.** {of} {held}{hatched}.")
        drawn = fill(alternatives(about, result, given))
        chart(drawn, f"fill {name} {given}", f"{name}-fill", memory_verdict(result))
    if len(result.parts) and result.subject != "formula":
        st.markdown("**Buffer by buffer.** Area is bytes as placed at that moment; click a block to open it.")
        drawn = treemap(result)
        chart(drawn, f"treemap {name} {given}", name, memory_verdict(result))
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
        figure = drawn
        with st.expander(f"Evidence: {fmt.count(len(result.parts), 'entry', 'entries')}", icon=":material/table:"):
            st.dataframe(evidence(result).head(SHOWN), hide_index=True, column_config=COLUMNS)
            downloads(
                result.parts,
                name,
                about.answer(MEMORY, given),
                lambda: standalone(figure, f"{about.name}: memory", name),
            )


def alternatives(about: About, result: MemoryResult, given: dict) -> dict[str, MemoryResult]:
    """By formula also what the other choices of recomputation would hold; of a run itself alone."""
    if result.subject != "formula":
        return {"": result}
    return {
        f"<b>{plain(words)}</b>" if key == result.setting["remat"] else plain(words): ask(
            MEMORY, about.subject, {**given, "remat": key}, about.place.registry
        )
        for key, words in REMAT.items()
    }


COLUMNS = {
    "Share": st.column_config.ProgressColumn(help="Part of the peak.", min_value=0, max_value=100, format="%.3g %%"),
    "Bytes": st.column_config.NumberColumn(help="Of the elements alone.", format="%,.0f"),
    "As placed": st.column_config.NumberColumn(help="Padding included.", format="%,.0f"),
    "Copies": st.column_config.NumberColumn(help=MEMORY.meaning("Copies")),
    "Source": st.column_config.TextColumn(help="Line of the user's program.", width="medium"),
}


def evidence(result: MemoryResult) -> pd.DataFrame:
    """The parts as the table shows them; columns of which nothing is known are left out."""
    parts = result.parts
    table = pd.DataFrame(
        {
            "Buffer": parts["name"],
            "Category": [title(c) for c in parts["category"]],
            "Share": parts["padded_bytes"].astype(float) / max(result.parts_bytes, 1) * 100,
            "Bytes": parts["bytes"],
            "As placed": parts["padded_bytes"],
            "Copies": parts["copies"],
            "Shape": parts["shape"],
            "Operation": parts["op"],
            "Source": parts["source"],
        }
    )
    return table.dropna(axis=1, how="all")


if __name__ == "__main__":
    page()
