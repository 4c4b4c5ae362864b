"""What was promised: findings of a run that somebody set out to mend, with what that was said to give. In the registry.

A promise is kept as it was said, whatever a later version would say of that run; what it gave is worked out anew from
the runs whenever it is looked at.
"""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from errors import QuestionError
from runs.database import Database

_SCHEMA = """
create table if not exists promises (
    id integer primary key, run_id text not null, job text not null, cause text not null, place text not null,
    title text not null, low_share real not null, likely_share real not null, high_share real not null,
    draws text not null, made_ns integer not null, withdrawn_ns integer);
create unique index if not exists standing_promises on promises (run_id, cause, place) where withdrawn_ns is null;
create index if not exists promises_by_job on promises (job);
"""
MOST = 500  # promises that are listed, the newest
_ABOUT = "run_id = ? and cause = ? and place = ? and withdrawn_ns is null"
_OTHERWISE = "(" + " or ".join(f"abs({of}_share - ?) > 1e-9" for of in ("low", "likely", "high")) + ")"
TEXT = 2000  # characters of a title: a sentence, not a file


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One promise. Shares are of the chip time of the run `run_id`; `draws`: chip-seconds by account; `job`: what
    the run is called; `place`: ranks, hosts, steps as in the finding."""

    run_id: str
    job: str
    cause: str
    title: str
    low_share: float
    likely_share: float
    high_share: float
    draws: dict[str, float]
    place: dict[str, Any] = field(default_factory=dict)
    id: int = 0
    made_ns: int = 0

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class PromiseBook(Database):
    """Promises. Safe for several processes: each change is one transaction."""

    SCHEMA = _SCHEMA

    def keep(self, promise: Promise) -> int:
        """Keep it, once: the same again changes nothing, and one that says more or less takes its place. Returns its
        number."""
        place = json.dumps(promise.place, sort_keys=True)
        about = (promise.run_id, promise.cause, place)
        said = (promise.low_share, promise.likely_share, promise.high_share, json.dumps(promise.draws))
        now = time.time_ns()
        with self._connect() as db:
            db.execute(
                f"update promises set withdrawn_ns = ? where {_ABOUT} and {_OTHERWISE}", (now, *about, *said[:3])
            )
            db.execute(
                "insert into promises (run_id, cause, place, job, title, low_share, likely_share, "
                "high_share, draws, made_ns) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
                (*about, promise.job, promise.title[:TEXT], *said, now),
            )
            row = db.execute(f"select id from promises where {_ABOUT}", about).fetchone()
        return int(row[0])

    def withdraw(self, number: int) -> None:
        """It is promised no longer. Raises QuestionError where no such promise stands."""
        with self._connect() as db:
            done = db.execute(
                "update promises set withdrawn_ns = ? where id = ? and withdrawn_ns is null", (time.time_ns(), number)
            )
            if not done.rowcount:
                raise QuestionError(
                    f"no promise {number} stands", expected="the number of one that `chipledger promise` lists"
                )

    def runs(self) -> set[str]:
        """The runs of which anything is promised, however many they are."""
        with self._connect() as db:
            found = db.execute("select distinct run_id from promises where withdrawn_ns is null")
            return {run_id for (run_id,) in found}

    def standing(self, job: str | None = None, run_id: str | None = None) -> list[Promise]:
        """Those that stand, the newest first: all, or of one job or run."""
        asked = "select * from promises where withdrawn_ns is null"
        given: list[str | int] = []
        for name, value in (("job", job), ("run_id", run_id)):
            if value is not None:
                asked += f" and {name} = ?"
                given.append(value)
        with self._connect() as db:
            found = db.execute(f"{asked} order by id desc limit ?", [*given, MOST])
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found]
        for row in rows:
            del row["withdrawn_ns"]
            row["draws"], row["place"] = json.loads(row["draws"]), json.loads(row["place"])
        return [Promise(**row) for row in rows]
