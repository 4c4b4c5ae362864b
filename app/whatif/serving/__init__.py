"""What would a model on these chips answer, and how fast, at this load? Every step of the engine is simulated."""

from typing import TYPE_CHECKING

from app.whatif.base import WhatIf
from app.whatif.serving.asked import OPTIONS, Asked
from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.serving.answers import Split
    from app.workspace import Workspace
    from simulators.serving.result import Simulated


def answer(asked: Asked, place: "Workspace | None") -> "Simulated | Split":
    """Raises QuestionError where something is missing, does not fit, or cannot be."""
    from app.whatif.serving import answers

    run = None
    if asked.calibrate:
        if place is None:
            raise QuestionError(f"no store is open to look for run {asked.calibrate!r}")
        run = place.store.find(asked.calibrate)
    return answers.find(asked, run)


def words(result: "Simulated | Split") -> "Words":
    from app.whatif.serving import wording

    return wording.words(result)


SERVING: "WhatIf[Asked, Simulated | Split]" = WhatIf(
    name="serving",
    title="Serving",
    help="latencies, throughput and cache of a model served on some chips at some load, by simulation",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
)
