"""What the manifests of a store tell of its runs, kept in one file of a store of many: whoever starts reads that, and
no manifest that is the same as it was. Beside it, what runs spent as the numbers that fleets are made of.

    <store>/derived/listed.db
        listed    by run: a number that tells its manifest from another, and what it says, as JSON
        spent     by run: a number that tells what it spent from other amounts, and these (`analyzers.fleet.packed`)

It follows from the runs, and may be deleted at any time. Where it cannot be used manifests are read.
"""

import contextlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from analyzers.fleet.packed import Packed
from app.library.answers import answering
from app.questions.asking import PRICE
from app.summary import chip_text, chips_text, model_text
from errors import ChipledgerError
from runs.database import Database, put
from runs.derived import FOLDER
from runs.durable import PRIVATE
from runs.registry import about
from runs.run import Run

LEAST = 2_000  # runs: of fewer the manifests are read
SCHEMA = """
create table if not exists listed (run_id text primary key, mark text not null, told text not null);
create table if not exists spent (run_id text primary key, mark text not null, paths text not null, told blob not null);
"""
Told = Mapping[str, Any]


def told_of(run: Run, problem: str | None) -> Told:
    """What a row tells of a run's manifest, with what was said of it; see `Row`. `facts_price`: of a chip-hour, as the
    facts state it. `mark`: of the facts that were said."""
    manifest = run.manifest
    return {
        "name": manifest.name,
        "stored_name": run.written.name,
        "kind": manifest.kind,
        "simulated": manifest.simulated,
        "created_ns": manifest.created_ns,
        "chip": chip_text(run),
        "chips": manifest.fact("chips"),
        "chips_text": chips_text(run),
        "model": model_text(run),
        "topology": str(manifest.fact("topology") or ""),
        "job": str(manifest.fact("job_name") or ""),
        "tags": manifest.tags,
        "tables": manifest.tables,
        "problem": problem,
        "facts_price": manifest.fact(PRICE),
        "mark": run.said.mark,
    }


class _Listed(Database):
    SCHEMA = SCHEMA


class Remembered:
    """Of the store in `root`. Nothing here raises: what is not kept is read again."""

    def __init__(self, root: Path):
        self._path = root / FOLDER / "listed.db"
        self._book: _Listed | None = None

    def get(self, marks: Mapping[str, int]) -> dict[str, Told]:
        """Of these runs, as far as it is kept of manifests that have these marks."""
        found: dict[str, Told] = {}
        with contextlib.suppress(ChipledgerError, OSError, ValueError), self._opened() as db:
            for run_id, mark, told in about(db, "select run_id, mark, told from listed{}", marks):
                if mark == _mark(marks.get(run_id)):
                    found[run_id] = json.loads(told)
        return found

    def keep(self, told: Mapping[str, Told], marks: Mapping[str, int]) -> None:
        rows = [(i, _mark(marks.get(i)), json.dumps(one, separators=(",", ":"))) for i, one in told.items()]
        with contextlib.suppress(ChipledgerError, OSError), self._opened() as db:
            db.executemany(put("listed", "run_id", "mark, told"), rows)

    def spent(self, marks: Mapping[str, int]) -> dict[str, Packed]:
        """What these runs spent, as far as it is kept of amounts that have these marks."""
        found: dict[str, Packed] = {}
        with contextlib.suppress(ChipledgerError, OSError, ValueError), self._opened() as db:
            for run_id, mark, paths, told in about(db, "select run_id, mark, paths, told from spent{}", marks):
                kept = Packed(paths, told)
                if mark == _mark(marks.get(run_id)) and kept.whole():
                    found[run_id] = kept
        return found

    def keep_spent(self, spent: Mapping[str, Packed], marks: Mapping[str, int]) -> None:
        rows = [(i, _mark(marks[i]), one.paths, one.told) for i, one in spent.items()]
        with contextlib.suppress(ChipledgerError, OSError), self._opened() as db:
            db.executemany(put("spent", "run_id", "mark, paths, told"), rows)

    def forget(self, run_ids: Collection[str]) -> None:
        """Of runs that are gone nothing stays."""
        if self._path.exists():
            with contextlib.suppress(ChipledgerError, OSError), self._opened() as db:
                for table in ("listed", "spent"):
                    db.executemany(f"delete from {table} where run_id = ?", [(i,) for i in run_ids])

    def ids(self) -> set[str]:
        if self._path.exists():
            with contextlib.suppress(ChipledgerError, OSError), self._opened() as db:
                return {run_id for (run_id,) in db.execute("select run_id from listed union select run_id from spent")}
        return set()

    def _opened(self) -> Any:
        if self._book is None:
            self._path.parent.mkdir(mode=PRIVATE, exist_ok=True)
            self._book = _Listed(self._path)
        return self._book.opened()


def _mark(mark: int | None) -> str:
    """With what reads a manifest: another catalogue has another name for a chip."""
    return f"{mark} {answering()}"
