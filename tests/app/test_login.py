"""Signing in at a real provider of OpenID Connect, over HTTP, and what an attacker would try."""

import time
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from app.identity.books import REMEMBERED_S
from errors import InputError
from runs.login_book import LoginBook
from tests.app.identities import came_back, light_server, provider, settings, signed_in
from tests.app.serving import free_port

PAGE = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}


def failed(answer: httpx2.Response, says: str, status: int = 400) -> bool:
    """Whether somebody was told why, on a page without a session."""
    assert answer.status_code == status and says in answer.text, (answer.status_code, answer.text)
    return not any("chipledger_session" in c for c in answer.headers.get_list("set-cookie"))


def test_a_login_from_the_page_that_was_asked_for_and_back_to_it(identified):
    browser = httpx2.Client(base_url=identified.address, headers=PAGE, timeout=60)
    led = browser.get("/compare?run=a&with=b")
    assert led.status_code == 303 and led.headers["location"] == "/login?next=/compare%3Frun%3Da%26with%3Db"
    assert browser.get("/api/runs").status_code == 401, "a program is told, not led"
    there = browser.get(led.headers["location"])
    asked = parse_qs(urlsplit(there.headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["state"] and asked["nonce"]
    assert asked["redirect_uri"] == [f"{identified.address}/login/callback"]
    with signed_in(identified.address, "bob", "/compare?run=a&with=b") as bob:
        assert bob.get("/api/whoami").json() == {
            "name": "bob@corp.example",
            "role": "viewer",
            "groups": ["ml"],
            "how": "oidc",
        }
        assert bob.get("/compare").status_code == 200
        assert bob.post("/api/uploads").status_code == 403
        assert bob.get("/api/tokens").status_code == 403
    with signed_in(identified.address, "ann") as ann:
        assert ann.get("/api/tokens").status_code == 200


def test_cookies_say_nothing_to_scripts_or_other_sites(identified):
    browser = httpx2.Client(base_url=identified.address, timeout=60)
    begun = browser.get("/login").headers["set-cookie"]
    browser.headers["Origin"] = identified.address
    done = [c for c in browser.get(came_back(browser, "bob")).headers.get_list("set-cookie") if "session=" in c]
    for cookie in (begun, *done):
        assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Domain" not in cookie
    assert "Path=/login" in begun and len(done) == 1


def test_over_tls_cookies_stay_on_tls_and_on_this_host(tmp_path):
    with (
        provider() as (issuer, _),
        light_server(
            tmp_path / "store", settings(tmp_path, issuer, "https://chipledger.example"), free_port()
        ) as server,
    ):
        begun = httpx2.get(f"{server}/login")
        assert "Secure" in begun.headers["set-cookie"]
        there = parse_qs(urlsplit(begun.headers["location"]).query)
        assert there["redirect_uri"] == ["https://chipledger.example/login/callback"], "not what Host says"


def test_somebody_without_a_role_signs_in_and_is_told_so(identified):
    with signed_in(identified.address, "eve") as eve:
        answer = eve.get("/", headers=PAGE)
        assert (
            answer.status_code == 403
            and ">eve@elsewhere.example has no role here" in answer.text
            and "/logout" in answer.text
        )
        assert "eve@elsewhere.example" in eve.get("/logout").text
        assert eve.get("/logout", headers={"Cookie": ""}).status_code == 200


def test_an_address_of_mail_that_nobody_verified_is_nobodys(identified):
    browser = httpx2.Client(base_url=identified.address, timeout=60)
    assert failed(browser.get(came_back(browser, "mal")), "not verified this address")


def test_a_state_comes_back_once(identified):
    browser = httpx2.Client(base_url=identified.address, timeout=60)
    back = came_back(browser, "bob")
    cookies = dict(browser.cookies)
    assert browser.get(back).status_code == 303
    again = httpx2.Client(base_url=identified.address, cookies=cookies, timeout=60)  # a copy of its cookies
    assert failed(again.get(back), "came back already")


def test_a_login_that_another_browser_began_is_not_taken(identified):
    """Else somebody could be signed in as the attacker, and add runs to their name."""
    attacker, victim = (httpx2.Client(base_url=identified.address, timeout=60) for _ in range(2))
    back = came_back(attacker, "bob")
    assert failed(victim.get(back), "began no such login")
    victim.get("/login")
    assert failed(victim.get(back), "began no such login")
    state = parse_qs(urlsplit(back).query)["state"][0]
    mixed = back.replace(state, state[:12] + "x" * (len(state) - 12))
    assert failed(attacker.get(mixed), "began another login")


def test_a_code_is_good_once(identified):
    one, two = (httpx2.Client(base_url=identified.address, timeout=60) for _ in range(2))
    first, second = came_back(one, "bob"), came_back(two, "bob")
    code = parse_qs(urlsplit(first).query)["code"][0]
    assert one.get(first).status_code == 303
    replayed = {k: v[0] for k, v in parse_qs(urlsplit(second).query).items()} | {"code": code}
    assert failed(two.get(f"/login/callback?{urlencode(replayed)}"), "not accepted (invalid_grant)")


def test_a_wrong_nonce_is_refused(identified):
    identified.between.change = {"nonce": "of another login"}
    try:
        browser = httpx2.Client(base_url=identified.address, timeout=60)
        assert failed(browser.get(came_back(browser, "ann")), "not accepted (invalid_claim)")
    finally:
        identified.between.change = {}


def test_a_token_for_another_server_is_refused(identified):
    identified.between.change, identified.between.client = {"client_id": "another"}, "another"
    try:
        browser = httpx2.Client(base_url=identified.address, timeout=60)
        assert failed(browser.get(came_back(browser, "ann")), "not accepted (invalid_claim)")
    finally:
        identified.between.change, identified.between.client = {}, ""


def test_an_id_token_that_expired_is_refused_and_a_provider_that_is_another(tmp_path):
    port = free_port()
    with provider(seconds=-300) as (issuer, _):
        file = settings(tmp_path, issuer, f"http://127.0.0.1:{port}")
        with light_server(tmp_path / "store", file, port) as server:
            browser = httpx2.Client(base_url=server, timeout=60)
            assert failed(browser.get(came_back(browser, "ann")), "not accepted (expired_token)")


def test_a_login_that_took_too_long_begins_anew(tmp_path, monkeypatch):
    port = free_port()
    with provider() as (issuer, _):
        file = settings(tmp_path, issuer, f"http://127.0.0.1:{port}")
        with light_server(tmp_path / "store", file, port) as server:
            browser = httpx2.Client(base_url=server, timeout=60)
            back = came_back(browser, "bob")
            monkeypatch.setattr("app.identity.login.LOGIN_S", -1)  # as if ten minutes were over
            assert failed(browser.get(back), "or too long ago")


def test_pkce_and_what_the_provider_refuses(identified):
    browser = httpx2.Client(base_url=identified.address, timeout=60)
    back = came_back(browser, "bob")
    identified.between.challenges.clear()  # as if another began it
    assert failed(browser.get(back), "not accepted (invalid_grant)")
    assert identified.between.verifiers and len(identified.between.verifiers[-1]) >= 43
    begun = browser.get("/login").headers["location"]
    denied = httpx2.post(begun, data={"action": "deny"}).headers["location"]
    state = parse_qs(urlsplit(begun).query)["state"][0]
    assert failed(browser.get(f"/login/callback?error=access_denied&state={state}"), "refused (access_denied)")
    assert "access_denied" in denied
    for query in ("", "?state=", "?code=x", "?state=x&code=y", f"?state={'x' * 9000}", "?state=%00%0d%0aX: y"):
        assert failed(browser.get(f"/login/callback{query}"), "began no such login")
    hurt = browser.get("/login/callback?error=<script>alert(1)</script>&state=x")
    assert "<script>" not in hurt.text


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "evil"]
    + [
        "/\t/evil.example",
        "/\r\nLocation: https://evil.example",
        "/é",
        "/login?next=/",
        "/logout",
        "",
        "/" + "x" * 3000,
    ],
)
def test_a_login_leads_nowhere_else(identified, elsewhere):
    browser = httpx2.Client(base_url=identified.address, timeout=60)
    answer = browser.get(came_back(browser, "bob", elsewhere))
    assert answer.status_code == 303 and answer.headers["location"] == "/"


def test_a_tampered_cookie_is_nobodys(identified):
    with signed_in(identified.address, "ann") as ann:
        cookie = ann.cookies["chipledger_session"]
    body, _, signature = cookie.rpartition(".")
    other = ("A" if body[0] != "A" else "B") + body[1:]
    for forged in (
        f"{other}.{signature}",
        f"{body}.{signature[:-1]}",
        body,
        f"{body}.",
        "x" * 5000,
        f"{cookie}x",
        ".",
        "é",
    ):
        headers = {"Cookie": f"chipledger_session={forged}".encode("latin-1")}
        assert httpx2.get(f"{identified.address}/api/tokens", headers=headers).status_code == 401
    twice = {"Cookie": f"chipledger_session={other}.{signature}; chipledger_session={cookie}"}
    assert httpx2.get(f"{identified.address}/api/whoami", headers=twice).status_code in (200, 401)


def test_a_session_ends(identified):
    with signed_in(identified.address, "ann") as ann:
        assert ann.get("/api/whoami").status_code == 200
        with LoginBook(identified.store / "registry.db")._connect() as db:  # as if its hours were over
            db.execute("update logins set ends_ns = 1 where name = 'ann@corp.example'")
        deadline = time.monotonic() + 10
        while ann.get("/api/whoami").status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert ann.get("/", headers=PAGE).status_code == 303


def test_signing_out_ends_every_copy_of_the_cookie(identified):
    with signed_in(identified.address, "bob") as bob:
        copy = dict(bob.cookies)
        assert "Sign out?" in bob.get("/logout").text, "a link alone signs nobody out"
        assert bob.get("/api/whoami").status_code == 200
        assert bob.post("/logout", headers={"Origin": "https://evil.example"}).status_code == 403
        left = bob.post("/logout")
        assert "signed out" in left.text and "end_session" in left.text
        assert bob.get("/api/whoami").status_code == 401
    assert httpx2.get(f"{identified.address}/api/whoami", cookies=copy).status_code == 401


def test_logins_and_their_failures_are_in_the_audit_log(identified):
    with signed_in(identified.address, "ann") as ann:
        ann.get("/login/callback?state=x")
        told = ann.get("/api/audit?since=1h").json()["audit"]
    refused, done = (next(e for e in told if e["what"] == "sign in" and e["outcome"] == o) for o in ("refused", "done"))
    assert "began no such login" in refused["more"] and refused["address"] == "127.0.0.1"
    assert done["who"] == "ann@corp.example" and done["role"] == "admin"


def test_a_provider_that_is_gone_is_told(tmp_path):
    with provider() as (issuer, _):
        gone = issuer
    with light_server(tmp_path / "store", settings(tmp_path, gone, "http://127.0.0.1:1"), free_port()) as server:
        assert failed(httpx2.get(f"{server}/login"), "cannot be asked", 502)


def test_a_registry_that_cannot_be_written_signs_nobody_in_and_names_no_path(tmp_path, monkeypatch):
    def full(*_):
        raise InputError("the registry cannot be written", where=str(tmp_path / "store" / "registry.db"))

    port = free_port()
    with provider() as (issuer, _):
        file = settings(tmp_path, issuer, f"http://127.0.0.1:{port}")
        with light_server(tmp_path / "store", file, port) as server:
            browser = httpx2.Client(base_url=server, timeout=60, headers={"Origin": server})
            back = came_back(browser, "ann")
            with monkeypatch.context() as disk:
                disk.setattr(LoginBook, "keep", full)
                told = browser.get(back)
                assert failed(told, "the registry cannot be written") and str(tmp_path) not in told.text
            with signed_in(server, "ann") as ann:
                monkeypatch.setattr(LoginBook, "end", full)
                assert ann.post("/logout").status_code == 503 and ann.get("/api/whoami").status_code == 200
                monkeypatch.setattr(LoginBook, "of_hash", full)
                time.sleep(REMEMBERED_S + 0.1)
                answer = ann.get("/api/whoami")
                assert answer.status_code == 503 and str(tmp_path) not in answer.text, "who asks is not guessed"
