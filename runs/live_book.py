"""Where live runs stand, in the registry that all machines of a store in a bucket have in common."""

from runs.database import Database, put

_SCHEMA = """
create table if not exists live_runs (name text primary key, pointer text not null) without rowid;
create table if not exists live_snapshots (name text not null, run_id text not null, primary key (name, run_id))
    without rowid;
"""


class LiveBook(Database):
    """Pointers as `LiveRuns` writes them, by name, and which snapshots each led to. Safe for several processes."""

    SCHEMA = _SCHEMA

    def pointer(self, name: str) -> str | None:
        with self._connect() as db:
            row = db.execute("select pointer from live_runs where name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def pointers(self) -> dict[str, str]:
        with self._connect() as db:
            return dict(db.execute("select name, pointer from live_runs").fetchall())

    def snapshots(self, name: str) -> set[str]:
        with self._connect() as db:
            rows = db.execute("select run_id from live_snapshots where name = ?", (name,))
            return {str(run_id) for (run_id,) in rows}

    def keep(self, name: str, pointer: str) -> None:
        with self._connect() as db:
            db.execute(put("live_runs", "name", "pointer"), (name, pointer))

    def led(self, name: str, run_id: str) -> None:
        """It leads to this snapshot from now on."""
        with self._connect() as db:
            db.execute("insert into live_snapshots values (?, ?) on conflict do nothing", (name, run_id))
