"""The run's overlap: how much communication is hidden behind computing, and when is each device idle?"""

import pandas as pd
import streamlit as st

from analyzers.device.overlap import OverlapResult
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import choose, current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.overlap import OVERLAP
from app.questions.overlap import figure as draw
from app.questions.overlap.words import verdict as overlap_verdict
from runs.run import Run

VIEWS = {"devices": "Devices", "steps": "Steps", "timeline": "Timeline"}
WINDOWS = {"auto": "Steps, if known", "operations": "First to last operation", "capture": "Whole capture"}


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    window = switch("Window", "window", WINDOWS, "auto")
    options = {} if window == "auto" else {"window": window}
    wanted = _step()
    with answering("Reading what the devices did", lambda: howto(run, OVERLAP.terms, (), OVERLAP.inputs)):
        result = ask(OVERLAP, run, options if wanted is None else {**options, "step": wanted}, place.registry)
    verdict(overlap_verdict(result))
    figures_row(figures(result))
    picture(run, result)
    howto(run, OVERLAP.terms, result.notes, OVERLAP.inputs)


def _step() -> int | None:
    text = st.query_params.get("step", "")
    return int(text) if text.isdecimal() and len(text) < 16 else None


def figures(result: OverlapResult) -> list[Figure]:
    """The five figures: what was hidden, and where the window went."""
    t = result.totals
    over = f"Over {fmt.count(len(result.devices), 'device')}, {fmt.number(t['window_s'])} device-seconds. "
    return [
        Figure("Hidden", fmt.share(t["overlap_share"]), over + OVERLAP.meaning("Hidden"), "measured"),
        Figure("Exposed", fmt.share(t["exposed_share"]), over + OVERLAP.meaning("Communication"), "measured"),
        Figure("Computing", fmt.share(t["compute_share"]), over + OVERLAP.meaning("Computing"), "measured"),
        Figure("Copies alone", fmt.share(t["copies_share"]), over + OVERLAP.meaning("Copies alone"), "measured"),
        Figure("Idle", fmt.share(t["idle_share"]), over + OVERLAP.meaning("Idle"), "measured"),
    ]


def picture(run: Run, result: OverlapResult) -> None:
    """Bars per device, bars per step, or one step along time; and the rows to take away."""
    views = VIEWS if len(result.steps) else {k: v for k, v in VIEWS.items() if k != "steps"}
    view = switch("View", "view", views, "devices")
    name = f"{run.manifest.name}-overlap-{view}"
    words, figure, rows = _view(view, result)
    st.markdown(words)
    if figure is None:
        st.info("Nothing can be drawn here: the profile shows no operation in this stretch.", icon=":material/info:")
        return
    chart(figure, f"overlap {view}", name, overlap_verdict(result))
    with st.expander(f"Evidence: {fmt.count(len(rows), 'row')}", icon=":material/table:"):
        st.dataframe(rows.head(5000), hide_index=True)
        downloads(
            rows,
            name,
            f"/api/runs/{run.run_id}/show/overlap",
            lambda: standalone(figure, f"{run.manifest.name}: {view}", name),
        )


def _view(view: str, result: OverlapResult) -> tuple[str, object, pd.DataFrame]:
    if view == "steps":
        words = "**What a step was spent on**, mean over the devices that a profile saw."
        return words, draw.steps(result), result.steps
    if view == "timeline":
        where = "the first window"
        if result.timeline_step is not None:
            _choose_step(result)
            where = f"step {result.timeline_step:,}"
        return (
            (
                f"**Along {where}**, each device from its own start: clocks are not compared. What is too short "
                "to show counts to what surrounds it."
            ),
            draw.timeline(result),
            result.timeline,
        )
    shown = ""
    if len(result.devices) > draw.MAX_DEVICES:
        shown = f" Of {len(result.devices):,} devices the {draw.MAX_DEVICES} that compute least are shown."
    return f"**Where each device's time went.**{shown}", draw.devices(result), result.devices


def _choose_step(result: OverlapResult) -> None:
    steps = sorted(result.steps["step"].astype(int).unique().tolist())

    def changed() -> None:
        choose("step", str(st.session_state["timeline_step"]))

    at = steps.index(result.timeline_step)
    st.selectbox("Step", steps, index=at, key="timeline_step", on_change=changed, width=160)


if __name__ == "__main__":
    page()
