"""All pages, those of questions among them, and which of them tell of a run."""

from app.menu import Page, kind_of
from app.pages import PAGES
from app.questions import QUESTIONS
from app.questions.compiled import COMPILED
from runs.run import Run


def every_page() -> tuple[Page, ...]:
    """Each page once; the first is where an address without a page leads."""
    return tuple(dict.fromkeys((*PAGES, *(q for q in QUESTIONS if q.file))))


def pages_of(run: Run) -> tuple[Page, ...]:
    """The pages that can tell something of a run, in the order of its links: a compiled run begins with its program."""
    pages = [*(q for q in QUESTIONS if q.file), *(p for p in PAGES if p.about)]
    found = tuple(dict.fromkeys(p for p in pages if p.tells_of(run)))
    return (COMPILED, *(p for p in found if p is not COMPILED)) if kind_of(run) == "compiled" else found


def older_addresses() -> dict[str, str]:
    """Where addresses of earlier versions lead: old path -> path."""
    return {old: page.path for page in every_page() for old in page.aliases if old != page.path}
