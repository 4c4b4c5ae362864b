"""The run's goodput: which part of the time held went into kept steps, by our rules and by ml-goodput's."""

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from analyzers.lost.goodput.query import EXACT, LIBRARY
from analyzers.lost.goodput.result import GoodputResult
from analyzers.lost.goodput.terms import BUCKET_TERMS, DISRUPTIONS, IDEAL_STEP, PRODUCTIVE, TOTAL
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.price import price
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask, price_of
from app.questions.goodput import GOODPUT
from app.questions.goodput.controls import options, rolling_width, rules, time_fields
from app.questions.goodput.figure import OVER_TIME, bars, deviation, over_time, slices
from app.questions.goodput.tables import show_attempts, show_side_by_side, side_by_side
from app.questions.goodput.words import LIBRARY_MEANING, RULES, losses, meaning, title
from app.questions.goodput.words import verdict as goodput_verdict
from app.workspace import Workspace
from errors import QuestionError
from runs.run import Run


def page() -> None:
    run, extras, place = current_run()
    actions = header(run, extras)
    with actions:
        price(run, price_of(run, place.registry), place.registry)
    whole = _tried(run, place, {})
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        wanted = rules()
        time_fields(len(whole.attempts) if whole else None)
    asked = options()
    with answering("Painting the calendar", lambda: howto(run, (), (), GOODPUT.inputs)):
        result = ask(GOODPUT, run, {**asked, "rules": wanted}, place.registry)
    other = _tried(run, place, {**asked, "rules": LIBRARY if wanted == EXACT else EXACT})
    exact, library = (result, other) if wanted == EXACT else (other, result)
    verdict(goodput_verdict(result))
    figures_row(figures(result, other))
    name = f"{run.manifest.name}-goodput"
    if exact is not None:
        time(exact, name)
    where(result, other, name)
    compared(run, exact, library, result, asked, name)
    steps(result, name)
    elastic(result, name)
    if exact is not None and len(exact.attempts):
        st.markdown("**Attempts.** Each start of the job, by the exact rules: how long it held its chips, for what.")
        show_attempts(exact.attempts)
    told = dict.fromkeys((PRODUCTIVE, TOTAL, *(bucket for bucket, *_ in losses(result))))
    howto(run, [BUCKET_TERMS[bucket] for bucket in told], result.notes, GOODPUT.inputs)


def _tried(run: Run, place: Workspace, given: dict[str, Any]) -> GoodputResult | None:
    """The answer, or None where there is none by these rules."""
    try:
        return ask(GOODPUT, run, given, place.registry)
    except QuestionError:
        return None


def figures(result: GoodputResult, other: GoodputResult | None) -> list[Figure]:
    """The five figures: goodput by both rules, time held, disruptions, the ideal step."""
    exact = result.rules == EXACT
    says = {True: meaning(PRODUCTIVE), False: LIBRARY_MEANING[PRODUCTIVE]}
    known = [r.goodput_share if r is not None and r.steps_read else None for r in (result, other)]
    shown = [Figure("Goodput", fmt.share(known[0]), f"Part of the time held. {says[exact]}", "derived")]
    label = "By ml-goodput" if exact else "By the exact rules"
    if other is None:
        shown.append(Figure(label, fmt.NO_VALUE, "These rules have no answer for it.", "unattributed"))
    else:
        shown.append(Figure(label, fmt.share(known[1]), says[not exact], "derived"))
    chips = (
        f" On {fmt.count(result.chips, 'chip')}: {fmt.chip_time(result.total_s * result.chips)}."
        if result.chips
        else ""
    )
    held = meaning(TOTAL) if exact else LIBRARY_MEANING[TOTAL]
    return [
        *shown,
        Figure("Time held", fmt.duration(result.total_s), held + chips, "measured"),
        Figure(
            "Disruptions",
            f"{result.disruptions:,}",
            DISRUPTIONS.meaning if exact else "Step numbers that occur again.",
            "derived",
        ),
        Figure(
            "Ideal step",
            fmt.duration(result.ideal_step_s or None),
            IDEAL_STEP.meaning
            if exact
            else "The mean of steps of a second or more that take no longer than median + 3 MAD.",
            "derived",
        ),
    ]


def time(exact: GoodputResult, name: str) -> None:
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
    chart(drawn, "bars", f"{name}-badput", goodput_verdict(result))
    if result.data_loading_async_s:
        st.caption(
            f"Beside it: {md(fmt.duration(result.data_loading_async_s))} of fetching data inside steps. That is "
            "no badput, since the device may work meanwhile."
        )


def compared(
    run: Run,
    exact: GoodputResult | None,
    library: GoodputResult | None,
    result: GoodputResult,
    asked: dict[str, Any],
    name: str,
) -> None:
    """Both rule sets, number by number, with what each counts and why they differ."""
    st.markdown("**Two rule sets.** What each counts, and why they differ on this job.")
    st.markdown("\n".join(f"- {md(text)}" for text in result.differences))
    table, other = side_by_side(exact, library), library if result is exact else exact
    show_side_by_side(table)
    given = {**asked, "rules": result.rules}
    drawn = bars(result, other) or deviation(result)
    if drawn is not None:
        downloads(
            table,
            name,
            f"/api/runs/{run.run_id}/show/goodput?{urlencode(given)}",
            lambda: standalone(drawn, f"{run.manifest.name}: badput", name),
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
        f"{md(fmt.duration(result.spike_interval_s))}."
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


if __name__ == "__main__":
    page()
