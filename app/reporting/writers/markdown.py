"""A document as Markdown, without figures: for issues, reviews and whatever else shows text."""

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch

from app.reporting.document import Block, Document, Head, Items, Number, Numbers, Part, Picture, Rows, Terms, Text
from catalog.terms import Term

MEANT = re.compile(r"[\\`*_\[\]<>|#&~$^]")
BEGINS = re.compile(r"^(\d*)([-+=.)])(?=\s|$|[-=])")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\S)(?=@)", re.IGNORECASE)
JOINER = "\u2060"  # takes no room; without it an address in plain text would become a link
SET_IN = "\u2003"  # an em space: plain ones at the beginning of a cell are dropped


def md(text: object) -> str:
    """Any text on one line as Markdown that shows exactly it: what means something anywhere is escaped, and what begins
    a list or a rule. All else stays as it is, since such a file is read in an editor too."""
    line = ADDRESS.sub(JOINER, " ".join(str(text).split()))
    return BEGINS.sub(r"\1\\\2", MEANT.sub(lambda found: f"\\{found[0]}", line))


def markdown(document: Document) -> bytes:
    marks = [f"> **{md(mark)}**" for mark in document.marks]
    head = [f"# {md(document.title)}", md(document.about), *marks]
    made = f"---\n\n{md(document.made)} Figures are in the HTML of this report."
    return ("\n\n".join([*head, *map(_part, document.parts), made]) + "\n").encode("utf-8", "replace")


def _part(part: Part) -> str:
    return "\n\n".join([f"## {md(part.title)}", *filter(None, map(_block, part.blocks))])


@singledispatch
def _block(block: Block) -> str:
    raise TypeError(f"no Markdown for {type(block).__name__}")


@_block.register
def _(block: Text) -> str:
    text = md(block.text)
    return f"**{text}**" if block.kind == "verdict" else f"*{text}*" if block.kind == "quiet" else text


@_block.register
def _(block: Head) -> str:
    return f"### {md(block.text)}"


@_block.register
def _(block: Items) -> str:
    return "\n".join(f"- {md(text)}" for text in block.texts)


@_block.register
def _(block: Numbers) -> str:
    return _table(("figure", "value", "how it is known", "meaning"), [_number(n) for n in block.numbers], (1,))


def _number(number: Number) -> tuple[str, ...]:
    return (number.label, number.value, number.known, number.meaning)


@_block.register
def _(block: Rows) -> str:
    note = f"\n\n*{md(block.note)}*" if block.note else ""
    return _table(block.table.head, block.table.rows, block.table.right) + note


@_block.register
def _(block: Picture) -> str:
    """What it shows in words; the figure itself is in the HTML."""
    return f"*{md(block.says)}*"


@_block.register
def _(block: Terms) -> str:
    return "\n".join([f"### {md(block.title)}", "", *map(_term, block.terms)])


def _term(term: Term) -> str:
    unit = f" ({md(term.unit)})" if term.unit else ""
    return f"- **{md(term.name)}**{unit}: {md(term.text)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    return "\n".join(map(_line, (map(_cell, head), rule, *(map(_cell, row) for row in rows))))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """A bar in a text is escaped with all else that means something; what is set in stays so."""
    bare = text.lstrip(" ")
    return SET_IN * ((len(text) - len(bare)) // 2) + md(bare)
