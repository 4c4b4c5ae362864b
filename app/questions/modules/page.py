"""The run's modules: which part of the model takes the time, and which part wastes it?"""

from typing import Any

import pandas as pd
import streamlit as st

from analyzers.device.modules.modules import ModulesResult
from app.components.chart import chart
from app.components.current import choose, switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.op_choice import asked, everything
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.components.text import md
from app.questions.modules import MODULES
from app.questions.modules import figure as draw
from errors import format as fmt

VIEWS = {"waste": "Waste", "pass": "Forward and backward"}
FOLDS = {"layers": "Layers folded", "none": "Each layer"}
_OPTIONS = by_name(MODULES.options)


def page() -> None:
    question_page(
        MODULES, "Adding up modules", figures, picture, options=_options, otherwise=everything(MODULES), apart=True
    )


def _options(about: About) -> dict[str, Any]:
    """The part of the run and whether layers are folded, from the address."""
    fold = control(_OPTIONS["fold"], _OPTIONS["fold"].default, texts=FOLDS, buttons=True)
    return asked() | ({} if fold == _OPTIONS["fold"].default else {"fold": fold})


def figures(result: ModulesResult) -> list[Figure]:
    """How much time, how much of it has a module, and what became of it."""
    whole = result.rows.iloc[0]
    if not whole["seconds"] > 0:  # the verdict says why
        return []
    seconds = whole["seconds"]

    def share(column: str) -> str:
        return fmt.share(whole[column] / seconds)

    meaning, basis = MODULES.meaning, result.basis
    shown = [
        Figure("Device time" if result.timed else "Least time", fmt.duration(whole["seconds"]), _time(result), basis),
        Figure("Has a module", fmt.share(result.told_seconds / seconds), meaning("Module"), "derived"),
    ]
    if result.timed:
        waste = meaning("Wasted below the roof")
        shown.append(Figure("Wasted below the roof", share("wasted_seconds"), waste, "derived"))
        shown.append(Figure("Waste not known", share("unknown_seconds"), meaning("Waste not known"), "derived"))
    again = meaning("Computed again")
    told = whole["other_pass_seconds"] < whole["seconds"]
    shown.append(Figure("Computed again", share("recompute_seconds") if told else fmt.NO_VALUE, again, "derived"))
    return shown


def _time(result: ModulesResult) -> str:
    if not result.timed:
        return "Modelled: the sum of least times of one device."
    return f"{MODULES.meaning('Time of a module')} Over {fmt.count(result.devices, 'device')}."


def picture(told: Told[ModulesResult]) -> None:
    """The icicle, opened where the address says, and the rows to take away."""
    result = told.result
    if not result.rows["seconds"].iloc[0] > 0:
        return
    chain = draw.opened(result.rows, st.query_params.get("scope", ""))
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        _crumbs(chain)
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        views = VIEWS if result.timed else {"pass": VIEWS["pass"], "waste": "Least time"}
        view = switch("Band", "view", views, next(iter(views)))
    at = chain[-1]["path"]
    figure = draw.icicle(result, view, at)
    if figure is None:
        st.info(told.verdict, icon=":material/info:")
        return
    key = f"modules {view} {at}"

    def clicked() -> None:
        if points := st.session_state[key].selection.points:
            choose("scope", points[0].get("customdata") or "")

    chart(figure, key, f"{told.name}-{view}", told.verdict, clicked)
    st.caption(
        "Boxes are modules, as wide as their time; the band at a box's foot says what that time was. "
        "A click opens a module. What is right of the modules in a box is its own time."
    )
    rows = result.rows
    told.evidence(rows, fmt.count(len(rows), "row"), figure, view, view, shown=_shown(rows))


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=["parent", "name"]).assign(path=rows["path"].where(rows["path"] != "", rows["name"]))


def _crumbs(chain: list[dict]) -> None:
    """The way from the whole down to the module that is open; each step goes back up."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for row in chain[:-1]:
            key = f"crumb {row['path']}"
            st.button(f"{md(row['name'])} ›", key=key, type="tertiary", on_click=choose, args=("scope", row["path"]))
        st.markdown(f"**{md(chain[-1]['name'])}**", width="content")


if __name__ == "__main__":
    page()
