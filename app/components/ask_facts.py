"""Asking for a fact that no file tells: what would be told with it, guesses as buttons, and a field for any value."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.components.held import held
from app.components.notice import notice
from app.components.text import md
from app.facts.guesses import Guess
from app.facts.kinds import CHIP, MODEL, Declarable, written
from app.facts.opening import figures_of
from app.facts.told import Missing, declare, missing
from app.pages.facts import FACTS
from app.workspace import Workspace
from catalog.chips import chips
from catalog.models import models
from errors import ChipledgerError
from runs.run import Run

WHO = "who says it"  # in the session: a name that a person gave once
LISTED: dict[str, Callable[[], list[str]]] = {CHIP.name: lambda: list(chips()), MODEL.name: lambda: list(models())}
BUTTONS = 4  # guesses that are offered beside a question
USUAL = {CHIP.name: ("TPU v5e", "TPU v5p", "TPU v6e", "H100 SXM")}  # offered where nothing can be guessed


def ask_here(run: Run, place: Workspace, question: str) -> None:
    """The first fact that nothing tells and that would open something on the page of this question; nothing where there
    is none."""
    wanted = figures_of(question)
    if run.manifest.simulated or not wanted:
        return
    try:
        lacking = [m for m in missing(run, place) if m.fact.asked and wanted & {*m.opens}]
    except ChipledgerError:  # the page itself tells of a run that is damaged
        return
    if not lacking:
        return
    first = lacking[0]
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small", key=f"ask {question}"):
        st.markdown(f"**{first.fact.asks}** {opening(first)}", width="content")
        for value, reason in offered(first)[:BUTTONS]:
            if st.button(label(first.fact, value), key=f"ask {question} {first.fact.name} {value}", **held(md(reason))):
                say(run, first.fact, value, place)
        with st.popover("Another", icon=":material/edit:"):
            entry(run, first.fact, place, f"here {question}")
        st.page_link(FACTS.file, label="All facts", query_params={"run": run.run_id})


def opening(lacking: Missing) -> str:
    """What would be told with it, as a sentence."""
    return f"Then {listed(lacking.opens)} can be told." if lacking.opens else ""


def listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def offered(lacking: Missing) -> list[tuple[Any, str]]:
    """(value, reason) of each guess; where there is none, usual values without one."""
    return [(g.value, reason(g)) for g in lacking.guesses] or [(v, "") for v in USUAL.get(lacking.fact.name, ())]


def reason(guess: Guess) -> str:
    return guess.reason[:1].upper() + guess.reason[1:] + "."


def label(kind: Declarable, value: Any) -> str:
    """A value on a button."""
    unit = f" {kind.unit}" if kind.unit and kind.unit != "USD" else ""
    return md(f"${value:,.2f}" if kind.unit == "USD" else f"{written(value)}{unit}")


def entry(run: Run, kind: Declarable, place: Workspace, key: str) -> None:
    """A field for any value, and a button that keeps it."""
    row = st.form(f"{key} {kind.name} form", border=False).container(horizontal=True, gap="small")
    with row:
        value = field(kind, key)
        sent = st.form_submit_button("Save", **held())
    if sent and value not in (None, ""):
        say(run, kind, value, place)


def field(kind: Declarable, key: str) -> Any:
    """A list of what the catalogue has, or a field for text: what was entered, None for nothing."""
    called = f"{kind.title} ({kind.unit})" if kind.unit else kind.title
    told: dict[str, Any] = {"key": f"{key} {kind.name}", "label_visibility": "collapsed", "width": 280}
    if kind.name in LISTED:
        return st.selectbox(called, LISTED[kind.name](), index=None, placeholder=f"Any {kind.title.lower()}", **told)
    unit = f" {kind.unit}" if kind.unit else ""
    return st.text_input(called, placeholder=f"such as {kind.example}{unit}", **told)


def say(run: Run, kind: Declarable, value: Any, place: Workspace) -> None:
    """Keep it and draw the page again, or tell why it cannot be kept."""
    try:
        declare(run, {kind.name: value}, st.session_state.get(WHO, ""), place)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    st.rerun()
