"""How much may be asked at a time."""

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.operations.limits import RATES, Buckets, Limits, Rate, asker_of, rate_of
from app.operations.metrics import Figures

RATE = Rate(kind="x", methods=frozenset(("GET",)), paths=RATES[0].paths, burst=5, per_s=2.0)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@given(st.lists(st.floats(0, 3), max_size=80))
def test_never_more_passes_in_any_stretch_than_the_burst_and_what_was_refilled(waits):
    clock = Clock()
    buckets = Buckets(clock)
    passed = []
    for wait in waits:
        clock.now += wait
        if not buckets.wait_s("a", RATE):
            passed.append(clock.now)
    for i, first in enumerate(passed):  # brute force: each stretch from a request that passed to a later one
        for j in range(i, len(passed)):
            assert j - i + 1 <= RATE.burst + (passed[j] - first) * RATE.per_s + 1e-6


@given(st.integers(5, 40))
def test_who_waits_as_long_as_they_were_told_passes_and_not_before(asked):
    clock = Clock()
    buckets = Buckets(clock)
    waits = [buckets.wait_s("a", RATE) for _ in range(asked)]
    assert [bool(w) for w in waits] == [n >= RATE.burst for n in range(asked)]
    wait = buckets.wait_s("a", RATE)
    clock.now += wait - 1e-3
    assert buckets.wait_s("a", RATE)
    clock.now += 2e-3
    assert not buckets.wait_s("a", RATE)


def test_one_who_asks_too_much_holds_up_nobody_else_and_no_other_kind():
    buckets = Buckets(Clock())
    assert any(buckets.wait_s("a", RATE) for _ in range(9))
    assert not buckets.wait_s("b", RATE)
    other = Rate(kind="y", methods=RATE.methods, paths=RATE.paths, burst=1, per_s=1.0)
    assert not buckets.wait_s("a", other)


def test_memory_is_bounded_however_many_ask_and_a_clock_set_back_refills_nothing():
    clock = Clock()
    buckets = Buckets(clock, most=100)
    for n in range(1_000):
        buckets.wait_s(str(n), RATE)
    assert len(buckets._left) == 100
    for _ in range(5):
        buckets.wait_s("a", RATE)
    clock.now -= 500
    assert buckets.wait_s("a", RATE)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("PUT", "/upload/abc/a.log", "upload"),
        ("POST", "/api/uploads", "job"),
        ("POST", "/api/ingest", "job"),
        ("POST", "/api/compile", "job"),
        ("GET", "/api/runs/x/query", "query"),
        ("GET", "/api/runs/x/show/ledger", "question"),
        ("GET", "/api/whatif/serving", "question"),
        ("POST", "/mcp", "question"),
        ("PATCH", "/api/runs/x", "change"),
        ("DELETE", "/api/runs/x/notes/1", "change"),
        ("GET", "/api/runs", "read"),
        ("GET", "/auth/login", "login"),
        ("GET", "/oauth2callback", "login"),
        ("GET", "/static/js/index.js", None),
        ("GET", "/_stcore/host-config", None),
        ("GET", "/_stcore/bidi-components/x", None),
        ("GET", "/docs/", None),
        ("GET", "/", None),
        ("GET", "/library", None),
        ("GET", "/healthz", None),
        ("GET", "/readyz", None),
        ("GET", "/metrics", None),
    ],
)
def test_which_requests_are_held_to_what(method, path, kind):
    rate = rate_of(method, path)
    assert (rate.kind if rate else None) == kind


def test_kinds_are_told_apart_and_each_lets_some_pass_and_refills():
    assert max(Counter(r.kind for r in RATES).values()) == 1
    assert all(r.burst >= 1 and r.per_s > 0 for r in RATES)


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "address:unix:"),
        ("", "address:"),
    ],
)
def test_an_address_is_counted_as_the_network_that_one_customer_has(address, counted):
    assert asker_of({"type": "http", "client": (address, 1)}) == counted


def test_whoever_is_known_is_counted_by_name_from_wherever():
    with acting_as(Identity(name="ann", role=Role.VIEWER, how="token")):
        assert asker_of({"type": "http", "client": ("192.0.2.7", 1)}) == "name:ann"
    assert asker_of({"type": "http", "client": None}) == "address:"


def answers(on, asked, method="GET", path="/api/runs/x/query"):
    """Statuses of so many requests, and the headers of the last."""
    seen, figures = [], Figures()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message):
        if message["type"] == "http.response.start":
            seen.append(message)

    async def ask():
        limits = Limits(app, figures, on, Buckets(Clock()))
        for _ in range(asked):
            await limits({"type": "http", "method": method, "path": path, "client": ("192.0.2.7", 1)}, None, send)

    asyncio.run(ask())
    return [m["status"] for m in seen], dict(seen[-1]["headers"]), figures.text().decode()


def test_what_is_too_much_is_told_429_and_when_to_come_again():
    query = rate_of("GET", "/api/runs/x/query")
    statuses, headers, figures = answers(True, query.burst + 3)
    assert statuses == [200] * query.burst + [429] * 3
    assert headers[b"retry-after"] == b"1"
    assert 'chipledger_rate_limited_total{kind="query"} 3.0' in figures
    assert answers(False, query.burst + 3)[0] == [200] * (query.burst + 3)
    assert answers(True, 3_000, path="/static/js/x.js")[0] == [200] * 3_000


def test_a_thousand_askers_in_any_order_each_get_their_burst():
    buckets, order = Buckets(Clock()), [str(n) for n in range(50)] * 8
    random.Random(3).shuffle(order)
    passed = Counter(asker for asker in order if not buckets.wait_s(asker, RATE))
    assert set(passed.values()) == {RATE.burst} and len(passed) == 50


def test_whoever_comes_through_a_proxy_that_is_believed_is_counted_where_they_are():
    """Else all who come through it would share one bucket."""

    class Known:
        address = "10.1.2.3"

    for known, at in ((Known(), "10.1.2.3/32"), (None, "127.0.0.1/32")):
        asks = asker_of({"client": ("127.0.0.1", 1), "chipledger.known": known})
        assert asks in (at, at.removesuffix("/32"))


def test_files_and_pieces_of_a_push_are_no_jobs():
    for method, path in (("POST", "/api/uploads/x/files"), ("PATCH", "/api/uploads/x/files/y"), ("PUT", "/upload/x/y")):
        rate = rate_of(method, path)
        assert rate is not None and rate.kind == "upload"
    job = rate_of("POST", "/api/uploads")
    assert job is not None and job.kind == "job"
