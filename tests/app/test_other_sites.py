"""What a page of another site can start through a visitor's browser: nothing, whichever route and method it names."""

import contextlib
import http.client
import re
from urllib.parse import quote, urlsplit

import pytest

from app.manual.api_routes import routes
from app.mcp import PATH
from tests.app.serving import get

CHANGES = ("POST", "PUT", "PATCH", "DELETE")
STREAMLITS = (  # of Streamlit's own
    ("PUT", "/_stcore/upload_file/session/file"),
    ("DELETE", "/_stcore/upload_file/session/file"),
    ("POST", "/_stcore/agent/interact"),
    ("POST", "/_stcore/agent/mcp"),
    ("POST", "/_stcore/message"),
)
FROM_ELSEWHERE = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Referer": "https://evil.example/page"},
)


def changing():
    """(method, path) of every route that changes something, and of each that is not taken but might one day."""
    found = [(m, re.sub(r"{[^}]*}", "x", r.path)) for r in routes() for m in sorted(r.methods or ()) if m in CHANGES]
    anything = [(m, "/api/nothing") for m in CHANGES]
    return [*found, *anything, *STREAMLITS, ("POST", PATH), ("DELETE", PATH), ("PUT", "/")]


@pytest.fixture(scope="module")
def ask(asked):
    """A request on one connection after another: (status, headers)."""
    address = urlsplit(asked)

    def answer(method, path, headers):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        body = b"{}" if method in ("POST", "PUT", "PATCH") else None  # others take none
        connection.request(method, path, body=body, headers={"Content-Type": "application/json", **headers})
        told = connection.getresponse()
        told.read()
        connection.close()
        return told.status, {k.lower(): v for k, v in told.getheaders()}

    return answer


def test_every_route_that_changes_something_is_walked():
    found = changing()
    assert len(found) == len(set(found)) >= 30
    walked = {path for _, path in found}
    for path in ("/api/ingest", "/upload/x/x", "/api/runs/x", "/api/uploads", "/api/compile", "/api/capture"):
        assert path in walked


@pytest.mark.parametrize("headers", FROM_ELSEWHERE, ids=lambda h: "=".join(*h.items()))
def test_no_route_is_changed_by_a_page_of_another_site(ask, headers):
    for method, path in changing():
        status, told = ask(method, path, headers)
        assert status == 403, (method, path)
        assert told["content-security-policy"] and told["x-content-type-options"] == "nosniff"


def test_a_page_of_its_own_and_a_program_are_let_through_the_same_door(ask, asked):
    for headers in ({"Origin": asked, "Sec-Fetch-Site": "same-origin"}, {}):
        assert ask("DELETE", "/api/jobs/x", headers)[0] == 404
        assert ask("POST", "/api/ingest", headers)[0] == 400


def test_what_an_answer_is_told_by_no_other_site_can_read(ask):
    status, told = ask("GET", "/api/runs", {"Origin": "https://evil.example"})
    assert status == 200 and not [name for name in told if name.startswith("access-control")]
    assert told["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nSet-Cookie: stolen=1",
        "a%0d%0aSet-Cookie: stolen=1",
        "a\nX-Odd: 1",
        "\u2028X-Odd: 1",
        'a"; filename="b.exe',
        "x" * 5_000,
    ],
)
def test_nothing_that_is_asked_becomes_a_header(ask, name):
    for path in (f"/api/runs/{quote(name)}", f"/api/runs?q={quote(name)}", f"/{quote(name)}", f"/docs/{quote(name)}"):
        status, told = ask("GET", path, {})
        assert status in (200, 400, 404) and "x-odd" not in told and "stolen" not in str(told)


def test_an_address_or_a_header_without_end_is_refused_and_the_server_goes_on(ask, asked):
    for path, headers in (("/" + "x" * 200_000, {}), ("/api/runs", {"X-Odd": "y" * 200_000})):
        with contextlib.suppress(OSError, http.client.HTTPException):  # it was hung up on
            assert ask("GET", path, headers)[0] in (400, 413, 414, 431)
        assert get(f"{asked}/healthz")[0] == 200
