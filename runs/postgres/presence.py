"""Workers that are there, shown by PostgreSQL: each has a connection of its own, and on it a lock of its name.

The server lets go of the lock with the connection: at once where the worker was killed, within half a minute where its
machine or the network went away.
"""

import contextlib
import threading
import zlib
from collections.abc import Generator
from typing import Any

from errors import InputError
from runs.postgres.server import Server, told

_CLASS = "hashtext(current_schema() || ' workers')"
_HOLD = f"select pg_advisory_lock({_CLASS}, %s)"
_TRY = f"select pg_try_advisory_lock({_CLASS}, %s)"
_FREE = f"select pg_try_advisory_xact_lock({_CLASS}, %s)"  # alone in its transaction: let go of at once
_THERE = (
    "select count(*) from pg_locks where locktype = 'advisory' and granted and objsubid = 2 "
    "and database = (select oid from pg_database where datname = current_database()) "
    f"and classid::bigint = ({_CLASS}::bigint & 4294967295)"
)
_NOTICED = (
    "select set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)  # by the server, which keeps the lock until it notices


def workers(server: Server) -> int:
    """How many workers use a registry. Raises InputError where it cannot be asked."""
    with server.connect("") as db:
        return int(db.execute(_THERE).fetchone()[0])


class Presence:
    """The presence of one worker. Safe for several threads."""

    def __init__(self, server: Server):
        self._server, self._db, self._lock = server, None, threading.Lock()

    def hold(self, worker: str) -> None:
        """Be there; again where the connection was lost. Raises InputError where the registry cannot be reached."""
        with self._lock:
            if self._db is not None and _answers(self._db):
                return
            if self._db is not None:
                self._db.close()
                self._db = None
            db = self._server.dial()
            try:
                with told(self._server.name):
                    db.execute(_NOTICED)
                    db.execute(_HOLD, (_key(worker),))
            except BaseException:
                db.close()
                raise
            self._db = db

    def is_held(self, worker: str) -> bool:
        """Whether this worker is there. Raises InputError where the registry cannot be asked."""
        with self._server.connect("") as db:
            return not db.execute(_FREE.replace("%s", "?"), (_key(worker),)).fetchone()[0]

    def leave(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


@contextlib.contextmanager
def following(server: Server, name: str) -> Generator[None]:
    """Within it this process alone follows a live run, of all machines. Raises InputError where another does."""
    db = server.dial()
    try:
        with told(server.name):
            db.execute(_NOTICED)
            (had,) = db.execute(_TRY, (_key(f"live:{name}"),)).fetchone()
        if not had:
            raise InputError(
                f"live run {name!r} is being followed already, on another machine",
                advice="One is enough: its pages show what it reads. Stop it first to change how.",
            )
        yield
    finally:
        db.close()


def _answers(db: Any) -> bool:
    from runs.postgres.library import is_refusal

    try:
        db.execute("select 1")
        return True
    except Exception as e:
        if not is_refusal(e):
            raise
        return False


def _key(worker: str) -> int:
    return zlib.crc32(worker.encode()) & 0x7FFF_FFFF
