"""What a run could not tell and what would tell it, and what was looked for and is not there."""

from collections.abc import Iterator

from app.reporting.document import Block, Head, Items, Text
from app.reporting.gathering import About
from app.words import sentence
from catalog.cures import WRONGS


def untold(about: About) -> Iterator[Block]:
    result = about.findings.result
    gaps = () if result is None else tuple(_gap(g.causes, g.why, g.add) for g in result.not_told)
    missing = tuple(f"{a.question.title}: {a.why}" for a in (about.findings, about.ledger, *about.own) if a.why)
    warnings = tuple(about.run.manifest.warnings)
    if gaps or missing:
        yield Items(gaps + missing)
    else:
        yield Text("Every question that findings rest on had an answer.")
    if result is not None and (result.ruled_out or result.explained):
        yield Head("Looked for and ruled out")
        yield Items(
            tuple(f"{WRONGS[out.cause].title}: {out.why}." for out in result.ruled_out)
            + tuple(f"{WRONGS[other.cause].title}: explained by a finding above." for other in result.explained)
        )
    if warnings:
        yield Head("What reading the inputs told")
        yield Items(warnings)


def _gap(causes: tuple[str, ...], why: str, add: str) -> str:
    names = ", ".join(WRONGS[c].title.lower() for c in causes if c in WRONGS)
    return f"{sentence(names)}: {why}.{f' Add {add}.' if add else ''}"
