"""`runs`: which runs there are, a page at a time."""

from collections.abc import Mapping
from typing import Any

from app.library.columns import Row
from app.library.columns import named as column
from app.library.rows import NEWEST, library
from app.library.search import read
from app.listing_options import QUERY
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import to
from app.mcp.tools import history
from app.mcp.tools.baselines import BASELINE, told_of
from app.questions.findings import FINDINGS
from app.serve.places import placeless
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import Number
from errors.options import Option

SEARCH = Option("search", str, "", "words, and terms: chip:v5p mfu<30 goodput>=90 tag:k=v kind:serving -is:archived")
SORT = Option("sort", str, NEWEST, "column, - before it for the largest first, such as -mfu or cost", form="COLUMN")
PAGE = Option("page", Number(1, 1_000_000, whole=True), 1, "which page of the list")
ROWS = Option("rows", Number(1, 100, whole=True), 20, "runs on a page")
LEFT_OUT = ("tables", "live", "stored_name", "noted", "pending")  # long, or told of one run by its own address


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    if name := given.get(BASELINE.name):
        return told_of(place, name)
    if given.get(history.METRIC.name):
        return history.told_of(place, given)
    words, page = given.get(SEARCH.name, ""), given.get(PAGE.name, PAGE.default)
    rows, sort = given.get(ROWS.name, ROWS.default), given.get(SORT.name, SORT.default)
    found = library(place, words, sort=sort, limit=rows, offset=(page - 1) * rows, hidden=True)
    pages = max(-(-found.found // rows), 1)
    if page > pages:
        raise QuestionError(f"page {page:,} of the runs", expected=f"1 to {pages:,}")
    told = [_told(row, place) for row in found.rows]
    body = {"runs": told, "page": page, "pages": pages, "found": found.found}
    if found.pending and (read(words).worked_out or column(sort.removeprefix("-")).worked_out):
        body["pending"] = found.pending  # the search or the order may change once their numbers are there
    says = _says(found.found, words, page, pages)
    if found.archived and not read(words).asks("archived"):
        says += f" {found.archived:,} more archived: search is:archived."
    asked = [*([(QUERY.name, words)] if words.strip() else []), *([(SORT.name, sort)] if sort != SORT.default else [])]
    return Told(says, body, {"page": to("/", *asked), "json": to("/api/runs", *asked)})


def _told(row: Row, place: Workspace) -> dict[str, Any]:
    short = {k: v for k, v in row.to_dict().items() if k not in LEFT_OUT}
    short["numbers"] = {name: value for name, value in short["numbers"].items() if value is not None}
    short["problem"] = row.problem and placeless(row.problem, place.store.root)
    return short | ({"links": _links(row)} if row.readable else {})


def _says(found: int, words: str, page: int, pages: int) -> str:
    searched = f" found for {words[:80]!r}" if words.strip() else ""
    return f"{fmt.count(found, 'run')}{searched}; page {page} of {pages}."


def _links(row: Row) -> dict[str, str]:
    return {"page": to(f"/{FINDINGS.path}", ("run", row.address)), "json": f"/api/runs/{row.run_id}"}


RUNS = Tool(
    name="runs",
    title="Runs",
    help="List the runs in the store, newest first: id, name, kind, chips, model, tags, MFU, goodput, cost. Every "
    "other tool takes an id, the beginning of one, or a name.",
    options=(SEARCH, SORT, PAGE, ROWS, BASELINE, history.METRIC, history.BY),
    answer=answer,
)
