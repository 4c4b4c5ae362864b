"""The objectives of a page: seconds that are entered or dragged, kept in the address."""

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from analyzers.serving.objectives import LABELS, OPTIONS, by_histograms, suggested, suggested_by
from app.components.current import choose
from app.components.load_choice import load_choice
from app.components.model_picker import About
from app.components.option import by_name, control
from app.questions.asking import ask
from app.questions.latency import LATENCY
from app.questions.objectives import OBJECTIVES
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from runs.run import Run

NONE = "none"
_OPTIONS = by_name(OPTIONS)


def loads(run: Run, place: Workspace) -> None:
    """The list of loads, in the head. Why nothing is known of them the page says below."""
    with contextlib.suppress(ChipledgerError):
        known = ask(LATENCY, run, _stage(), place.registry)
        load_choice([load for load in known.loads if load.served is not None], "All requests together")


def _stage() -> dict[str, str]:
    """The one load that the address names."""
    return {"stage": stage} if (stage := st.query_params.get("stage")) else {}


def options(about: About) -> dict[str, Any]:
    """Draws the objectives: those of the address; without any a suggestion, said to be one. Returns the options.

    Raises QuestionError where there is nothing to judge, or nothing to judge by.
    """
    stage = _stage()
    known = ask(LATENCY, about.subject, stage, about.place.registry)
    told = None if stage else by_histograms(about.its_run.tables)
    if not len(known.rows) and told is None:
        ask(OBJECTIVES, about.subject, stage, about.place.registry)  # it says what would bring an answer
    start = suggested(known.rows) if told is None else suggested_by(told)
    found = objectives(start)
    if start and found == start and "ttft_s" not in st.query_params:
        st.caption("These are a suggestion, the 90th percentiles of this run rounded up; enter what you promised.")
    if not found:
        raise QuestionError("nothing is promised", advice="Enter at least one objective above.")
    return {**found, **stage}


def objectives(offered: Mapping[str, float]) -> dict[str, float]:
    """Draws a field for each objective; what the address gives. `offered` counts where it says nothing at all."""
    start = {} if any(st.query_params.get(name) for name in LABELS) else offered
    columns = st.columns(len(LABELS), vertical_alignment="bottom")
    found: dict[str, float] = {}

    def entered(name: str, value: float | None) -> None:
        """What was only suggested becomes part of the address with the first change."""
        now = {**start, **found, name: value}
        for other in LABELS:
            choose(other, f"{now[other]:g}" if now.get(other) else "")
        if not any(now.values()):
            choose(name, NONE)

    for column, name in zip(columns, LABELS, strict=True):
        step = 10.0 ** (math.floor(math.log10(start.get(name) or offered.get(name) or 1.0)) - 1)
        with column:
            value = control(
                _OPTIONS[name],
                start.get(name),
                step=step,
                empty="no objective",
                entered=lambda value, name=name: entered(name, value),
            )
        if value is not None:
            found[name] = value
    return found
