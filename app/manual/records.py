"""A page of the docs for each question and each page of the product, of their records, with its picture."""

from collections.abc import Iterator, Mapping
from typing import Any

from analyzers.program.choosing import NEEDED
from app.components.howto import INPUTS
from app.groups import GROUPS, SECTIONS, group_of, in_order, section_of
from app.manual import marks
from app.manual.pictures import Seen, seen
from app.manual.reading import readings
from app.menu import Page
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.questions.base import Question
from app.questions.forms import form
from app.whatif import WHATIFS

KINDS = {
    "job": "a job that ran, was profiled or simulated",
    "serving": "requests that were served",
    "compiled": "a program that was compiled",
}
HEAD = (
    "Each is asked the same way on its page, on the command line and over the API. `RUN` is the id, the beginning of "
    "an id or the name of a run; questions that a model alone answers also take `model:NAME`, and over the API "
    "`/api/models/NAME/show/QUESTION`. `show RUN QUESTION --explain` prints what the figures mean, `/api/questions` "
    "tells all of this as JSON, and `/api/questions/QUESTION/form` the form of an answer as JSON Schema."
)
NULL = "may be unknown (`null`)"


def questions_text() -> str:
    """docs/questions.md: every question by its group, then the what-ifs, each with what it asks."""
    parts = [f"## {head}\n\n{_listed(questions)}" for head, questions in questions_by_group().items()]
    whatifs = [f"* `chipledger whatif {w.name}`, `/api/whatif/{w.name}`: {w.help}" for w in WHATIFS]
    return marks.page("Questions", HEAD, *parts, "## What would be", "\n".join(whatifs))


def questions_by_group() -> dict[str, list[Question[Any]]]:
    """As the menus of a run have them."""
    questions = sorted(QUESTIONS, key=lambda q: in_order(q.name))
    return {head: told for head in GROUPS if (told := [q for q in questions if group_of(q.name) == head])}


def pages_by_section() -> dict[str, list[Page]]:
    """The pages that are no question's, as the bar at the top has them; those of no section first."""
    pages = [p for p in every_page() if p not in QUESTIONS]
    return {head: told for head in SECTIONS if (told := [p for p in pages if section_of(p.name) == head])}


def _listed(questions: list[Question[Any]]) -> str:
    rows = [
        (
            f"[{q.title}](questions/{q.name}.md)",
            marks.cell(q.asks),
            f"`chipledger show RUN {q.name}`",
            f"`/{q.path}`" if q.file else "",
        )
        for q in questions
    ]
    return marks.table(("question", "what it asks", "command", "page"), rows)


def pages_text() -> str:
    """docs/pages/index.md: the pages that are no question's."""
    pages = [p for told in pages_by_section().values() for p in told]
    rows = [(f"[{p.title}]({p.name}.md)", f"`/{p.path}`", marks.cell(p.asks)) for p in pages]
    head = (
        "The pages of a run answer [questions](../questions.md). These are about all runs, about two of them, or about "
        "none."
    )
    return marks.page("Pages", head, marks.table(("page", "address", "what for"), rows))


def page_text(page: Page) -> str:
    """docs/pages/NAME.md."""
    where = f"* Address: `/{page.path}`."
    if page.about:
        where += f"\n* Tells of: {_about(page)}."
    return marks.page(page.title, page.asks, *_picture(page), where, *_meanings(page))


def question_text(q: Question[Any]) -> str:
    """docs/questions/NAME.md."""
    where = f"`/{q.path}`" if q.file else "none"
    lines = [f"* Page: {where}; command: `chipledger show RUN {q.name}`; API: `/api/runs/RUN/show/{q.name}`."]
    if q.aliases:
        lines.append(f"* Older names, which still lead here: {marks.names(q.aliases)}.")
    if q.explains:
        told = "; ".join(f"`{account}` ({text[0].lower()}{text[1:]})" for account, text in q.explains.items())
        lines.append(f"* Gives the reasons of the accounts {told}.")
    parts = [q.asks, *_picture(q), "\n".join(lines), "## What it needs", _needs(q)]
    parts += ["## Options", marks.options(q.options) if q.options else "No options."]
    parts += [*_meanings(q), "## The answer as JSON", *_keys(q)]
    return marks.page(q.title, *parts)


def _picture(page: Page) -> list[str]:
    """What the page looked like when its picture was taken, and the headings that it had."""
    told: Seen | None = seen().get(page.name)
    if told is None:
        return []
    of = f" of the run *{marks.cell(told.run)}*" if told.run else ""
    picture = f"../pictures/{page.name}.webp"
    lines = [f"[![{page.title}]({picture})]({picture})", f"The page{of}."]
    lines += [readings()[page.name]] if page.name in readings() else []
    if told.headings:
        lines.append(f"From above it shows: {'; '.join(marks.cell(h) for h in told.headings)}.")
    return lines


def _about(page: Page) -> str:
    return "; ".join(
        f"{KINDS[kind]}{', with a table ' + ' or '.join(f'`{t}`' for t in tables) if tables else ''}"
        for kind, tables in page.about.items()
    )


def _needs(q: Question[Any]) -> str:
    lines = [f"* It tells of {_about(q)}."] if q.about else []
    if q.inputs:
        lines.append(f"* Its answer is made of the tables {marks.names(q.inputs)}.")
    if q.program:
        lines.append(f"* {marks.cell(NEEDED)}")
    brings = [i for i in INPUTS if i.table in q.inputs]
    parts = ["\n".join(lines)] if lines else []
    parts += [f"**`{i.table}`** comes from {marks.cell(i.name)}: {marks.cell(i.brings)}." for i in brings]
    return "\n\n".join(parts) or "Nothing but a model."


def _meanings(page: Page) -> list[str]:
    return ["## What its figures mean", marks.terms(page.terms)] if page.terms else []


def _keys(q: Question[Any]) -> list[str]:
    declared = form(q)
    rows = list(_rows(declared.get("properties", {}), declared.get("$defs", {}), set(declared.get("required", ()))))
    head = f"Of `chipledger show RUN {q.name} --json` and of the API; `[]` stands for each of a list, `*` for any name."
    return [head, marks.table(("key", "holds", "unit"), rows)]


def _rows(
    properties: Mapping[str, Any], defs: Mapping[str, Any], required: set[str], above: str = "", within: tuple = ()
) -> Iterator[tuple[str, str, str]]:
    """One row a key, those of objects and of lists of objects below it; what holds itself is told once."""
    for key, told in properties.items():
        path = f"{above}{key}"
        yield _row(path, told, key in required)
        name, inner = _inner(told)
        while inner.get("$ref"):
            name, inner = inner["$ref"].rpartition("/")[2], defs.get(inner["$ref"].rpartition("/")[2], {})
            if name in within:
                inner = {}
        below = {"properties": {}, **inner}
        mark = "[]." if _kind(told) == "array" else "."
        if isinstance(below.get("additionalProperties"), Mapping):
            below["properties"] = {**below["properties"], "*": below["additionalProperties"]}
        yield from _rows(below["properties"], defs, set(below.get("required", ())), path + mark, (*within, name))


def _inner(told: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(told.get("items"), Mapping):
        return "", told["items"]
    return "", told


def _kind(told: Mapping[str, Any]) -> str:
    kinds = told.get("type", "")
    return next((k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null"), "")


def _row(path: str, told: Mapping[str, Any], required: bool) -> tuple[str, str, str]:
    kind, kinds = _kind(told), told.get("type", "")
    holds = {"array": "a list", "object": "an object", "number": "a number", "integer": "a whole number"}.get(kind, "")
    holds = holds or {"string": "text", "boolean": "true or false"}.get(kind, "any value")
    if "enum" in told:
        holds = "one of " + marks.names(str(v) for v in told["enum"] if v is not None)
    if not isinstance(kinds, str) and "null" in kinds:
        holds += f", {NULL}"
    return f"`{path}`", holds if required else f"{holds}; may be missing", told.get("unit", "")
