"""A second run below the first on the timeline's page: which, and where the two lie over one another."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from analyzers.timeline import Timeline
from analyzers.timeline.beside import ASKED, COMMON, Meeting, Side, meeting, told_steps
from app.baselines import find_run
from app.components.text import md
from app.questions.asking import ask
from app.questions.timeline import TIMELINE
from app.serve.places import placeless
from app.timeline.waiting import still_made
from app.words import short
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors.numbers import Number
from errors.options import Option
from runs.run import Run

FARTHEST = 1 << 62
WITH = Option("with", str, None, "a second run, shown below the first", of_run=True)
AT_STEP = Option(
    "beside_step",
    Number(0, FARTHEST, whole=True),
    None,
    "at the beginning of which step both lie over one another; default: the first settled step that both have",
)


@dataclass(frozen=True)
class Second:
    """The second run, and how it lies over the first."""

    run: Run
    of: Timeline
    met: Meeting
    said: str

    def to_dict(self, first: Run, written: str) -> dict[str, Any]:
        """For the viewer. `written`: what marks of the second run may be kept by."""
        return {
            "run": self.run.run_id,
            "written": written,
            "names": [short(run.manifest.name) for run in (first, self.run)],
            "step": self.met.step,
            "at": self.met.at,
            "other_at": self.met.other_at,
            "said": self.said,
        }


def second(run: Run, of: Timeline, place: Workspace) -> Second | None:
    """The run that `with=` in the address names; None where none is, where it is being made, and where it cannot
    stand there, which is told in a sentence."""
    wanted = st.query_params.get(WITH.name)
    if not wanted:
        return None
    try:
        other = find_run(place, wanted)
        if other.run_id == run.run_id:
            raise QuestionError(
                "the second run is the first", expected="another run", advice="Choose one from the list above."
            )
        if still_made(other, place.registry):
            return None
        return laid(run, of, other, place, _step())
    except ChipledgerError as e:
        st.warning(f"**No second run:** {md(placeless(str(e), place.store.root))}", icon=":material/info:")
        return None


def _step() -> int | None:
    """Raises QuestionError for what is no number."""
    return AT_STEP.parse(st.query_params.get(AT_STEP.name))


def laid(run: Run, of: Timeline, other: Run, place: Workspace, step: int | None) -> Second:
    """Raises QuestionError for a run without a timeline."""
    try:
        there = ask(TIMELINE, other, {}, place.registry).timeline
    except QuestionError as e:
        raise QuestionError(f"{short(other.manifest.name)!r} has no timeline: {e}") from e
    a, b = (Side(short(r.manifest.name), t, r.tables, r.manifest.facts) for r, t in ((run, of), (other, there)))
    try:
        met, refused = meeting(a, b, step), ""
    except QuestionError as e:
        met, refused = meeting(a, b), f"There is {e}. "
    return Second(other, there, met, refused + sentence_of(met, a, b))


def sentence_of(met: Meeting, a: Side, b: Side) -> str:
    """How the two lie over one another."""
    if met.step is None:
        why = "; ".join(told_steps(side) for side in (a, b))
        return f"Both lie over one another at their first events, for they have no step in common: {why}."
    where = f"Both lie over one another at the beginning of step {met.step:,}"
    if met.why == ASKED:
        return f"{where}."
    if met.why == COMMON:
        return f"{where}, the first that both have; none is a settled step of both."
    return f"{where}, the first settled step that both have."
