"""What is wrong with a run and what that is worth, and its ledger: the words, numbers and figures of these pages."""

from collections.abc import Iterator

from analyzers.findings import FindingsResult
from analyzers.findings.base import Finding
from app import theme
from app.questions.findings.words import evidence
from app.questions.ledger.icicle import icicle
from app.reporting.document import Block, Head, Items, Number, Numbers, Picture, Rows, Text
from app.reporting.gathering import About, Answered
from app.words import sentence
from catalog.cures import EFFORTS, WRONGS
from errors import format as fmt


def short(about: About) -> Iterator[Block]:
    """The verdict with the figures below it, and where the chip time went as a picture."""
    told = about.findings
    if told.result is None:
        yield from (Text(own.verdict, "verdict") for own in about.own if own.result is not None)
        yield Text(f"What is wrong with this run cannot be told: {told.why}")
    else:
        yield Text(told.verdict, "verdict")
        yield Numbers(tuple(_numbers(told)))
    if about.ledger.result is not None:
        yield picture(about)


def picture(about: About) -> Picture:
    """The icicle of the ledger."""
    says = f"{about.ledger.verdict} Each account is as wide as its part of the chip time held."
    return Picture(icicle(about.ledger.result.ledger), says, about.ledger.verdict)


def findings(about: About) -> Iterator[Block]:
    """Each finding with what it gives back, its cure and its evidence."""
    result: FindingsResult | None = about.findings.result
    if result is None:
        return
    for number, finding in enumerate(result.findings, 1):
        yield Head(f"{number}. {WRONGS[finding.cause].title}")
        yield Text(finding.title)
        yield Items(tuple(_finding(result, finding)))
    if result.beyond:
        yield Text(f"{fmt.count(result.beyond, 'more finding')} of less are not told here.", "quiet")


def _numbers(told: Answered) -> Iterator[Number]:
    from app.questions.findings.page import figures  # late: it loads Streamlit

    yield from (Number(f.label, f.value, f.meaning, f.basis) for f in figures(told.result))


def _finding(result: FindingsResult, finding: Finding) -> Iterator[str]:
    yield f"Gives back: {worth(result, finding)}."
    yield f"What to do: {cure(result, finding)}"
    if shown := evidence(finding, result.ledger.chips_known):
        yield f"Evidence: {shown}"
    mark = theme.mark(finding.basis)
    yield f"{sentence(fmt.whole_share(finding.confidence))} sure of the cause; {mark.glyph} {mark.word}."


def worth(result: FindingsResult, finding: Finding) -> str:
    """`38.7 % of the chip time (34.8 % to 42.6 %), 83.1 chip-seconds, $0.0277`."""
    if finding.gain is None:
        return "not known in chip time"
    low, likely, high = (
        fmt.share(s / result.whole) for s in (finding.gain.low, finding.gain.likely, finding.gain.high)
    )
    usd = result.usd(finding.likely)
    between = "" if finding.gain.low == finding.gain.high else f" ({low} to {high})"
    dollars = f", {fmt.usd(usd)}" if usd is not None else ""
    return f"{likely} of the chip time{between}, {result.time(finding.likely)}{dollars}"


def cure(result: FindingsResult, finding: Finding) -> str:
    return f"{result.cure(finding)} Takes {EFFORTS[WRONGS[finding.cause].effort]}."


def ledger(about: About) -> Iterator[Block]:
    """Every account that holds time, and what is to be known of it."""
    told = about.ledger
    if told.result is None:
        yield Text(f"Where the chip time went cannot be told: {told.why}")
        return
    yield Rows(told.question.table(told.result))
    if told.result.notes:
        yield Items(tuple(told.result.notes))
