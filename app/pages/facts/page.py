"""Facts of a run: what was found in its files, what one fact more would tell, what is known, by whom, and what does not
agree."""

import pandas as pd
import streamlit as st

from app.components.ask_facts import WHO, entry, label, listed, offered, opening, say
from app.components.contradicted import line
from app.components.current import current_run
from app.components.header import header
from app.components.held import held
from app.components.notice import notice
from app.components.text import md
from app.components.told_already import told_already
from app.facts.evidence import shown
from app.facts.kinds import FACTS as KINDS
from app.facts.kinds import written
from app.facts.opening import FIGURES
from app.facts.told import FactsTold, Known, Missing, facts_told
from app.pages.facts.landing import ADDED
from app.questions import question
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.run import Run

BASES = {
    "declared": "stated",
    "measured": "in the files",
    "derived": "follows from the files",
    "published": "published",
}
TABLES = {"steps": "step", "requests": "request", "captures": "profile", "lifecycle": "job event", "stages": "load"}
OPENED = "facts opened"  # in the session: what was told before something was said here


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    try:
        told = facts_told(run, place)
    except ChipledgerError as e:
        notice(e)
        st.stop()
    found(run, told)
    for contradiction in told.contradictions[1:]:  # the first stands in the head
        line(contradiction)
    now = opened(run, place, told)
    if st.query_params.get(ADDED):
        told_already(run, place, now)
    for lacking in (m for m in told.missing if m.fact.asked and m.opens):
        card(run, lacking, place)
    known(run, told, place)
    more(run, place)
    history(told)


def found(run: Run, told: FactsTold) -> None:
    """What one fact more would tell, what the files hold, and the way to the run, whatever is said here."""
    words, way = st.columns([5, 1], vertical_alignment="center")
    asked = [m for m in told.missing if m.fact.asked and m.opens]
    added = "Added. " if st.query_params.get(ADDED) else ""
    words.markdown(f"##### {added}{_headline(asked)}")
    words.caption(_held(run))
    skip = "Skip" if st.query_params.get(ADDED) and asked and not told.history else "Open the run"
    if way.button(skip, icon=":material/arrow_forward:", key="onward", width="stretch"):
        st.switch_page(FINDINGS.file, query_params={"run": run.run_id})


def _headline(asked: list[Missing]) -> str:
    if not asked:
        return "Nothing is missing that would tell more."
    first = asked[0]
    return f"One answer below tells {listed(first.opens)}."


def _held(run: Run) -> str:
    """The files by their formats, and what was found in them."""
    counts = [fmt.count(n, TABLES[t]) for t, n in run.manifest.tables.items() if n and t in TABLES]
    if hosts := len(shown(run).hosts):
        counts.append(fmt.count(hosts, "host"))
    formats = ", ".join(dict.fromkeys(str(s.get("collector")) for s in run.written.sources))
    files = f"{fmt.count(len(run.written.sources), 'file')} ({md(formats)})"
    return f"Found in {files}: {', '.join(counts)}." if counts else f"Read from {files}."


def opened(run: Run, place: Workspace, told: FactsTold) -> str:
    """What can be told since something was said on this page, with the answer itself: the name of its question."""
    missing = {name for m in told.missing if m.fact.asked for name in m.opens}
    before = st.session_state.get(OPENED, (run.run_id, missing))
    earlier = before[1] if before[0] == run.run_id else missing
    st.session_state[OPENED] = (run.run_id, earlier | missing)
    for figure in (f for f in FIGURES if f.name in earlier - missing and f.worth):
        asked = question(figure.question)
        try:
            said = asked.verdict(ask(asked, run, {}, place.registry))
        except ChipledgerError:
            continue
        with st.container(border=True, key=f"opened {figure.question}"):
            st.markdown(f"**Now told: {figure.name}.** {md(said)}")
            if asked.file:
                st.page_link(asked.file, label=f"Open {asked.title}", icon=asked.icon, query_params={"run": run.run_id})
        return asked.name
    return ""


def card(run: Run, lacking: Missing, place: Workspace) -> None:
    """A fact that is asked for: guesses with their reasons, and a field for any other value."""
    kind = lacking.fact
    with st.container(border=True, key=f"fact {kind.name}"):
        st.markdown(f"**{md(kind.asks)}** {opening(lacking)}")
        if not lacking.guesses:
            _usual(run, lacking, place)
        for value, reason in offered(lacking) if lacking.guesses else ():
            left, right = st.columns([1, 6], vertical_alignment="center")
            if left.button(label(kind, value), key=f"guess {kind.name} {value}", width="stretch", **held()):
                say(run, kind, value, place)
            right.caption(md(reason))
        entry(run, kind, place, "card")


def _usual(run: Run, lacking: Missing, place: Workspace) -> None:
    """Usual values, in one line: there is no reason to tell beside them."""
    kind = lacking.fact
    with st.container(horizontal=True, gap="small"):
        for value, _ in offered(lacking):
            if st.button(label(kind, value), key=f"guess {kind.name} {value}", **held()):
                say(run, kind, value, place)


def known(run: Run, told: FactsTold, place: Workspace) -> None:
    """What is told, with where it is from; what a person said can be taken back."""
    st.markdown("**What is known**")
    if not told.known:
        st.caption("Nothing yet.")
        return
    rows = [
        (k.title, written(k.fact.value), k.unit, BASES.get(k.fact.basis, k.fact.basis), k.source) for k in told.known
    ]
    st.dataframe(pd.DataFrame(rows, columns=["Fact", "Value", "Unit", "How it is known", "From"]), hide_index=True)
    said = [k for k in told.known if k.said is not None]
    if said:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption("Take back:", width="content")
            for one in said:
                _take_back(run, one, place)


def _row(one: Known) -> tuple[str, str, str, str, str]:
    how = BASES.get(one.fact.basis, one.fact.basis)
    return one.title, written(one.fact.value), one.unit, how, one.source


def _take_back(run: Run, one: Known, place: Workspace) -> None:
    kind = next(k for k in KINDS if k.name == one.name)
    if st.button(f"{kind.title}", key=f"back {one.name}", icon=":material/undo:", **held()):
        say(run, kind, None, place)


def more(run: Run, place: Workspace) -> None:
    """Any fact, to be said or to be said otherwise."""
    with st.expander("Say or change any fact", icon=":material/edit:"):
        kind = st.selectbox("Fact", KINDS, format_func=lambda k: k.title, key="any fact", width=280)
        st.caption(f"Expected: {md(kind.expected)}.")
        entry(run, kind, place, "any")
        st.text_input("Who says it (optional, kept with each fact)", key=WHO, max_chars=100, width=280)


def history(told: FactsTold) -> None:
    if not told.history:
        return
    with st.expander("What was said so far", icon=":material/history:"):
        titles = {k.name: k.title for k in KINDS}
        rows = [
            (
                fmt.date(d.written_ns),
                titles.get(d.key, d.key),
                "taken back" if d.value is None else written(d.value),
                d.who or fmt.NO_VALUE,
            )
            for d in told.history
        ]
        st.dataframe(pd.DataFrame(rows, columns=["When", "Fact", "Value", "Who"]), hide_index=True)


if __name__ == "__main__":
    page()
