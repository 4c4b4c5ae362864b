"""`chipledger doctor --server ADDRESS` of one that runs: it is asked as a browser and a monitor would ask it.

Nothing is changed there: what is asked to be changed does not exist, or is refused.
"""

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from app.operations.seen import Seen
from app.operations.versions import versions
from errors import InputError

TIMEOUT_S = 10.0
CLOCKS_APART_S = 30.0
CERTIFICATE_DAYS = 14.0
ELSEWHERE = "https://elsewhere.invalid"
NOTHING = "/api/jobs/asked-by-doctor"  # no job has this name
MOST_BYTES = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where one is said to be."""

    secure: bool
    host: str
    port: int

    @property
    def origin(self) -> str:
        usual = 443 if self.secure else 80
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}{'' if self.port == usual else f':{self.port}'}"

    @property
    def loopback(self) -> bool:
        return self.host in _LOOPBACK or self.host.startswith("127.")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def server_at(address: str) -> Server:
    """Raises InputError for what is no address of a server."""
    expected = "an address such as https://chipledger.example, or HOST:PORT of one that is about to be started"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as e:
        raise InputError("this is no address", where=address[:80], expected=expected) from e
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise InputError("this is no address of a server", where=address[:80], expected=expected)
    if parts.username or parts.password:
        raise InputError("an address holds no password", where=f"{parts.scheme}://...", expected=expected)
    secure = parts.scheme == "https"
    return Server(secure=secure, host=parts.hostname, port=port or (443 if secure else 80))


def check_running(server: Server) -> list[Seen]:
    """What was looked at, as far as it answers."""
    try:
        health = _asked(server, "GET", "/healthz")
    except (OSError, http.client.HTTPException) as e:
        return [Seen(what="address", found=server.origin, wrong=_unreachable(server, e), fails=True)]
    if health.status not in (200, 503):
        wrong = f"/healthz answers {health.status}: this is no Chipledger, or its proxy does not hand that path on."
        return [Seen(what="address", found=server.origin, wrong=wrong, fails=True)]
    return [Seen(what="address", found=server.origin), *_all(server, health)]


def _all(server: Server, health: Answer) -> Iterator[Seen]:
    for look in (_ready, _clock, _certificate, _knows_tls, _websocket, _same_origin, _other_origin, _open, _figures):
        try:
            found = look(server, health)
        except (OSError, http.client.HTTPException, ValueError) as e:
            name = look.__name__.strip("_").replace("_", " ")
            found = Seen(what=name, found="no answer", wrong=f"It could not be asked ({type(e).__name__}).", fails=True)
        if found is not None:
            yield found


def _ready(server: Server, _: Answer) -> Seen:
    answer = _asked(server, "GET", "/readyz")
    checks = json.loads(answer.body).get("checks", {})
    said = [str(c.get("said")) for c in checks.values() if not c.get("ok")]
    needed = any(not c.get("ok") and c.get("needed") for c in checks.values())
    return Seen(what="ready", found="yes" if answer.status == 200 else "no", wrong=" ".join(said), fails=needed)


def _clock(_: Server, health: Answer) -> Seen:
    told = health.headers.get("date", "")
    apart_s = parsedate_to_datetime(told).timestamp() - time.time()
    wrong = ""
    if abs(apart_s) > CLOCKS_APART_S:
        way = "ahead of" if apart_s > 0 else "behind"
        wrong = (
            f"It is {abs(apart_s):,.0f} s {way} this machine's: set both by NTP, or times of logins and runs are off."
        )
    return Seen(what="clock", found=told, wrong=wrong, fails=bool(wrong))


def _certificate(server: Server, _: Answer) -> Seen | None:
    if not server.secure:
        if server.loopback:
            return None
        wrong = "What is asked and answered can be read on the way: put a proxy with TLS in front (docs/operations.md)."
        return Seen(what="TLS", found="none", wrong=wrong, fails=True)
    days = _certificate_days(server)
    wrong = "" if days > CERTIFICATE_DAYS else "Renew its certificate, or see why the proxy does not."
    return Seen(what="TLS", found=f"certificate valid for {days:.0f} days", wrong=wrong)


def _knows_tls(server: Server, health: Answer) -> Seen | None:
    if not server.secure:
        return None
    knows = "strict-transport-security" in health.headers
    wrong = (
        ""
        if knows
        else "The server does not know that it is asked by https: let the proxy set X-Forwarded-Proto, and name the "
        "proxy's address to the server in FORWARDED_ALLOW_IPS."
    )
    return Seen(what="proxy headers", found="https is known" if knows else "not taken", wrong=wrong)


def _websocket(server: Server, _: Answer) -> Seen:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": server.origin,
    }
    status = _asked(server, "GET", "/_stcore/stream", headers, read=False).status
    if status == 101:
        return Seen(what="sessions", found="a WebSocket opens")
    if status in (401, 403):
        return Seen(what="sessions", found=f"refused ({status}), as without a login")
    wrong = "Pages stay empty: let the proxy hand on Upgrade and Connection (docs/operations.md)."
    return Seen(what="sessions", found=f"no WebSocket ({status})", wrong=wrong, fails=True)


def _same_origin(server: Server, _: Answer) -> Seen:
    answer = _asked(server, "DELETE", NOTHING, {"Origin": server.origin})
    said = answer.body.decode("utf-8", "replace")
    if answer.status == 403 and "another site" in said:
        wrong = "What pages write is refused as another site's: the proxy must hand on the browser's own Host."
        return Seen(what="writing", found="refused", wrong=wrong, fails=True)
    return Seen(what="writing", found=f"pages of its own may ask ({answer.status})")


def _other_origin(server: Server, _: Answer) -> Seen:
    answer = _asked(server, "DELETE", NOTHING, {"Origin": ELSEWHERE})
    if answer.status in (401, 403):
        return Seen(what="other sites", found=f"refused ({answer.status})")
    wrong = f"A page of another site is answered {answer.status}: something in front of the server takes Origin away."
    return Seen(what="other sites", found="may ask", wrong=wrong, fails=True)


def _open(server: Server, _: Answer) -> Seen:
    status = _asked(server, "GET", "/api/runs?limit=1").status
    if status in (401, 403):
        return Seen(what="login", found="needed")
    everybody = "Whoever reaches this address reads, adds and deletes runs: set up identity (docs/security.md)."
    return Seen(what="login", found="none", wrong="" if server.loopback else everybody, fails=not server.loopback)


def _figures(server: Server, _: Answer) -> Seen:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as read

    answer = _asked(server, "GET", "/metrics")
    if answer.status != 200:
        return Seen(what="figures", found=f"not for who asks from here ({answer.status})")
    build = next(f for f in read(answer.body.decode()) if f.name == "chipledger_build").samples[0].labels
    runs, here = build.get("version"), versions()["version"]
    wrong = "" if runs == here else f"This command is of version {here}: ask with the one that runs there."
    if not server.loopback:
        open_to = "Figures are told to whoever asks: the proxy must hand on the browser's Host and X-Forwarded-For."
        return Seen(what="figures", found="open to all", wrong=open_to, fails=True)
    return Seen(what="version", found=f"{runs}, runs of schema {build.get('schema')}", wrong=wrong)


def _asked(
    server: Server, method: str, path: str, headers: Mapping[str, str] | None = None, read: bool = True
) -> Answer:
    with contextlib.closing(_connection(server)) as connection:
        connection.request(method, path, headers=dict(headers or {}))
        told = connection.getresponse()
        body = told.read(MOST_BYTES) if read else b""
        return Answer(told.status, {k.lower(): v for k, v in told.getheaders()}, body)


def _connection(server: Server) -> http.client.HTTPConnection:
    if server.secure:
        return http.client.HTTPSConnection(server.host, server.port, timeout=TIMEOUT_S)
    return http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT_S)


def _certificate_days(server: Server) -> float:
    with contextlib.closing(_connection(server)) as connection:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        until = str((connection.sock.getpeercert() or {}).get("notAfter", ""))
        return (ssl.cert_time_to_seconds(until) - time.time()) / 86_400


def _unreachable(server: Server, error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"Its certificate is not trusted here ({error.verify_message}): $SSL_CERT_FILE may name the authority."
    why = getattr(error, "strerror", None) or type(error).__name__
    return f"Nobody answers there ({why}): is it running, and does {server.host} lead to it?"
