"""The run's critical path: what does the time of a step hang on?"""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.device.critical_path.critical_path import CriticalPathResult
from analyzers.device.critical_path.example import CELLS, MOST_PIECES
from analyzers.device.critical_path.kinds import HOST, RETURNING
from analyzers.device.launches.launches import DELAYED, INPUT
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control, said
from app.components.question_page import Told, question_page
from app.questions.critical_path import CRITICAL_PATH
from app.questions.critical_path import figure as draw
from app.questions.critical_path.words import label
from errors import format as fmt

VIEWS = {
    "path": "One path",
    "kinds": "By kind",
    "steps": "Steps",
    "operations": "Operations",
    "shorten": "Shortening",
    "ranks": "Ranks and rules",
}
WINDOWS = {"operations": "First to last operation"}
ON_HOSTS = (DELAYED, RETURNING, *HOST, INPUT)
_OPTIONS = by_name(CRITICAL_PATH.options)


def page() -> None:
    question_page(CRITICAL_PATH, "Walking back what waited for what", figures, picture, options=_options, apart=True)


def _options(about: About) -> dict[str, object]:
    """The window and the step, from the address."""
    found = {
        "window": control(_OPTIONS["window"], texts=WINDOWS, unset="Steps, if known", buttons=True),
        "step": said(_OPTIONS["step"]),
    }
    return {name: value for name, value in found.items() if value is not None}


def figures(result: CriticalPathResult) -> list[Figure]:
    """How much of the path the device, the host and other ranks hold."""
    t = result.totals

    def share(*kinds: str) -> str:
        return fmt.share(sum(t[f"{kind}_share"] or 0.0 for kind in kinds))

    paths = f"{fmt.count(int(t['paths'] or 0), 'path')}, {fmt.duration(t['path_s'] or 0.0)} together. "
    computing = paths + CRITICAL_PATH.meaning("Critical path")
    collectives = "Collectives after their last rank came, and those of which it is not known when it came."
    hosts = "What hosts did, calls that launch on their way to the device, and returns of calls that waited."
    return [
        Figure("Computing", share("computing"), computing, "derived"),
        Figure("Communication", share("communication", "communication_or_wait"), collectives, "derived"),
        Figure("Host and launching", share(*ON_HOSTS), hosts, "derived"),
        Figure("On other ranks", share("elsewhere"), CRITICAL_PATH.meaning("Held by a rank"), "derived"),
        Figure("First operation gives", _gain(result), CRITICAL_PATH.meaning("Gain at most"), "modelled"),
    ]


def _gain(result: CriticalPathResult) -> str:
    """What the operation most on the path gives if it takes no time, of all time."""
    whole = result.totals["path_s"]
    if not len(result.shorten) or not whole:
        return fmt.NO_VALUE
    first = result.shorten.iloc[0]
    low, high = (fmt.whole_share(first[f"alone_{end}_s"] / whole) for end in ("low", "high"))
    return high if low == high else f"{low} to {high}"


def picture(told: Told[CriticalPathResult]) -> None:
    """One step's chain, all paths by kind, operations on and off them, and who held them by which rules."""
    result = told.result
    view = switch("View", "view", VIEWS, "path")
    words, figure, rows = _view(view, result)
    st.markdown(words)
    if view == "ranks":
        draw_table(result.ranks, labels=draw.RANKS)
        draw_table(result.rules, labels=draw.RULES)
        with st.expander("Evidence: the rows", icon=":material/table:"):
            told.downloads(rows, None, view, view)
        return
    if figure is None:
        st.info("This window shows none.", icon=":material/info:")
        return
    chart(figure, f"critical path {view}", f"{told.name}-{view}", told.verdict)
    told.evidence(rows, fmt.count(len(rows), "row"), figure, view, view)


def _view(view: str, result: CriticalPathResult) -> tuple[str, go.Figure | None, pd.DataFrame]:
    if view == "kinds":
        return "**What the paths consist of**, device by device.", draw.kinds(result), result.devices
    if view == "steps":
        words = "**How the path differs over steps**: its kinds, as means over devices, step by step."
        return words, draw.steps(result), result.steps
    if view == "operations":
        words = (
            "**What devices executed, on and off the path**: the grey parts could take less time for nothing, and "
            "somewhat more."
        )
        return words, draw.operations(result), result.operations
    if view == "shorten":
        words = (
            "**What the operations most on the path would give if they took no time**, each alone and with those above "
            "it: at least where all known waits stay, at most all that lies on paths. Modelled."
        )
        return words, draw.shorten(result), result.shorten
    if view == "ranks":
        return "**Whose links the paths are, and by which rules one follows another.**", None, result.rules
    of = label(result.chain_host, result.chain_device, result)
    which = of if result.chain_step is None else f"step {result.chain_step} on {of}"
    words = f"**The critical path of {which}**: each piece on the line of who held it, one after another."
    if result.chain_links > MOST_PIECES:
        words += f" Of its {result.chain_links:,} links, those of one kind are drawn together, in {CELLS} equal parts."
    return words, draw.chain(result), result.chain


if __name__ == "__main__":
    page()
