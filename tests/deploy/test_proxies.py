"""nginx and Caddy as deploy/ sets them, in front of a real server: TLS, WebSocket, uploads, and who is believed."""

import contextlib
import http.client
import json
import os
import time

import pytest

from tests.app.commands import out
from tests.deploy.proxies import Front, found, front

pytestmark = pytest.mark.slow
HALF = b"x" * 3_000_000


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request, tmp_path_factory):
    if found(request.param) is None:
        if os.environ.get("CI") == "true" and request.param == "nginx":
            pytest.fail("no nginx here: install the system package nginx-light")
        pytest.skip(f"no {request.param} here: what deploy/ says of it is not tried")
    with front(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


def ask(proxy: Front, method: str, path: str, body: bytes | None = None, **headers: str):
    """(status, headers, body) over TLS."""
    asked = http.client.HTTPSConnection("localhost", proxy.port, timeout=60, context=proxy.context())
    with contextlib.closing(asked):
        asked.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = asked.getresponse()
        upgraded = answer.status == 101
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, b"" if upgraded else answer.read()


def test_pages_and_answers_come_by_https_and_say_to_stay_there(proxy):
    status, headers, body = ask(proxy, "GET", "/")
    assert status == 200 and b"<title>Chipledger</title>" in body
    assert headers["strict-transport-security"].startswith("max-age=")
    assert "'unsafe-eval'" not in headers["content-security-policy"]
    assert ask(proxy, "GET", "/readyz", X_Request_Id="from-outside")[1]["x-request-id"] == "from-outside"


def test_a_session_opens_for_its_own_pages_alone(proxy):
    shake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    assert ask(proxy, "GET", "/_stcore/stream", **shake, Origin=proxy.origin)[0] == 101
    assert ask(proxy, "GET", "/_stcore/stream", **shake, Origin="https://evil.example")[0] == 403


def test_pages_may_write_and_other_sites_may_not(proxy):
    assert ask(proxy, "DELETE", "/api/jobs/x", Origin=proxy.origin)[0] == 404
    assert ask(proxy, "DELETE", "/api/jobs/x", Origin="https://evil.example")[0] == 403


def test_an_upload_is_handed_on_as_it_comes(proxy):
    upload = json.loads(ask(proxy, "POST", "/api/uploads", b"{}")[2])["upload_id"]
    asked = http.client.HTTPSConnection("localhost", proxy.port, timeout=60, context=proxy.context())
    with contextlib.closing(asked):
        asked.putrequest("PUT", f"/upload/{upload}/a.log")
        asked.putheader("Content-Length", str(2 * len(HALF)))
        asked.endheaders()
        asked.send(HALF)
        folder, deadline = proxy.store / "uploads" / upload, time.monotonic() + 60
        while not sum(p.stat().st_size for p in folder.glob("*.part")):
            assert time.monotonic() < deadline, "nothing arrives before the last byte is sent"
            time.sleep(0.05)
        asked.send(HALF)
        answer = asked.getresponse()
        assert (answer.status, json.loads(answer.read())) == (200, {"bytes": 2 * len(HALF)})
    assert not [p for p in proxy.kept.rglob("*") if p.is_file()]


def test_what_a_client_claims_to_be_is_not_believed(proxy):
    claims = {"X_Forwarded_For": "127.0.0.1", "X_Forwarded_Proto": "http", "Forwarded": "for=127.0.0.1;proto=http"}
    assert "strict-transport-security" in ask(proxy, "GET", "/healthz", **claims)[1]
    for host in (f"localhost:{proxy.port}", "127.0.0.1:8501", "[::1]:8501"):
        for said in (claims, {}):  # Caddy answers 200 and nothing where it knows no such host
            status, _, body = ask(proxy, "GET", "/metrics", Host=host, **said)
            assert b"chipledger_" not in body and (status == 403 or not body)


def test_doctor_finds_nothing_to_mend(proxy, capsys, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority))
    code, text, _ = out(capsys, "doctor", "--server", proxy.origin, "--json")
    told = {c["what"]: c for c in json.loads(text)["checks"]}
    assert code == 0, told
    assert told["proxy headers"]["found"] == "https is known" and told["sessions"]["found"] == "a WebSocket opens"
    assert told["TLS"]["found"].startswith("certificate valid for")


def test_doctor_does_not_trust_a_certificate_of_nobody(proxy, capsys, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    code, text, _ = out(capsys, "doctor", "--server", proxy.origin, "--json")
    (told,) = json.loads(text)["checks"]
    assert code == 3 and "is not trusted here" in told["wrong"]
