"""Which runs came with the product, and whether they are shown. In the registry."""

from runs.database import Database

_SCHEMA = """
create table if not exists demo_runs (run_id text primary key) without rowid;
create table if not exists demo_hidden (hidden integer primary key) without rowid;
"""


class DemoRuns(Database):
    """The bundled runs of a store. They are runs like others; who has enough of them hides them all."""

    SCHEMA = _SCHEMA

    def add(self, run_id: str) -> bool:
        """Note that a run came with the product; whether that is new."""
        with self._connect() as db:
            return db.execute("insert into demo_runs values (?) on conflict do nothing", (run_id,)).rowcount > 0

    def ids(self) -> set[str]:
        with self._connect() as db:
            return {run_id for (run_id,) in db.execute("select run_id from demo_runs")}

    def hide(self, hidden: bool) -> None:
        with self._connect() as db:
            db.execute(
                "insert into demo_hidden values (1) on conflict do nothing" if hidden else "delete from demo_hidden"
            )

    def hidden(self) -> bool:
        with self._connect() as db:
            return db.execute("select 1 from demo_hidden").fetchone() is not None
