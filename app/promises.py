"""Promises and what they gave: findings that somebody set out to mend, and the later runs of the same job."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analyzers.findings import FindingsResult
from analyzers.findings.base import Finding
from analyzers.receipts import Receipt, Said, Side, receipt, side
from analyzers.time.ledger import LedgerResult
from app.follow.alerts.evaluate import moment_of
from app.identity.may import changing
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.ledger import LEDGER
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from runs.promise_book import Promise, PromiseBook
from runs.run import Run

KEPT, PENDING, NOT_TOLD = "kept", "pending", "not told"


@dataclass(frozen=True)
class Kept:
    """A promise, and what came of it. `state`: kept (a later run tells what it gave), pending (there is none yet) or
    not told. `before`: the run it was made of (of a live one the newest snapshot); `later`: the newest later run;
    `later_runs`: how many there are; `still_there`: whether the same cause is found in it still."""

    promise: Promise
    state: str
    before: Run | None = None
    receipt: Receipt | None = None
    later: Run | None = None
    later_runs: int = 0
    still_there: bool | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """Said and given, in one sentence."""
        said = f"said {fmt.share(self.promise.likely_share)}"
        if self.state == PENDING:
            return f"{said}; no later run of this job yet."
        if self.receipt is None or self.receipt.gave is None:
            return f"{said}; what it gave cannot be told: {self.why}."
        gave = signed(self.receipt.gave)
        there = " The same is still found there." if self.still_there else ""
        how = f" (of kept steps as wholes, since {self.receipt.why})" if self.receipt.by == "steps" else ""
        return f"{said}, gave {gave}{how}.{there}"

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.promise.to_dict(),
            "state": self.state,
            "sentence": self.sentence,
            "receipt": self.receipt and self.receipt.to_dict(),
            "later_run_id": self.later and self.later.run_id,
            "later_runs": self.later_runs,
            "still_there": self.still_there,
        }


@dataclass(frozen=True)
class Record:
    """How promises did: how many were kept, are pending or cannot be told; of those kept, how many gave what the band
    said, and the median of given over said."""

    kept: int
    pending: int
    not_told: int
    within: int
    ratio: float | None

    @property
    def sentence(self) -> str:
        """The hit rate."""
        if not self.kept:
            waits = f"{fmt.count(self.pending, 'promise waits', 'promises wait')} for a later run"
            blind = f"; of {self.not_told:,} it cannot be told what they gave" if self.not_told else ""
            return f"{waits}{blind}." if self.pending or self.not_told else "Nothing is promised yet."
        ratio = "" if self.ratio is None else f" The median gave {fmt.number(self.ratio)} times what was said."
        return f"{self.within} of {fmt.count(self.kept, 'promise')} gave what was said, within its band.{ratio}"

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def signed(share: float) -> str:
    """A share that may be a loss."""
    return fmt.share(share) if share >= 0 else f"−{fmt.share(-share)}"


def book(place: Workspace) -> PromiseBook:
    return PromiseBook(place.registry.at)


def standing(place: Workspace) -> list[Promise]:
    """Those that stand, the newest first, of runs that whoever asks sees."""
    return [p for p in book(place).standing() if place.tells_of(p.run_id)]


def names_of(run: Run) -> set[tuple[str, str]]:
    """What a later run must have one of to be of the same job: the run's name, or the job's."""
    job = run.manifest.fact("job_name")
    return {("name", run.manifest.name)} | ({("job", str(job))} if job else set())


@changing("keep a promise")
def promise(run: Run, result: FindingsResult, findings: Iterable[Finding], place: Workspace, part: float = 1.0) -> int:
    """Keep what these findings are said to give; `part`: of each, what is set out to be mended. Returns how many.
    Raises QuestionError for one whose gain is not known."""
    kept, count = book(place), 0
    for finding in findings:
        if finding.gain is None or not result.whole:
            raise QuestionError(f"nothing can be promised of {finding.cause}", advice="Its gain is not known.")
        low, likely, high = (
            part * s / result.whole for s in (finding.gain.low, finding.gain.likely, finding.gain.high)
        )
        kept.keep(
            Promise(
                run_id=place.registry.owners([run.run_id])[run.run_id],
                job=run.manifest.name,
                cause=finding.cause,
                title=finding.title,
                low_share=low,
                likely_share=likely,
                high_share=high,
                draws={name: s for name, s in finding.draws.items() if s > 0},
                place=finding.where.to_dict(),
            )
        )
        count += 1
    return count


def promises_about(run: Run, place: Workspace) -> list[Kept]:
    """The promises made of a run and those that it is the newest answer to, the newest first."""
    stand = standing(place)
    if not stand:
        return []
    runs = {r.run_id: r for r in place.store.runs()}
    mine, owners = names_of(run), place.registry.owners(runs)
    names = {owners[r.run_id]: names_of(r) for r in runs.values()}
    about = [p for p in stand if mine & names.get(p.run_id, set())]
    here = {run.run_id}
    return [k for k in outcomes(about, place) if here & {r.run_id for r in (k.before, k.later) if r is not None}]


def outcomes(promises: Sequence[Promise], place: Workspace) -> list[Kept]:
    """What came of each."""
    if not promises:
        return []
    runs = place.store.runs()
    owners = place.registry.owners(run.run_id for run in runs)
    together: dict[str, Counter[str]] = {}
    for p in standing(place):
        together.setdefault(p.run_id, Counter()).update(p.draws)
    return _told_apart([_outcome(p, together[p.run_id], runs, owners, place) for p in promises])


def _told_apart(kept: list[Kept]) -> list[Kept]:
    """Where several promises of one run could only be held against kept steps as wholes, none is given all of it."""

    def key(one: Kept) -> tuple[str, str | None]:
        return one.promise.run_id, one.later and one.later.run_id

    wholes = Counter(key(k) for k in kept if k.receipt is not None and k.receipt.by == "steps")
    return [_apart(k, wholes[key(k)]) if k.receipt is not None and k.receipt.by == "steps" else k for k in kept]


def _apart(one: Kept, among: int) -> Kept:
    if among < 2 or one.receipt is None or one.receipt.whole is None:
        return one
    why = (
        f"a unit of work takes {signed(one.receipt.whole)} less chip time, and which of {among:,} promises gave how "
        "much of that no account tells"
    )
    return replace(one, state=NOT_TOLD, receipt=replace(one.receipt, gave=None, within=None), why=why)


def record(kept: Sequence[Kept]) -> Record:
    """The hit rate of promises."""
    told = [k for k in kept if k.state == KEPT and k.receipt is not None and k.receipt.gave is not None]
    ratios = sorted(
        k.receipt.gave / k.promise.likely_share
        for k in told
        if k.receipt is not None and k.receipt.gave is not None and k.promise.likely_share > 0
    )
    middle = len(ratios) // 2
    return Record(
        kept=len(told),
        pending=sum(k.state == PENDING for k in kept),
        not_told=sum(k.state == NOT_TOLD for k in kept),
        within=sum(bool(k.receipt and k.receipt.within) for k in told),
        ratio=None if not ratios else (ratios[middle] + ratios[~middle]) / 2,
    )


def _outcome(
    said: Promise, together: Mapping[str, float], runs: Sequence[Run], owners: Mapping[str, str], place: Workspace
) -> Kept:
    before = max((r for r in runs if owners[r.run_id] == said.run_id), key=_moment, default=None)
    if before is None:
        return Kept(said, NOT_TOLD, why="the run that it was made of is no longer in the store")
    names = names_of(before)
    mine = [r for r in runs if names & names_of(r) and owners[r.run_id] != said.run_id]
    later = [r for r in mine if _moment(r) > _moment(before)]
    if not later:
        return Kept(said, PENDING, before)
    newest = max(later, key=_moment)
    try:
        given = receipt(
            Said(said.cause, said.low_share, said.likely_share, said.high_share, said.draws, together),
            _side(before, place),
            _side(newest, place),
        )
    except ChipledgerError as e:
        return Kept(said, NOT_TOLD, before, None, newest, len(later), None, e.what)
    state = NOT_TOLD if given.gave is None else KEPT
    return Kept(said, state, before, given, newest, len(later), _still_there(said, newest, place), given.why)


def _moment(run: Run) -> tuple[int, int]:
    """When a run was: by its own times, else by when it was stored."""
    until, stored = moment_of(run)
    return (until or stored, stored)


def _side(run: Run, place: Workspace) -> Side:
    found: LedgerResult = ask(LEDGER, run, {}, place.registry)
    return side(run.tables, run.manifest.facts, found.ledger, found.serving)


def _still_there(said: Promise, run: Run, place: Workspace) -> bool | None:
    """Whether a finding of the same cause, and of the same ranks where it names some, stands in the later run."""
    try:
        result = ask(FINDINGS, run, {}, place.registry)
    except ChipledgerError:
        return None
    ranks = set(map(str, said.place.get("ranks", ())))
    return any(
        f.cause == said.cause and (not ranks or not f.where.ranks or ranks & set(map(str, f.where.ranks)))
        for f in result.findings
    )
