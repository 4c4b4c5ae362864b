"""Every route of the real server, asked by nobody, a viewer, an uploader and an admin, over HTTP and websockets."""

import time
import uuid

import httpx2
import pytest
import streamlit as st
from starlette.datastructures import Headers
from starlette.routing import Mount, Route, WebSocketRoute
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from app.cli.commands.serve import Asked, allow
from app.identity.audit import entries
from app.identity.base import Role
from app.identity.cookies import SESSION, session_in
from app.identity.key import key_of
from app.identity.open_to_all import warning
from app.identity.rights import ANY, PAGE, RIGHTS, UNNAMED, WEBSOCKET
from app.identity.settings import OPEN_VARIABLE, VARIABLE, Oidc
from app.identity.table import Table, record, template
from app.identity.tokens import digest
from app.identity.tokens import revoke as revoke_token
from app.pages.all import every_page, older_addresses
from app.serve.server import serve
from app.workspace import STORE_VARIABLE, workspace
from errors import InputError, QuestionError
from tests.app import made_runs
from tests.app.identities import by_proxy, proxied, signed_in
from tests.app.serving import command, free_port

ROLES = (Role.NOBODY, Role.VIEWER, Role.UPLOADER, Role.ADMIN)
PAGES = {f"/{page.path}" for page in every_page()} | {f"/{old}" for old in older_addresses()}
VALUES = {"run_id": "none", "analysis": "ledger", "kind": "chips", "name": "none", "path": "none.js", "rest": "/runs"}


@pytest.fixture(scope="module")
def routes(tmp_path_factory):
    """Those of the very application that is served, Streamlit's own among them."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE_VARIABLE, str(tmp_path_factory.mktemp("walk") / "store"))
        patch.delenv(VARIABLE, raising=False)
        patch.setattr(st.App, "run", lambda app, config: made.append(app))
        serve("127.0.0.1", 0)
    return list(made[0]._build_starlette_app().routes)


def asked(route):
    """(method, path) of each way to ask a route."""
    path = template(route)
    for name, convertor in getattr(route, "param_convertors", {}).items():
        kind = ":path" if convertor.regex == ".*" else ""
        path = path.replace(f"{{{name}{kind}}}", VALUES.get(name, "x"))
    if isinstance(route, WebSocketRoute):
        return [(WEBSOCKET, path)]
    methods = getattr(route, "methods", None) or {"GET", "POST", "DELETE"}
    return [(method, path) for method in sorted(methods)]


def test_every_route_has_a_record_and_every_record_a_route(routes):
    used = set()
    for route in routes:
        for method, _ in asked(route):
            right = record(route, method, PAGES)
            assert right is not UNNAMED, f"{method} {template(route)} stands in no record of rights"
            used.add(right)
    assert used == set(RIGHTS), "a record of rights names no route"
    assert len({(r.method, r.path) for r in RIGHTS}) == len(RIGHTS)


def test_a_request_is_held_to_the_record_of_the_route_that_answers_it(routes):
    """Found by the application's own router, which is asked here."""
    table = Table(routes, PAGES)
    for route in routes:
        for method, path in asked(route):
            kind = {"type": "websocket"} if method == WEBSOCKET else {"type": "http", "method": method}
            scope = {**kind, "path": path, "headers": [], "query_string": b""}
            answers = next(r for r in routes if r.matches(scope)[0].name == "FULL")
            assert table.right(method, path) == record(answers, method, PAGES), (method, path)


def test_a_route_that_nobody_wrote_a_record_for_is_for_admins(routes):
    table = Table([Route("/api/new", lambda r: None), Mount("/other", lambda s, r, d: None), *routes], PAGES)
    for method, path in (("GET", "/api/new"), ("GET", "/other/x"), ("POST", "/other"), (WEBSOCKET, "/other/ws")):
        right = table.right(method, path) if path != "/other" else table.right(method, "/other/")
        assert right is UNNAMED and right.least is Role.ADMIN
    assert table.right("POST", "/healthz").least is Role.VIEWER, "health is read, not written"
    assert table.right(WEBSOCKET, "/api/runs").least >= Role.VIEWER


def test_nobody_is_let_in_nowhere_but_at_health_and_login():
    free = {(r.method, r.path) for r in RIGHTS if r.least is Role.NOBODY}
    health = {"/healthz", "/readyz", "/_stcore/health"}
    login = {"/login", "/login/callback", "/logout"}
    assert {path for _, path in free} == {*health, *login, "/metrics"}, "figures ask for themselves, as is tried below"


def test_figures_are_told_to_nobody_from_elsewhere(identified):
    for headers in ({"Host": "chipledger.example"}, {"X-Forwarded-For": "10.1.2.3"}, {"Via": "1.1 proxy"}):
        assert identified.client(Role.NOBODY).get("/metrics", headers=headers).status_code == 403
    assert identified.client(Role.NOBODY).get("/metrics").status_code == 200  # of this very machine


def test_what_changes_something_needs_more_than_a_viewer():
    reads = {"GET", "OPTIONS", WEBSOCKET, ANY}
    own = {"/logout", "/_stcore/upload_file/{session_id}/{file_id}"}  # of whoever asks alone
    for right in RIGHTS:
        if right.method not in reads and right.path not in own:
            assert right.least >= Role.UPLOADER and right.what, right


def test_each_route_as_each_role(identified, routes):
    """What is refused, and nothing else is; what is not refused answers without a defect."""
    clients = {role: identified.client(role) for role in ROLES}
    walked = 0
    for route in routes:
        for method, path in asked(route):
            if method in (WEBSOCKET, "HEAD"):
                continue
            least = record(route, method, PAGES).least
            for role, client in clients.items():
                answer = client.request(method, path, content=b"{}" if method in ("POST", "PATCH", "PUT") else None)
                told = (role, method, path, answer.status_code, answer.text[:200])
                # a route may answer 403 of itself: Streamlit's to a form without its token, XProf's to a strange page
                refused = answer.status_code == 401 or (answer.status_code == 403 and "this needs a" in answer.text)
                assert refused == (role < least), told
                assert answer.status_code < 500, told
                if refused:
                    assert answer.status_code == (401 if role is Role.NOBODY else 403) and answer.json()["error"], told
                walked += 1
    assert walked > 3 * len(RIGHTS)
    assert httpx2.get(f"{identified.address}/healthz").json() == {"status": "ok"}
    assert [clients[role].head("/api/tokens").status_code for role in ROLES] == [401, 403, 403, 200]


@pytest.mark.parametrize("role", ROLES, ids=lambda r: r.word)
def test_the_pages_websocket_as_each_role(identified, role):
    headers = dict(identified.client(role).headers) if role else {}
    token = {"Authorization": headers["authorization"]} if role else {}
    if role is Role.NOBODY:
        with pytest.raises(InvalidStatus) as refused:
            connect(identified.stream, additional_headers=token)
        assert refused.value.response.status_code == 403
    else:
        with connect(identified.stream, additional_headers=token, subprotocols=["streamlit"]) as opened:
            assert opened.protocol.state.name == "OPEN"


def test_agents_are_held_to_the_same(identified):
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "runs", "arguments": {}}}
    headers = {"Accept": "application/json, text/event-stream"}
    assert identified.client(Role.NOBODY).post("/mcp", json=ask, headers=headers).status_code == 401
    told = identified.client(Role.VIEWER).post("/mcp", json=ask, headers=headers)
    assert told.status_code == 200 and "result" in told.json()


def test_who_asks_is_told(identified):
    told = identified.client(Role.UPLOADER).get("/api/whoami").json()
    assert told == {"name": "uploader", "role": "uploader", "groups": [], "how": "token"}
    with proxied(identified.address, "Bob@corp.example", "ml, other") as bob:
        assert bob.get("/api/whoami").json() == {
            "name": "Bob@corp.example",
            "role": "viewer",
            "groups": ["ml", "other"],
            "how": "proxy",
        }
    with proxied(identified.address, "Up@Corp.example") as up:
        assert up.get("/api/whoami").json()["role"] == "uploader"
    with proxied(identified.address, "nobody@corp.example") as other:
        answer = other.get("/api/runs")
        assert answer.status_code == 403 and "has no role here" in answer.json()["error"]


# --- tokens ---


def made(identified, **asked):
    answer = identified.client(Role.ADMIN).post("/api/tokens", json={"name": "t", "role": "viewer"} | asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_token_is_shown_once_and_kept_as_a_hash(identified):
    token = made(identified, name="ci", groups=["b", "a"])
    assert token["token"].startswith("chipledger_") and token["groups"] == ["a", "b"]
    listed = identified.client(Role.ADMIN).get("/api/tokens").json()["tokens"]
    assert token["token_id"] in [t["token_id"] for t in listed] and all("token" not in t for t in listed)
    registry = b"".join(p.read_bytes() for p in identified.store.glob("registry.db*"))
    assert token["token"].encode() not in registry and token["token"][11:].encode() not in registry
    assert oct((identified.store / "identity.key").stat().st_mode & 0o777) == "0o600"


def test_a_revoked_token_is_refused_at_once_and_by_another_process_within_seconds(identified):
    for revoke in (
        lambda t: identified.client(Role.ADMIN).delete(f"/api/tokens/{t}"),
        lambda t: revoke_token(workspace(str(identified.store)), t),
    ):
        token = made(identified, name=f"gone {uuid.uuid4().hex}")
        ask = httpx2.Client(base_url=identified.address, headers={"Authorization": f"Bearer {token['token']}"})
        assert ask.get("/api/whoami").status_code == 200
        revoke(token["token_id"])
        deadline = time.monotonic() + 10
        while ask.get("/api/whoami").status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        answer = ask.get("/api/whoami")
        assert answer.status_code == 401 and "is revoked" in answer.json()["error"]
        assert answer.headers["www-authenticate"] == "Bearer"


def test_an_expired_token_is_refused(identified):
    token = made(identified, expires_days=1 / 86_400)
    ask = httpx2.Client(base_url=identified.address, headers={"Authorization": f"Bearer {token['token']}"})
    deadline = time.monotonic() + 10
    while ask.get("/api/whoami").status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "is expired" in ask.get("/api/whoami").json()["error"]


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer chipledger_", "Bearer chipledger_x", "Basic chipledger_x", "Bearer " + "x" * 5000]
    + ["Bearer chipledger_" + "x" * 5000, "bearer chipledger_é", "Bearer chipledger_a chipledger_b"],
)
def test_what_is_no_token_is_refused(identified, header):
    answer = httpx2.get(f"{identified.address}/api/runs", headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code in (401, 431, 400) and answer.status_code != 500


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"name": ""}, "1 to 100"),
        ({"name": "x" * 101}, "1 to 100"),
        ({"name": "a\nb"}, "one line"),
        ({"name": 7}, "one line"),
        ({"role": "root"}, "one of viewer, uploader, admin"),
        ({"role": None}, "one of viewer"),
        ({"role": "nobody"}, "one of viewer"),
        ({"expires_days": 0}, "above 0"),
        ({"expires_days": -1}, "above 0"),
        ({"expires_days": 1e308}, "above 0"),
        ({"expires_days": True}, "above 0"),
        ({"expires_days": "9"}, "above 0"),
        ({"groups": "ml"}, "a list of names"),
        ({"groups": [1]}, "a list of names"),
        ({"groups": ["x"] * 1}, ""),
        ({"scope": "all"}, "no field 'scope'"),
    ],
)
def test_what_can_be_no_token_is_refused_in_a_sentence(identified, wanted, says):
    answer = identified.client(Role.ADMIN).post("/api/tokens", json={"name": "t", "role": "viewer"} | wanted)
    assert (answer.status_code == 200) if not says else (answer.status_code == 400 and says in answer.json()["error"])


# --- a proxy's headers ---


def test_headers_of_the_proxy_from_anybody_else_are_refused(identified):
    said = {"X-Forwarded-Email": "ann@corp.example", "X-Forwarded-Groups": "platform"}
    secret = {"X-Proxy-Secret": "the proxy's own secret"}
    for headers in (said, said | secret, {"X-Forwarded-Groups": "platform"}, said | {"X-Forwarded-For": "127.0.0.2"}):
        answer = httpx2.get(f"{identified.address}/api/runs", headers=headers)
        assert answer.status_code == 401 and "does not come from the proxy" in answer.json()["error"]
    for headers in (said, said | {"X-Proxy-Secret": "a guess"}, said | {"X-Proxy-Secret": ""}):
        with by_proxy(identified.address, **headers) as client:
            assert client.get("/api/runs").status_code == 401, "its address alone is not enough"
    assert httpx2.get(f"{identified.address}/healthz", headers=said).status_code == 200


def test_where_a_request_comes_from_is_the_connection_not_a_header(identified):
    """A server would else take the address that any program of this machine writes into X-Forwarded-For."""
    said = {"X-Forwarded-Email": "ann@corp.example", "X-Proxy-Secret": "the proxy's own secret"}
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        answer = httpx2.get(f"{identified.address}/api/runs", headers=said | {name: "127.0.0.2"})
        assert answer.status_code == 401


def test_a_name_that_stands_there_twice_is_refused(identified):
    twice = [("X-Forwarded-Email", "ann@corp.example"), ("X-Forwarded-Email", "bob@corp.example")]
    with by_proxy(identified.address) as client:
        answer = client.get("/api/runs", headers=[*twice, ("X-Proxy-Secret", "the proxy's own secret")])
    assert answer.status_code == 401 and "2 times" in answer.json()["error"]


def test_nobody_says_of_themselves_who_they_are(identified):
    """The header by which pages are told is taken from all that comes in."""
    import base64
    import json

    forged = base64.urlsafe_b64encode(json.dumps(["root", 3, [], "oidc", ""]).encode()).decode()
    for name in ("X-Chipledger-Identity", "x-chipledger-identity", "X-CHIPLEDGER-IDENTITY"):
        assert httpx2.get(f"{identified.address}/api/runs", headers={name: forged}).status_code == 401
        told = identified.client(Role.VIEWER).get("/api/whoami", headers={name: forged}).json()
        assert told["name"] == "viewer"


# --- pages of other sites ---


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
def test_no_page_of_another_site_opens_a_websocket_or_writes(identified, origin):
    with proxied(identified.address, "up@corp.example") as up:
        answer = up.post("/api/uploads", headers={"Origin": origin})
        assert answer.status_code == 403
    token = identified.client(Role.ADMIN).headers["authorization"]
    with pytest.raises(InvalidStatus) as refused:
        connect(identified.stream, additional_headers={"Authorization": token}, origin=origin)
    assert refused.value.response.status_code == 403


def test_a_browsers_login_alone_writes_nothing_without_saying_from_where(identified):
    """Some browser may send a cookie along and no origin."""
    with proxied(identified.address, "up@corp.example") as up:
        del up.headers["Origin"]
        answer = up.post("/api/uploads")
        assert answer.status_code == 403 and "Origin" in answer.json()["error"]
        assert up.get("/api/runs").status_code == 200
    assert identified.client(Role.UPLOADER).post("/api/uploads").status_code == 200, "a token is no browser's"


# --- open websockets ---


def test_an_open_websocket_ends_when_its_token_is_revoked(identified, monkeypatch):
    token = made(identified, name=f"ws {uuid.uuid4().hex}")
    headers = {"Authorization": f"Bearer {token['token']}"}
    with connect(identified.stream, additional_headers=headers, subprotocols=["streamlit"]) as opened:
        assert identified.client(Role.ADMIN).delete(f"/api/tokens/{token['token_id']}").status_code == 200
        deadline = time.monotonic() + 20
        with pytest.raises(ConnectionClosed) as closed:
            while time.monotonic() < deadline:
                opened.send(b"")
                time.sleep(0.5)
                try:
                    opened.recv(timeout=0.1)
                except TimeoutError:
                    continue
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


# --- the audit log ---


def test_the_audit_log_tells_who_did_what_and_what_was_refused(identified):
    name = f"told {uuid.uuid4().hex}"
    token = made(identified, name=name)
    identified.client(Role.VIEWER).post("/api/uploads")
    identified.client(Role.UPLOADER).post("/api/uploads")
    told = identified.client(Role.ADMIN).get("/api/audit?since=1h").json()["audit"]
    assert told[0]["what"] == "begin an upload" and told[0]["who"] == "uploader" and told[0]["outcome"] == "done"
    assert told[0]["address"] == "127.0.0.1" and told[0]["token_id"] and told[0]["about"] == "POST /api/uploads"
    refused = next(e for e in told if e["who"] == "viewer" and e["about"] == "POST /api/uploads")
    assert refused["outcome"] == "refused" and "needs an uploader" in refused["more"]
    assert any(e["what"] == "create a token" and e["who"] == "admin" for e in told)
    assert token["token"] not in str(told)
    assert "begin an upload" in [e.what for e in entries(workspace(str(identified.store)), time.time_ns() - 10**12)]


def test_the_audit_log_tells_what_was_changed_where_the_address_does_not(identified):
    admin, name = identified.client(Role.ADMIN), uuid.uuid4().hex
    store = workspace(str(identified.store)).store
    marked, gone = (made_runs.interrupted(store, name=f"{name} {n}").run_id for n in range(2))
    assert admin.patch("/api/runs", json={"runs": [marked], "tags": {"owner": "x"}}).status_code == 200
    assert admin.patch(f"/api/runs/{marked}/groups", json={"groups": ["platform"]}).status_code == 200
    assert admin.delete(f"/api/runs/{marked}").status_code == 200
    assert admin.delete(f"/api/runs/{gone}?now=true").status_code == 200
    assert admin.post("/api/tokens", json={"name": name, "role": "viewer"}).status_code == 200
    told = [entry["about"] for entry in admin.get("/api/audit?since=1h").json()["audit"][:5]]
    assert told == [
        f"POST /api/tokens; create a token: {name}",
        f"DELETE /api/runs/{gone}; delete runs: for good, {gone}",
        f"DELETE /api/runs/{marked}; delete runs: {marked}",
        f"PATCH /api/runs/{marked}/groups; say who sees runs: {marked}, platform",
        f"PATCH /api/runs; mark runs: {marked}, tags",
    ]


def test_its_table_holds_nothing_that_a_spreadsheet_would_run(identified):
    with proxied(identified.address, "=cmd()@corp.example") as odd:
        odd.get("/api/runs")
    text = identified.client(Role.ADMIN).get("/api/audit?format=csv").text
    assert "'=cmd()@corp.example" in text and ",=cmd" not in text
    assert text.splitlines()[0].startswith("at_ns,who,how,role")


def test_a_server_for_all_of_the_network_says_so(tmp_path, monkeypatch):
    for name in (VARIABLE, OPEN_VARIABLE):
        monkeypatch.setenv(name, "")  # put back as it was afterwards
    told = command("serve", "--host", "0.0.0.0", "--port", str(free_port()), "--store", tmp_path)
    assert told.returncode == 2 and told.stderr.count("\n") == 1
    assert "--identity" in told.stderr and "--open-to-all" in told.stderr
    missing = str(tmp_path / "none.toml")
    with pytest.raises(QuestionError, match="one of both"):
        allow(Asked(open_to_all=True, identity=missing))
    with pytest.raises(InputError, match="cannot be read"):
        allow(Asked(identity=missing))
    for host, opened, warns in (("127.0.0.1", False, False), ("127.0.0.1", True, False), ("10.0.0.1", True, True)):
        allow(Asked(host=host, open_to_all=opened))
        assert bool(warning()) == warns


def test_whoever_signed_in_is_who_says_it(identified):
    """What people say of a run is kept under the name by which they are known, whatever they call themselves."""
    with signed_in(identified.address, "ann") as ann:
        kept = ann.put("/api/searches/mine", json={"query": "mfu<30", "who": "somebody else"})
        assert kept.status_code == 200 and kept.json()["who"] == "ann@corp.example"
        assert ann.get("/api/audit?most=5").json()["audit"][0]["who"] == "ann@corp.example"


def test_pages_have_one_record(routes):
    assert {template(r) for r in routes if record(r, "GET", PAGES).path == PAGE} == PAGES - {"/"}


def test_a_session_is_found_in_whichever_header_of_cookies_it_stands(identified):
    oidc = Oidc(issuer="https://login.example", client_id="c", client_secret="s", url="http://localhost:1")
    for headers in ([b"theme=dark", b"chipledger_session=x"], [b"chipledger_session=x", b"theme=dark"]):
        assert session_in(Headers(raw=[(b"cookie", text) for text in headers]), oidc) == "x"


def test_a_websocket_to_files_is_closed(identified):
    for path in ("/docs/x", "/perfetto/x"):
        headers = {"Authorization": identified.client(Role.VIEWER).headers["authorization"]}
        with pytest.raises(InvalidStatus) as refused:
            connect(identified.stream.replace("/_stcore/stream", path), additional_headers=headers)
        assert refused.value.response.status_code == 403


def test_what_the_registry_keeps_of_a_token_is_no_session(identified):
    """Whoever has a copy of the registry knows the hashes of tokens; that one is used at this moment is of no help."""
    token = made(identified, name="used now", groups=["platform"])
    ask = httpx2.Client(base_url=identified.address, headers={"Authorization": f"Bearer {token['token']}"})
    assert ask.get("/api/whoami").json()["name"] == "used now"
    hashed = digest(key_of(identified.store), token["token"])
    answer = httpx2.get(f"{identified.address}/api/whoami", headers={"Cookie": f"{SESSION}={hashed}"})
    assert answer.status_code == 401, answer.text
