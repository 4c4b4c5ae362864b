"""What a run tells besides its ledger: a job its steps, a server its latency and load, a program its bound."""

from collections.abc import Iterator

from app.reporting.document import Block, Head, Items, Text
from app.reporting.gathering import About
from app.reporting.pictures import pictures
from app.reporting.sections.losses import few


def own(about: About) -> Iterator[Block]:
    above = {loss.shown.question.name for loss in about.losses if loss.shown and loss.shown.result is not None}
    for told in about.own:
        yield Head(told.question.title)
        if told.result is None:
            yield Text(told.why)
            continue
        yield Text(told.verdict)
        if told.question.name not in above:
            yield from pictures(told, about.name)
        yield few(told.question.table(told.result))
        if told.result.notes:
            yield Items(tuple(told.result.notes))
