"""The registry for a process that may open no connection: it asks the one that started it, over a pair of sockets that
it was given open.

A job that reads what strangers made is such a process. It is told no password, and what it asks is looked at first:
single statements of the books that an ingest needs, none that names a table of tokens, logins, the audit log or jobs.

    -> {"begin": n, "key": lock}     <- {}                          a transaction of this number
    -> {"run": n, "sql", "values"}   <- {"rows", "count", "names"}  `"rows"` in place of values: for many
    -> {"end": n, "keep": bool}      <- {}
                                     <- {"refused": {what, where, expected, advice}}
"""

import contextlib
import itertools
import json
import os
import re
import socket
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from errors import InputError
from runs.database import Connection, Cursor
from runs.postgres.sql import lock_key, tables

VARIABLE = "CHIPLEDGER_REGISTRY_RELAY"  # the number of the open socket
MOST_OPEN = 8  # transactions of one process at once
LINE_BYTES = 64 << 20
_PLAIN = re.compile(r"\s*(select|insert into|update|delete from)\s[^;$\\]*", re.IGNORECASE)
_WORD = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)
_SYSTEM = re.compile(
    r"\b(pg_\w*|information_schema|current_setting|set_config|lo_\w+|dblink\w*|copy|query_to_\w+)", re.I
)
GONE = "the registry cannot be used now: the process that has it is gone"


class Opens(Protocol):
    """What a relay needs of a registry on PostgreSQL."""

    def transaction(self, key: int) -> contextlib.AbstractContextManager[Connection]: ...


def denied() -> frozenset[str]:
    """Tables that no job that reads files has to do with."""
    from runs import audit_book, job_book, login_book, token_book  # late: these import what opens a registry

    books = (audit_book.AuditBook, job_book.JobBook, login_book.LoginBook, token_book.TokenBook)
    return frozenset(name for book in books for name in tables(book.SCHEMA)) | {"chipledger_schema"}


def may(sql: str) -> bool:
    """Whether a statement is one that such a process may have run."""
    words = {word.lower() for word in _WORD.findall(sql)}
    return _PLAIN.fullmatch(sql) is not None and not _SYSTEM.search(sql) and not words & denied()


@contextlib.contextmanager
def relayed(registry: Opens) -> Generator[int]:
    """The descriptor to be handed on to a process, which is answered by a thread until the block ends."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_answer, args=(ours, registry), name="registry relay", daemon=True).start()
    try:
        yield theirs.fileno()
    finally:
        theirs.close()
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)  # which ends the thread


def _answer(ours: socket.socket, registry: Opens) -> None:
    with ours, contextlib.suppress(OSError, ValueError), ours.makefile("rb") as lines, _Open(registry) as opened:
        while line := lines.readline(LINE_BYTES):
            ours.sendall(json.dumps(opened.answer(line)).encode() + b"\n")


class _Open(contextlib.ExitStack):
    """The transactions of one process. What it left open when it went is undone."""

    def __init__(self, registry: Opens):
        super().__init__()
        self._registry = registry
        self._there: dict[int, tuple[Any, Connection]] = {}

    def __exit__(self, *of: Any) -> bool:
        for number in list(self._there):
            self._end(number, keep=False)
        return bool(super().__exit__(*of))

    def answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            if "begin" in asked:
                return self._begin(int(asked["begin"]), int(asked["key"]))
            if "end" in asked:
                return self._end(int(asked["end"]), keep=asked["keep"] is True)
            return self._run(int(asked["run"]), str(asked["sql"]), asked)
        except InputError as e:
            return {"refused": {name: text or "" for name, text in e.to_dict().items()}}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"refused": {"what": "the registry was asked what it does not understand"}}

    def _begin(self, number: int, key: int) -> dict[str, Any]:
        if len(self._there) >= MOST_OPEN:
            raise InputError("the registry cannot be used now: too much is asked of it at once")
        context = self._registry.transaction(key)
        self._there[number] = context, context.__enter__()
        return {}

    def _end(self, number: int, *, keep: bool) -> dict[str, Any]:
        context, _ = self._there.pop(number)
        undone = _Undone()
        if keep:
            context.__exit__(None, None, None)
        else:
            with contextlib.suppress(_Undone):
                context.__exit__(_Undone, undone, None)
        return {}

    def _run(self, number: int, sql: str, asked: dict[str, Any]) -> dict[str, Any]:
        _, db = self._there[number]
        if sql != "begin immediate" and not may(sql):
            raise InputError("the registry tells and changes nothing of that for a job")
        if "rows" in asked:
            return {"count": db.executemany(sql, asked["rows"]).rowcount}
        found = db.execute(sql, asked["values"])
        if sql == "begin immediate" or found.description is None:
            return {"count": 0 if sql == "begin immediate" else found.rowcount}
        names = [column[0] for column in found.description]
        return {"rows": [list(row) for row in found.fetchall()], "count": found.rowcount, "names": names}


class _Undone(Exception):
    """What ends a transaction that is not kept."""


@dataclass(frozen=True)
class Found:
    """What was answered; see `Cursor`."""

    rows: Iterator[tuple[Any, ...]]
    rowcount: int
    description: Sequence[tuple[str]]

    def fetchone(self) -> Any:
        return next(self.rows, None)

    def fetchall(self) -> list[Any]:
        return list(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return self.rows


class Relay:
    """The registry, in the process that was started: `descriptor` is what it was given."""

    name = "the registry of the server"

    def __init__(self, descriptor: int):
        self._lines, self._descriptor = os.fdopen(descriptor, "rb"), descriptor
        self._lock, self._numbers = threading.Lock(), itertools.count()

    @contextlib.contextmanager
    def connect(self, schema: str) -> Generator[Connection]:
        number = next(self._numbers)
        self.ask({"begin": number, "key": lock_key(schema)})
        try:
            yield _Asking(self, number)
        except BaseException:
            with contextlib.suppress(InputError):
                self.ask({"end": number, "keep": False})
            raise
        self.ask({"end": number, "keep": True})

    def which(self, db: Connection) -> int:
        found = db.execute("select which from chipledger_registry").fetchone()
        return int(found[0]) if found else 0

    def bytes(self) -> int:
        return 0

    def ask(self, what: dict[str, Any]) -> dict[str, Any]:
        """Raises InputError where it is refused, or where nobody answers."""
        try:
            sent = json.dumps(what).encode() + b"\n"
        except (TypeError, ValueError) as e:
            raise InputError(f"the registry cannot keep this ({e})") from e
        try:
            with self._lock:
                while sent:
                    sent = sent[os.write(self._descriptor, sent) :]
                answer = json.loads(self._lines.readline())
        except (OSError, ValueError) as e:
            raise InputError(GONE) from e
        if refused := answer.get("refused"):
            raise InputError(refused.pop("what"), **refused)
        return answer


class _Asking:
    """One transaction; see `Connection`."""

    def __init__(self, relay: Relay, number: int):
        self._relay, self._number = relay, number

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Cursor:
        return _found(self._relay.ask({"run": self._number, "sql": sql, "values": list(values)}))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        return _found(self._relay.ask({"run": self._number, "sql": sql, "rows": [list(row) for row in rows]}))


def _found(answer: dict[str, Any]) -> Found:
    rows = iter([tuple(row) for row in answer.get("rows", ())])
    return Found(rows, answer.get("count", 0), [(name,) for name in answer.get("names", ())])
