"""What the words of a report mean: the terms of each question that it tells of, and how numbers are known."""

from collections.abc import Iterator

from analyzers.time.ledger_terms import ACCOUNT_TERMS
from app import theme
from app.questions.base import Question
from app.questions.ledger import LEDGER
from app.reporting.document import Block, Items, Text
from app.reporting.document import Terms as TermsBlock
from app.reporting.gathering import About
from catalog.terms import Term

BASES = tuple(f"{m.glyph} {m.word}: {m.meaning}." for m in theme.BASES.values())


def definitions(about: About) -> Iterator[Block]:
    """Of each question that had an answer; of the ledger the accounts that it holds."""
    yield from known()
    for told in about.answered:
        held = _held(about) if told.question is LEDGER else told.question.terms
        if held:
            yield TermsBlock(told.question.title, tuple(held))


def known() -> Iterator[Block]:
    yield Text("Each number is known in one of these ways:")
    yield Items(BASES)


def _held(about: About) -> list[Term]:
    accounts = {account.name for _, account in about.ledger.result.ledger.account.walk() if account.chip_seconds > 0}
    return [term for name, term in ACCOUNT_TERMS.items() if name in accounts]


def of_questions(questions: tuple[Question, ...]) -> Iterator[Block]:
    yield from (TermsBlock(q.title, q.terms) for q in questions if q.terms)
