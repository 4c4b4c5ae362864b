"""The run's overlap: how much communication is hidden behind computing, and when is each device idle?"""

import pandas as pd
import streamlit as st

from analyzers.device.overlap import OverlapResult
from app.components.chart import chart
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, said
from app.components.question_page import Told, question_page
from app.questions.overlap import OVERLAP
from app.questions.overlap import figure as draw
from errors import format as fmt

VIEWS = {"devices": "Devices", "steps": "Steps", "timeline": "Timeline"}
WINDOWS = {"operations": "First to last operation", "capture": "Whole capture"}
_OPTIONS = by_name(OVERLAP.options)


def page() -> None:
    question_page(OVERLAP, "Reading what the devices did", figures, picture, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """The window and the step, from the address."""
    window = control(_OPTIONS["window"], texts=WINDOWS, unset="Steps, if known", buttons=True)
    given = {"window": window, "step": said(_OPTIONS["step"])}
    return {name: value for name, value in given.items() if value is not None}


def figures(result: OverlapResult) -> list[Figure]:
    """The five figures: what was hidden, and where the window went."""
    t = result.totals
    over = f"Over {fmt.count(len(result.devices), 'device')}, {fmt.number(t['window_s'])} device-seconds. "
    return [
        Figure("Hidden", fmt.share(t["overlap_share"]), over + OVERLAP.meaning("Hidden"), "measured"),
        Figure(
            "Exposed",
            fmt.share(t["exposed_share"]),
            over + OVERLAP.meaning("Communication"),
            "measured",
            t["exposed_share"],
            "less",
        ),
        Figure("Computing", fmt.share(t["compute_share"]), over + OVERLAP.meaning("Computing"), "measured"),
        Figure("Copies alone", fmt.share(t["copies_share"]), over + OVERLAP.meaning("Copies alone"), "measured"),
        Figure(
            "Idle",
            fmt.share(t["idle_share"]),
            over + OVERLAP.meaning("Idle in the window"),
            "measured",
            t["idle_share"],
            "less",
        ),
    ]


def picture(told: Told[OverlapResult]) -> None:
    """Bars per device, bars per step, or one step along time; and the rows to take away."""
    result = told.result
    views = VIEWS if len(result.steps) else {k: v for k, v in VIEWS.items() if k != "steps"}
    view = switch("View", "view", views, "devices")
    name = f"{told.name}-{view}"
    words, figure, rows = _view(view, result)
    st.markdown(words)
    if figure is None:
        st.info("Nothing can be drawn here: the profile shows no operation in this stretch.", icon=":material/info:")
        return
    chart(figure, f"overlap {view}", name, told.verdict)
    told.evidence(rows, fmt.count(len(rows), "row"), figure, view, view)


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
    texts = {str(s): str(s) for s in steps}
    control(_OPTIONS["step"], result.timeline_step, texts=texts, key="timeline_step", width=160)


if __name__ == "__main__":
    page()
