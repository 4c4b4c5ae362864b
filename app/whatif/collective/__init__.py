"""How long does a collective take on a topology, what bounds it, and from which size is it worth its hops?"""

from typing import TYPE_CHECKING

from app.whatif.base import WhatIf
from app.whatif.collective.asked import OPTIONS, Asked
from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.collective.answers import CollectiveAnswer
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "CollectiveAnswer":
    """Raises QuestionError: what is missing, or cannot be asked of this topology."""
    from app.whatif.collective.answers import answered

    for name, example in (("topology", "v5p:4x4x8"), ("kind", "all_gather"), ("bytes", "1GB")):
        if not getattr(asked, name):
            raise QuestionError(f"no {name}", expected=f"such as --{name} {example}")
    return answered(asked, place)


def words(result: "CollectiveAnswer") -> "Words":
    from app.whatif.collective import wording

    return wording.words(result)


COLLECTIVE: "WhatIf[Asked, CollectiveAnswer]" = WhatIf(
    name="collective",
    title="Collectives",
    help="how long a collective takes on a topology, whether hops or bytes bound it, and where one gives way to the "
    "other",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    page="pages/topology/page.py",
)
