"""The two runs of a pair, each by itself: its verdicts, its ledger, its facts and its inputs."""

from collections.abc import Callable, Iterator

from analyzers.difference.terms import TERMS as JOB_TERMS
from analyzers.serving.ab_terms import TERMS as SERVED_TERMS
from app.reporting.document import Block, Head, Items, Text
from app.reporting.document import Terms as TermsBlock
from app.reporting.gathering import About, Pair
from app.reporting.sections import definitions as one
from app.reporting.sections import facts as known
from app.reporting.sections import inputs as files
from app.reporting.sections import verdict


def each(pair: Pair, blocks: Callable[[About], Iterator[Block]]) -> Iterator[Block]:
    """The blocks of A below its name, then those of B; once where both are one run. One without any is not named."""
    sides = (("A", pair.a), ("B", pair.b)) if pair.a.run.run_id != pair.b.run.run_id else (("A and B", pair.a),)
    for side, about in sides:
        told = tuple(blocks(about))
        if told:
            yield Head(f"{side}: {about.name}")
            yield from told


def alone(pair: Pair) -> Iterator[Block]:
    return each(pair, _alone)


def _alone(about: About) -> Iterator[Block]:
    """What its own report says first."""
    found = about.findings
    yield Text(found.verdict if found.result is not None else f"What is wrong with it cannot be told: {found.why}")
    if about.ledger.result is not None:
        yield verdict.picture(about)


def facts(pair: Pair) -> Iterator[Block]:
    return each(pair, known.facts)


def inputs(pair: Pair) -> Iterator[Block]:
    return each(pair, files.inputs)


def definitions(pair: Pair) -> Iterator[Block]:
    """The terms of the comparison, and those of what is told of each run."""
    yield from one.known()
    yield TermsBlock("The comparison", JOB_TERMS if pair.compared.jobs is not None else SERVED_TERMS)
    terms: dict[str, TermsBlock] = {}
    for about in (pair.a, pair.b):
        for block in one.of_first(about):
            terms[block.title] = _joined(terms.get(block.title), block)
    yield from terms.values()


def _joined(before: TermsBlock | None, now: TermsBlock) -> TermsBlock:
    held = (*(before.terms if before else ()), *now.terms)
    return TermsBlock(now.title, tuple({term.name: term for term in held}.values()))


def read(pair: Pair) -> Iterator[Block]:
    """What reading the inputs of either told."""
    return each(pair, _read)


def _read(about: About) -> Iterator[Block]:
    if about.run.manifest.warnings:
        yield Items(tuple(about.run.manifest.warnings))
