"""All terms there are, grouped by what they belong to, and which of them a search finds."""

from dataclasses import dataclass, replace

from app.menu import Page
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.questions.ledger import LEDGER
from catalog.glossary import GLOSSARY
from catalog.terms import Term


@dataclass(frozen=True)
class Group:
    """Terms of one question or page; `page` None: the general ones."""

    title: str
    terms: tuple[Term, ...]
    page: Page | None = None


def groups() -> tuple[Group, ...]:
    """The general terms, by name, then those of each question and page. The ledger's are its accounts, told apart."""
    general = Group("General", tuple(sorted(GLOSSARY, key=lambda t: t.name.casefold())))
    pages = dict.fromkeys((*QUESTIONS, *every_page()))
    return (general, *(Group(p.title, p.terms, p) for p in pages if p.terms and p is not LEDGER))


def found(text: str, among: tuple[Group, ...]) -> tuple[Group, ...]:
    """The terms that hold every word of the text, in name, meaning or formula; groups without any go."""
    words = text.casefold().split()
    kept = (replace(g, terms=tuple(t for t in g.terms if all(word in _searched(t) for word in words))) for g in among)
    return tuple(g for g in kept if g.terms)


def _searched(term: Term) -> str:
    return " ".join((term.name, term.meaning, term.formula)).casefold()
