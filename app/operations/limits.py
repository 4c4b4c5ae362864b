"""How much one address, or one person, may ask at a time: buckets that refill, looked at before an answer is begun.

A bucket of a kind holds `burst` requests and gets `per_s` back each second; one that finds it empty is told 429 and
when to come again. What pages are made of (Streamlit's files and sockets, the docs) is never held up.
"""

import ipaddress
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.identity.asking import who
from app.operations.metrics import Figures

MOST_BUCKETS = 20_000  # beyond it, those that were asked least lately are forgotten: they are full again
_IPV6_NET = 64  # bits that one customer is given


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`burst`: requests at once; `per_s`: how many more each second. `paths`, `methods`: which requests it is for."""

    kind: str
    methods: frozenset[str]
    paths: re.Pattern[str]
    burst: int
    per_s: float


_ANY = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
_CHANGES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
RATES = (  # the first that a request is of counts it
    Rate(kind="login", methods=_ANY, paths=re.compile(r"/(auth|login|oauth2callback)\b"), burst=120, per_s=2.0),
    Rate(  # of a page's own widget, which keeps it in memory
        kind="page file",
        methods=frozenset(("PUT",)),
        paths=re.compile(r"/_stcore/upload_file/"),
        burst=20,
        per_s=0.1,
    ),
    Rate(  # a file, or a piece of one
        kind="upload",
        methods=frozenset(("PUT", "POST", "PATCH")),
        paths=re.compile(r"/upload/|/api/uploads/[^/]+/files\b"),
        burst=10_000,
        per_s=200.0,
    ),
    Rate(
        kind="job", methods=_CHANGES, paths=re.compile(r"/api/(ingest|compile|capture|uploads)\b"), burst=600, per_s=5.0
    ),
    Rate(kind="query", methods=_ANY, paths=re.compile(r"/api/runs/[^/]+/query\b"), burst=30, per_s=1.0),
    Rate(
        kind="question",
        methods=_ANY,
        paths=re.compile(
            r"/(api/(whatif|topology|compare|several|fleet|history)|mcp)\b|/api/[^/]+/[^/]+/(show|report)"
        ),
        burst=240,
        per_s=10.0,
    ),
    Rate(kind="change", methods=_CHANGES, paths=re.compile(r"/api/"), burst=1_000, per_s=20.0),
    Rate(kind="read", methods=_ANY, paths=re.compile(r"/api/"), burst=2_000, per_s=100.0),
)


class Buckets:
    """The buckets of all who ask. Memory is bounded by MOST_BUCKETS."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_BUCKETS):
        self._clock, self._most = clock, most
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()  # (requests left, when)

    def wait_s(self, asker: str, rate: Rate) -> float:
        """0 where the request may pass, which is then counted; else in how many seconds one may."""
        now, key = self._clock(), (asker, rate.kind)
        left, then = self._left.pop(key, (float(rate.burst), now))
        left = min(rate.burst, left + max(0.0, now - then) * rate.per_s)
        wait = 0.0 if left >= 1 else (1 - left) / rate.per_s
        self._left[key] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > self._most:
            self._left.popitem(last=False)
        return wait


def rate_of(method: str, path: str) -> Rate | None:
    """Which rate a request is held to; None: none."""
    return next((r for r in RATES if method in r.methods and r.paths.match(path)), None)


def asker_of(scope: Scope) -> str:
    """Who is counted: whoever is known by name, else the address, of IPv6 the network that one customer is given."""
    known = who()
    if known.name:
        return f"name:{known.name}"
    told = getattr(scope.get("chipledger.known"), "address", "")  # as a proxy says that is believed
    address = told or (scope.get("client") or ("",))[0]
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"address:{address[:64]}"
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    wide = isinstance(found, ipaddress.IPv6Address)
    return str(ipaddress.ip_network((found, _IPV6_NET), strict=False)) if wide else str(found)


class Limits:
    """ASGI middleware, inside the guard, which knows who asks. `on`: False lets everything pass."""

    def __init__(self, app: ASGIApp, figures: Figures, on: bool = True, buckets: Buckets | None = None):
        self._app, self._figures, self._on = app, figures, on
        self._buckets = buckets or Buckets()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rate = rate_of(scope["method"], scope["path"]) if self._on and scope["type"] == "http" else None
        wait_s = self._buckets.wait_s(asker_of(scope), rate) if rate else 0.0
        if not rate or not wait_s:
            await self._app(scope, receive, send)
            return
        self._figures.limited(rate.kind)
        later = math.ceil(wait_s)
        error = f"too many requests of this kind ({rate.kind}) at once. Ask again in {later} s."
        headers = {"Retry-After": str(later), "Connection": "close"}  # the rest of its body is not read
        await JSONResponse({"error": error}, status_code=429, headers=headers)(scope, receive, send)
