"""What is wrong with a run, what it costs, and what to do about it: one answer over those of all other questions.

Rules (`rules/`) read the answers and give findings; `rank.py` takes care that no chip-second is given twice and puts
the largest gain first. What they looked for in vain is ruled out, with the reason; what the run cannot tell is said,
with what to add. A run of which nothing stands out has an answer of the same rank.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from analyzers.base import Facts, fact
from analyzers.findings.base import FLOOR, Answers, Finding, NotTold, RuledOut, Seen, Told
from analyzers.findings.grade import Grade, grade
from analyzers.findings.lines_told import lines_told, others_told
from analyzers.findings.rank import MOST, joint, settled
from analyzers.findings.rules import COMPILED, SERVING, TRAINING
from analyzers.findings.rules.sampled import lacking
from analyzers.findings.terms import TERMS as TERMS
from analyzers.held import PRICE
from analyzers.serving.accounts import is_serving
from analyzers.serving.engine.samples import OF_TRITON
from analyzers.serving.server_start import is_server
from analyzers.serving.triton import triton
from analyzers.time.ledger import LedgerResult
from analyzers.time.training_accounts import BADPUT
from analyzers.time.useful import uncounted, useful_share
from catalog.cures import EFFORTS, WRONGS
from errors import QuestionError
from errors import format as fmt
from errors.numbers import SHARE
from errors.options import Option
from runs.ledger import Account, Ledger
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option("floor", SHARE, FLOOR, "share of the chip time below which nothing is called a finding", "", "Floor"),
    PRICE,
)
MUCH = 0.2
"""Of the chip time: devices that are idle for so long stand out, whether or not anything says why."""
IDLE = {
    "idle_launching": "launch_bound",
    "idle_host_code": "host_overhead",
    "idle_unexplained": "",
    "device_idle": "",
    "idle_between_kernels": "",
}
"""Accounts of idle devices, and the cause that a rule looks for there."""
UNTOLD = NotTold(
    (), "nothing tells what their hosts did meanwhile", "a profile with events of the threads that feed them"
)
HALF = 0.5
"""Of the chip time: where steps that are kept have less than this, and no finding takes the rest, that stands out."""
UNEXPLAINED = NotTold((), "what was read tells how long that took and not why", "the output of its hosts")
UNNAMED = NotTold((), "nothing tells what the job did then", "the job's goodput log, or a log that says what it does")
_NEEDED = "Add a profile, the job's goodput log, or its text log with the time of each step."
_NEEDED_OF_SERVERS = (
    "Add the engine's log of a time in which it served, scrapes of its /metrics at several times, or the result of a "
    "load test."
)


@dataclass(frozen=True, kw_only=True)
class FindingsResult:
    """`findings`, the largest gain first, MOST at the most, and `beyond`, how many more there are. `joint`:
    chip-seconds that mending the first k gives back together. `explained`: what looked wrong and is another finding's
    doing.

    `told_share`: of the chip time, what the ledger can tell. `useful_share`: what moved the model forward at the chip's
    peak, `kept_share`: what went into steps that were kept (or tokens that were served). None where not known.
    `peak_known`: whether a peak of the chip is. `lacking`: of a server, what would tell of the rest of its chip time.
    """

    findings: tuple[Finding, ...]
    beyond: int
    joint: tuple[float, ...]
    explained: tuple[Finding, ...]
    ruled_out: tuple[RuledOut, ...]
    not_told: tuple[NotTold, ...]
    ledger: Ledger
    told_share: float
    kept_share: float | None
    useful_share: float | None
    floor: float
    serving: bool = False
    peak_known: bool = True
    lacking: str = ""
    frameworks: tuple[str, ...] = ()
    ladder: Grade = field(default_factory=Grade)
    notes: tuple[str, ...] = field(default=())

    @property
    def whole(self) -> float:
        return self.ledger.chip_seconds

    @property
    def useful_least(self) -> bool:
        """Whether `useful_share` is what it is at least: the FLOPs of a good part of the computing are not known."""
        return self.useful_share is not None and uncounted(self.ledger)

    def usd(self, chip_seconds: float) -> float | None:
        """What that many chip-seconds cost; None without a price or where nobody tells how many chips there were."""
        if self.ledger.usd is None or not self.whole or not self.ledger.chips_known:
            return None
        return self.ledger.usd * chip_seconds / self.whole

    def time(self, chip_seconds: float | None) -> str:
        """Chip time as a person reads it."""
        return fmt.NO_VALUE if chip_seconds is None else fmt.held_time(chip_seconds, self.ledger.chips_known)

    def cure(self, finding: Finding) -> str:
        return WRONGS[finding.cause].cure(self.frameworks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": "found"
            if self.findings
            else "not_told"
            if self.blind or self.unjudged
            else "nothing_stands_out",
            "grade": {
                "told_share": self.told_share,
                "kept_share": self.kept_share,
                "useful_share": self.useful_share,
                "useful_share_is_at_least": self.useful_least,
                **self.ladder.to_dict(),
                "gap": [{"account": n, "chip_seconds": s, "share": s / self.whole} for n, s in self.gap],
            },
            "chip_seconds": self.whole,
            "usd": self.ledger.usd,
            "floor": self.floor,
            "findings": [self._finding(f, k) for k, f in enumerate(self.findings)],
            "beyond": self.beyond,
            "explained": [{"cause": f.cause, "title": f.title} for f in self.explained],
            "ruled_out": [dict(vars(r)) for r in self.ruled_out],
            "not_told": [{"causes": list(n.causes), "why": n.why, "add": n.add} for n in self.not_told],
            "notes": list(self.notes),
        }

    @property
    def blind(self) -> bool:
        """Whether less than half of the chip time can be told, so that nothing found means little."""
        return self.told_share < 0.5

    @property
    def unjudged(self) -> tuple[str, float, NotTold] | None:
        """Where devices are idle for much of the chip time besides what is found, or most of it went into no step that
        was kept: the largest account, how much of the chip time they all are, and why that cannot be judged. None: it
        can, or it is little."""
        if self.blind:
            return None
        leaves = dict(self.gap)
        idle = self._left({name: leaves[name] for name in IDLE if name in leaves})
        lost = {} if self.serving else self._left({name: self.ledger.amount(name) for name in BADPUT})
        if sum(lost.values()) >= HALF * self.whole:
            largest = max(lost, key=lambda name: lost[name])
            return largest, sum(lost.values()) / self.whole, UNNAMED if largest == "other" else UNEXPLAINED
        if not idle or sum(idle.values()) < MUCH * self.whole:
            return None
        largest = max(idle, key=lambda name: idle[name])
        why = next((gap for gap in self.not_told if IDLE[largest] in gap.causes), UNTOLD)
        return largest, sum(idle.values()) / self.whole, why

    def _left(self, held: Mapping[str, float]) -> dict[str, float]:
        """Of these accounts what no finding draws, of those of which there is any, chip-seconds."""
        drawn = Counter[str]()
        for finding in self.findings:
            drawn.update(finding.draws)
        return {name: seconds - drawn[name] for name, seconds in held.items() if seconds > drawn[name]}

    @property
    def gap(self) -> list[tuple[str, float]]:
        """What the chip time went into besides useful maths: leaves of the ledger, the largest first."""
        return self._besides_maths(lambda account: True)

    @property
    def known_gap(self) -> list[tuple[str, float]]:
        """The same of that part of the chip time of which an input tells what it was."""
        return self._besides_maths(lambda account: account.basis != "unattributed")

    def _besides_maths(self, counts: Callable[[Account], bool]) -> list[tuple[str, float]]:
        amounts: dict[str, float] = {}
        for _, account in self.ledger.account.walk():
            if not account.children and account.name != "useful_maths" and counts(account):
                amounts[account.name] = amounts.get(account.name, 0.0) + account.chip_seconds
        return sorted(((n, s) for n, s in amounts.items() if s > 0), key=lambda entry: -entry[1])

    def _finding(self, finding: Finding, place: int) -> dict[str, Any]:
        gain = finding.gain
        wrong = WRONGS[finding.cause]
        return {
            "cause": finding.cause,
            "title": finding.title,
            "what": wrong.title,
            "accounts": [name for name, seconds in finding.draws.items() if name and seconds > 0],
            "where": finding.where.to_dict(),
            "since_ns": finding.since_ns,
            "gain_chip_seconds": None if gain is None else gain.to_dict(),
            "gain_share": None if gain is None else gain.likely / self.whole,
            "gain_usd": None if gain is None else self.usd(gain.likely),
            "joint_chip_seconds": self.joint[place],
            "confidence": finding.confidence,
            "basis": finding.basis,
            "question": finding.question,
            "evidence": [e.to_dict() for e in finding.evidence],
            "cure": self.cure(finding),
            "effort": EFFORTS[wrong.effort],
        }


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any], answers: Answers) -> FindingsResult:
    """What is wrong. Raises QuestionError where no chip time can be accounted for."""
    found = answers.get("ledger")
    needed = _needed(tables, facts)
    if not isinstance(found, LedgerResult):
        why = answers.why("ledger")
        advice = " ".join(filter(None, (lines_told(tables), others_told(answers), needed)))
        raise QuestionError("nothing tells where the chip time went" + (f": {why}" if why else ""), advice=advice)
    ledger = found.ledger
    if ledger.chip_seconds <= 0:
        raise QuestionError("no chip time can be accounted for", advice=needed)
    asked = options.get("floor")
    floor = FLOOR if asked is None else float(asked)
    seen = Seen(tables=tables, facts=facts, answers=answers, ledger=ledger, floor=floor)
    told = Told()
    compiled = fact(facts, "outcome") is not None
    for rule in SERVING if found.serving else COMPILED if compiled else TRAINING:
        told += rule.find(seen)
    stand, explained = settled(told.findings, ledger, floor)
    named = {f.cause for f in stand}
    known = named | {f.cause for f in explained}
    dark = {cause for gap in told.not_told for cause in gap.causes}  # one look in vain rules out no other place
    return FindingsResult(
        findings=tuple(stand[:MOST]),
        beyond=max(len(stand) - MOST, 0),
        joint=tuple(joint(stand[:MOST], ledger.chip_seconds)),
        explained=tuple(explained),
        ruled_out=(
            *(r for r in told.ruled_out if r.cause not in named | dark),
            *_too_little(told.findings, known | dark, ledger.chip_seconds),
        ),
        not_told=_untold(told.not_told, known),
        ledger=ledger,
        told_share=1 - ledger.unknown / ledger.chip_seconds,
        kept_share=_share(ledger, "served" if found.serving else "productive"),
        useful_share=useful_share(ledger),
        floor=floor,
        serving=found.serving,
        peak_known=found.peak_known,
        lacking=lacking(seen) if found.serving else "",
        frameworks=answers.frameworks,
        ladder=Grade() if found.serving or compiled else grade(seen),
        notes=found.notes,
    )


def _needed(tables: Tables, facts: Facts) -> str:
    """What to add where no chip time can be accounted for, by what the run is of."""
    if triton(tables) is not None and not tables.rows("engine"):
        return OF_TRITON
    return _NEEDED_OF_SERVERS if is_server(tables, facts) or is_serving(tables) else _NEEDED


def _too_little(found: Sequence[Finding], known: set[str], whole: float) -> Iterator[RuledOut]:
    """Of causes that were found, and of which too little is given back to be told, the largest of each."""
    largest: dict[str, Finding] = {}
    for one in found:
        if one.cause not in known and (one.cause not in largest or one.likely > largest[one.cause].likely):
            largest[one.cause] = one
    for cause, one in largest.items():
        share = fmt.share(one.likely / whole)
        yield RuledOut(
            cause, f"mending it would give back {share} of the chip time, too little for a finding", one.question
        )


def _untold(gaps: tuple[NotTold, ...], named: set[str]) -> tuple[NotTold, ...]:
    """What cannot be told, without what another rule told all the same."""
    left = (replace(gap, causes=tuple(c for c in gap.causes if c not in named)) for gap in gaps)
    return tuple(gap for gap in left if gap.causes)


def _share(ledger: Ledger, name: str) -> float | None:
    return ledger.amount(name) / ledger.chip_seconds if ledger.find(name) else None
