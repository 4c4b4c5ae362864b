"""What each team may spend in a month, in dollars or in chip-hours. In the registry."""

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

from errors import QuestionError
from errors.nearest import did_you_mean
from runs.database import Database, put

_SCHEMA = """
create table if not exists budgets (team text not null, unit text not null, amount real not null, who text not null,
    written_ns integer not null, primary key (team, unit)) without rowid;
"""
Unit = Literal["usd", "chip_hours"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """`amount` a calendar month, in dollars (`usd`) or chip-hours; `who` set it, and when."""

    team: str
    unit: Unit
    amount: float
    who: str = ""
    written_ns: int = 0

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class BudgetBook(Database):
    """Budgets, one for each team and unit. Safe for several processes: each change is one transaction."""

    SCHEMA = _SCHEMA

    def set(self, budget: Budget) -> None:
        """Keep it in place of what the team had in this unit."""
        row = (budget.team, budget.unit, budget.amount, budget.who, time.time_ns())
        with self._connect() as db:
            db.execute(put("budgets", "team, unit", "amount, who, written_ns"), row)

    def remove(self, team: str, unit: Unit | None = None) -> None:
        """Of this unit, or of both. Raises QuestionError where the team has none."""
        units = UNITS if unit is None else (unit,)
        with self._connect() as db:
            gone = [db.execute("delete from budgets where team = ? and unit = ?", (team, u)).rowcount for u in units]
        if not any(gone):
            known = sorted({b.team for b in self.all()})
            raise QuestionError(
                f"team {team[:80]!r} has no such budget",
                expected=f"one of {', '.join(known[:20])}" if known else "a team that has one: none has",
                advice=did_you_mean(team, known),
            )

    def all(self) -> list[Budget]:
        """In order of team and unit."""
        with self._connect() as db:
            rows = db.execute("select team, unit, amount, who, written_ns from budgets order by team, unit").fetchall()
        return [Budget(team=t, unit=u, amount=a, who=w, written_ns=ns) for t, u, a, w, ns in rows]
