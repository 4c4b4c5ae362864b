"""The help of `show`: every question by group, or one with its options and the keys of its answer."""

import textwrap
from typing import Any

from app.cli.columns import columns
from app.groups import GROUPS, group_of, in_order
from app.questions import QUESTIONS
from app.questions.base import Question
from app.questions.forms import form
from errors.options import Option

USAGE = "Usage: chipledger show RUN QUESTION [--json] [--option KEY=VALUE] [--explain] [--store STORE]"
RUN = (
    "RUN is the id or the name of a run, or the beginning of either; `live:NAME`; or, where a model alone answers, "
    "`model:NAME` of the catalogue or `model:FILE`, a config.json."
)
FLAGS = (
    ("--json", "the answer as JSON"),
    ("--option KEY=VALUE", "an option of the question; may be given again"),
    ("--explain", "also what its figures mean"),
    ("show RUN QUESTION --help", "the question's own options with their defaults, and the keys of its answer"),
)


def every_question() -> str:
    """All of them under the heads of the pages' menu, one line each."""
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for question in sorted(QUESTIONS, key=lambda q: in_order(q.name)):
        groups[group_of(question.name)].append((question.name, question.asks))
    parts = [USAGE, _wrapped(RUN), *(columns(group, rows) for group, rows in groups.items() if rows)]
    return "\n\n".join([*parts, columns("Options", FLAGS)]) + "\n"


def one_question(question: Question[Any]) -> str:
    """What it tells, what can be asked of it, and what its answer holds."""
    also = f" (also {', '.join(question.aliases)})" if question.aliases else ""
    parts = [f"{question.name}{also}: {question.asks}", f"Usage: chipledger show RUN {question.name}"]
    if question.options:
        parts.append(columns("Options, each as --option KEY=VALUE", [(o.name, _told(o)) for o in question.options]))
    else:
        parts.append("It takes no options.")
    answer = form(question).get("properties", {})
    parts.append(columns("Its answer under --json", [(key, _kind(answer[key])) for key in answer]))
    where = f"The same on the page /{question.path}?run=RUN and at" if question.file else "The same at"
    ways = f"{where} /api/runs/RUN/show/{question.name}; --explain says what its figures mean."
    return "\n\n".join([*parts, _wrapped(ways)]) + "\n"


def _told(option: Option) -> str:
    """What it means, what may be given, and what holds where nothing is."""
    takes = option.expected or "text"
    default = "" if option.default in (None, (), "") else f"; default: {_word(option.default)}"
    unit = f", {option.unit}" if option.unit else ""
    return f"{option.help} ({takes}{unit}{default})"


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _kind(told: dict[str, Any]) -> str:
    """`number or null, s`: what a key of the answer holds, with its unit."""
    kinds = told.get("type", "object")
    said = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    unit = {"": "", "1": ", a share or a ratio"}.get(told.get("unit", ""), f", {told.get('unit')}")
    more = f": {told['description']}" if told.get("description") else ""
    return f"{said}{unit}{more}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100)
