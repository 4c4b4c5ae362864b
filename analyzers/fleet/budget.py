"""What is left of a month's budget, and what the month will come to if a team goes on as it did.

    left         budget - spent since the month began
    projected    spent + time left in the month x rate, for the least, the mean and the greatest rate of the last four
                 whole weeks of seven days up to now in which the team had begun; modelled

A range of what was, and no forecast: a team that starts or ends something will do otherwise. It is told from two whole
weeks on. A week in which chips were held and nothing of it can be counted is none that is known, and no week of
nothing; where some of a week cannot be counted, the month comes to at least what is told.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import lru_cache
from typing import Any

import numpy as np

from analyzers.fleet import FleetAsked, FleetResult, fleet
from analyzers.fleet.chosen import Chosen, Runs, chosen_of
from analyzers.fleet.once import Twice
from analyzers.fleet.periods import Period, period_of
from analyzers.fleet.sums import Sum
from errors import format as fmt

WEEK_NS = 7 * 86_400 * 1_000_000_000
WEEKS, LEAST_WEEKS = 4, 2
NEAR = 0.9  # of a budget: from here on it is near its end
ELSEWHERE = {"outside", "simulated", "compiled", "told_again", "told_elsewhere"}  # left out, and nothing lacks
OVER, NEAR_END, AHEAD, WITHIN = "over", "near its end", "on its way over", "within"


@dataclass(frozen=True, kw_only=True)
class Left:
    """A budget and what is left of it. `amount`, `spent`, `left` and the projection are in `unit`: usd or chip_hours.

    `runs`: of the team, in the month. `spent`: None where nothing of it is known (no run has a price, or none could be
    counted). `unpriced_chip_hours`: held in runs without a price, which a budget in dollars cannot count. `left_out`:
    runs of the team that may have held chips in the month and are not counted, by reason: what is spent is at least
    that, here as there. `projected`: (low, likely, high) at the month's end, None with `why_not`;
    `projected_at_least`: of what it rests on, too, not all could be counted.
    """

    team: str
    unit: str
    amount: float
    month: Period
    spent: float | None
    runs: int = 0
    unpriced_chip_hours: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    projected: tuple[float, float, float] | None = None
    projected_at_least: bool = False
    why_not: str = ""

    @property
    def left(self) -> float | None:
        """Below 0 where more was spent."""
        return None if self.spent is None else self.amount - self.spent

    @property
    def at_least(self) -> bool:
        return bool(self.left_out) or (self.unit == "usd" and self.unpriced_chip_hours > 0)

    @property
    def end_at_least(self) -> bool:
        """Whether the month comes to at least what is projected."""
        return self.at_least or self.projected_at_least

    @property
    def state(self) -> str:
        """Empty where it cannot be told."""
        if self.spent is None:
            return ""
        if self.spent > self.amount:
            return OVER
        if self.spent >= NEAR * self.amount:
            return NEAR_END
        if self.projected is not None and self.projected[1] > self.amount:
            return AHEAD
        return "" if self.end_at_least else WITHIN

    def to_dict(self) -> dict[str, Any]:
        low, likely, high = self.projected or (None, None, None)
        return {
            "team": self.team,
            "unit": self.unit,
            "amount": self.amount,
            "month": self.month.name,
            "month_start_ns": self.month.start_ns,
            "month_end_ns": self.month.end_ns,
            "runs": self.runs,
            "spent": self.spent,
            "spent_is_at_least": self.at_least,
            "left": self.left,
            "state": self.state or None,
            "unpriced_chip_hours": self.unpriced_chip_hours,
            "undated_runs": self.left_out.get("undated", 0),
            "left_out": dict(self.left_out),
            "projected": {"low": low, "likely": likely, "high": high, "basis": "modelled"}
            | {"is_at_least": None if low is None else self.end_at_least},
            "why_no_projection": self.why_not or None,
        }


def of_team(runs: Runs, team: str) -> Chosen:
    """The runs whose tag `team` is this, as `alike` compares."""
    chosen, name = chosen_of(runs), alike(team)
    teams, which = chosen.team
    return chosen.only(np.array([alike(other) == name for other in teams], dtype=bool)[which])


@lru_cache(maxsize=10_000)
def alike(name: str) -> str:
    """The same text for names that are one to people: whatever the case, the spaces, and how accents are written."""
    return unicodedata.normalize("NFC", " ".join(unicodedata.normalize("NFC", name).split()).casefold())


def left_of(
    runs: Runs,
    team: str,
    unit: str,
    amount: float,
    now_ns: int,
    zone: tzinfo,
    known: Twice | None = None,
) -> Left:
    """`runs`: those of the team. `known`: what is told twice among the runs of all teams, so that no chip-second is in
    two budgets."""
    month, mine = period_of(now_ns, "month", zone), chosen_of(runs)
    asked = FleetAsked(zone=zone)

    def between(since_ns: int | None, until_ns: int) -> FleetResult:
        held = mine if since_ns is None else mine.only(~_apart(mine, since_ns, until_ns))
        return fleet(held, replace(asked, since_ns=since_ns, until_ns=until_ns), known)

    found = between(month.start_ns, max(now_ns, month.start_ns + 1))
    left_out, spent = _lacking(found), _counted(found, unit)
    told = Left(
        team=team,
        unit=unit,
        amount=amount,
        month=month,
        spent=spent,
        runs=found.total.runs,
        unpriced_chip_hours=found.total.unpriced_chip_s / 3600,
        left_out=left_out,
    )
    return told if spent is None else _projected(told, between, now_ns)


def _apart(runs: Chosen, since_ns: int, until_ns: int) -> np.ndarray:
    """Of each run whether it held no chip in that time: it was over, or stored, before that began, or began after."""
    created_ns = runs.known("created_ns")
    stored = (created_ns > 0) & (created_ns <= since_ns)
    over = (runs.known("to_ns") <= since_ns) | (runs.known("from_ns") >= until_ns)
    return np.where(runs.known("dated"), over, stored)


def _lacking(found: FleetResult) -> Mapping[str, int]:
    """Runs that may have held chips and are not counted, by reason."""
    return {why: count for why, count in found.left_out.items() if why not in ELSEWHERE}


def _counted(found: FleetResult, unit: str) -> float | None:
    """What was spent; None where chips were held, or may have been, and nothing of it can be counted."""
    return None if _lacking(found) and not found.total.runs else _in(found.total, unit)


def _projected(told: Left, between: Callable[[int | None, int], FleetResult], now_ns: int) -> Left:
    begun = between(None, now_ns).first_ns
    whole = 0 if begun is None else min(WEEKS, (now_ns - begun) // WEEK_NS)
    found = [between(now_ns - (n + 1) * WEEK_NS, now_ns - n * WEEK_NS) for n in range(int(whole))]
    known = [week for week in found if _counted(week, told.unit) is not None]
    if len(known) < LEAST_WEEKS:
        weeks = fmt.count(len(known), "whole week")
        return replace(told, why_not=f"{weeks} of the team are known, {LEAST_WEEKS} are needed")
    rates = [(_counted(week, told.unit) or 0.0) / WEEK_NS for week in known]
    to_come = max(told.month.end_ns - now_ns, 0)
    spent = told.spent or 0.0
    low, likely, high = min(rates), sum(rates) / len(rates), max(rates)
    return replace(
        told,
        projected=(spent + low * to_come, spent + likely * to_come, spent + high * to_come),
        projected_at_least=any(
            _lacking(week) or (told.unit == "usd" and week.total.unpriced_runs > 0) for week in known
        ),
    )


def _in(total: Sum, unit: str) -> float | None:
    """What was spent, in a unit. Dollars are None where time was held and none of it has a price."""
    if unit == "chip_hours":
        return total.chip_s / 3600
    return 0.0 if total.usd is None and not total.unpriced_runs else total.usd
