"""Published runs: how well others use their chips, by which count; and the user's run among its likes."""

from collections.abc import Sequence

import streamlit as st

from analyzers.flops.published import Reviewed, likes, reviewed
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose, chosen, open_workspace, switch
from app.components.downloads import downloads
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.published.figure import Own, placed, scatter
from app.pages.published.own_run import own_run
from app.pages.published.words import CONVENTION_TITLES, UNSTATED, details, frame
from app.pages.published.words import verdict as published_verdict
from catalog import MARKS
from errors import format as fmt

MEASURES = {"mfu": "MFU", "emfu": "Of the BF16 peak", "tflops": "TFLOP/s per chip"}
OVER = {"chips": "Chips", "parameters": "Model size"}
ALL = ""
FILTERS = {"chip": "Chip", "precision": "Precision", "convention": "FLOP convention", "class": "Model class"}
NAME = "published-runs"


def page() -> None:
    place = open_workspace()
    st.subheader("Published training runs", anchor=False)
    rows = reviewed()
    run_id = st.query_params.get("run")
    asked = chosen("convention", list(CONVENTION_TITLES), ALL) or None
    own, why = own_run(run_id, place, asked) if run_id else (None, "")
    if why:
        st.info(md(why), icon=":material/info:")
    shown = filtered(rows, own and own.convention)
    if own is not None:
        shown = likes(shown, convention=own.convention, chip=own.chip, chips_held=own.chips, size=own.parameters)
    verdict(published_verdict(shown, own))
    picture(shown, own)
    beyond(published_verdict(shown, own))
    how(rows)


def filtered(rows: Sequence[Reviewed], convention: str | None) -> list[Reviewed]:
    """The rows left by the choices in the address; a run's convention is the only one that it is compared by."""
    columns = st.columns(len(FILTERS))
    values = {
        "chip": lambda r: r.run.chip,
        "precision": lambda r: r.run.precision or UNSTATED,
        "convention": lambda r: r.run.convention or UNSTATED,
        "class": lambda r: r.run.model_class,
    }
    left = list(rows)
    for column, (name, label) in zip(columns, FILTERS.items(), strict=True):
        there = list(dict.fromkeys(values[name](r) for r in rows))
        if name == "convention" and convention:
            there = list(CONVENTION_TITLES)
            wanted = pick(column, name, label, there, convention)
        else:
            wanted = pick(column, name, label, [ALL, *there], ALL)
        left = [r for r in left if wanted in (ALL, values[name](r))]
    return left


def pick(column: st.delta_generator.DeltaGenerator, name: str, label: str, there: list[str], default: str) -> str:
    """A choice of one, kept in the address."""
    key = f"pick {name}"
    now = chosen(name, there, default)
    column.selectbox(
        label,
        there,
        index=there.index(now),
        key=key,
        format_func=lambda v: CONVENTION_TITLES.get(v, v) or "All",
        on_change=lambda: choose(name, st.session_state[key], default),
    )
    return now


@fragment
def picture(rows: list[Reviewed], own: Own | None) -> None:
    """The scatter, the row that was clicked, and all rows to take away."""
    with st.container(horizontal=True, horizontal_alignment="right"):
        over = switch("Over", "over", OVER, "parameters")
        measure = switch("Measure", "measure", MEASURES, "mfu")
    at = st.query_params.get("row", "")
    figure = scatter(rows, measure, over, own, at)
    key = f"published {measure} {over}"

    def clicked() -> None:
        if points := st.session_state[key].selection.points:
            choose("row", str(points[0].get("customdata") or ""))

    chart(figure, key, NAME, published_verdict(rows, own), clicked)
    lacking = [own.name] if own and not placed(own, measure, over) else []
    hidden = sum(not placed(r, measure, over) for r in rows)
    if hidden or lacking:
        what = "size of the model" if over == "parameters" else "rate"
        whose = " and ".join([*map(md, lacking), *([fmt.count(hidden, "published run")] if hidden else [])])
        st.caption(f"Not drawn, for want of the {what}: {whose}.")
    if one := next((r for r in reviewed() if r.run.id == at), None):
        row_card(one)
    else:
        st.caption("Click a mark for its source. Hollow marks contradict themselves; the hover says how.")
    table = frame(rows)
    with st.expander(f"Evidence: {fmt.count(len(table), 'published run')}", icon=":material/table:"):
        draw_table(table)
        downloads(table, NAME, "/api/published", lambda: standalone(figure, "Published training runs", NAME))


def row_card(row: Reviewed) -> None:
    """One published run: what it printed, by which count, and where."""
    with st.container(border=True):
        for reason in row.contradictions:
            st.warning(md(reason), icon=":material/report:")
        st.markdown(" · ".join(f"{md(what)} **{md(value)}**" for what, value in details(row)))
        if row.run.note:
            st.caption(md(row.run.note))


def how(rows: Sequence[Reviewed]) -> None:
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "- MFU here is the published rate, by the run's own FLOP convention, over the dense peak of the precision "
            "that ran, from the catalogue of chips. Where a source counts recomputation, it is HFU and not in the "
            "verdict.\n- Rates by different conventions cannot be compared: choose one above. A run of yours is drawn "
            "only among those counted the same way.\n- A run contradicts itself where its rates imply FLOPs per token "
            "that no convention gives, or its MFU is not its rate over the peak of the precision that ran; the "
            "tolerance is the rounding of the print, at least 2 %."
        )
        used = dict.fromkeys(r.run.mark for r in rows)
        st.markdown("\n".join(f"- **{md(m)}**: {md(MARKS[m])}" for m in used))


if __name__ == "__main__":
    page()
