"""A trace from the module that runs beside a job (`app/capture/agent.py`): steps or seconds, asked with a token."""

import contextlib
import http.client
import json
import os
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from app.capture.addresses import Address
from app.capture.agent import LEAST_TOKEN, MOST_BYTES, NAME, TOKEN, WAIT_SECONDS
from app.capture.session import LOOK_S, Answer, Session, connected, line
from errors import InputError
from runs.durable import writing

READ_S = 30.0  # within which the next bytes of a trace must come
SLOWEST = 1e6  # bytes a second, below which a trace is given up
ERROR_BYTES = 4096
STRANGER = "something else than the module for jobs listens there"
_NAME = re.compile(r"(?P<host>[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}?)(?:_\d+\.\d+\.pt\.trace\.json\.gz|\.xplane\.pb)")


def token() -> str:
    """The word that agents know. Raises InputError where none is set here."""
    said = os.environ.get(TOKEN, "")
    if len(said) < LEAST_TOKEN or not said.isascii() or not said.isprintable():
        raise InputError(
            f"${TOKEN} is not set",
            expected=f"the token that the job was started with, of {LEAST_TOKEN} characters or more",
        )
    return said


def take(address: Address, steps: int | None, duration_s: float, python: bool, session: Session) -> Answer:
    """The trace of one process, below the session's folder. Raises InputError where none comes, and Cancelled."""
    known = token()
    connection = http.client.HTTPConnection(address.host, address.port)
    connection.sock = connected(address)
    try:
        session.meet(address)
        wanted = {"duration_s": duration_s} if steps is None else {"steps": steps}
        body = json.dumps({**wanted, "python": python})
        connection.request("POST", "/capture", body, {"Authorization": f"Bearer {known}"})
        lasts_s = duration_s if steps is None else WAIT_SECONDS
        _answering(connection, lasts_s + session.answer_s, session)
        connection.sock.settimeout(READ_S)
        with _within(connection.sock, READ_S):
            answer = connection.getresponse()
        with answer:
            return _kept(address, answer, session)
    except TimeoutError as e:
        raise InputError(f"nothing more came within {READ_S:g} s") from e
    except OSError as e:  # of which a connection that ends without an answer is one
        raise InputError(f"the connection ended ({line(e.strerror or str(e))}): did the job?") from e
    except (http.client.HTTPException, ValueError) as e:
        raise InputError(STRANGER) from e
    finally:
        connection.close()


def _answering(connection: http.client.HTTPConnection, allowed_s: float, session: Session) -> None:
    """Wait until something comes. Who hangs up tells the agent to record no longer."""
    deadline = time.monotonic() + allowed_s
    while not select.select([connection.sock], [], [], LOOK_S)[0]:
        session.check()
        if time.monotonic() > deadline:
            raise InputError(f"no answer within {allowed_s:g} s")


@contextlib.contextmanager
def _within(connection: socket.socket, seconds: float) -> Iterator[None]:
    """What drips does not count as an answer: the connection ends, however often something comes."""

    def end() -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    over = threading.Timer(seconds, end)
    over.daemon = True
    over.start()
    try:
        yield
    finally:
        over.cancel()


def _kept(address: Address, answer: http.client.HTTPResponse, session: Session) -> Answer:
    size = answer.headers.get("Content-Length", "")
    if answer.status != http.client.OK:
        raise InputError(_refused(answer))
    named = _NAME.fullmatch(answer.headers.get(NAME, ""))
    if named is None or not (size.isascii() and size.isdigit()):
        raise InputError(STRANGER)
    if int(size) > MOST_BYTES:
        raise InputError(f"its trace holds more than {MOST_BYTES:,} bytes: take fewer steps")
    file = session.place(address, int(size)) / named[0]
    partial = file.with_suffix(".part")
    try:
        _received(answer, partial, int(size), session)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return Answer(address, file, int(size), named["host"])


def _received(answer: http.client.HTTPResponse, file: Path, size: int, session: Session) -> None:
    got, deadline = 0, time.monotonic() + READ_S + size / SLOWEST
    with file.open("xb") as f:
        while piece := answer.read1(min(1 << 20, size - got)):
            session.check()
            if time.monotonic() > deadline:
                raise InputError(f"its trace comes too slowly: {got:,} of {size:,} bytes came")
            with writing(file):
                f.write(piece)
            got += len(piece)
    if got < size:
        raise InputError(f"its trace is cut off: {got:,} of {size:,} bytes came")


def _refused(answer: http.client.HTTPResponse) -> str:
    try:
        said = json.loads(answer.read(ERROR_BYTES))["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return f"it answered with status {answer.status}, as the module for jobs does not"
    return line(str(said).replace(token(), "..."))  # whoever reads a page must not learn it from a stranger
