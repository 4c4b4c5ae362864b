"""What is drafting tokens ahead worth, which length is best, and up to how many sequences does it pay?"""

from typing import TYPE_CHECKING

from app.whatif.base import WhatIf
from app.whatif.speculation.asked import OPTIONS, Asked

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.speculation.answers import Worth
    from app.workspace import Workspace


def answer(asked: Asked, place: "Workspace | None") -> "Worth":
    """Raises QuestionError where a number is missing or cannot be."""
    from app.whatif.speculation.answers import worth

    return worth(asked)


def words(result: "Worth") -> "Words":
    from app.whatif.speculation import wording

    return wording.words(result)


SPECULATION: "WhatIf[Asked, Worth]" = WhatIf(
    name="speculation",
    title="Speculation",
    help="what drafting tokens ahead is worth, the best length of a draft, and the batch up to which it pays",
    asked=Asked,
    options=OPTIONS,
    answer=answer,
    words=words,
    page="questions/speculation/page.py",
)
