"""One interruption opened: what was lost, why, what followed, what it cost; and the way from one to the next."""

import pandas as pd
import streamlit as st

from analyzers.lost.interruptions import InterruptionsResult
from analyzers.lost.interruptions.evidence import CONFIDENCE
from analyzers.lost.stops import KINDS
from app.components.chart import chart
from app.components.current import choose
from app.components.text import md
from app.questions.interruptions.stops import opened
from app.questions.interruptions.words import cause_title
from catalog.causes import CAUSES
from errors import format as fmt


def open_number(result: InterruptionsResult) -> int:
    """The interruption that the address opens; without one the most costly."""
    numbers = result.rows["number"]
    wanted = st.query_params.get("at", "")
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= len(numbers):
        return int(wanted)
    worst = result.rows["lost_s"].fillna(-1.0).astype(float).idxmax()
    return int(numbers.loc[worst])


def interruption(result: InterruptionsResult, number: int, name: str) -> None:
    """The interruption with this number, beside what followed it."""
    row = result.rows[result.rows["number"] == number].iloc[0].to_dict()
    left, right = st.columns([1, 1], gap="large")
    with left:
        picker(len(result.rows), number)
        st.markdown(f"**{md(named(row))}**", help=f"{row['confidence']}: {CONFIDENCE[row['confidence']]}.")
        st.markdown("  \n".join(md(line) for line in told(row, result)))
        why(row)
    with right:
        figure = opened(row)
        if figure is None:
            st.info("When it happened and how long it took is not told.", icon=":material/info:")
        else:
            st.markdown("**What followed**: seconds lost, one part after the other.")
            chart(figure, f"opened {number}", f"{name}-{number}", f"Interruption {number}, its parts in seconds.")


def picker(count: int, number: int) -> None:
    """Type a number, or go to the one before or after."""
    key = f"at {number}"
    row = st.container(horizontal=True, vertical_alignment="bottom")
    row.number_input(
        f"Interruption, of {count:,}",
        1,
        count,
        number,
        key=key,
        width=190,
        on_change=lambda: choose("at", str(st.session_state[key])),
    )
    for label, to, help in (("Before", number - 1, "the one before"), ("After", number + 1, "the one after")):
        row.button(
            label,
            key=f"{label} {number}",
            disabled=not 1 <= to <= count,
            on_click=choose,
            help=help,
            args=("at", str(to)),
        )


def named(row: dict) -> str:
    """`HBM memory on r019-n07, accelerator 3: certain`."""
    if row["confidence"] == "unknown":
        return "Cause unknown"
    where = f" on {row['host']}" if row["host"] else f", reported by {row['reported_by']}" if row["reported_by"] else ""
    device = "" if pd.isna(row["device"]) else f", accelerator {int(row['device'])}"
    return f"{cause_title(row['cause'])}{where}{device}: {row['confidence']}"


def told(row: dict, result: InterruptionsResult) -> list[str]:
    """What is known of it, one fact a line."""
    lines = []
    if not pd.isna(row["last_sign_ns"]):
        lines.append(
            f"Last sign of life {fmt.date(int(row['last_sign_ns']))}, in attempt {int(row['attempt'])}; "
            f"{KINDS[row['kind']]}."
        )
    if not pd.isna(row["last_step"]):
        again = "" if pd.isna(row["resumed_step"]) else f", went on with step {int(row['resumed_step']):,}"
        lines.append(
            f"Reached step {int(row['last_step']):,}{again}: {fmt.count(int(row['lost_steps']), 'step')} to take again."
        )
    if row["back_s"] == row["back_s"]:
        lines.append(f"Back where it was after {fmt.duration(row['back_s'])}.")
    elif not pd.isna(row["restart_ns"]):
        lines.append("It never came back to where it was in what is recorded.")
    if row["lost_s"] == row["lost_s"]:
        dollars = f", about {fmt.usd(row['usd'])}" if result.priced else ""
        whole = f"{fmt.count(result.chips, 'chip')}: {fmt.chip_time(row['chip_hours'] * 3600)}{dollars}"
        lines.append(f"Cost {fmt.duration(row['lost_s'])} of {whole if result.chips_known else 'each chip'}.")
    return lines


def why(row: dict) -> None:
    """The line that tells why, where it stands, and what helps."""
    if row["text"] is None:
        st.markdown(
            "No line of any log near it tells why. Ingest the logs of all hosts, or the scheduler's events, "
            "with the run."
        )
        return
    st.text(row["text"])  # a code block would fetch a highlighter of 1.5 MB: a quarter of a second
    place = [md(row["source"])] if row["source"] else []
    if not pd.isna(row["offset"]):
        place.append(f"byte {int(row['offset']):,}")
    if not pd.isna(row["evidence_ns"]) and not pd.isna(row["last_sign_ns"]):
        apart = (int(row["evidence_ns"]) - int(row["last_sign_ns"])) / 1e9
        place.append(f"{fmt.duration(abs(apart))} {'after' if apart >= 0 else 'before'} the last sign of life")
    if row["lines"] > 1:
        place.append(f"one of {int(row['lines']):,} lines that tell of a failure near it")
    st.caption(" · ".join(place))
    if row["cause"] in CAUSES:
        st.markdown(f"{md(CAUSES[row['cause']].meaning)} **What helps**: {md(CAUSES[row['cause']].cure)}")
