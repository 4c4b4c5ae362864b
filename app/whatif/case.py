"""Worked cases: published serving figures beside our own model, with what can and cannot be concluded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.whatif.base import WhatIf
from errors import QuestionError
from errors.options import Option

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.cases.base import Case
    from app.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Asked:
    """`name`: of the case; None lists them."""

    name: str | None = None


OPTIONS: tuple[Option, ...] = (Option("name", str, None, "which case; a wrong name lists them", form="CASE"),)


def answer(asked: Asked, place: "Workspace | None") -> "Case":
    """Raises QuestionError for a case that does not exist."""
    from app.whatif.cases import CASES, worked

    if asked.name in {c.NAME for c in CASES}:
        return worked(asked.name)
    known = "; ".join(f"{c.NAME} ({c.TITLE})" for c in CASES)
    what = f"no case {asked.name!r}" if asked.name else "which case?"
    raise QuestionError(what, expected=f"--name with one of {known}")


def words(result: "Case") -> "Words":
    from app.whatif.cases import wording

    return wording.words(result)


CASE: "WhatIf[Asked, Case]" = WhatIf(
    name="case",
    title="Worked cases",
    help="work a published serving figure through, measured beside modelled",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    page="pages/serving_cases/page.py",
)
