"""The answer of the checkpoints page: what the run measured, and the plan that follows from it and what is entered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.lost.checkpoints import CheckpointsResult
from app.components.model_picker import About
from app.pages.checkpoint_planner.inputs import given
from app.questions.asking import ask
from app.questions.checkpoints import CHECKPOINTS
from app.questions.checkpoints.words import lost
from app.whatif.checkpoint.asked import Asked
from app.whatif.checkpoint.plan import Plan, plan
from app.whatif.checkpoint.wording import verdict as plan_verdict
from errors import QuestionError


@dataclass(frozen=True)
class Planned:
    """`plan`: None where something is not known or cannot be, which `lacks` says; `entered`: the numbers it rests on
    besides those of the run."""

    result: CheckpointsResult
    plan: Plan | None
    lacks: QuestionError | None
    entered: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """How often the job should save; where that cannot be told, what saves and failures cost."""
        return plan_verdict(self.plan) if self.plan else lost(self.result)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.result.notes, *(self.plan.notes if self.plan else ()))


def planned(about: About, options: Mapping[str, Any]) -> Planned:
    """Raises QuestionError where the run tells nothing of saves and failures."""
    result = ask(CHECKPOINTS, about.subject, options, about.place.registry)
    try:
        entered = given()
        return Planned(result, plan(Asked(**entered), result), None, entered)
    except QuestionError as e:
        return Planned(result, None, e, {})
