"""The registry for a process that may open no connection: it asks the one that started it, over a pair of sockets that
it was given open.

A job that reads what strangers made is such a process. It is told no password, and may say what `sealed.py` lists
alone, of its own run, group and input: nothing of tokens, logins, the audit log or jobs, and nothing else that an
ingest does not say. Of its transactions few are open at once, and none for long: whoever has one holds up others.

    -> {"begin": n, "key": lock}     <- {}                          a transaction of this number
    -> {"run": n, "sql", "values"}   <- {"rows", "count", "names"}  `"rows"` in place of values: for many
    -> {"end": n, "keep": bool}      <- {}
                                     <- {"refused": {what, where, expected, advice}}
"""

import contextlib
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from errors import InputError
from runs.database import Connection, Cursor
from runs.postgres.sealed import Own, is_under, keys, statements
from runs.postgres.sql import lock_key

VARIABLE = "CHIPLEDGER_REGISTRY_RELAY"  # the number of the open socket
MOST_OPEN = 2  # transactions of one process at once
MOST_RELAYED = 4  # of all processes at once: half of the connections are for whoever else asks
ROOM_S = 5.0  # waited for one of them
BUSY = "the registry cannot be used now: too much is asked of it at once"
OPEN_S = 10.0  # that one may take; it is undone then
ANSWER_S = 10.0  # to take an answer
LINE_BYTES = 4 << 20
ROWS = 500  # of a line
BEGIN = "begin immediate"
REFUSED = "the registry tells and changes nothing of that for a job"
NOT_OWN = "the registry takes from a job what is its own alone"
LATE = "the registry cannot be used now: this took too long, and nothing of it is kept"
GONE = "the registry cannot be used now: the process that has it is gone"


class Opens(Protocol):
    """What a relay needs of a registry on PostgreSQL."""

    def transaction(self, key: int) -> contextlib.AbstractContextManager[Connection]: ...


_room = threading.BoundedSemaphore(MOST_RELAYED)


def may(sql: str) -> bool:
    """Whether a statement is one that such a process may have run."""
    return sql == BEGIN or sql in statements()


@contextlib.contextmanager
def relayed(registry: Opens, own: Own) -> Generator[int]:
    """The descriptor to be handed on to a process, which is answered by a thread until the block ends. `own`: of what
    it may say anything."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_answer, args=(ours, registry, own), name="registry relay", daemon=True).start()
    try:
        yield theirs.fileno()
    finally:
        theirs.close()
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)  # which ends the thread


def _answer(ours: socket.socket, registry: Opens, own: Own) -> None:
    with ours, contextlib.suppress(OSError, ValueError), _Open(registry, own) as opened:
        for line in _lines(ours, opened):
            ours.settimeout(ANSWER_S)
            ours.sendall(opened.answer(line))


def _lines(ours: socket.socket, opened: "_Open") -> Iterator[bytes]:
    """What the process says, a line at a time, until it hangs up or says one that is too long."""
    said = b""
    while len(said) <= LINE_BYTES:
        opened.end_late()
        ours.settimeout(opened.left_s())
        try:
            part = ours.recv(1 << 16)
        except TimeoutError:
            continue
        if not part:
            return
        *whole, said = (said + part).split(b"\n")
        for line in whole:
            if len(line) > LINE_BYTES:
                return
            opened.end_late()
            yield line


class _Open(contextlib.ExitStack):
    """The transactions of one process. What it left open when it went is undone."""

    def __init__(self, registry: Opens, own: Own):
        super().__init__()
        self._registry, self._own = registry, own
        self._there: dict[int, tuple[Any, Connection, float]] = {}  # with the time by which it has to end, monotonic
        self._keys: dict[int, int] = {}  # the lock of each

    def __exit__(self, *of: Any) -> bool:
        for number in list(self._there):
            with contextlib.suppress(InputError):
                self._end(number, keep=False)
        return bool(super().__exit__(*of))

    def left_s(self) -> float | None:
        """Until the first of them has to end; None while none is open."""
        ends = [until_s for _, _, until_s in self._there.values()]
        return max(0.01, min(ends) - time.monotonic()) if ends else None

    def end_late(self) -> None:
        for number, (_, _, until_s) in list(self._there.items()):
            if until_s <= time.monotonic():
                with contextlib.suppress(InputError):
                    self._end(number, keep=False)

    def answer(self, line: bytes) -> bytes:
        try:
            return _line(self._answered(json.loads(line)))
        except InputError as e:
            return _line({"refused": {name: text or "" for name, text in e.to_dict().items()}})
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return _line({"refused": {"what": "the registry was asked what it does not understand"}})

    def _answered(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "begin" in asked:
            return self._begin(int(asked["begin"]), int(asked["key"]))
        if "end" in asked:
            return self._end(int(asked["end"]), keep=asked["keep"] is True)
        return self._run(int(asked["run"]), str(asked["sql"]), asked)

    def _begin(self, number: int, key: int) -> dict[str, Any]:
        if key not in keys():
            raise InputError(REFUSED)
        if number in self._there or len(self._there) >= MOST_OPEN:
            raise InputError(BUSY)
        context = _one_of_few(self._registry, key)
        self._keys[number] = key
        self._there[number] = context, context.__enter__(), time.monotonic() + OPEN_S
        return {}

    def _end(self, number: int, *, keep: bool) -> dict[str, Any]:
        if number not in self._there:
            raise InputError(LATE)
        context, _, _ = self._there.pop(number)
        del self._keys[number]
        undone = _Undone()
        if keep:
            context.__exit__(None, None, None)
        else:
            with contextlib.suppress(_Undone):
                context.__exit__(_Undone, undone, None)
        return {}

    def _run(self, number: int, sql: str, asked: dict[str, Any]) -> dict[str, Any]:
        if not may(sql):
            raise InputError(REFUSED)
        if number not in self._there:
            raise InputError(LATE)
        _, db, _ = self._there[number]
        if not is_under(sql, self._keys[number]):
            raise InputError(REFUSED)
        for values in asked["rows"] if "rows" in asked else (asked["values"],):
            if not self._own.may(sql, values, db):
                raise InputError(NOT_OWN)
        if "rows" in asked:
            return {"count": db.executemany(sql, asked["rows"]).rowcount}
        found = db.execute(sql, asked["values"])
        if sql == BEGIN or found.description is None:
            return {"count": 0 if sql == BEGIN else found.rowcount}
        names = [column[0] for column in found.description]
        return {"rows": [list(row) for row in found.fetchall()], "count": found.rowcount, "names": names}


@contextlib.contextmanager
def _one_of_few(registry: Opens, key: int) -> Generator[Connection]:
    """A transaction. Raises InputError where the jobs of this process have as many as they may."""
    if not _room.acquire(timeout=ROOM_S):
        raise InputError(BUSY, advice="Try again.")
    try:
        with registry.transaction(key) as one:
            yield one
    finally:
        _room.release()


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode() + b"\n"


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
        count = 0
        left = [list(row) for row in rows]
        while left:
            some, left = left[:ROWS], left[ROWS:]
            count += self._relay.ask({"run": self._number, "sql": sql, "rows": some})["count"]
        return _found({"count": count})


def _found(answer: dict[str, Any]) -> Found:
    rows = iter([tuple(row) for row in answer.get("rows", ())])
    return Found(rows, answer.get("count", 0), [(name,) for name in answer.get("names", ())])
