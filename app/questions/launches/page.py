"""The run's launches: was the device idle because its host was late, and with what?"""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.device.launches.launches import LaunchesResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.questions.launches import LAUNCHES
from app.questions.launches import figure as draw
from errors import format as fmt

VIEWS = {"devices": "Devices", "operations": "Operations", "calls": "Calls", "streams": "Streams"}
WINDOWS = {"operations": "First to last operation", "capture": "Whole capture"}
_OPTIONS = by_name(LAUNCHES.options)


def page() -> None:
    question_page(LAUNCHES, "Joining launches with what they launched", figures, picture, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """The window, from the address."""
    window = control(_OPTIONS["window"], texts=WINDOWS, unset="Steps, if known", buttons=True)
    return {} if window is None else {"window": window}


def figures(result: LaunchesResult) -> list[Figure]:
    """How long devices were idle, by whose fault, and how many launches there were."""
    t = result.totals
    window = t["window_s"] or 1.0
    over = f"Over {fmt.count(len(result.devices), 'device')}, {fmt.number(t['window_s'])} device-seconds. "

    def part(title: str, name: str) -> Figure:
        share = (t[name] or 0.0) / window
        return Figure(title, fmt.share(share), over + LAUNCHES.meaning(title), "measured", share, "less")

    return [
        part("Idle", "idle_s"),
        part("Host late", "late_s"),
        part("Launch to start", "launch_delay_s"),
        part("Between kernels", "between_kernels_s"),
        Figure("Launches", f"{int(result.calls['launches'].sum()):,}", "Calls that launched something.", "measured"),
    ]


def picture(told: Told[LaunchesResult]) -> None:
    """Idle time by device or by operation; calls and streams as tables; and the rows to take away."""
    result = told.result
    view = switch("View", "view", VIEWS, "devices")
    words, figure, rows = _view(view, result)
    st.markdown(words)
    if view in ("calls", "streams"):
        draw_table(rows, labels=draw.CALLS if view == "calls" else draw.STREAMS)
        with st.expander("Evidence: the rows", icon=":material/table:"):
            told.downloads(rows, None, view, view)
        return
    if figure is None:
        st.info("No device was idle in this window.", icon=":material/info:")
        return
    chart(figure, f"launches {view}", f"{told.name}-{view}", told.verdict)
    told.evidence(rows, fmt.count(len(rows), "row"), figure, view, view)


def _view(view: str, result: LaunchesResult) -> tuple[str, go.Figure | None, pd.DataFrame]:
    if view == "operations":
        words = "**What was waited for**: idle time by the operation that ended it, the most first; input set apart."
        return words, draw.waited(result), result.waited
    if view == "calls":
        words = "**What launching takes**: how long a call keeps its thread, and how long after it the device begins."
        return words, None, result.calls
    if view == "streams":
        words = (
            "**Stream by stream, as HTA counts**: each from its first execution to its last, whatever others did "
            "meanwhile, and how many launches were waiting."
        )
        return words, None, result.streams
    shown = ""
    if len(result.devices) > draw.MAX_DEVICES:
        shown = f" Of {len(result.devices):,} devices the {draw.MAX_DEVICES} that are idle most are shown."
    return f"**Why each device was idle.**{shown}", draw.devices(result), result.devices


if __name__ == "__main__":
    page()
