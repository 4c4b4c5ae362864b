"""The picture of a ledger with the account that is open, and its table."""

import streamlit as st

from analyzers.time.ledger import LedgerResult
from app import theme
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.current import choose, switch
from app.components.question_page import Told
from app.components.text import md
from app.questions.ledger.accounts import hover_lines, opened, path_text
from app.questions.ledger.calendar import calendar
from app.questions.ledger.evidence import evidence, ledger_table
from app.questions.ledger.icicle import icicle
from app.questions.ledger.waterfall import waterfall
from app.questions.ledger.why import why
from errors import format as fmt
from runs.ledger import Account

VIEWS = {"icicle": "Icicle", "waterfall": "Waterfall"}


@fragment
def explore(told: Told[LedgerResult]) -> None:
    """The picture and its table. Opening an account draws these two again and leaves the rest of the page alone."""
    run, result, name = told.run, told.result, told.name
    chain = opened(result.ledger.account, st.query_params.get("account", ""))
    at = path_text(tuple(a.name for a in chain))
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        crumbs(chain)
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        view = switch("Picture", "view", VIEWS, "icicle")
    figure = (waterfall if view == "waterfall" else icicle)(result.ledger, at)
    key = f"picture {view} {at}"

    def clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            choose("account", points[0]["customdata"])

    chart(figure, key, name, told.verdict, clicked)
    lines = hover_lines(result.ledger, chain[-1], tuple(a.name for a in chain))
    st.caption("  \n".join(md(line) for line in lines))
    why(run, tuple(a.name for a in chain))
    if strip := calendar(result):
        stops = len(result.interruptions)
        attempts = fmt.count(stops + 1, "attempt")
        st.caption(f"{attempts}, {fmt.count(stops, 'interruption')}. Times are UTC.")
        chart(strip, "calendar", f"{run.manifest.name}-attempts", "The attempts of the job over time.")
    table = ledger_table(result.ledger)
    evidence(result.ledger, table, lambda path: choose("account", path))
    told.downloads(table, figure, view)


def crumbs(chain: list[Account]) -> None:
    """The way from the whole down to the account that is open; each step goes back up."""
    with st.container(horizontal=True, gap="small"):
        for i, account in enumerate(chain[:-1]):
            path = path_text(tuple(a.name for a in chain[: i + 1]))
            st.button(
                f"{md(theme.title(account.name))} ›",
                key=f"crumb {path}",
                type="tertiary",
                on_click=choose,
                args=("account", path),
            )
        parts = [a for a in sorted(chain[-1].children, key=lambda a: -a.chip_seconds) if a.chip_seconds > 0]
        paths = {path_text((*(a.name for a in chain), p.name)): theme.title(p.name) for p in parts}
        key = f"open {path_text(tuple(a.name for a in chain))}"
        if paths:
            st.selectbox(
                "Open an account",
                list(paths),
                index=None,
                key=key,
                format_func=lambda p: paths[p],
                placeholder=f"{theme.title(chain[-1].name)}: open a part",
                label_visibility="collapsed",
                width=280,
                on_change=lambda: choose("account", st.session_state[key] or ""),
            )
        else:
            st.markdown(f"**{md(theme.title(chain[-1].name))}**", width="content")
