"""How well does a job grow with its chips, what is lost to what, and how would it do on more of them?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.scaling.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.scaling.answers import ScalingAnswer
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "ScalingAnswer":
    """Raises QuestionError where points are missing or cannot be."""
    from app.whatif.scaling.answers import find

    return find(asked, place)


def words(result: "ScalingAnswer") -> "Words":
    from app.whatif.scaling import wording

    return wording.words(result)


def told(result: "ScalingAnswer") -> dict[str, Any]:
    """The JSON contract: the answer, with its verdict at the head."""
    from app.whatif.scaling import wording

    return {"verdict": wording.verdict(result), **result.to_dict()}


SCALING: "WhatIf[Asked, ScalingAnswer]" = WhatIf(
    name="scaling",
    title="Scaling",
    help="how well a job grows with its chips: efficiency of each run beside the smallest, and a curve with its limits",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/scaling/page.py",
)
