"""Many runs: what differs between them, how each is against the baseline, their curves, and how a series scales."""

import streamlit as st

from analyzers.several.terms import TERMS
from app.comparing.several import words
from app.comparing.several.answer import Several, several
from app.comparing.several.options import BASELINE, GROUP, QUERY, RUNS, SORT
from app.components import baseline
from app.components.answering import answering
from app.components.by_itself import by_itself
from app.components.current import switch
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.option import control, field
from app.components.page_head import page_head
from app.components.verdict import beyond, verdict
from app.library.table import table as rows_of
from app.pages.library import LIBRARY
from app.pages.several import parts
from app.words import short
from errors import format as fmt

LOOK_AGAIN_SECONDS = 2.0
TURNED_UP_TO = 5  # runs that stand across unless asked otherwise: more do not fit
WORDS = {"down": "Runs down", "across": "Runs across"}


def page() -> None:
    place = page_head("Many runs")
    asked = {o.name: v for o in (RUNS, QUERY, GROUP) if (v := st.query_params.get(o.name, "").strip())}
    if not asked:
        st.info("Choose the runs: tick them in the list of runs and press *Compare*, or name them here.")
        st.page_link(LIBRARY.file, label="All runs", icon=":material/arrow_back:")
        form()
        return
    with answering("Laying the runs beside one another", form):
        found = several(
            place,
            [asked["runs"]] if "runs" in asked else [],  # a search and a group count where none is named
            asked.get("q", ""),
            asked.get("group", ""),
            st.query_params.get("sort", ""),
            st.query_params.get("baseline"),
        )
    if found.named:
        baseline.keep(found.baseline.run_id)
    show(found)
    if found.chosen.pending:
        by_itself(wait, LOOK_AGAIN_SECONDS)(found)


def wait(found: Several) -> None:
    """Draws the page again once half of the figures that lack are there."""
    lacking = sum(row.pending for row in rows_of(found.place).fresh(found.chosen.rows))
    if lacking <= found.chosen.pending // 2:
        st.rerun()
    st.caption(f"The figures of {fmt.count(lacking, 'run')} are being worked out.")


def show(found: Several) -> None:
    told = words.verdict(found)
    verdict(told)
    figures_row(figures(found))
    turned = chosen(found) == "across"
    for part in (lambda of: parts.differing(of, turned), parts.curves, parts.two_numbers, parts.series):
        part(found)
    beyond(told)
    with st.expander("How this is computed", icon=":material/function:"):
        terms_list(TERMS)
    with st.expander("Other runs", icon=":material/checklist:"):
        form()


def figures(found: Several) -> list[Figure]:
    """How many runs, what differs, and how many are slower or quicker than the baseline."""
    base = short(found.baseline.name, 24)
    shown = [
        Figure("Runs", f"{len(found.members):,}", "Those that could be read.", "measured"),
        Figure("Settings that differ", f"{len(found.table.settings):,}", "Of those that two runs tell.", "measured"),
        Figure("The same in all", f"{len(found.table.common):,}", "Settings and figures; folded below.", "measured"),
    ]
    told = [h for h in found.steps if h is not None]
    if told:
        counts = [sum(h.worse is want for h in told) for want in (False, True, None)]
        how = f"Steps against {base}: quicker, slower, and those whose range holds no change or that have none."
        shown.append(Figure("Quicker · slower · not told", " · ".join(map(str, counts)), how, "derived"))
    return shown


def chosen(found: Several) -> str:
    """The baseline and the order, kept in the address; which way the table stands."""
    names = {m.run_id: m.name for m in found.members}
    columns = st.columns([2, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        control(BASELINE, found.baseline.run_id, texts=names)
    orders = {"name": "Name"} | {x.name: words.title(x.name) for x in found.table.differs}
    both = {k: v for n, t in orders.items() for k, v in ((n, f"{t}, least first"), (f"-{n}", f"{t}, most first"))}
    with columns[1]:
        control(SORT, None, texts=both, unset="As chosen", label="Order")
    with columns[2].container(horizontal_alignment="right"):
        return switch("Table", "table", WORDS, "across" if len(found.members) <= TURNED_UP_TO else "down")


def form() -> None:
    """Which runs: sent, it writes them into the address."""
    now = st.query_params
    with st.form("several", border=True):
        entered = {RUNS.name: field(RUNS, now.get(RUNS.name), lines=True)}
        for option, column in zip((QUERY, GROUP), st.columns(2), strict=True):
            with column:
                entered[option.name] = field(option, now.get(option.name))
        if not st.form_submit_button("Lay them beside one another", type="primary", icon=":material/compare_arrows:"):
            return
    st.query_params.from_dict({n: v for n, v in entered.items() if v})
    st.rerun()


if __name__ == "__main__":
    page()
