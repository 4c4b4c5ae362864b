"""Who may talk to the server."""

import pytest
from starlette.datastructures import Headers

from app.serve.guard import is_loopback, refusal

HERE = "127.0.0.1:8501"


@pytest.mark.parametrize(
    ("headers", "method", "refused"),
    [
        ({"host": HERE}, "PUT", False),  # curl says no more than that
        ({"host": HERE, "origin": f"http://{HERE}", "sec-fetch-site": "same-origin"}, "POST", False),
        ({"host": "localhost:8501"}, "GET", False),
        ({"host": "[::1]:8501"}, "GET", False),
        ({"host": "localhost"}, "DELETE", False),
        ({"host": HERE, "sec-fetch-site": "cross-site"}, "GET", False),  # a link from elsewhere may be followed
        ({"host": HERE, "sec-fetch-site": "cross-site"}, "POST", True),
        ({"host": HERE, "sec-fetch-site": "same-site"}, "PUT", True),
        ({"host": HERE, "origin": "http://evil.example"}, "PUT", True),
        ({"host": HERE, "origin": "http://127.0.0.1:9999"}, "DELETE", True),
        ({"host": HERE, "origin": "null"}, "POST", True),
        ({"host": "evil.example:8501"}, "GET", True),
        ({"host": "127.0.0.1.evil.example"}, "GET", True),
        ({}, "GET", True),
    ],
)
def test_on_a_loopback_address(headers, method, refused):
    assert bool(refusal(Headers(headers), method, websocket=False, loopback=True)) == refused


def test_on_a_network_address_any_name_is_answered_but_no_other_site_writes():
    named = {"host": "dashboard.corp:8501"}
    assert refusal(Headers(named), "GET", websocket=False, loopback=False) is None
    assert refusal(Headers({**named, "origin": "http://dashboard.corp:8501"}), "PUT", False, False) is None
    assert refusal(Headers({**named, "origin": "http://evil.example"}), "PUT", False, False)


def test_a_page_of_another_site_opens_no_session():
    headers = {"host": HERE, "origin": "http://evil.example"}
    assert refusal(Headers(headers), "GET", websocket=True, loopback=True)
    assert refusal(Headers({"host": HERE, "origin": f"http://{HERE}"}), "GET", True, True) is None


def test_loopback_addresses():
    assert all(map(is_loopback, ("127.0.0.1", "127.0.0.2", "localhost", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com")))
