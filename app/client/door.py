"""Requests to a server: one connection that is kept, TLS that is checked, and trying again where that helps."""

import contextlib
import http.client
import json
import random
import ssl
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from errors import InputError, QuestionError

TIMEOUT_S = 120.0  # of one answer: a server may read a large file through at its end
PATIENCE_S = 300.0  # how long it is tried again without anything coming of it
FIRST_WAIT_S, MOST_WAIT_S = 0.5, 30.0
AGAIN = frozenset((408, 423, 425, 429, 502, 503, 504))  # the server says: later
ANSWER_BYTES = 1 << 30
TOKEN_CHARACTERS = 4096
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Unreachable(InputError):
    """No answer came."""


class Refused(InputError):
    """The server answered that it will not. `status`: of HTTP."""

    def __init__(self, said: str, status: int, again_s: float = 0.0):
        super().__init__(said)
        self.status, self.again_s = status, again_s


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in small letters
    data: bytes


class Door:
    """A server at an address. Raises QuestionError for an address that is none, and for a token that would be sent
    where others may read it, unless `plain` allows that."""

    def __init__(self, url: str, token: str = "", *, plain: bool = False, patience_s: float = PATIENCE_S):
        self.url, self._secure, self._host, self._port, self._base = _address(url)
        if token and not self._secure and not plain and self._host not in LOOPBACK:
            raise QuestionError(
                "a token is not sent over plain http: others may read it on the way",
                where=self.url,
                advice="Use https, or within a network of your own --plain.",
            )
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise QuestionError("the token is not understood", expected="one word of plain letters")
        if len(token) > TOKEN_CHARACTERS:
            raise QuestionError(f"a token of {len(token):,} characters", expected=f"at most {TOKEN_CHARACTERS:,}")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience_s = patience_s
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def once(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request. Raises Unreachable where no answer comes, Refused for one that is an error."""
        try:
            connection = self._connected()
            connection.request(method, self._base + path, body, {**self._headers, **(headers or {})})
            got = connection.getresponse()
            told = {name.lower(): value for name, value in got.getheaders()}
            answer = Answer(got.status, told, got.read(ANSWER_BYTES))
        except ssl.SSLCertVerificationError as e:
            self.close()
            raise InputError(f"its certificate is not trusted ({e.verify_message})", where=self.url) from e
        except (OSError, http.client.HTTPException) as e:
            self.close()
            raise Unreachable(f"does not answer ({_why(e)})", where=self.url, advice="Is it running there?") from e
        if told.get("connection", "").lower() == "close":
            self.close()
        if answer.status >= 300:
            raise Refused(_said(answer), answer.status, _again_s(told))
        return answer

    def patiently(self, act: Callable[[], Answer]) -> Answer:
        """What `act` answers; tried again with longer and longer pauses where the server is away or busy, until
        `patience_s` have passed."""
        until_s, wait_s = time.monotonic() + self._patience_s, FIRST_WAIT_S
        while True:
            try:
                return act()
            except (Unreachable, Refused) as e:
                if isinstance(e, Refused) and e.status not in AGAIN:
                    raise
                pause_s = max(wait_s * random.uniform(0.5, 1.0), min(getattr(e, "again_s", 0.0), MOST_WAIT_S))
                if time.monotonic() + pause_s > until_s:
                    raise
                time.sleep(pause_s)
                wait_s = min(wait_s * 2, MOST_WAIT_S)

    def json(self, method: str, path: str, asked: Any = None, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The object that an address answers with."""
        body = None if asked is None else json.dumps(asked).encode()
        headers = {} if asked is None else {"Content-Type": "application/json"}
        given = {k: ("true" if v else "false") if isinstance(v, bool) else v for k, v in (query or {}).items()}
        address = f"{path}?{urlencode(given, doseq=True)}" if given else path
        answer = self.patiently(lambda: self.once(method, address, body, headers))
        try:
            told = json.loads(answer.data)
        except ValueError as e:
            raise InputError("answers with no JSON", where=self.url, advice="Is it a server of Chipledger?") from e
        return told if isinstance(told, dict) else {"answers": told}

    @contextlib.contextmanager
    def understanding(self) -> Generator[None]:
        """Within it an answer is taken apart. Raises InputError where it is not what such a server answers."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise self.stranger() from e

    def stranger(self) -> InputError:
        advice = "Is the address that of Chipledger, and not of a proxy or another program in front of it?"
        return InputError("answers as no server of Chipledger does", where=self.url, advice=advice)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._secure:
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=TIMEOUT_S, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        return self._connection


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _address(url: str) -> tuple[str, bool, str, int | None, str]:
    """(the address, whether by TLS, host, port, path before all). Raises QuestionError."""
    expected = "an address such as https://chipledger.example.org"
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise QuestionError(f"{url[:80]!r} is no address", expected=expected) from None
    plain = url.isascii() and url.strip().isprintable() and " " not in url.strip()
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise QuestionError(f"{_shown(url)!r} is no address of a server", expected=expected)
    if "@" in parts.netloc:
        advice = "A token comes from $CHIPLEDGER_TOKEN or a file."
        raise QuestionError("an address with a name or a password in it", expected=expected, advice=advice)
    base = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{base}", parts.scheme == "https", parts.hostname, port, base


def _shown(url: str) -> str:
    """An address without what may be a password."""
    return url.rpartition("@")[2][:80]


def _why(error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "it took too long" if isinstance(error, TimeoutError) else words


def _said(answer: Answer) -> str:
    """The server's own sentence, or what its status says."""
    if 300 <= answer.status < 400:
        return f"the server leads to {answer.headers.get('location', 'another address')[:200]}; give that address"
    try:
        return str(json.loads(answer.data)["error"])
    except (ValueError, KeyError, TypeError):
        words = {401: "it asks for a token: set $CHIPLEDGER_TOKEN", 403: "that token may not do this"}
        return words.get(
            answer.status, f"the server answered {answer.status} {http.client.responses.get(answer.status, '')}"
        )


def _again_s(headers: Mapping[str, str]) -> float:
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0
