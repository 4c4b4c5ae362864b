"""Where an answer stands on the server, as paths from its address."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

from app.mcp.arguments import Pairs
from app.pages.all import every_page
from app.questions.asking import ModelSubject, Subject
from app.questions.base import Question
from app.workspace import Workspace
from runs.run import Run


def named(run: Run, place: Workspace) -> str:
    """What stands for a run in addresses: the name of its live run where it is a snapshot of one, else its id."""
    live = place.store.live.current(run.run_id)
    return live.address if live else run.run_id


def to(path: str, *given: tuple[str, str]) -> str:
    """An address with its parameters."""
    return f"{path}?{urlencode(given, quote_via=quote, safe=':')}" if given else path


def answer_links(asked: Question[Any], subject: Subject, given: Pairs, place: Workspace) -> dict[str, str]:
    """Of the answer to a question: its page, where it has one, and its JSON."""
    if isinstance(subject, ModelSubject):
        who, path = ("model", subject.name), f"/api/models/{quote(subject.name, safe='')}"
    else:
        who, path = ("run", named(subject, place)), f"/api/runs/{subject.run_id}"
    page = {"page": to(f"/{asked.path}", who, *given)} if asked.file else {}
    return page | {"json": to(f"{path}/show/{asked.name}", *given)}


def page_links(asked: Iterable[Question[Any]], run: Run, place: Workspace) -> dict[str, str]:
    """The pages of several questions about a run, by the question's name."""
    return {q.name: to(f"/{q.path}", ("run", named(run, place))) for q in asked if q.file}


def page_of(file: str) -> str:
    """The address of the page in this file below `app/`; empty where there is none."""
    return next((f"/{p.path}" for p in every_page() if file and p.file == file), "")
