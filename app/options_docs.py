"""`docs/options.md`, made of the options in code. `make docs` writes it; a test sees that it is so."""

import re
from collections.abc import Iterable
from pathlib import Path

from app.questions import QUESTIONS
from app.whatif import WHATIFS
from errors.options import Option

FILE = Path(__file__).parents[1] / "docs" / "options.md"
HEAD = """# Options

Made by `make docs` from the options in code: do not edit it.

An option of a question is `--option NAME=VALUE` of `chipledger show RUN QUESTION`, a parameter of
`/api/runs/RUN/show/QUESTION`, and stands in the address of the question's page. An option of a what-if is a flag of
`chipledger whatif NAME` and a parameter of `/api/whatif/NAME`; those of files exist on the command line alone.
"""
_DEFAULT = re.compile(r"(?: \(default: (?P<inside>.+)\)|; default:? (?P<after>[^;]+))$")


def text() -> str:
    """The whole file."""
    parts = [HEAD, "## Questions\n"]
    for question in QUESTIONS:
        parts.append(f"### `{question.name}`: {question.asks}\n")
        parts.append(_table((o.name, o) for o in question.options))
    parts.append("## What-ifs\n")
    for whatif in WHATIFS:
        parts.append(f"### `{whatif.name}`: {whatif.help}\n")
        parts.append(_table((o.flag, o) for o in whatif.options))
    return "\n".join(parts)


def _table(rows: Iterable[tuple[str, Option]]) -> str:
    lines = [f"| `{name}` | {' | '.join(_cells(option))} |" for name, option in rows]
    if not lines:
        return "No options.\n"
    return "\n".join(["| option | unit | may be | default | meaning |", "|---|---|---|---|---|", *lines, ""])


def _cells(option: Option) -> tuple[str, str, str, str]:
    """Unit, range, default and meaning."""
    meaning = option.help
    default = "" if option.default in (None, ()) else str(option.default)
    if not default and (found := _DEFAULT.search(meaning)):
        default = (found["inside"] or found["after"]).strip()
        meaning = meaning[: found.start()]
    may = option.expected or ("a run of the store" if option.of_run else "a file" if option.local else "text")
    if option.several:
        may += ", again and again"
    notes = "; on the command line alone" if option.local else ""
    return tuple(cell.replace("|", "\\|") for cell in (option.unit, may, default, meaning + notes))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
