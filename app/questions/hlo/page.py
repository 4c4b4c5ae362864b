"""The run's programs: a list, the text of one, and a search in it."""

import pandas as pd
import streamlit as st

from analyzers.program.hlo import HITS, HloResult
from analyzers.program.text import Text
from app.cells import file_name
from app.components.columns import draw_table
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, in_address
from app.components.question_page import Told, question_page
from app.components.text import md
from app.programs import StoredPrograms
from app.questions.hlo import HLO
from app.questions.hlo.words import row_of
from errors import format as fmt

_OPTIONS = by_name(HLO.options)
LINES = _OPTIONS["lines"].default


def page() -> None:
    question_page(HLO, "Reading the programs", figures, body, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """Program, search and place, from the address."""
    return in_address([o for o in HLO.options if o.name != "top"])


def figures(result: HloResult) -> list[Figure]:
    """How many programs, and the size of the one shown."""
    told = row_of(result)
    timed = pd.notna(told["seconds"])
    least = "at least " if result.untold and pd.notna(told["flops"]) else ""
    flops = f"{least}{fmt.flops(_known(told['flops']))}"
    shown = [
        Figure("Programs kept", f"{len(result.programs):,}", HLO.meaning("Programs kept"), "measured"),
        Figure("Instructions", f"{int(told['instructions']):,}", HLO.meaning("Instructions"), "measured"),
        Figure("FLOPs", flops, "Of one execution, loops by their trip counts.", "derived"),
        Figure("Bytes", fmt.size(_known(told["bytes"])), "Operands and results of one execution.", "derived"),
    ]
    if timed:
        said = fmt.duration(told["seconds"])
        shown.append(Figure("Time of operations", said, HLO.meaning("Time of operations"), "measured"))
    return shown


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def body(told: Told[HloResult]) -> None:
    """Which program, what is looked for, what was found, and the text."""
    result = told.result
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = {p: p for p in result.programs["program"]}
        control(_OPTIONS["program"], result.programs["program"].iloc[0], texts=names, hidden=True, width=340)
        place = "Search names, opcodes, shapes, op_names, sources"
        control(_OPTIONS["q"], empty=place, hidden=True, width=420, icon=":material/search:", key="search_hlo")
        _whole(told)
    if result.q:
        _found(told)
    _text(told)
    rows = result.programs.drop(columns=["files", "variant"])
    told.evidence(rows, fmt.count(len(rows), "program"), None, "programs")


def _whole(told: Told[HloResult]) -> None:
    """The whole text as a file, written when it is asked for."""
    file = row_of(told.result)["files"][0]

    def text() -> bytes:
        return "\n".join(Text(StoredPrograms(told.run).of(file)).whole()).encode()

    name = file_name(f"{told.name}-{told.result.program}")
    st.download_button(
        "Whole text", text, f"{name}.txt", "text/plain", icon=":material/download:", on_click="ignore", key="hlo whole"
    )


def _found(told: Told[HloResult]) -> None:
    """What was found, to sort; a click on a row shows the text around it."""
    hits = told.result.hits
    shown = hits.head(HITS).dropna(axis="columns", how="all")
    where = ", ".join(f"{n:,} in {field}" for field, n in told.result.hits_in.items() if n)
    more = f"; the first {HITS:,} are listed" if len(hits) > HITS else ""
    st.markdown(f"**{fmt.count(len(hits), 'instruction')} found**{f' ({where})' if where else ''}{more}.")
    if not len(hits):
        return

    def picked() -> None:
        if at := st.session_state["hlo hits"].selection.rows:
            choose("line", "")
            choose("op", str(shown["name"].iloc[at[0]]))

    draw_table(shown, key="hlo hits", on_select=picked, selection_mode="single-row", height=260)


def _text(told: Told[HloResult]) -> None:
    """A stretch of the text, and the way to those before and after it."""
    result = told.result
    last = result.first_line + len(result.lines) - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**Lines {result.first_line:,} to {last:,} of {result.total_lines:,}**"
            + ("" if result.at is None else f", around {md(told.options['op'])} on line {result.at:,}")
        )
        _step("Entry", result.entry_line, result.first_line != result.entry_line, ":material/login:")
        _step("Before", result.first_line - LINES, result.first_line > 1, ":material/arrow_upward:")
        _step("After", last + 1, last < result.total_lines, ":material/arrow_downward:")
    st.code("\n".join(result.lines), language=None, line_numbers=False, height=520)


def _step(label: str, line: int, there: bool, icon: str) -> None:
    def go() -> None:
        choose("line", str(max(line, 1)))

    st.button(label, on_click=go, disabled=not there, icon=icon, key=f"hlo {label}")


if __name__ == "__main__":
    page()
