"""What a browser may do with an answer."""

import hashlib
from base64 import b64encode

import pytest
from starlette.datastructures import MutableHeaders

from app.operations.policies import CSP, HSTS, STRICT, inline_scripts, page_policy, policy_of, protect, streamlit_policy


def directives(policy):
    return {part.split()[0]: part.split()[1:] for part in policy.split(";")}


def headers_at(path, scheme="http", **own):
    headers = MutableHeaders(own)
    protect(headers, {"path": path, "scheme": scheme})
    return headers


def test_a_page_runs_its_own_scripts_those_that_stand_in_it_and_no_text():
    page = "<script>a()</script><script type='module'>\n b() </script><script src='x.js'></script>"
    said = directives(page_policy(page))
    expected = [f"'sha256-{b64encode(hashlib.sha256(t).digest()).decode()}'" for t in (b"a()", b"\n b() ")]
    assert said["script-src"] == ["'self'", "blob:", "'wasm-unsafe-eval'", *expected]
    assert said["object-src"] == said["base-uri"] == ["'none'"]
    for policy in (page_policy(page), streamlit_policy()):
        said = directives(policy)
        assert "'unsafe-inline'" not in said["script-src"] and "'unsafe-inline'" not in said["default-src"]
        assert "'unsafe-eval'" not in policy and "*" not in policy and "http" not in policy


def test_another_script_in_a_page_is_not_among_its_hashes():
    assert page_policy("<script>a()</script>") != page_policy("<script>a() </script>")
    assert inline_scripts("<script src='a.js'></script><script>x</script>") == ["x"]


@pytest.mark.parametrize(
    "path",
    ["/api/runs", "/api/runs/x/show/ledger", "/upload/a/b", "/healthz", "/readyz", "/metrics", "/mcp", "/media/a"],
)
def test_data_loads_runs_and_frames_nothing(path):
    headers = headers_at(path)
    assert headers[CSP] == STRICT and headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_an_answer_that_says_its_own_policy_keeps_it():
    assert headers_at("/api/runs/x/report", **{CSP: "sandbox"})[CSP] == "sandbox"
    assert headers_at("/api/x", **{"Referrer-Policy": "no-referrer"})["Referrer-Policy"] == "no-referrer"
    assert policy_of("/docs/") is None and CSP not in headers_at("/docs/")


@pytest.mark.parametrize("path", ["/", "/library", "/nothing", "/static/js/a.js", "/_stcore/bidi-components/x.js", ""])
def test_what_is_a_page_or_part_of_one_has_the_policy_of_pages(path):
    assert policy_of(path) == streamlit_policy()


def test_only_behind_tls_is_a_browser_told_to_stay_there():
    assert headers_at("/", "https")["Strict-Transport-Security"] == HSTS
    assert "Strict-Transport-Security" not in headers_at("/", "http")
