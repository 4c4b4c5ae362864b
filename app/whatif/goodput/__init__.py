"""What share of its time will a job on so many chips keep, if chips fail?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.goodput.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.goodput.answers import GoodputPlan
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "GoodputPlan":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.goodput.answers import find

    return find(asked)


def words(result: "GoodputPlan") -> "Words":
    from app.whatif.goodput import wording

    return wording.words(result)


def told(result: "GoodputPlan") -> dict[str, Any]:
    """The JSON contract: the answer, with its verdict at the head."""
    from app.whatif.goodput import wording

    return {"verdict": wording.verdict(result), **result.to_dict()}


GOODPUT_PLAN: "WhatIf[Asked, GoodputPlan]" = WhatIf(
    name="goodput",
    title="Goodput of a job to come",
    help="what share of its time a job on so many chips keeps when chips fail: saves, restarts, spares, fewer slices",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/goodput_planner/page.py",
)
