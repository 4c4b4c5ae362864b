"""The run's roofline: what binds its operations, how near they come, and what the roofs would gain."""

from urllib.parse import urlencode

import streamlit as st

from analyzers.device.roofline import BOUNDS, RooflineResult
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import choose, chosen, current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.op_choice import asked, choose_module, found, op_table, search
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.roofline import ROOFLINE
from app.questions.roofline import figure as draw
from app.questions.roofline.words import TITLES, byte_rate, per_step, shares, told
from app.questions.roofline.words import verdict as roofline_verdict
from runs.run import Run

ROOFS = {"spec": "Specified peaks", "reached": "Best of this run"}


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    given = asked()
    if (roof := chosen("roof", list(ROOFS), "spec")) != "spec":
        given["roof"] = roof
    with answering("Holding operations against their roofs", lambda: without(run, given)):
        result = ask(ROOFLINE, run, given, place.registry)
        whole = (
            result
            if "module" not in given
            else ask(ROOFLINE, run, {k: v for k, v in given.items() if k != "module"}, place.registry)
        )
    verdict(roofline_verdict(result))
    figures_row(figures(result))
    with st.container(horizontal=True, vertical_alignment="center"):
        if any(r.name == "reached" for r in result.roofs):
            switch("Roof", "roof", ROOFS, "spec")
        choose_module(list(whole.programs["module"]))
    picture(run, result, given)
    howto(run, ROOFLINE.terms, result.notes, ROOFLINE.inputs)


def without(run: Run, given: dict) -> None:
    """Below the reason why there is no answer: the way to all of the run, where the address asks for a part."""
    if given:
        st.page_link(ROOFLINE.file, label="Everything of this run", query_params={"run": run.run_id})
    howto(run, ROOFLINE.terms, (), ROOFLINE.inputs)


def figures(result: RooflineResult) -> list[Figure]:
    """What binds, what the roofs would gain, and where they lie."""
    some, roof = shares(result), result.roof
    basis = "derived" if result.device_seconds is not None else "modelled"
    whole = "device time" if result.device_seconds is not None else "the least time, which is modelled"
    shown = [
        Figure(
            f"{TITLES[b][0].upper()}{TITLES[b][1:]}",
            fmt.share(some.get(b, 0.0)),
            f"Share of {whole}: {BOUNDS[b]}.",
            basis,
        )
        for b in ("compute", "memory")
    ]
    if result.device_seconds and result.roof_seconds is not None:
        shown.append(
            Figure(
                "To gain at the roofs",
                fmt.share(1 - result.roof_seconds / result.device_seconds),
                "Share of device time that would be saved if every operation that has a roof ran at it: "
                f"{per_step(result, result.device_seconds - result.roof_seconds)}, mean of a device"
                f"{' and step' if result.device_steps else ''}.",
                "derived",
            )
        )
    elif result.roof_seconds:
        shown.append(Figure("At the roofs", fmt.duration(result.roof_seconds), "Sum over operations.", "modelled"))
    for name, rate, show in (("Peak", roof.flops, fmt.flops_rate), ("Memory bandwidth", roof.bytes, byte_rate)):
        source = f"Of one device: {rate.source}." if rate else "Nothing tells."
        shown.append(
            Figure(name, show(rate.per_s) if rate else fmt.NO_VALUE, source, rate.basis if rate else "unattributed")
        )
    return shown


@st.fragment
def picture(run: Run, result: RooflineResult, given: dict) -> None:
    """Time by what binds, the scatter, what has no FLOPs, the operation that was chosen, and the rows."""
    at, name = st.query_params.get("op", ""), f"{run.manifest.name}-roofline"
    timed = result.device_seconds is not None
    st.markdown(f"**What binds {'device time' if timed else 'the least time of the program'}.**")
    chart(draw.strip(result), "bound strip", f"{name}-bounds", roofline_verdict(result))
    figure = draw.roofline(result, at)
    if figure is not None:
        st.markdown(
            "**Operations under the roofs.** Area is time; an operation on its roof cannot be faster but by "
            "moving fewer bytes or computing less."
            if timed
            else "**Operations on the roofs.** Nothing ran: each stands at the best that it could reach, hollow. "
            "Area is its least time."
        )
        clickable(figure, f"roofline {at}", name, roofline_verdict(result))
        for note in result.beyond:
            st.caption(md(note))
    flat = draw.bandwidth(result)
    if flat is not None:
        st.markdown("**Operations that only move bytes**, by the bandwidth that they reach.")
        clickable(flat, f"bandwidth {at}", f"{name}-bandwidth", "Operations without FLOPs by bandwidth.")
    mine = next((r for r in result.points.to_dict("records") if draw.key_of(r) == at), None) if at else None
    if mine:
        with st.container(border=True):
            st.markdown(md(told(mine, result)))
            st.caption(
                md(
                    f"{mine['category'] or 'unknown'} · {mine['module'] or ''} · {mine['source'] or 'no source'} "
                    f"· {mine['shape'] or ''}"
                )
            )
            st.button("Close", on_click=choose, args=("op", ""), type="tertiary")
    with st.expander(f"Evidence: {fmt.count(len(result.points), 'operation')}", icon=":material/table:"):
        op_table(found(result.points, search()), "roofline rows", lambda row: choose("op", draw.key_of(row)))
        address = f"/api/runs/{run.run_id}/show/roofline" + (f"?{urlencode(given)}" if given else "")
        downloads(
            result.points,
            name,
            address,
            lambda: standalone(figure or draw.strip(result), f"{run.manifest.name}: roofline", name),
        )


def clickable(figure: object, key: str, name: str, words: str) -> None:
    def clicked() -> None:
        if points := st.session_state[key].selection.points:
            choose("op", points[0].get("customdata", ""))

    chart(figure, key, name, words, clicked)


if __name__ == "__main__":
    page()
