"""A Cloud Logging of this machine: `POST /v2/entries:list` over real HTTP, its query language, quota and faults.

The filter language is parsed as documented: comparisons, brackets, NOT before OR before AND; without a word between
two comparisons it is an AND.
"""

import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_TOKEN = re.compile(r'\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<op>>=|<=|!=|=~|=|<|>|:|\(|\))|(?P<word>[\w.@/-]+))')
Test = Callable[[dict[str, Any]], bool]


class BadFilter(ValueError):
    """What the service would refuse with 400."""


def compiled(text: str) -> Test:
    """The filter as a function of an entry. Raises BadFilter."""
    tokens, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match:
            raise BadFilter(f"Unparseable filter: syntax error at character {position}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    parser = _Parser(tokens)
    test = parser.conjunction() if tokens else lambda entry: True
    if parser.rest():
        raise BadFilter(f"Unparseable filter: unexpected {parser.rest()[0][1]!r}")
    return test


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]):
        self._tokens, self._at = tokens, 0

    def rest(self) -> list[tuple[str, str]]:
        return self._tokens[self._at :]

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def conjunction(self) -> Test:
        parts = [self.disjunction()]
        while self._peek()[0] != "end" and self._peek()[1] != ")":
            if self._peek() == ("word", "AND"):
                self._take()
            parts.append(self.disjunction())
        return lambda entry: all(part(entry) for part in parts)

    def disjunction(self) -> Test:
        parts = [self.factor()]
        while self._peek() == ("word", "OR"):
            self._take()
            parts.append(self.factor())
        return lambda entry: any(part(entry) for part in parts)

    def factor(self) -> Test:
        kind, text = self._take()
        if (kind, text) == ("word", "NOT"):
            inner = self.factor()
            return lambda entry: not inner(entry)
        if text == "(":
            inner = self.conjunction()
            if self._take()[1] != ")":
                raise BadFilter("Unparseable filter: a bracket is not closed")
            return inner
        if kind != "word":
            raise BadFilter(f"Unparseable filter: unexpected {text!r}")
        op, value = self._take(), self._take()
        if op[0] != "op" or value[0] not in ("text", "word"):
            raise BadFilter(f"Unparseable filter: no comparison with {text!r}")
        wanted = json.loads(value[1]) if value[0] == "text" else value[1]
        return lambda entry: _compare(text, op[1], wanted, entry)


def _compare(name: str, op: str, wanted: str, entry: dict[str, Any]) -> bool:
    value: Any = entry
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return op == "!="
    if op == ":":
        return wanted.casefold() in str(value).casefold()
    if op == "=~":
        return re.search(wanted, str(value)) is not None
    left: Any = str(value)
    right: Any = wanted
    if name == "severity":
        if wanted not in SEVERITIES:
            raise BadFilter(f"Unparseable filter: no severity {wanted!r}")
        left, right = SEVERITIES.index(left), SEVERITIES.index(wanted)
    elif name in ("timestamp", "receiveTimestamp"):
        left, right = ns_of(left), ns_of(wanted)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
    }[op]


def ns_of(stamp: str) -> int:
    """Nanoseconds of an RFC 3339 time in UTC."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", stamp)
    if not match:
        raise BadFilter(f"Unparseable filter: no timestamp {stamp!r}")
    whole = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return whole // timedelta(seconds=1) * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))


def stamp_of(ns: int) -> str:
    """RFC 3339 as the service writes it."""
    seconds, fraction = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{fraction:09d}Z"


def grpc_shaped(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as it is when its writer used gRPC: every number a float, the keys in another order."""
    payload = entry.get("jsonPayload")
    if not isinstance(payload, dict):
        return entry
    numbers = {k: float(v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in payload.items()}
    return {**entry, "jsonPayload": dict(sorted(numbers.items(), key=lambda item: item[0][::-1]))}


@dataclass
class LoggingServer:
    """The entries that it holds, how it answers, and what it was asked.

    `faults` are taken one an answer: an HTTP status, (status, Retry-After), or a word: `drop` (the connection, before
    an answer), `cut` (in the middle of the body), `slow`, `empty` (a page without entries but with a token), `garbage`.
    `quota` reads in any `quota_s` seconds are answered, more are refused with 429 and counted in `over_quota`.
    `before` is called with the number of each read before it is answered.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    page_size: int = 1000
    quota: int | None = None
    quota_s: float = 60.0
    grpc: bool = False
    faults: deque = field(default_factory=deque)
    slow_s: float = 0.3
    before: Callable[[int], None] | None = None
    twice: int = 0  # every so many-th entry is given twice in a row

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.asked: list[dict[str, Any]] = []
        self.over_quota = 0
        self._reads: deque[float] = deque()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "LoggingServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def add(self, *entries: dict[str, Any]) -> None:
        with self.lock:
            self.entries.extend(entries)

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any], str]:
        """(status, headers, body, fault) of a read."""
        with self.lock:
            self.asked.append(asked)
            if self.before:
                self.before(len(self.asked))
            now = time.monotonic()
            while self._reads and self._reads[0] <= now - self.quota_s:
                self._reads.popleft()
            if self.quota is not None and len(self._reads) >= self.quota:
                self.over_quota += 1
                return 429, {}, refusal(429, "RESOURCE_EXHAUSTED", "Quota exceeded for 'Read requests per minute'"), ""
            self._reads.append(now)
            fault = self.faults.popleft() if self.faults else ""
            if isinstance(fault, tuple | int):
                status, after = fault if isinstance(fault, tuple) else (fault, None)
                headers = {} if after is None else {"Retry-After": str(after)}
                return status, headers, refusal(status, "", f"asked for: {status}"), ""
            try:
                return 200, {}, self._page(asked, fault == "empty"), fault
            except BadFilter as e:
                return 400, {}, refusal(400, "INVALID_ARGUMENT", str(e)), ""

    def _page(self, asked: dict[str, Any], empty: bool) -> dict[str, Any]:
        """A page; its token says after which (timestamp, insertId) to go on, whatever arrives in between."""
        test = compiled(asked.get("filter", ""))
        projects = {name.split("/")[1] for name in asked["resourceNames"]}
        found = sorted(
            (e for e in self.entries if e["logName"].split("/")[1] in projects and test(e)),
            key=lambda e: (ns_of(e["timestamp"]), e.get("insertId", "")),
        )
        token = json.loads(asked["pageToken"]) if asked.get("pageToken") else None
        if token is not None:
            found = [e for e in found if [ns_of(e["timestamp"]), e.get("insertId", "")] > token]
        if empty:
            return {"nextPageToken": json.dumps(token or [0, ""])}
        size = min(asked.get("pageSize", 50), self.page_size)
        page = found[:size]
        body: dict[str, Any] = {}
        if page:
            given = [grpc_shaped(e) for e in page] if self.grpc else page
            times = [2 if self.twice and i % self.twice == 0 else 1 for i in range(1, len(given) + 1)]
            body["entries"] = [e for e, n in zip(given, times, strict=True) for _ in range(n)]
        if len(found) > size:
            body["nextPageToken"] = json.dumps([ns_of(page[-1]["timestamp"]), page[-1].get("insertId", "")])
        return body


def refusal(status: int, name: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": name}}


def _handler(server: LoggingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body waits 40 ms for word that the head arrived

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = urlsplit(self.path).path
            if path == "/token":  # where a service account asks for its access
                self._send(400, {}, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
            elif path != "/v2/entries:list":
                self._send(404, {}, refusal(404, "NOT_FOUND", f"no method {path}"))
            else:
                status, headers, answer, fault = server.answer(json.loads(body))
                if fault == "drop":
                    self._hang_up()
                    return
                if fault == "slow":
                    time.sleep(server.slow_s)
                self._send(status, headers, answer, fault)

        def _send(self, status: int, headers: dict[str, str], answer: dict[str, Any], fault: str = "") -> None:
            data = b"<html>no JSON</html>" if fault == "garbage" else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
            if fault == "cut":
                self.wfile.flush()
                self._hang_up()

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
