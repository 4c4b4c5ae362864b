"""Which slice and which layout train a model, how fast, how long and at what cost?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.training.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.training.answers import TrainingPlan
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "TrainingPlan":
    """Raises QuestionError where something is missing or cannot be."""
    if asked.calibrate is not None:
        from app.whatif.training.beside import find_from

        return find_from(asked, place)
    from app.whatif.training.answers import find

    return find(asked)


def words(result: "TrainingPlan") -> "Words":
    return _wording(result).words(result)


def verdict(result: "TrainingPlan") -> str:
    return _wording(result).verdict(result)


def told(result: "TrainingPlan") -> dict[str, Any]:
    """The JSON contract: the answer, with its verdict at the head."""
    return {"verdict": verdict(result), **result.to_dict()}


def _wording(result: "TrainingPlan") -> Any:
    """The words of a plan, or of a run that was carried over."""
    from app.whatif.training import beside_wording, wording

    return beside_wording if hasattr(result, "run") else wording


TRAINING: "WhatIf[Asked, TrainingPlan]" = WhatIf(
    name="training",
    title="Training: chips and layout",
    help="which chips, how many of them and which layout train a model, how fast, how long and at what cost",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/training_planner/page.py",
)
