"""The parts of a report, one function each, in the order in which they stand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.reporting.document import Block, Part
from app.reporting.sections import definitions, facts, inputs, losses, own, untold, verdict


@dataclass(frozen=True)
class Section:
    """A part. `name`: of its anchor; `blocks`: of what was gathered; a part without any is left out."""

    name: str
    title: str
    blocks: Callable[[Any], Iterator[Block]]


RUN = (
    Section("verdict", "What is wrong, and what it is worth", verdict.findings),
    Section("ledger", "Where the chip time went", verdict.ledger),
    Section("losses", "The largest losses", losses.losses),
    Section("own", "What it did", own.own),
    Section("untold", "What could not be told", untold.untold),
    Section("facts", "What is known of the run", facts.facts),
    Section("definitions", "What the words and numbers mean", definitions.definitions),
    Section("inputs", "What this was made of", inputs.inputs),
)
"""Of one run; each reads an `About`."""


def parts(sections: tuple[Section, ...], gathered: Any) -> tuple[Part, ...]:
    made = (Part(s.name, s.title, tuple(s.blocks(gathered))) for s in sections)
    return tuple(part for part in made if part.blocks)
