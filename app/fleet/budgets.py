"""Budgets: what each team may spend in a month, what it spent, and what that comes to."""

import time
from collections.abc import Sequence
from datetime import UTC, tzinfo

from analyzers.fleet import LEFT_OUT, FleetAsked, twice
from analyzers.fleet.budget import Left, alike, left_of, of_team
from app.fleet.asking import runs_of
from app.identity.may import changing
from app.library.changes import clean_who
from app.library.rows import Numbers
from app.words import Table, listed, short
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from runs.budget_book import Budget, BudgetBook, Unit
from runs.shelf import clean_name

MOST = 1_000


def book(place: Workspace) -> BudgetBook:
    return BudgetBook(place.registry.at)


@changing("set a budget")
def set_budget(place: Workspace, team: str, unit: Unit, amount: float, who: str = "") -> None:
    """Keep it. Raises InputError for what is no name, QuestionError where there are too many."""
    name, kept = clean_name(team, "team's name"), book(place)
    known = kept.all()
    name = next((b.team for b in known if alike(b.team) == alike(name)), name)  # one team, however it is written
    if len(known) >= MOST and (name, unit) not in {(b.team, b.unit) for b in known}:
        raise QuestionError(f"there are {len(known):,} budgets", expected=f"at most {MOST:,}")
    kept.set(Budget(team=name, unit=unit, amount=amount, who=clean_who(who)))


@changing("remove a budget")
def remove_budget(place: Workspace, team: str, unit: Unit | None = None) -> None:
    """Of this unit, or of both. Raises QuestionError where the team has none."""
    kept = book(place)
    kept.remove(next((b.team for b in kept.all() if alike(b.team) == alike(team)), team), unit)


def standing(
    place: Workspace, zone: tzinfo = UTC, numbers: Numbers = "later", now_ns: int | None = None
) -> tuple[Left, ...]:
    """What is left of each budget in the month that holds `now_ns` (None: now)."""
    budgets = book(place).all()
    if not budgets:
        return ()
    runs, now = runs_of(place, numbers), time.time_ns() if now_ns is None else now_ns
    known = twice(runs, FleetAsked(until_ns=now))  # a time is asked for: runs without one stand for no other
    return tuple(left_of(of_team(runs, b.team), b.team, b.unit, b.amount, now, zone, known) for b in budgets)


def amount(told: Left, value: float | None) -> str:
    """In the budget's unit."""
    if value is None:
        return fmt.NO_VALUE
    if value < 0:
        return f"−{amount(told, -value)}"
    return fmt.usd(value) if told.unit == "usd" else f"{fmt.number(value)} chip-hours"


def sentence(told: Left) -> str:
    """What is left, what the month will come to, and which runs are in neither."""
    who, whole = short(told.team), amount(told, told.amount)
    if told.spent is None:
        held = fmt.chip_time(told.unpriced_chip_hours * 3600)
        why = f": {held} have no price" if told.runs else ""
        return f"{who}: what was spent of {whole} in {told.month.name} is not known{why}.{_not_counted(told)}"
    more = f"{_comes_to(told)}{_not_counted(told)}"
    if not told.runs:
        return f"{who}: no chip time of this team counts in {told.month.name}; its budget is {whole}.{more}"
    least, most = ("at least ", "at most ") if told.at_least else ("", "")
    left = told.left or 0.0
    rest = f"{most}{amount(told, left)} are left" if left >= 0 else f"{least}{amount(told, -left)} more than that"
    return f"{who}: {least}{amount(told, told.spent)} of {whole} spent in {told.month.name}, {rest}.{more}"


def _comes_to(told: Left) -> str:
    if told.projected is None:
        return f" What the month will come to cannot be told: {told.why_not}."
    least, of = ("at least ", " of what is counted") if told.end_at_least else ("", "")
    low, likely, high = (amount(told, value) for value in told.projected)
    return f" If it goes on as in the weeks before: {least}{likely} by the month's end ({low} to {high}{of}), modelled."


def _not_counted(told: Left) -> str:
    if not told.left_out:
        return ""
    count = fmt.count(sum(told.left_out.values()), "run of the team is", "runs of the team are")
    return f" {count} not counted: {listed([f'{n:,} {LEFT_OUT[why]}' for why, n in told.left_out.items()])}."


def _end(told: Left) -> str:
    if told.projected is None:
        return fmt.NO_VALUE
    return ("≥ " if told.end_at_least else "") + " to ".join(amount(told, told.projected[i]) for i in (0, 2))


def table(told: Sequence[Left]) -> Table:
    rows = [
        (
            short(b.team),
            b.month.name,
            amount(b, b.amount),
            ("≥ " if b.at_least and b.spent is not None else "") + amount(b, b.spent),
            ("≤ " if b.at_least and b.spent is not None else "") + amount(b, b.left),
            _end(b),
            b.state or "not known",
        )
        for b in told
    ]
    head = ("team", "month", "budget", "spent", "left", "month's end (modelled)", "state")
    return Table(head, tuple(rows), right=(2, 3, 4, 5))
