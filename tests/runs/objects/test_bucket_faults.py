"""A server that speaks S3 behind a proxy that answers with faults, cuts answers off, or is gone: what passes is waited
for, the rest is one sentence, and what is read is whole or not there."""

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from errors import InputError
from runs.objects import faults
from tests.runs.objects.places import NS, steps, write

OWN = ("content-length", "connection", "server", "date")  # heads that each answer has of its own


class Between:
    """Stands before the server. `fault(method, path)` gives (status, code) of a fault, "cut" or "drop", or None."""

    def __init__(self) -> None:
        self.fault: Callable[[str, str], object] = lambda method, path: None
        self.asked: list[tuple[str, str]] = []


@contextlib.contextmanager
def between(behind: str) -> Iterator[tuple[str, Between]]:
    state, target = Between(), urlsplit(behind)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # which says that a body may be sent

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.asked.append((self.command, self.path))
            fault = state.fault(self.command, self.path)
            if fault == "drop":
                self.close_connection = True
                return
            if isinstance(fault, tuple):
                status, code = fault
                said = f"<Error><Code>{code}</Code><Message>SECRET</Message></Error>".encode()
                self.answer(status, [], said, len(said))
                return
            asked = http.client.HTTPConnection(target.netloc, timeout=20)
            heads = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
            asked.request(self.command, self.path, body, heads)
            answer = asked.getresponse()
            data = answer.read()
            heads = [
                (k, v)
                for k, v in answer.getheaders()
                if k.lower() not in ("content-length", "connection", "server", "date")
            ]
            length = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
            self.answer(answer.status, heads, data[: len(data) // 2] if fault == "cut" else data, length)

        def answer(self, status, heads, data, length) -> None:
            self.send_response(status)
            for name, value in heads:
                self.send_header(name, value)
            self.send_header("Content-Length", str(length or 0))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = pass_on  # noqa: N815 - as the library names it

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def faulty(bucket, monkeypatch):
    """(the place, what stands before its server); what is waited for is short."""
    import os

    monkeypatch.setattr(faults, "FIRST_S", 0.001)
    with between(os.environ["AWS_ENDPOINT_URL"]) as (address, state):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        yield bucket, state


def each_first(fault):
    """The first time that anything is asked there is this fault, then none."""
    seen = set()

    def told(method, path):
        new = (method, path) not in seen
        seen.add((method, path))
        return fault if new else None

    return told


@pytest.mark.parametrize("fault", [(503, "SlowDown"), "cut", "drop"])
def test_what_passes_costs_time_alone(faulty, fault):
    place, state = faulty
    state.fault = each_first(fault)
    write(place.open())
    state.fault = each_first(fault)
    [run] = place.open("two").runs()
    assert steps(run) == [NS, NS + 1, NS + 2] and list(run.files.verify_there()) == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ((403, "AccessDenied"), "these credentials may not do that"),
        ((403, "InvalidAccessKeyId"), "it does not know these credentials"),
        ((400, "ExpiredToken"), "the credentials have expired"),
        ((403, "RequestTimeTooSkewed"), "the clock of this machine"),
        ((404, "NoSuchBucket"), "no such bucket"),
        ((503, "SlowDown"), "it asks for fewer requests, asked 6 times"),
        ((500, "InternalError"), "asked 6 times"),
        ("drop", "it does not answer, asked 6 times"),
    ],
)
def test_what_does_not_pass_is_one_sentence(faulty, fault, said):
    place, state = faulty
    write(place.open())
    state.fault = lambda method, path: fault
    with pytest.raises(InputError, match=said) as error:
        place.open("two")
    assert str(error.value).startswith(place.url) and "SECRET" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fault", "at"), [((403, "AccessDenied"), "tables/steps"), ((403, "AccessDenied"), "/run.json"), ("drop", "index/")]
)
def test_a_writer_that_is_refused_half_way_leaves_no_run(faulty, fault, at):
    place, state = faulty
    store = place.open()
    state.fault = lambda method, path: fault if method == "PUT" and at in path else None
    with pytest.raises(InputError):
        write(store)
    state.fault = lambda method, path: None
    assert place.open("two").ids() == []
    write(store)
    [run] = place.open("three").runs()
    assert steps(run) == [NS, NS + 1, NS + 2]


def test_an_answer_that_was_lost_is_no_other_writer(faulty):
    """What was created is there, and its answer never came: who asks again is told that it exists, and it is theirs."""
    place, state = faulty
    store = place.open()
    real, lost = state.fault, []

    def fault(method, path):
        if method == "PUT" and path not in lost and ("index/" in path or path.endswith("run.json")):
            lost.append(path)
            return "cut"
        return real(method, path)

    state.fault = fault
    write(store)
    assert len(lost) >= 3 and [r.run_id for r in place.open("two").runs()] == ["abcd1234"]
