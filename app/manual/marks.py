"""Markdown of what the records hold: cells, tables of options, lists of terms."""

from collections.abc import Callable, Iterable, Sequence

from app.options import AGAIN, form_of
from catalog.terms import Term
from errors.options import Option

WRITTEN = "<!-- Written by `make docs` from the code: change it there. -->"


def page(title: str, *parts: str) -> str:
    """A whole page. The title stands first: menus take it from there."""
    return "\n\n".join([f"# {title}", WRITTEN, *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown already."""
    return "\n".join([_line(head), f"|{'---|' * len(head)}", *map(_line, rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def options(told: Sequence[Option]) -> str:
    """Options of a question, by their names."""
    rows = (
        (
            f"`{o.name}`",
            cell(o.expected or "text"),
            cell(o.unit),
            cell("" if o.default is None else o.default),
            cell(o.help),
        )
        for o in told
    )
    return table(("option", "takes", "unit", "default", "meaning"), rows)


def flags(told: Sequence[Option]) -> str:
    """Options of a command by their flags; of texts it is said where each can be given."""
    return _flags(told, _where)


def typed(told: Sequence[Option]) -> str:
    """Options of a command by their flags, with what follows the flag on a terminal."""
    return _flags(told, _typed)


def _flags(told: Sequence[Option], takes: Callable[[Option], str]) -> str:
    rows = []
    for o in told:
        default = "" if o.switch or o.default in (None, ()) else o.default
        default = int(default) if isinstance(default, float) and default.is_integer() else default
        rows.append((f"`{o.flag}`", cell(takes(o)), cell(o.unit), cell(default), cell(o.help)))
    return table(("option", "takes", "unit", "default", "meaning"), rows)


def _where(o: Option) -> str:
    if o.local and o.several:
        return f"`{o.form}`, on the command line alone{AGAIN}"
    text = "a run of the store" if o.of_run else "a file, on the command line alone" if o.local else "text"
    return (o.expected or text) + (AGAIN if o.several else "")


def _typed(o: Option) -> str:
    if o.switch:
        return "" if o.default is False else f"nothing; `--no-{o.flag[2:]}`: not"
    takes = o.expected or ("a run of the store" if o.of_run else f"`{form_of(o)}`")
    alone = f"; alone: {o.bare}" if o.bare else ""
    return takes + alone + (AGAIN if o.several else "")


def terms(told: Sequence[Term]) -> str:
    """What figures mean, one line each."""
    lines = []
    for term in told:
        more = [f"`{term.formula}`" if term.formula else "", f"Unit: {term.unit}." if term.unit else ""]
        more.append(f"Source: {term.source}." if term.source else "")
        lines.append(" ".join(filter(None, (f"* **{cell(term.name)}**: {cell(term.meaning)}", *more))))
    return "\n".join(lines)


def names(told: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in told)


def cell(value: object) -> str:
    """Text in a table or a line: no cell ends early, and nothing outside `code` is emphasis or HTML."""
    parts = " ".join(str(value).split()).replace("|", "\\|").split("`")
    return "`".join(_plain(part) if i % 2 == 0 else part for i, part in enumerate(parts))


def _plain(text: str) -> str:
    for mark in "\\*_":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")
