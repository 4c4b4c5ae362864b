"""Several runs as the API and agents are told of them."""

from collections.abc import Mapping
from typing import Any

from app.comparing.several import words
from app.comparing.several.answer import Several, several
from app.comparing.several.growing import grown
from app.workspace import Workspace


def told_of_several(place: Workspace, given: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON contract with its verdict. Raises QuestionError for runs that cannot be compared."""
    found = several(place, **given)
    return several_dict(found)


def several_dict(found: Several) -> dict[str, Any]:
    return {"verdict": words.verdict(found).whole, **found.to_dict(), "scaling": grown(found).to_dict()}
