"""The run's roofline: what binds its operations, how near they come, and what the roofs would gain."""

from collections.abc import Callable

import streamlit as st

from analyzers.device.roofline import BOUNDS, ROOF, RooflineResult
from analyzers.device.roofs import Rate, Roof
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.current import choose
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.op_choice import asked, choose_module, everything, found, op_table, search
from app.components.option import control, said
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.asking import ask
from app.questions.roofline import ROOFLINE
from app.questions.roofline import figure as draw
from app.questions.roofline.words import TITLES, byte_rate, per_step, shares
from app.questions.roofline.words import told as told_of
from errors import format as fmt

ROOFS = {"spec": "Specified peaks", "reached": "Best of this run"}


def page() -> None:
    question_page(
        ROOFLINE,
        "Holding operations against their roofs",
        figures,
        body,
        options=_options,
        otherwise=everything(ROOFLINE),
    )


def _options(about: About) -> dict[str, str]:
    """The part of the run, and the roofs, from the address."""
    roof = said(ROOF, ROOF.default)
    return asked() | ({} if roof == ROOF.default else {"roof": roof})


def body(told: Told[RooflineResult]) -> None:
    """The choice of roofs and of a program, and the pictures; counters alone stand in the words."""
    if not len(told.result.points):
        return
    whole = ask(ROOFLINE, told.run, {k: v for k, v in told.options.items() if k != "module"}, told.place.registry)
    with st.container(horizontal=True, vertical_alignment="center"):
        if any(r.name == "reached" for r in told.result.roofs):
            control(ROOF, ROOF.default, texts=ROOFS, buttons=True)
        choose_module(list(whole.programs["module"]))
    picture(told)


def figures(result: RooflineResult) -> list[Figure]:
    """What binds, what the roofs would gain, and where they lie."""
    some, roof = shares(result), result.roof
    if not some:
        return [_rate(*one) for one in _rates(roof)]
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
    return shown + [_rate(*one) for one in _rates(roof)]


def _rates(roof: Roof) -> tuple[tuple[str, Rate | None, Callable[[float], str]], ...]:
    return ("Peak", roof.flops, fmt.flops_rate), ("Memory bandwidth", roof.bytes, byte_rate)


def _rate(name: str, rate: Rate | None, show: Callable[[float], str]) -> Figure:
    source = f"Of one device: {rate.source}." if rate else "Nothing tells."
    return Figure(name, show(rate.per_s) if rate else fmt.NO_VALUE, source, rate.basis if rate else "unattributed")


@fragment
def picture(told: Told[RooflineResult]) -> None:
    """Time by what binds, the scatter, what has no FLOPs, the operation that was chosen, and the rows."""
    result, name, at = told.result, told.name, st.query_params.get("op", "")
    timed = result.device_seconds is not None
    st.markdown(f"**What binds {'device time' if timed else 'the least time of the program'}.**")
    chart(draw.strip(result), "bound strip", f"{name}-bounds", told.verdict)
    figure = draw.roofline(result, at)
    if figure is not None:
        st.markdown(
            "**Operations under the roofs.** Area is time; an operation on its roof cannot be faster but by "
            "moving fewer bytes or computing less."
            if timed
            else "**Operations on the roofs.** Nothing ran: each stands at the best that it could reach, hollow. "
            "Area is its least time."
        )
        clickable(figure, f"roofline {at}", name, told.verdict)
        for note in result.beyond:
            st.caption(md(note))
    flat = draw.bandwidth(result)
    if flat is not None:
        st.markdown("**Operations that only move bytes**, by the bandwidth that they reach.")
        clickable(flat, f"bandwidth {at}", f"{name}-bandwidth", "Operations without FLOPs by bandwidth.")
    mine = next((r for r in result.points.to_dict("records") if draw.key_of(r) == at), None) if at else None
    if mine:
        with st.container(border=True):
            st.markdown(md(told_of({str(k): v for k, v in mine.items()}, result)))
            st.caption(
                md(
                    f"{mine['category'] or 'unknown'} · {mine['module'] or ''} · {mine['source'] or 'no source'} "
                    f"· {mine['shape'] or ''}"
                )
            )
            st.button("Close", on_click=choose, args=("op", ""), type="tertiary")
    with st.expander(f"Evidence: {fmt.count(len(result.points), 'operation')}", icon=":material/table:"):
        op_table(found(result.points, search()), "roofline rows", lambda row: choose("op", draw.key_of(row)))
        told.downloads(result.points, figure or draw.strip(result), "roofline")


def clickable(figure: object, key: str, name: str, words: str) -> None:
    def clicked() -> None:
        if points := st.session_state[key].selection.points:
            choose("op", points[0].get("customdata", ""))

    chart(figure, key, name, words, clicked)


if __name__ == "__main__":
    page()
