"""All pages, those of questions among them, and which of them tell of a run."""

from app.groups import GROUPS, PROGRAM, group_of, in_order
from app.menu import Page, kind_of
from app.pages import PAGES
from app.questions import QUESTIONS
from app.questions.compiled import COMPILED
from runs.run import Run


def every_page() -> tuple[Page, ...]:
    """Each page once; the first is where an address without a page leads."""
    return tuple(dict.fromkeys((*PAGES, *(q for q in QUESTIONS if q.file))))


def pages_of(run: Run) -> tuple[Page, ...]:
    """The pages that can tell something of a run: of a compiled one its program first."""
    return tuple(p for p in _pages_about(run) if p.tells_of(run))


def grouped(run: Run) -> dict[str, list[tuple[Page, bool]]]:
    """The pages about runs of this kind by group, each with whether it can tell something of this one; of a compiled
    run its program first."""
    groups = dict[str, list[tuple[Page, bool]]]()
    heads = sorted(GROUPS, key=lambda head: head != PROGRAM) if kind_of(run) == "compiled" else GROUPS
    pages = sorted(_pages_about(run), key=lambda page: in_order(page.name))
    for head in heads:
        if told := [(page, page.tells_of(run)) for page in pages if group_of(page.name) == head]:
            groups[head] = told
    return groups


def _pages_about(run: Run) -> list[Page]:
    kind = kind_of(run)
    pages = dict.fromkeys(p for p in (*(q for q in QUESTIONS if q.file), *PAGES) if kind in p.about)
    return sorted(pages, key=lambda p: p is not COMPILED) if kind == "compiled" else list(pages)


def older_addresses() -> dict[str, str]:
    """Where addresses of earlier versions lead: old path -> path."""
    return {old: page.path for page in every_page() for old in page.aliases if old != page.path}
