"""The run's interruptions: what stopped it, how often, what did each cost, and is a host to blame?"""

import pandas as pd
import streamlit as st

from analyzers.lost.interruptions import InterruptionsResult
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.on_timeline import on_timeline
from app.components.question_page import Told, question_page
from app.questions.interruptions import INTERRUPTIONS
from app.questions.interruptions.comparison import comparison
from app.questions.interruptions.stops import MOST_MARKS, strip
from app.questions.interruptions.view import interruption, open_number
from app.questions.interruptions.words import cause_title, every
from app.timeline.places import place_of
from errors import format as fmt

SHOWN_ROWS = 1000


def page() -> None:
    question_page(INTERRUPTIONS, "Reading the interruptions", figures, body)


def body(told: Told[InterruptionsResult]) -> None:
    """The attempts, and the interruptions beside those of others."""
    if len(told.result.rows):
        explore(told)
        comparison(told.run, told.result)


def figures(result: InterruptionsResult) -> list[Figure]:
    """How many, how often, what they took, how long until a usual one is over, and how many are not explained."""
    counted = result.counted
    survived = f" {fmt.count(result.survived, 'stop')} more did not end an attempt." if result.survived else ""
    lost = float(counted["lost_s"].sum()) if counted["lost_s"].notna().any() else None
    share = lost / result.held_s if lost is not None and result.held_s else None
    back = counted["back_s"].dropna().astype(float)
    usual = float(back.median()) if len(back) else None
    shown = [
        Figure(
            "Interruptions",
            f"{result.count:,}",
            f"{result.planned:,} planned, {result.unplanned:,} unplanned. "
            f"{INTERRUPTIONS.meaning('Interruption')}{survived}",
            "derived",
        ),
        Figure(
            "One every",
            fmt.duration(result.mttf.mean_s),
            f"{every(result) or 'Not known.'} {INTERRUPTIONS.meaning('Mean time between interruptions')} "
            f"Unplanned alone: one every {fmt.duration(result.mttf_unplanned.mean_s)}.",
            "derived",
            result.mttf.mean_s,
            "more",
        ),
        Figure(
            "Time lost",
            fmt.share(share),
            f"{INTERRUPTIONS.meaning('Time lost')} As a part of the time held.",
            "derived",
            share,
            "less",
        ),
        Figure(
            "Usually back after",
            fmt.duration(usual),
            f"Median. {INTERRUPTIONS.meaning('Back where it was')}",
            "derived",
            usual,
            "less",
        ),
    ]
    if result.priced and lost is not None:
        shown.append(Figure("Cost", fmt.usd(float(counted["usd"].sum())), "Chips x time lost x price.", "derived"))
    else:
        unknown = float((counted["family"] == "unknown").mean()) if len(counted) else None
        shown.append(
            Figure(
                "Cause not told",
                fmt.share(unknown),
                INTERRUPTIONS.meaning("Certain, likely, guess, unknown"),
                "unattributed",
            )
        )
    return shown


@fragment
def explore(told: Told[InterruptionsResult]) -> None:
    """The attempts with their interruptions, the one that is open, and all of them as rows."""
    result, name = told.result, told.name
    number = open_number(result)
    figure = strip(result, number)
    if figure is not None:
        few = "" if len(result.rows) <= MOST_MARKS else f" Of {len(result.rows):,} the {MOST_MARKS:,} most costly."
        st.markdown(
            "**Attempts over time.** A mark above its row is an interruption, its shape the family of its "
            f"cause, grey where planned or unknown; click one to open it.{few}"
        )
        key = f"strip {number}"

        def clicked() -> None:
            points = st.session_state[key].selection.points
            if points and points[0].get("customdata") is not None:
                choose("at", str(int(_first(points[0]["customdata"]))))

        chart(figure, key, name, told.verdict, clicked)
    interruption(result, number, name)
    on_timeline(told.run, place(result, number))
    table(told)


def place(result: InterruptionsResult, number: int) -> dict[str, str]:
    """From its last sign of life until the job was back where it was, or as far of it as is told."""
    row = result.rows[result.rows["number"] == number].iloc[0]
    known = [row[name] for name in ("back_ns", "restart_ns", "noticed_ns", "last_sign_ns") if not pd.isna(row[name])]
    return place_of(start_ns=row["last_sign_ns"], end_ns=known[0] if known else None)


def _first(value: object) -> float:
    return value[0] if isinstance(value, list | tuple) else value


def table(told: Told[InterruptionsResult]) -> None:
    """Every interruption as a row that opens it, and the rows to take away."""
    result = told.result
    rows, key = result.rows.dropna(axis="columns", how="all"), "interruption rows"

    def picked() -> None:
        if chosen := st.session_state[key].selection.rows:
            choose("at", str(int(result.rows["number"].iloc[chosen[0]])))

    with st.expander(f"Evidence: {fmt.count(len(rows), 'interruption')}", icon=":material/table:"):
        first = ["number", "cause", "confidence", "host", "lost_s", "chip_hours", "back_s", "lost_steps", "text"]
        shown = rows[[c for c in first if c in rows] + [c for c in rows if c not in first]].head(SHOWN_ROWS)
        shown = shown.assign(cause=[cause_title(c) for c in shown["cause"]])
        for column in [c for c in shown if c.endswith("_ns")]:
            shown[column] = pd.to_datetime(shown[column].astype("Int64"), unit="ns", utc=True)
        draw_table(shown, key=key, selection_mode="single-row", on_select=picked)
        if len(rows) > SHOWN_ROWS:
            st.caption(f"The first {SHOWN_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
        told.downloads(rows, lambda: strip(result), "interruptions")


if __name__ == "__main__":
    page()
