"""A document as one HTML file that opens without a server and without a network.

What came from inputs is text and nothing else: it is escaped wherever it stands, figures lie as JSON in blocks that no
browser runs, and of scripts those alone may run whose hashes the policy at the head of the file names: the drawing and
plotly itself, which is packed with gzip and unpacked by the browser. Without JavaScript text and tables stand.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from functools import cache, singledispatch
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from app.figures.base import GRID, toolbar
from app.reporting.document import Block, Document, Head, Items, Numbers, Part, Picture, Rows, Terms, Text
from catalog.terms import Term

_HERE = Path(__file__).parent
_TAGS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_SAFE = str.maketrans(_TAGS)
CLASSES = {"plain": "", "verdict": ' class="verdict"', "quiet": ' class="quiet"'}
DEEPEST = 6  # as the style sheet has it
_AXIS = {"automargin": True, "gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID}
TEMPLATE = {"layout": {"xaxis": _AXIS, "yaxis": _AXIS}}
HEIGHT = 400  # px, of a figure that says none
NO_FIGURES = "Figures need JavaScript; the text and the tables are whole without it."


def html(document: Document) -> bytes:
    figures = list(document.pictures())
    numbers = {id(picture): number for number, picture in enumerate(figures)}
    body = "\n".join(_part(part, numbers) for part in document.parts)
    data = "\n".join(_data(number, picture, document.title) for number, picture in enumerate(figures))
    text = _filled(
        "report.html",
        policy=policy(bool(figures)),
        title=escape(document.title),
        style=_file("report.css"),
        head=_head(document, bool(figures)),
        body=body,
        made=escape(document.made),
        scripts=_scripts(data) if figures else "",
    )
    return text.encode("utf-8", "replace")


def policy(figures: bool) -> str:
    """Nothing may be fetched; of scripts those of these hashes run. Plotly sets styles of its own while it draws."""
    scripts = " ".join(_hash(text) for text in (_file("report.js"), _plotly())) if figures else "'none'"
    rest = "img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; {rest}"


def _head(document: Document, figures: bool) -> str:
    marks = (f'<p class="mark">{escape(mark)}</p>' for mark in document.marks)
    links = "\n".join(f'<li><a href="#{p.name}">{escape(p.title)}</a></li>' for p in document.parts)
    return "\n".join(
        (
            f'<header>\n<h1>{escape(document.title)}</h1>\n<p class="about">{escape(document.about)}</p>',
            *marks,
            f'<p class="quiet" id="lacks">{NO_FIGURES}</p>' if figures else "",
            f'<nav aria-label="Parts of this report"><ul>\n{links}\n</ul></nav>\n</header>',
        )
    )


def _part(part: Part, numbers: dict[int, int]) -> str:
    blocks = "\n".join(_picture(b, numbers[id(b)]) if isinstance(b, Picture) else _block(b) for b in part.blocks)
    head = f'<section id="{part.name}" aria-labelledby="{part.name}-h">\n<h2 id="{part.name}-h">'
    return f"{head}{escape(part.title)}</h2>\n{blocks}\n</section>"


def _picture(picture: Picture, number: int) -> str:
    height = int(picture.figure.layout.height or HEIGHT)
    place = f'id="figure-{number}" data-figure="data-{number}" data-height="{height}"'
    alone = f'role="img" aria-label="{escape(picture.words)}"'
    return (
        f"<figure>\n<figcaption>{escape(picture.says)}</figcaption>\n"
        f'<div class="figure" {place} {alone}></div>\n</figure>'
    )


@singledispatch
def _block(block: Block) -> str:
    raise TypeError(f"no HTML for {type(block).__name__}")


@_block.register
def _(block: Text) -> str:
    return f"<p{CLASSES[block.kind]}>{escape(block.text)}</p>"


@_block.register
def _(block: Head) -> str:
    return f"<h3>{escape(block.text)}</h3>"


@_block.register
def _(block: Items) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape(text)}</li>" for text in block.texts) + "\n</ul>"


@_block.register
def _(block: Numbers) -> str:
    return '<dl class="numbers">\n' + "\n".join(map(_number, block.numbers)) + "\n</dl>"


def _number(number: Any) -> str:
    return (
        f"<div><dt>{escape(number.label)}</dt><dd><strong>{escape(number.value)}</strong>"
        f"<span>{escape(number.known)}</span><small>{escape(number.meaning)}</small></dd></div>"
    )


@_block.register
def _(block: Rows) -> str:
    table = block.table
    head = "".join(f'<th scope="col"{_right(i, table.right)}>{escape(text)}</th>' for i, text in enumerate(table.head))
    rows = "\n".join(_row(row, table.right) for row in table.rows)
    note = f'<p class="quiet">{escape(block.note)}</p>' if block.note else ""
    called = escape(", ".join(filter(None, table.head)))
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{called}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{note}"
    )


def _right(column: int, right: tuple[int, ...]) -> str:
    return ' class="right"' if column in right else ""


def _row(cells: Sequence[str], right: tuple[int, ...]) -> str:
    return f"<tr>{''.join(_cell(i, text, right) for i, text in enumerate(cells))}</tr>"


def _cell(column: int, text: str, right: tuple[int, ...]) -> str:
    """Parts of an account are set in by spaces, which HTML would drop."""
    bare = text.lstrip(" ")
    deep = min((len(text) - len(bare)) // 2, DEEPEST)
    return f"<td{_right(column, right)}{f' data-deep={deep}' if deep else ''}>{escape(bare)}</td>"


@_block.register
def _(block: Terms) -> str:
    return f'<h3>{escape(block.title)}</h3>\n<dl class="terms">\n' + "\n".join(map(_term, block.terms)) + "\n</dl>"


def _term(term: Term) -> str:
    unit = f' <span class="quiet">({escape(term.unit)})</span>' if term.unit else ""
    formula = f"<br><code>{escape(term.formula)}</code>" if term.formula else ""
    source = f'<br><span class="quiet">Source: {escape(term.source)}.</span>' if term.source else ""
    return f"<dt>{escape(term.name)}{unit}</dt><dd>{escape(term.meaning)}{formula}{source}</dd>"


def _data(number: int, picture: Picture, title: str) -> str:
    """A figure as JSON that ends no script and begins none."""
    figure = go.Figure(picture.figure)
    figure.update_layout(template=TEMPLATE)
    text = f'{{"figure": {figure.to_json()}, "config": {_config(title, number)}}}'
    return _filled("report_data.html", number=str(number), text=text.translate(_SAFE))


def _config(title: str, number: int) -> str:
    return json.dumps({**toolbar(f"{title}-{number + 1}"), "responsive": True})


def _scripts(data: str) -> str:
    packed = base64.b64encode(_packed()).decode()
    return _filled("report_scripts.html", data=data, plotly=packed, drawing=_file("report.js"))


def _filled(name: str, **parts: str) -> str:
    """A file with its places filled. What is put there is not looked through for places again."""
    return Template(_file(name)).substitute(parts)


@cache
def _plotly() -> str:
    return get_plotlyjs()


@cache
def _packed() -> bytes:
    """A third of the size. No time is written into it: the same report is the same bytes."""
    return gzip.compress(_plotly().encode(), 9, mtime=0)


@cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
