"""Identity as tests set it up: a provider of OpenID Connect on this machine, settings, and clients of each kind.

The provider is `oidc-provider-mock`, which is built on Authlib's own provider. `Between` stands before it: it holds
PKCE, which that provider does not, and says other things than it where a test asks for that.
"""

import base64
import contextlib
import hashlib
import io
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2
import uvicorn
from oidc_provider_mock import User, app
from oidc_provider_mock._server import _threaded_server
from starlette.applications import Starlette
from starlette.middleware import Middleware

from app.identity.base import Role
from app.identity.door import Door
from app.identity.login import Signing
from app.identity.settings import read
from app.identity.tokens import create
from app.serve.guard import Guard
from app.serve.identifying import Identifying
from app.workspace import workspace
from tests.app.serving import free_port, serving

PEOPLE = {
    "ann": {"email": "ann@corp.example", "email_verified": True, "groups": ["ml", "platform"]},
    "bob": {"email": "bob@corp.example", "email_verified": True, "groups": ["ml"]},
    "eve": {"email": "eve@elsewhere.example", "email_verified": True, "groups": []},
    "mal": {"email": "ann@corp.example", "email_verified": False, "groups": ["platform"]},
    "odd": {"email": "=cmd()|<b>@corp.example", "email_verified": True, "groups": ["ml"]},
}
PROXY, SECRET = "127.0.0.2", "the proxy's own secret"  # all of 127.0.0.0/8 is this machine
SETTINGS = """
tokens = true

[roles]
viewer.groups = ["ml"]
uploader.people = ["up@corp.example"]
admin.groups = ["platform"]

[oidc]
issuer = "{issuer}"
client_id = "chipledger"
client_secret_file = "oidc.secret"
url = "{url}"

[proxy]
user_header = "X-Forwarded-Email"
groups_header = "X-Forwarded-Groups"
from = ["127.0.0.2"]
secret_header = "X-Proxy-Secret"
secret_file = "proxy.secret"
"""


class Between:
    """Before the provider. `change`: parameters of the authorization request that reach it otherwise; `client`: who it
    thinks asks for a token; `verifiers`: PKCE verifiers that came."""

    def __init__(self, provider):
        self._provider = provider
        self.change: dict[str, str] = {}
        self.client = ""
        self.challenges: list[str] = []
        self.verifiers: list[str] = []

    def __call__(self, environ, start):
        path = environ["PATH_INFO"]
        if path == "/oauth2/authorize":
            given = dict(parse_qsl(environ["QUERY_STRING"]))
            if environ["REQUEST_METHOD"] == "GET":
                self.challenges.append(given["code_challenge"])
                assert given["code_challenge_method"] == "S256" and given["response_type"] == "code"
            environ["QUERY_STRING"] = urlencode(given | self.change)
        if path == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            verifier = parse_qs(body.decode())["code_verifier"][0]
            digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
            self.verifiers.append(verifier)
            if digest not in self.challenges:
                start("400 Bad Request", [("Content-Type", "application/json")])
                return [b'{"error": "invalid_grant"}']
            if self.client:
                environ["HTTP_AUTHORIZATION"] = "Basic " + base64.b64encode(f"{self.client}:x".encode()).decode()
            environ["wsgi.input"] = io.BytesIO(body)
        return self._provider(environ, start)


@contextlib.contextmanager
def provider(seconds: int = 3600) -> Iterator[tuple[str, Between]]:
    """(its address, what stands before it). `seconds`: how long its ID tokens hold."""
    people = [User(sub=sub, claims=claims) for sub, claims in PEOPLE.items()]
    between = Between(app(user_claims=people, access_token_max_age=timedelta(seconds=seconds)))
    with _threaded_server(between, poll_interval=0.05) as server:
        yield f"http://localhost:{server.server_port}", between


def settings(folder: Path, issuer: str, url: str, text: str = SETTINGS) -> Path:
    """The file that `serve --identity` is given."""
    (folder / "oidc.secret").write_text("what only the provider and the server know\n")
    (folder / "proxy.secret").write_text(f"{SECRET}\n")
    path = folder / "identity.toml"
    path.write_text(text.format(issuer=issuer, url=url))
    return path


def by_proxy(server: str, **headers: str) -> httpx2.Client:
    """A client at the proxy's address."""
    return httpx2.Client(
        base_url=server, headers=headers, transport=httpx2.HTTPTransport(local_address=PROXY), timeout=60
    )


def proxied(server: str, name: str, groups: str = "", **headers: str) -> httpx2.Client:
    """The proxy, which says who asks."""
    said = {"X-Forwarded-Email": name, "X-Forwarded-Groups": groups, "X-Proxy-Secret": SECRET, "Origin": server}
    return by_proxy(server, **said, **headers)


@contextlib.contextmanager
def signed_in(server: str, sub: str, after: str = "/") -> Iterator[httpx2.Client]:
    """A browser after the whole login."""
    with httpx2.Client(base_url=server, headers={"Origin": server}, timeout=60) as browser:
        answer = browser.get(came_back(browser, sub, after))
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == after
        yield browser


def came_back(browser: httpx2.Client, sub: str, after: str = "/") -> str:
    """The address that the provider sends the browser back to, not asked for yet."""
    begun = browser.get("/login", params={"next": after})
    assert begun.status_code == 303
    there = begun.headers["location"]
    with httpx2.Client(timeout=60) as elsewhere:  # the provider's own cookies are none of ours
        assert elsewhere.get(there).status_code == 200
        return elsewhere.post(there, data={"sub": sub}).headers["location"]


@dataclass
class Identified:
    """A server that knows who asks, its store, and the provider before which `between` stands."""

    address: str
    store: Path
    between: Between
    tokens: dict[Role, str]

    @property
    def stream(self) -> str:
        """The websocket of pages."""
        return f"{self.address.replace('http', 'ws', 1)}/_stcore/stream"

    def client(self, role: Role) -> httpx2.Client:
        """A program with a token of this role; without one as nobody."""
        token = {"Authorization": f"Bearer {self.tokens[role]}"} if role in self.tokens else {}
        return httpx2.Client(base_url=self.address, headers=token, timeout=60)


@contextlib.contextmanager
def identified_server(folder: Path) -> Iterator[Identified]:
    """As people start it: tokens made on the command line first."""
    store, port = folder / "store", free_port()
    tokens = {role: tokens_of(store, role) for role in (Role.VIEWER, Role.UPLOADER, Role.ADMIN)}
    with provider() as (issuer, between):
        file = settings(folder, issuer, f"http://127.0.0.1:{port}")
        with serving(store, "--identity", str(file), "--rate-limits", "off", port=port) as address:
            yield Identified(address, store, between, tokens)


@contextlib.contextmanager
def light_server(store: Path, file: Path, port: int) -> Iterator[str]:
    """The same guard and the same routes of identity, served in a thread, without pages."""
    place = workspace(str(store))
    door = Door(read(file), place, ())
    routes = [*Signing(door).routes(), *Identifying(place, door).routes()]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, loopback=True, door=door)])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", proxy_headers=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def tokens_of(store: Path, role: Role) -> str:
    return create(workspace(str(store)), role.word, role)[1]


def raw(server: str, lines: str) -> bytes:
    """The answer to a request as it stands, for what no client would send."""
    parts = urlsplit(server)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as s:
        s.sendall(lines.encode("latin-1"))
        s.settimeout(30)
        return s.recv(65536)
