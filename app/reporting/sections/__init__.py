"""The parts of a report, one function each, in the order in which they stand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.reporting.document import Block, Part
from app.reporting.sections import (
    definitions,
    differences,
    facts,
    inputs,
    losses,
    own,
    requests,
    sides,
    untold,
    verdict,
)


@dataclass(frozen=True)
class Section:
    """A part. `name`: of its anchor; `blocks`: of what was gathered; a part without any is left out."""

    name: str
    title: str
    blocks: Callable[[Any], Iterator[Block]]


RUN = (
    Section("short", "In short", verdict.short),
    Section("findings", "What to mend", verdict.findings),
    Section("ledger", "Where the chip time went", verdict.ledger),
    Section("losses", "The largest losses", losses.losses),
    Section("own", "What else it tells", own.own),
    Section("untold", "What could not be told", untold.untold),
    Section("facts", "What is known of the run", facts.facts),
    Section("definitions", "What words and numbers mean", definitions.definitions),
    Section("inputs", "What this was made of", inputs.inputs),
)
"""Of one run; each reads an `About`."""

_BOTH = (
    Section("alone", "Each run by itself", sides.alone),
    Section("read", "What reading the inputs told", sides.read),
    Section("facts", "What is known of both", sides.facts),
    Section("definitions", "What words and numbers mean", sides.definitions),
    Section("inputs", "What this was made of", sides.inputs),
)
JOBS = (
    Section("short", "In short", differences.change),
    Section("differs", "What is known to differ", differences.differs),
    Section("accounts", "Account by account", differences.accounts),
    Section("operations", "Operation by operation", differences.operations),
    Section("untold", "What could not be told", differences.untold),
    *_BOTH,
)
"""Of two jobs, or of two compiled programs; each reads a `Pair`."""
SERVED = (
    Section("short", "In short", requests.change),
    Section("differs", "What is known to differ", differences.differs),
    Section("traffic", "What was asked of both", requests.traffic),
    Section("latencies", "Figure by figure", requests.latencies),
    Section("untold", "What the comparison rests on", requests.untold),
    *_BOTH,
)
"""Of two served runs."""


def parts(sections: tuple[Section, ...], gathered: Any) -> tuple[Part, ...]:
    made = (Part(s.name, s.title, tuple(s.blocks(gathered))) for s in sections)
    return tuple(part for part in made if part.blocks)
