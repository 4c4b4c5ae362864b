"""The choices of the load page: objectives, the load looked into, and further runs beside it. All in the address."""

import streamlit as st

from analyzers.serving.load import OPTIONS, LoadResult
from app.components.option import by_name, choices, control
from app.components.question_page import Told
from app.components.text import md
from app.questions.asking import ask
from app.questions.load import LOAD
from errors import ChipledgerError
from errors.options import Option
from runs.run import Run

OBJECTIVES = ("ttft_s", "tpot_s", "e2e_s")
MOST = 4  # further runs: more symbols could not be told apart
_OPTIONS = by_name(OPTIONS)
BESIDE = Option("with", str, (), "runs drawn beside this one", label="Beside it", several=True)


def options() -> dict[str, object]:
    """Draws the objectives; returns the options that the address gives."""
    given: dict[str, object] = {}
    columns = st.columns([1, 1, 1, 3], vertical_alignment="bottom")
    for column, name in zip(columns, OBJECTIVES, strict=False):
        with column:
            value = control(_OPTIONS[name], step=0.01, empty="none")
        if value is not None:
            given[name] = value
    if stage := st.query_params.get("stage"):
        given["stage"] = stage
    return given


def further_runs(told: Told[LoadResult]) -> list[tuple[str, LoadResult]]:
    """Runs drawn beside this one, as `with=` in the address names them; each by the same objectives."""
    store = told.place.store
    others = {r.run_id: r.manifest.name for r in store.runs() if r.run_id != told.run.run_id and _loaded(r)}
    if not others:
        return []
    now = [_find(name, others) for name in st.query_params.get_all("with")]
    now = list(dict.fromkeys(n for n in now if n))[:MOST]

    def chose(runs: list[str]) -> None:
        st.query_params["with"] = runs

    place = "Add runs to compare"
    choices(BESIDE, others, now, chose, key="with_runs", most=MOST, empty=place, width=340, hidden=True)
    found = []
    for name in now:
        try:
            other = store.find(name)
            same = {k: v for k, v in told.options.items() if k != "stage"}
            found.append((other.manifest.name, ask(LOAD, other, same, told.place.registry)))
        except ChipledgerError as e:
            st.caption(f"{md(others[name])}: {md(e)}")
    return found


def _loaded(run: Run) -> bool:
    held = run.manifest.tables
    return run.manifest.kind == "serving" and bool(held.get("stages") or held.get("requests"))


def _find(name: str, others: dict[str, str]) -> str | None:
    """The id that an address names, by id, its beginning, or the run's name."""
    return next((i for i, title in others.items() if name == title or (len(name) >= 6 and i.startswith(name))), None)
