"""What storage does a job need, and who waits for it?"""

from typing import TYPE_CHECKING, Any

from app.whatif.base import WhatIf
from app.whatif.storage.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.storage.answers import StorageAnswer
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "StorageAnswer":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.storage.answers import find

    return find(asked, place)


def words(result: "StorageAnswer") -> "Words":
    from app.whatif.storage import wording

    return wording.words(result)


def told(result: "StorageAnswer") -> dict[str, Any]:
    """The JSON contract: the answer, with its verdict at the head."""
    from app.whatif.storage import wording

    return {"verdict": wording.verdict(result), **result.to_dict()}


STORAGE: "WhatIf[Asked, StorageAnswer]" = WhatIf(
    name="storage",
    title="Storage and input",
    help="what storage a job needs and who waits: time per batch against step time, what binds, and what would mend it",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    told=told,
    page="pages/storage/page.py",
)
