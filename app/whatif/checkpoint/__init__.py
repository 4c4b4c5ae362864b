"""How often should checkpoints be saved, and what would each cure give back? From numbers given, or from a run."""

from typing import TYPE_CHECKING

from app.whatif.base import WhatIf
from app.whatif.checkpoint.asked import OPTIONS, Asked
from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.checkpoint.plan import Plan
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "Plan":
    """Raises QuestionError where a number is missing or cannot be."""
    from app.questions import asking as questions
    from app.questions.checkpoints import CHECKPOINTS
    from app.whatif.checkpoint.plan import plan

    found = None
    if asked.run:
        if place is None:
            raise QuestionError(f"no store is open to look for run {asked.run!r}")
        found = questions.ask(CHECKPOINTS, place.store.find(asked.run), {}, place.registry)
    return plan(asked, found)


def words(result: "Plan") -> "Words":
    from app.whatif.checkpoint import wording

    return wording.words(result)


CHECKPOINT: "WhatIf[Asked, Plan]" = WhatIf(
    name="checkpoint",
    title="Checkpoints",
    help="how often to save checkpoints, and what asynchronous saves, spares or elastic training would give back",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    page="pages/checkpoint_planner/page.py",
)
