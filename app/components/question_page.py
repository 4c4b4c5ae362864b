"""The page of a question: one skeleton, so that a page says only what is its own.

Head, verdict, figures, choices, pictures with their evidence, and how it is computed: each page in that order. Where
there is no answer it says why, below the choices.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components import baseline
from app.components.answering import answering
from app.components.ask_facts import ask_here
from app.components.by_itself import fragment
from app.components.columns import draw_table
from app.components.current import current_run
from app.components.downloads import downloads
from app.components.figures_row import Figure
from app.components.header import header
from app.components.model_picker import About, explained, model_or_run
from app.components.notice import noticed
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.base import Question, R
from app.workspace import Workspace
from catalog.terms import Term
from runs.run import Run

A = TypeVar("A")  # what a page tells: mostly the answer to its question
Drawn = go.Figure | Callable[[], go.Figure | None] | None
SHOWN_ROWS = 5000  # a browser that holds more turns slow


@dataclass(frozen=True)
class How:
    """How an answer is computed: its terms, notes on it, and the tables that would complete it."""

    terms: Sequence[Term]
    notes: Sequence[str]
    inputs: Sequence[str]


@dataclass(frozen=True)
class Told(Generic[A]):
    """An answer on its page: what was asked of whom, with which options, and what came."""

    question: Question[Any]
    about: About
    options: Mapping[str, Any]
    result: A
    verdict: str

    @property
    def run(self) -> Run:
        """Of a page that is about a run alone."""
        return self.about.its_run

    @property
    def place(self) -> Workspace:
        return self.about.place

    @property
    def name(self) -> str:
        """Of its files and pictures."""
        return f"{self.about.name}-{self.question.name}"

    @property
    def answer(self) -> str:
        """Address of the JSON answer."""
        return self.about.answer(self.question, self.options)

    def evidence(
        self,
        rows: pd.DataFrame,
        title: str,
        figure: Drawn,
        heading: str,
        part: str = "",
        *,
        shown: pd.DataFrame | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        """The rows behind a picture, to be looked at and taken away. `heading`: over the picture as a page of its own;
        `part`: which of the page's pictures it is; `shown`: the rows as they are looked at, `columns`: how."""
        with st.expander(f"Evidence: {title}", icon=":material/table:"):
            looked_at = (rows if shown is None else shown).head(SHOWN_ROWS).dropna(axis="columns", how="all")
            draw_table(looked_at, columns)
            if len(rows) > SHOWN_ROWS:
                st.caption(f"The first {SHOWN_ROWS:,} of {len(rows):,} are shown; the files below hold all.")
            self.downloads(rows, figure, heading, part)

    def downloads(self, rows: pd.DataFrame, figure: Drawn, heading: str, part: str = "") -> None:
        """Rows, picture (None: there is none) and JSON to take away. A picture may be drawn when it is asked for."""
        name = f"{self.name}-{part}" if part else self.name

        def page() -> bytes:
            drawn = figure() if callable(figure) else figure
            return standalone(drawn, f"{self.about.name}: {heading}", name) if drawn else b""

        downloads(rows, name, self.answer, None if figure is None else page)


def question_page(
    question: Question[R],
    doing: str,
    figures: Callable[[R], list[Figure]],
    body: Callable[[Told[R]], None],
    *,
    options: Callable[[About], Mapping[str, Any]] | None = None,
    beside: Callable[[Run, Workspace], None] | None = None,
    answered: Callable[[Told[R], DeltaGenerator], None] | None = None,
    otherwise: Callable[[Run, Mapping[str, Any]], None] | None = None,
    how: Callable[[About, R | None], How] | None = None,
    apart: bool = False,
) -> None:
    """Draw the page about the run in the address.

    doing     what is told while the answer is computed
    figures   the figures below the verdict
    body      pictures with their evidence
    options   draws choices; the options that the question is asked with. An error of it is told as one of the answer
    beside    draws what stands in the head, such as the price
    answered  draws choices that only the answer knows, above the pictures or in the place in the head that it is given
    otherwise draws what helps where there is no answer
    how       how it is computed, where the question alone does not tell; of None, where there is no answer
    apart     a choice draws all below the head again and leaves the head alone, which then holds none of `answered`
    """
    about, head = _about_a_run(beside)
    below = _Below(
        question, about, doing, figures, body, _asking(question), question.verdict, how or _how(question), options
    )

    def choices(told: Told[R]) -> None:
        if answered is not None:
            answered(told, head)

    def draw() -> None:
        below.draw(otherwise, choices)

    (fragment(draw) if apart else draw)()


def joint_page(
    question: Question[Any],
    doing: str,
    figures: Callable[[A], list[Figure]],
    body: Callable[[Told[A]], None],
    *,
    asking: Callable[[About, Mapping[str, Any]], A],
    verdict: Callable[[A], str],
    how: Callable[[About, A | None], How],
    options: Callable[[About], Mapping[str, Any]] | None = None,
    beside: Callable[[Run, Workspace], None] | None = None,
) -> None:
    """Draw the page of a question that tells more than its answer, such as a second answer beside it: what `asking`
    gives, with its `verdict`. All else is as `question_page` has it."""
    about, _ = _about_a_run(beside)
    _Below(question, about, doing, figures, body, asking, verdict, how, options).draw()


def subject_page(
    question: Question[R],
    doing: str,
    figures: Callable[[R], list[Figure]],
    body: Callable[[Told[R]], None],
    *,
    options: Callable[[About], Mapping[str, Any]],
) -> None:
    """Draw the page about the run or the model in the address; all as `question_page` has it, and drawn apart."""
    about = model_or_run()
    below = _Below(question, about, doing, figures, body, _asking(question), question.verdict, _how(question), options)
    fragment(below.draw)()


def _about_a_run(beside: Callable[[Run, Workspace], None] | None) -> tuple[About, DeltaGenerator]:
    """The run in the address, its head drawn, and a place in that."""
    run, extras, place = current_run()
    with header(run, extras):
        head = st.container()
        if beside is not None:
            with head:
                beside(run, place)
    return About(run, place), head


def _asking(question: Question[R]) -> Callable[[About, Mapping[str, Any]], R]:
    return lambda about, given: ask(question, about.subject, given, about.place.registry)


def _how(question: Question[R]) -> Callable[[About, R | None], How]:
    """By the terms of the question, with the notes of the answer."""
    return lambda about, result: How(question.terms, () if result is None else result.notes, question.inputs)


@dataclass(frozen=True)
class _Below(Generic[A]):
    """What is below the head of a page, of the parts that `question_page` tells of."""

    question: Question[Any]
    about: About
    doing: str
    figures: Callable[[A], list[Figure]]
    body: Callable[[Told[A]], None]
    asking: Callable[[About, Mapping[str, Any]], A]
    verdict: Callable[[A], str]
    how: Callable[[About, A | None], How]
    options: Callable[[About], Mapping[str, Any]] | None

    def draw(
        self,
        otherwise: Callable[[Run, Mapping[str, Any]], None] | None = None,
        answered: Callable[[Told[A]], None] = lambda told: None,
    ) -> None:
        """`otherwise` and `answered` as `question_page` has them."""
        top = st.container()  # told last and read first
        choices = st.container()
        given: Mapping[str, Any] = {}

        def without() -> None:
            self._ask(top)
            if otherwise is not None and self.about.run is not None:
                otherwise(self.about.run, given)
            self._explain(None)

        with answering(self.doing, without):
            if self.options is not None:
                with choices:
                    given = self.options(self.about)
            result = self.asking(self.about, given)
        told = Told(self.question, self.about, given, result, self.verdict(result))
        with noticed():  # also where a fragment is drawn again, which passes by all that is around it
            with top:
                verdict(told.verdict)
                self._ask(st.container())
                baseline.row(self.figures(result), self.about.run, self.about.place, lambda r: self._of(r, given))
            answered(told)
            self.body(told)
            beyond(told.verdict)
            self._explain(result)

    def _of(self, other: Run, given: Mapping[str, Any]) -> list[Figure]:
        """The same figures of another run."""
        return self.figures(self.asking(About(other, self.about.place), given))

    def _ask(self, where: DeltaGenerator) -> None:
        """For a fact that would tell more on this page, once."""
        if self.about.run is not None:
            with where:
                ask_here(self.about.run, self.about.place, self.question.name)

    def _explain(self, result: A | None) -> None:
        told = self.how(self.about, result)
        explained(self.about, told.terms, told.notes, told.inputs)
