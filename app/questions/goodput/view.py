"""The pictures of the goodput page, and both rule sets side by side."""

import streamlit as st

from analyzers.lost.goodput.result import GoodputResult
from app.components.chart import chart
from app.components.current import switch
from app.components.question_page import Told
from app.components.text import md
from app.figures.long_series import said_of
from app.questions.goodput.both import Both
from app.questions.goodput.controls import rolling_width
from app.questions.goodput.figure import OVER_TIME, bars, deviation, over_time, slices
from app.questions.goodput.tables import show_attempts, show_side_by_side, side_by_side
from app.questions.goodput.words import RULES, losses, title, verdict
from errors import format as fmt


def pictures(told: Told[Both]) -> None:
    """Lost time over time and by cause, how even the steps were, the slices, both rule sets, and the attempts."""
    answers, name = told.result, told.name
    exact = answers.exact
    if exact is not None:
        when(exact, name)
    where(answers.result, answers.other, name)
    steps(answers.result, name)
    elastic(answers.result, name)
    compared(told)
    if exact is not None and len(exact.attempts):
        st.markdown("**Attempts.** Each start of the job, by the exact rules: how long it held its chips, for what.")
        show_attempts(exact.attempts)


def when(exact: GoodputResult, name: str) -> None:
    """Goodput and badput over time."""
    if not len(exact.over_time):
        return
    width = (int(exact.over_time["end_ns"].iloc[0]) - int(exact.over_time["start_ns"].iloc[0])) / 1e9
    st.markdown(
        "**When was the time lost?** What the chips were held for, by the exact rules; the lowest area is "
        f"goodput. Times are UTC; each stretch is {md(fmt.duration(width))}."
    )
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        view = switch("Over time", "over", OVER_TIME, "stretch")
        if view == "rolling":
            rolling_width(exact)
    if drawn := over_time(exact, view):
        words = "Goodput and badput over time, as parts of the time held."
        chart(drawn, f"over time {view}", f"{name}-over-time", words)


def where(result: GoodputResult, other: GoodputResult | None, name: str) -> None:
    """Badput by cause."""
    drawn = bars(result, other)
    if drawn is None:
        st.markdown("**Where did it go?** No badput: every second was spent in kept steps.")
        return
    marked = f" A diamond marks what {md(RULES[other.rules])} give." if other else ""
    st.markdown(f"**Where did it go?** Badput by cause, the largest first.{marked}")
    chart(drawn, "bars", f"{name}-badput", verdict(result))
    if result.data_loading_async_s:
        st.caption(
            f"Beside it: {md(fmt.duration(result.data_loading_async_s))} of fetching data inside steps. That is "
            "no badput, since the device may work meanwhile."
        )


def steps(result: GoodputResult, name: str) -> None:
    """Steps against the ideal one."""
    drawn = deviation(result)
    if drawn is None:
        return
    spiky = int(result.steps["spike"].sum())
    st.markdown(
        f"**How even were the steps?** {fmt.count(len(result.steps), 'step')}, {fmt.count(spiky, 'spike')}. "
        f"Recent deviation from the ideal step (see the definitions): "
        f"{md(fmt.duration(result.spike_interval_s))}. {md(said_of(drawn))}"
    )
    chart(drawn, "deviation", f"{name}-steps", "Step times against the ideal step.")


def elastic(result: GoodputResult, name: str) -> None:
    """Slices over time, where the job counted them."""
    drawn = slices(result)
    if drawn is None or result.slice_efficiency is None:
        return
    at = result.slice_efficiency
    lost = [(b, s) for b, _, s in losses(result) if b.startswith("elastic")]
    said = ", ".join(f"{title(b).lower()} {fmt.duration(s)}" for b, s in lost)
    said = md(f"Time lost to it: {said}.") if said else ""
    st.markdown(
        f"**How many slices worked?** On average {md(fmt.share(at.stepping))} of the slices took steps and "
        f"{md(fmt.share(at.available))} were there. {said}"
    )
    chart(drawn, "slices", f"{name}-slices", "Slices in all, there and stepping, over time.")


def compared(told: Told[Both]) -> None:
    """Both rule sets, number by number, with what each counts and why they differ."""
    answers, result = told.result, told.result.result
    st.markdown("**Two rule sets.** What each counts, and why they differ on this job.")
    st.markdown("\n".join(f"- {md(text)}" for text in result.differences))
    table = side_by_side(answers.exact, answers.library)
    show_side_by_side(table)
    told.downloads(table, lambda: bars(result, answers.other) or deviation(result), "badput")
