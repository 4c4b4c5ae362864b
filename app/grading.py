"""A run's ladder with what the store knows besides: the best run of its kind, and what the compiler bounds it by.

Other runs come and go, so these rungs are no part of the answer about the run, which is kept.
"""

from collections.abc import Iterator

from analyzers.findings import FindingsResult
from analyzers.findings.grade import Grade, Rung
from app.questions.asking import ask
from app.questions.compiled import COMPILED
from app.questions.mfu import MFU
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run

MOST = 24  # other runs that are asked, the newest
SAME = ("chip", "model", "parameters", "precision")
"""Facts that runs of one kind do not differ in, where both have them."""


def graded(run: Run, result: FindingsResult, place: Workspace) -> Grade:
    """The ladder with the rungs of other runs that stand at the same count of FLOPs and the same peak."""
    ladder = result.ladder
    if not ladder.rungs:
        return ladder
    others = [r for r in place.store.runs() if r.run_id != run.run_id and _alike(run, r)]
    newest = sorted(others, key=lambda r: -r.manifest.created_ns)[:MOST]
    asked = ask(MFU, run, {}, place.registry)
    best = max(_measured(newest, asked.convention, asked.peaks.native, place), key=_height, default=None)
    bound = max(_compiled(newest, place), key=_height, default=None)
    quickest = asked.best or 0.0
    if bound is not None and bound.utilisation < quickest:
        bound = None  # what a step has beaten bounds nothing: it was compiled for another batch or layout
    return ladder.with_rungs(rung for rung in (best, bound) if rung is not None)


def _height(rung: Rung) -> float:
    return rung.utilisation


def _alike(run: Run, other: Run) -> bool:
    """Whether both are of one model on such chips: nothing that both say differs, and the model is said by both."""
    mine, theirs = run.manifest, other.manifest
    both = [n for n in SAME if mine.fact(n) is not None and theirs.fact(n) is not None]
    known = {"chip", "model"} <= set(both) or {"chip", "parameters"} <= set(both)
    return known and all(mine.fact(n) == theirs.fact(n) for n in both)


def _measured(others: list[Run], convention: str, peak: float | None, place: Workspace) -> Iterator[Rung]:
    for other in others:
        if other.manifest.kind in ("compiled", "serving"):
            continue
        try:
            found = ask(MFU, other, {}, place.registry)
        except ChipledgerError:
            continue
        same = found.convention == convention and found.peaks.native == peak
        if same and found.mfu is not None and 0 < found.mfu <= 1:
            yield Rung(
                name="store",
                title=f"Best here: {other.manifest.name}",
                utilisation=found.mfu,
                over="the time of its usual steps; of this model on such chips, in this store",
                basis="modelled" if other.manifest.simulated else "derived",
                tokens_per_s_per_chip=found.tokens_per_s_per_chip,
                question="findings",
                run_id=other.run_id,
            )


def _compiled(others: list[Run], place: Workspace) -> Iterator[Rung]:
    for other in others:
        if other.manifest.kind != "compiled":
            continue
        try:
            found = ask(COMPILED, other, {}, place.registry)
        except ChipledgerError:
            continue
        if found.mfu_bound is not None and 0 < found.mfu_bound <= 1:
            yield Rung(
                name="compiled",
                title=f"Compiled: {other.manifest.name}",
                utilisation=found.mfu_bound,
                over="the least time that its compiled step needs for compute, memory and links",
                basis="modelled",
                step_s=None if found.floor is None else found.floor.seconds,
                question="compiled",
                run_id=other.run_id,
            )
