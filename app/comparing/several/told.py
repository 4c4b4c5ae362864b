"""Several runs as the API and agents are told of them."""

from collections.abc import Mapping
from typing import Any

from app.comparing.several import words
from app.comparing.several.answer import several
from app.workspace import Workspace


def told_of_several(place: Workspace, given: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON contract with its verdict. Raises QuestionError for runs that cannot be compared."""
    found = several(place, **given)
    return {"verdict": words.verdict(found).whole, **found.to_dict()}
