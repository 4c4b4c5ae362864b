"""Onto which axes of a slice should the axes of a mesh go, which of them close to rings, and what does a step cost?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.placement.asked import OPTIONS, Asked
from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.placement.answers import Answer
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "Answer":
    """Raises QuestionError: a mesh that does not fit, with what would."""
    from app.topologies import network
    from app.whatif.placement.answers import answered

    for name, what in (("topology", "such as --topology v5p:4x4x8"), ("mesh", "such as --mesh data=8,model=16")):
        if not getattr(asked, name):
            raise QuestionError(f"no {name}", expected=what)
    return answered(asked, *network(asked.topology, place))


def words(result: "Answer") -> "Words":
    from app.whatif.placement import wording

    return wording.words(result)


def told(result: "Answer") -> dict[str, Any]:
    from app.whatif.placement import wording

    return wording.told(result)


PLACEMENT: "WhatIf[Asked, Answer]" = WhatIf(
    name="placement",
    title="Placement",
    help="onto which axes of a slice the axes of a mesh should go, and what a step costs on each way",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/topology/page.py",
)
