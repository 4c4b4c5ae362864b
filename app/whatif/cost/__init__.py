"""How many days and dollars does it take to train a model on so many tokens, and on how many of which chips?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.cost.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.cost.answers import CostPlan
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "CostPlan":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.cost.answers import find

    return find(asked)


def words(result: "CostPlan") -> "Words":
    from app.whatif.cost import wording

    return wording.words(result)


def told(result: "CostPlan") -> dict[str, Any]:
    """The JSON contract: the answer, with its verdict at the head."""
    from app.whatif.cost import wording

    return {"verdict": wording.verdict(result), **result.to_dict()}


COST: "WhatIf[Asked, CostPlan]" = WhatIf(
    name="cost",
    title="Days and dollars",
    help="how many days and dollars training a model on so many tokens takes, on how many of which chips",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/cost_planner/page.py",
)
