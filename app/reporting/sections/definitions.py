"""What the words of a report mean: the terms of each question that it tells of, and how numbers are known."""

from collections.abc import Iterator

from analyzers.time.ledger_terms import ACCOUNT_TERMS
from app import theme
from app.questions.ledger import LEDGER
from app.reporting.document import Block, Items, Terms, Text
from app.reporting.gathering import About, Answered
from catalog.terms import Term

NOT_HERE = ("rungs", "gap")  # of the page alone
BASES = tuple(f"{m.glyph} {m.word}: {m.meaning}." for m in theme.BASES.values())


def definitions(about: About) -> Iterator[Block]:
    """Of each question that had an answer; of the ledger the accounts that it holds."""
    yield from known()
    yield from (block for told in about.answered if (block := _of(about, told)).terms)


def of_first(about: About) -> Iterator[Terms]:
    """Of findings and ledger alone."""
    first = (told for told in (about.findings, about.ledger) if told.result is not None)
    return (_of(about, told) for told in first)


def known() -> Iterator[Block]:
    yield Text("Each number is known in one of these ways:")
    yield Items(BASES)


def _of(about: About, told: Answered) -> Terms:
    if told.question is LEDGER:
        return Terms(told.question.title, tuple(_held(about)))
    return Terms(told.question.title, tuple(t for t in told.question.terms if t.name not in NOT_HERE))


def _held(about: About) -> list[Term]:
    accounts = {account.name for _, account in about.ledger.result.ledger.account.walk() if account.chip_seconds > 0}
    return [term for name, term in ACCOUNT_TERMS.items() if name in accounts]
