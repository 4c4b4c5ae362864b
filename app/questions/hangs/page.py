"""The run's hang: which rank did not enter which collective, and who waits for whom?"""

import pandas as pd
import streamlit as st

from analyzers.ranks.blocked import BlockedResult, ranks_listed
from analyzers.ranks.blocked.causes import KINDS
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.question_page import Told, question_page
from app.questions.hangs import HANGS
from app.questions.hangs import figure as draw
from app.questions.hangs.words import ROLE_WORDS, operation
from errors import format as fmt

VIEWS = {"groups": "Groups", "causes": "Causes", "ranks": "Ranks"}
SURE = {"shown": "the dumps show it", "likely": "likely", "unknown": "nobody is accused"}


def page() -> None:
    question_page(HANGS, "Joining what all ranks enqueued", figures, picture, apart=True)


def figures(result: BlockedResult) -> list[Figure]:
    """Who is named, who is held up, and what is known of how many."""
    waits = int((result.ranks["role"] == "waits").sum())
    silent = int(result.ranks["reason"].notna().sum())
    named = ", ".join(map(str, result.named[:4])) + (" …" if len(result.named) > 4 else "")
    return [
        Figure("Named ranks", named or "none", HANGS.meaning("Named rank"), "derived"),
        Figure("Ranks that wait", f"{waits:,} of {len(result.ranks):,}", HANGS.meaning("Held up"), "derived"),
        Figure("Open operations", f"{result.unfinished:,}", HANGS.meaning("Open operation"), "measured"),
        Figure("Dumps", f"{result.dumps:,} of {len(result.ranks):,}", "Ranks whose dump lists operations.", "measured"),
        Figure("Silent ranks", f"{silent:,}", HANGS.meaning("Silent rank"), "measured"),
    ]


def picture(told: Told[BlockedResult]) -> None:
    """Groups by ranks; causes and ranks as tables; and the rows to take away."""
    result = told.result
    view = switch("View", "view", VIEWS, "groups")
    if view == "causes":
        _table(told, "**Where waiting ends**, who is named first.", causes(result), "causes")
        return
    if view == "ranks":
        rows = result.ranks.assign(role=result.ranks["role"].map(ROLE_WORDS), waits_for=_texts(result))
        _table(told, "**Every rank**: what it has open, and whom its waiting leads to.", rows, "ranks")
        return
    figure = draw.groups(result)
    drawn = draw.shown_ranks(result)
    more = f" {len(drawn)} of {len(result.ranks):,} ranks are shown." if len(drawn) < len(result.ranks) else ""
    st.markdown(f"**Who is missing where**: groups in which operations are open, by rank.{more}")
    if figure is None:
        st.info("No operation of a group is open in these dumps.", icon=":material/info:")
        return
    chart(figure, "hangs groups", f"{told.name}-groups", told.verdict)
    told.evidence(result.places, fmt.count(len(result.places), "row"), figure, "hangs", "groups")


def _texts(result: BlockedResult) -> list[str]:
    return [", ".join(map(str, ranks)) for ranks in result.ranks["waits_for"]]


def causes(result: BlockedResult) -> pd.DataFrame:
    """The causes as rows that a person reads."""
    return pd.DataFrame(
        [
            {
                "ranks": ranks_listed(cause.ranks),
                "what": KINDS[cause.kind],
                "how sure": SURE[cause.sure],
                "first operation": operation(cause),
                "waiting for it": ranks_listed(cause.waiting),
                "held up": len(cause.held),
                "operations": cause.operations,
                "completions unseen": cause.unseen,
                "line of the program": cause.frame or None,
            }
            for cause in result.causes
        ]
    )


def _table(told: Told[BlockedResult], words: str, rows: pd.DataFrame, view: str) -> None:
    st.markdown(words)
    draw_table(rows.dropna(axis="columns", how="all"))
    with st.expander("Evidence: the rows", icon=":material/table:"):
        told.downloads(rows, None, view, view)


if __name__ == "__main__":
    page()
