"""What is known of a run, by whom: its facts, with how each is known."""

import json
from collections.abc import Iterator
from typing import Any

from app import theme
from app.reporting.document import Block, Rows, Text
from app.reporting.gathering import About
from app.words import Table, short
from errors import format as fmt

LONGEST = 400  # characters of a value: a model's configuration is longer than anybody reads


def facts(about: About) -> Iterator[Block]:
    rows = [
        (name.replace("_", " "), value(known.value), f"{theme.mark(known.basis).glyph} {known.basis}", known.source)
        for name, known in sorted(about.run.manifest.facts.items())
    ]
    if rows:
        yield Rows(Table(("fact", "value", "how it is known", "by"), tuple(rows)))
    else:
        yield Text("Nothing is known of it beyond its inputs.")
    if about.tags:
        yield Text(f"Tags: {', '.join(about.tags)}.")


def value(known: Any) -> str:
    """Numbers with thousands apart, objects as JSON, texts as they are; what is very long is cut in the middle."""
    if isinstance(known, bool) or known is None or isinstance(known, str):
        return short(known, LONGEST)
    if isinstance(known, int):
        return short(f"{known:,}", LONGEST)
    return fmt.number(known, 6) if isinstance(known, float) else short(json.dumps(known, ensure_ascii=False), LONGEST)
