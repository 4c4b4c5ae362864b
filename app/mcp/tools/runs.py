"""`runs`: which runs there are, a page at a time."""

from collections.abc import Mapping
from typing import Any

from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import named, to
from app.questions.findings import FINDINGS
from app.serve.places import placeless
from app.summary import broken_dict, matches, run_dict
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import Number
from errors.options import Option
from runs.run import Run

SEARCH = Option("search", str, "", "words that all occur in a run's id, name, kind, chip, model or tags")
PAGE = Option("page", Number(1, 1_000_000, whole=True), 1, "which page of the list, newest first")
ROWS = Option("rows", Number(1, 100, whole=True), 20, "runs on a page")
LEFT_OUT = ("tables", "live")  # long, and told of one run by its own address


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    words, page = given.get(SEARCH.name, ""), given.get(PAGE.name, PAGE.default)
    rows = given.get(ROWS.name, ROWS.default)
    found = place.store.look()
    extras = place.registry.all_extras([r.run_id for r in found.runs])
    read = {r.run_id for r in found.runs}
    kept: list[Run | str] = [r for r in found.runs if matches(r, extras[r.run_id], words)]
    kept += [i for i in sorted(set(found.broken) - read) if all(w in i for w in words.casefold().split())]
    pages = max(-(-len(kept) // rows), 1)
    if page > pages:
        raise QuestionError(f"page {page:,} of the runs", expected=f"1 to {pages:,}")
    told = [
        broken_dict(r, placeless(found.broken[r], place.store.root))
        if isinstance(r, str)
        else run_dict(r, extras[r.run_id]) | {"links": _links(r, place)}
        for r in kept[(page - 1) * rows : page * rows]
    ]
    short = [{k: v for k, v in row.items() if k not in LEFT_OUT} for row in told]
    body = {"runs": short, "page": page, "pages": pages, "found": len(kept)}
    return Told(_says(len(kept), words, page, pages), body, {"page": "/", "json": "/api/runs"})


def _says(found: int, words: str, page: int, pages: int) -> str:
    searched = f" found for {words[:80]!r}" if words.strip() else ""
    return f"{fmt.count(found, 'run')}{searched}; page {page} of {pages}."


def _links(run: Run, place: Workspace) -> dict[str, str]:
    page = to(f"/{FINDINGS.path}", ("run", named(run, place)))
    return {"page": page, "json": f"/api/runs/{run.run_id}"}


RUNS = Tool(
    name="runs",
    title="Runs",
    help="List the runs in the store, newest first: id, name, kind, chips, model, tags. Every other tool takes an id, "
    "the beginning of one, or a name.",
    options=(SEARCH, PAGE, ROWS),
    answer=answer,
)
