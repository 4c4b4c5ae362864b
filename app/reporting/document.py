"""What a report is before it is written: parts made of blocks of plain text, rows and figures.

All text is plain, as inputs and answers have it: each writer escapes it in its own way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import plotly.graph_objects as go

from app import theme
from app.words import Table
from catalog.terms import Term


@dataclass(frozen=True)
class Text:
    """A paragraph. `kind`: plain, verdict (said first and larger) or quiet (beside the matter)."""

    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Head:
    """A heading within a part."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """A table. `note`: what is said below it, such as how many rows more there are."""

    table: Table
    note: str = ""


@dataclass(frozen=True)
class Number:
    """A figure of a page: its value with unit, what it means and how it is known, a key of `theme.BASES`."""

    label: str
    value: str
    meaning: str
    basis: str

    @property
    def known(self) -> str:
        mark = theme.mark(self.basis)
        return f"{mark.glyph} {mark.word}"


@dataclass(frozen=True)
class Numbers:
    numbers: tuple[Number, ...]


@dataclass(frozen=True)
class Picture:
    """A figure, drawn where there is a browser. `says`: the sentence before it; `words`: what it shows, for who cannot
    see it."""

    figure: go.Figure
    says: str
    words: str


@dataclass(frozen=True)
class Terms:
    """Definitions of what one question, or one page, names."""

    title: str
    terms: tuple[Term, ...]


Block = Text | Head | Items | Rows | Numbers | Picture | Terms


@dataclass(frozen=True)
class Part:
    """A part with its heading. `name`: where a link within the file leads."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report. `about`: what it is about in a line; `marks`: what must be known before anything is read, such as
    that nobody ran this; `made`: when and by what."""

    title: str
    about: str
    marks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = field(default=())
    made: str = ""

    def pictures(self) -> Iterator[Picture]:
        return (block for part in self.parts for block in part.blocks if isinstance(block, Picture))
