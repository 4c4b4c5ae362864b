"""Which setup serves this traffic cheapest within its objectives, and why does each of the others lose?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.serving_plan.asked import OPTIONS, Asked
from errors import InputError, QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.serving_plan.answers import ServingPlan
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "ServingPlan":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.serving_plan.answers import find

    if asked.chip_file:
        if asked.own_chip is not None:
            raise QuestionError("a chip of your own in two ways", expected="one of --own-chip and --chip-file")
        asked = replace(asked, own_chip=_read(Path(asked.chip_file)))
    if asked.calibrate and place is None:
        raise QuestionError(f"no store is open to look for run {asked.calibrate!r}")
    runs = place.store.listing()[0] if place else ()
    return find(asked, place.store.find(asked.calibrate) if asked.calibrate and place else None, runs=runs)


def _read(path: Path) -> str:
    """The text of a chip file. Raises InputError where it cannot be read."""
    from catalog.own_chip import MOST_CHARACTERS

    try:
        with path.open(encoding="utf-8") as f:
            return f.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "no text"
        raise InputError(f"the chip file cannot be read ({why})", where=str(path)) from e


def words(result: "ServingPlan") -> "Words":
    from app.whatif.serving_plan import wording

    return wording.words(result)


def told(result: "ServingPlan") -> dict[str, Any]:
    """The JSON contract: the plan, with its verdict at the head."""
    from app.whatif.serving_plan import wording

    return {"verdict": wording.verdict(result), **result.to_dict()}


SERVING_PLAN: "WhatIf[Asked, ServingPlan]" = WhatIf(
    name="serving-plan",
    title="Serving plan",
    help="find the setup that serves a traffic cheapest, and why the others lose",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/serving_planner/page.py",
)
