"""What a person has read and put away of what a run warns of. In the registry: a run itself never changes."""

import hashlib
import time
from collections.abc import Sequence

from runs.database import Database

_SCHEMA = """
create table if not exists dismissals (run_id text not null, warnings text not null, dismissed_ns integer not null,
    primary key (run_id, warnings)) without rowid;
"""


class Dismissals(Database):
    """Which warnings were dismissed, all of a run at once. A run that is read anew and warns of other things, warns."""

    SCHEMA = _SCHEMA

    def dismiss(self, run_id: str, warnings: Sequence[str]) -> None:
        with self._connect() as db:
            known = (run_id, _digest(warnings), time.time_ns())
            db.execute("insert into dismissals values (?, ?, ?) on conflict do nothing", known)

    def recall(self, run_id: str) -> None:
        """Show them again."""
        with self._connect() as db:
            db.execute("delete from dismissals where run_id = ?", (run_id,))

    def dismissed(self, run_id: str, warnings: Sequence[str]) -> bool:
        with self._connect() as db:
            asked = "select 1 from dismissals where run_id = ? and warnings = ?"
            return db.execute(asked, (run_id, _digest(warnings))).fetchone() is not None


def _digest(warnings: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(warnings).encode("utf-8", "surrogatepass")).hexdigest()
