"""The page of a question about a run: one skeleton, so that a page says only what is its own.

Head, controls, the answer or why there is none, its sentence, its figures, pictures with their evidence, and how it is
computed: each page in that order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic
from urllib.parse import urlencode

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.answering import answering
from app.components.current import current_run
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.base import Question, R
from app.workspace import Workspace
from runs.run import Run

Drawn = go.Figure | Callable[[], go.Figure | None] | None
SHOWN_ROWS = 5000  # a browser that holds more turns slow


@dataclass(frozen=True)
class Told(Generic[R]):
    """An answer on its page: what was asked of which run, with which options, and what came."""

    question: Question[R]
    run: Run
    options: Mapping[str, Any]
    result: R
    place: Workspace

    @property
    def name(self) -> str:
        """Of its files and pictures."""
        return f"{self.run.manifest.name}-{self.question.name}"

    @property
    def answer(self) -> str:
        """Address of the JSON answer."""
        asked = urlencode(dict(self.options))
        return f"/api/runs/{self.run.run_id}/show/{self.question.name}" + (f"?{asked}" if asked else "")

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return self.question.verdict(self.result)

    def evidence(self, rows: pd.DataFrame, title: str, figure: Drawn, heading: str, part: str = "") -> None:
        """The rows behind a picture, to be looked at and taken away. `heading`: over the picture as a page of its own;
        `part`: which of the page's pictures it is."""
        with st.expander(f"Evidence: {title}", icon=":material/table:"):
            st.dataframe(rows.head(SHOWN_ROWS).dropna(axis="columns", how="all"), hide_index=True)
            if len(rows) > SHOWN_ROWS:
                st.caption(f"The first {SHOWN_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
            self.downloads(rows, figure, heading, part)

    def downloads(self, rows: pd.DataFrame, figure: Drawn, heading: str, part: str = "") -> None:
        """Rows, picture and JSON to take away. A picture may be drawn when it is asked for."""
        name = f"{self.name}-{part}" if part else self.name

        def page() -> bytes:
            drawn = figure() if callable(figure) else figure
            return standalone(drawn, f"{self.run.manifest.name}: {heading}", name) if drawn else b""

        downloads(rows, name, self.answer, page)


def question_page(
    question: Question[R],
    doing: str,
    figures: Callable[[R], list[Figure]],
    body: Callable[[Told[R]], None],
    *,
    options: Callable[[Run], Mapping[str, Any]] = lambda run: {},
    beside: Callable[[Run, Workspace], None] | None = None,
    answered: Callable[[Told[R], DeltaGenerator], None] | None = None,
    otherwise: Callable[[Run, Mapping[str, Any]], None] | None = None,
) -> None:
    """Draw the page about the run in the address.

    doing     what is told while the answer is computed
    figures   the figures below the verdict
    body      pictures with their evidence
    options   draws controls; the options that the question is asked with
    beside    draws what stands in the head, such as the price
    otherwise draws what helps where there is no answer
    answered  draws choices that only the answer knows, above the verdict or in the place in the head that it is given
    """
    run, extras, place = current_run()
    with header(run, extras):
        head = st.container()
        if beside is not None:
            with head:
                beside(run, place)
    given = options(run)

    def without() -> None:
        if otherwise is not None:
            otherwise(run, given)
        howto(run, question.terms, (), question.inputs)

    with answering(doing, without):
        result = ask(question, run, given, place.registry)
    told = Told(question, run, given, result, place)
    if answered is not None:
        answered(told, head)
    verdict(told.verdict)
    figures_row(figures(result))
    body(told)
    howto(run, question.terms, result.notes, question.inputs)
