"""Scores the answers of any tool against the truths of a set.

An answer is JSON, by case:

    {"case-000": {"causes": [{"cause": "slow_host", "place": {"ranks": [1]},
                              "chip_seconds": {"low": 3.0, "likely": 4.1, "high": 5.0}}],
                  "headlines": [{"says": "...", "accuses": ["slow_network", "slow_link"], "chip_seconds": 2.0}],
                  "not_told": ["recompile_shape"]}}

`causes`, the largest first: what the tool says is wrong. `headlines`: what else it accuses, each with the causes that
would make it true. `not_told`: causes that it says it cannot tell in this run. Place, amount, headlines and `not_told`
may be left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.faults import BY_CAUSE
from benchmarks.diagnosis.wilson import Share
from errors import InputError

FLOOR = 0.02
"""Share of a run's chip time above which an accusation counts."""
WITHIN = 0.20
"""How far an amount may be from the truth, and how near two faults may be to pass for equally large."""
SMALL = 0.05
"""Share of the chip time below which one of two faults is not asked for; to name it is no false alarm either."""
ALIKE = 0.5
"""Least share of the steps named or hurt that are both."""


@dataclass(frozen=True)
class Outcome:
    """What became of one planted fault. None: it was not asked, as a place where there is none."""

    case: str
    cause: str
    family: str
    top: bool | None
    named: bool
    place: bool | None
    amount: bool | None
    band: bool | None
    admitted: bool
    error: float | None


@dataclass(frozen=True)
class Alarm:
    """An accusation over the floor that is not true. `sound`: of a case where nothing was planted."""

    case: str
    accuses: tuple[str, ...]
    share: float
    sound: bool
    says: str


@dataclass(frozen=True)
class Scored:
    """Outcomes and alarms of all cases that counted; `left_out`: cases whose fault the machine's noise drowned, and
    `unanswered` those that the tool said nothing of, which count as not told of."""

    outcomes: tuple[Outcome, ...]
    alarms: tuple[Alarm, ...]
    cases: tuple[str, ...]
    sound: tuple[str, ...]
    left_out: tuple[str, ...]
    unanswered: tuple[str, ...]

    def figures(self, family: str | None = None) -> dict[str, Share]:
        """The shares, of one family's faults or of all."""
        mine = [o for o in self.outcomes if family in (None, o.family)]
        missed = [o for o in mine if not o.named]
        able = [o for o in mine if not o.admitted]

        def share(values: Sequence[bool | None]) -> Share:
            asked = [v for v in values if v is not None]
            return Share(sum(asked), len(asked))

        return {
            "top": share([o.top for o in mine]),
            "named": share([o.named for o in mine]),
            "place": share([o.place for o in mine]),
            "amount": share([o.amount for o in mine]),
            "band": share([o.band for o in mine]),
            "admitted": share([o.admitted for o in missed]),
            "kept": share([o.named for o in able]),
        }

    def alarmed(self, sound: bool) -> Share:
        """Cases with a false alarm, of those where nothing was planted or of the others."""
        of = self.sound if sound else [c for c in self.cases if c not in self.sound]
        return Share(len({a.case for a in self.alarms if a.sound == sound}), len(of))

    @property
    def families(self) -> list[str]:
        return list(
            dict.fromkeys(f.family for f in BY_CAUSE.values() if any(f.family == o.family for o in self.outcomes))
        )

    def to_dict(self) -> dict[str, Any]:
        def shares(family: str | None = None) -> dict[str, Any]:
            return {name: share.to_dict() for name, share in self.figures(family).items()}

        return {
            "cases": len(self.cases),
            "faults": len(self.outcomes),
            "sound": len(self.sound),
            "all": shares(),
            "families": {family: shares(family) for family in self.families},
            "false_alarms_sound": self.alarmed(True).to_dict(),
            "false_alarms_beside": self.alarmed(False).to_dict(),
            "alarms": [vars(a) for a in self.alarms],
            "outcomes": [vars(o) for o in self.outcomes],
            "left_out": list(self.left_out),
            "unanswered": list(self.unanswered),
        }


def load(folder: Path, answers: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Truths of a set and a tool's answers, by case. Raises InputError for what cannot be read as such."""
    truths = {}
    for path in sorted((folder / "truth").glob("*.json")):
        truths[path.stem] = json.loads(path.read_text())
    if not truths:
        raise InputError("no truths", where=str(folder), expected="a folder that `make` filled")
    try:
        said = json.loads(answers.read_text())
    except (OSError, ValueError) as e:
        raise InputError(f"cannot be read as JSON ({e})", where=str(answers), expected="answers by case") from e
    if not isinstance(said, dict) or not all(isinstance(a, dict) for a in said.values()):
        raise InputError("no object of answers by case", where=str(answers), expected='{"case-000": {"causes": []}}')
    return truths, said


def score(truths: Mapping[str, Any], answers: Mapping[str, Any]) -> Scored:
    """Every truth against its answer. Raises InputError for a cause that the vocabulary does not have."""
    outcomes: list[Outcome] = []
    alarms: list[Alarm] = []
    counted, sound, left_out, unanswered = [], [], [], []
    for name, truth in truths.items():
        if not truth["dominates"]:
            left_out.append(name)
            continue
        counted.append(name)
        if name not in answers:
            unanswered.append(name)
        answer = answers.get(name, {})
        _check(name, answer)
        if not truth["causes"]:
            sound.append(name)
        outcomes += _outcomes(name, truth, answer)
        alarms += _alarms(name, truth, answer)
    return Scored(tuple(outcomes), tuple(alarms), tuple(counted), tuple(sound), tuple(left_out), tuple(unanswered))


def _check(name: str, answer: Mapping[str, Any]) -> None:
    said = [c["cause"] for c in answer.get("causes", ())] + list(answer.get("not_told", ()))
    said += [c for h in answer.get("headlines", ()) for c in h["accuses"]]
    if unknown := sorted({c for c in said if c not in BY_CAUSE}):
        raise InputError(f"no such cause: {', '.join(unknown)}", where=name, expected="causes of faults.py")


def _outcomes(name: str, truth: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Outcome]:
    found, said = [], {c["cause"]: c for c in reversed(answer.get("causes", ()))}
    first = answer["causes"][0]["cause"] if answer.get("causes") else None
    most = max((c["chip_seconds"] or 0.0 for c in truth["causes"]), default=0.0)
    for planted in truth["causes"]:
        mine, true = said.get(planted["cause"]), planted["chip_seconds"]
        if true is not None and true < SMALL * truth["chip_seconds"]:
            continue
        amount = mine.get("chip_seconds") if mine else None
        likely = amount.get("likely") if amount else None
        error = (likely - true) / true if likely is not None and true else None
        bounded = amount and true and amount.get("low") is not None and amount.get("high") is not None
        found.append(
            Outcome(
                name,
                planted["cause"],
                planted["family"],
                _top(truth, first, most) if planted is truth["causes"][0] else None,
                mine is not None,
                same_place(planted["place"], mine.get("place") or {}) if mine and planted["place"] else None,
                None if not true or not mine else error is not None and abs(error) <= WITHIN,
                amount["low"] <= true <= amount["high"] if bounded else None,
                planted["cause"] in answer.get("not_told", ()),
                error,
            )
        )
    return found


def _top(truth: Mapping[str, Any], first: str | None, most: float) -> bool:
    """Whether what is named first is the largest fault, or one that is about as large."""
    return first in {c["cause"] for c in truth["causes"] if (c["chip_seconds"] or 0.0) >= most * (1 - WITHIN)}


def _alarms(name: str, truth: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Alarm]:
    # what is wrong about the evidence is true as well, whoever names it
    real = {c["cause"] for c in (*truth["causes"], *truth["not_to_accuse"])} | set(truth["in_both"])
    accusations = [((c["cause"],), (c.get("chip_seconds") or {}).get("likely"), "") for c in answer.get("causes", ())]
    accusations += [
        (tuple(h["accuses"]), h.get("chip_seconds"), h.get("says", "")) for h in answer.get("headlines", ())
    ]
    found = []
    for accuses, chip_seconds, says in accusations:
        # an accusation without an amount has to be taken for what it says: that this is what is wrong
        share = 1.0 if chip_seconds is None else chip_seconds / truth["chip_seconds"]
        if share > FLOOR and not real & set(accuses):
            found.append(Alarm(name, accuses, share, not truth["causes"], says))
    return found


def same_place(true: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Whether an answer's place is the truth's: the same ranks, hosts or links; steps that mostly are the same."""
    for key, value in true.items():
        other = said.get(key)
        if other is None:
            return False
        if key == "steps":
            a, b = steps_in(value), steps_in(other)
            if not a | b or len(a & b) < ALIKE * len(a | b):
                return False
        elif key == "links":
            if {tuple(sorted(pair)) for pair in value} != {tuple(sorted(pair)) for pair in other}:
                return False
        elif set(value) != set(other):
            return False
    return True


def steps_in(steps: Any) -> set[int]:
    """Steps given as a list, or as first, last and every."""
    if isinstance(steps, Mapping):
        return set(range(int(steps["first"]), int(steps["last"]) + 1, int(steps.get("every", 1))))
    return {int(s) for s in steps}


COLUMNS = {
    "top": "named first",
    "named": "named",
    "place": "place",
    "amount": "within 20 %",
    "band": "band holds",
    "admitted": "misses admitted",
    "kept": "named where told able",
}


def table(scored: Scored, by_case: bool = False) -> str:
    """The figures as Markdown: shares with counts and intervals of 95 %, all faults and by family."""
    head = ["faults", *COLUMNS.values()]
    rows = [["all", *(str(s) for s in scored.figures().values())]]
    rows += [[family, *(str(s) for s in scored.figures(family).values())] for family in scored.families]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    lines += [
        "",
        f"{len(scored.cases)} cases, {len(scored.outcomes)} faults, {len(scored.sound)} cases without one; "
        f"{len(scored.left_out)} left out as drowned in noise, {len(scored.unanswered)} not answered.",
        f"False alarms over {FLOOR:.0%} of the chip time: {scored.alarmed(True)} of runs without a fault, "
        f"{scored.alarmed(False)} of runs with one.".replace("2%", "2 %"),
    ]
    if by_case:
        for o in scored.outcomes:
            words = [n for n in ("top", "named", "place", "amount", "admitted") if getattr(o, n)]
            off = "" if o.error is None else f", {o.error:+.0%}"
            lines.append(f"{o.case} {o.cause}: {', '.join(words) or 'missed'}{off}")
        lines += [f"{a.case} false alarm: {' or '.join(a.accuses)} {a.share:.0%} {a.says}" for a in scored.alarms]
    return "\n".join(lines)
