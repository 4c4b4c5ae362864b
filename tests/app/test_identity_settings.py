"""The file that says who is known by what: what it holds, and what is refused of it in one sentence."""

import ipaddress
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some
from starlette.datastructures import Headers

from app.identity.base import Role
from app.identity.settings import HOURS, Proxy, Roles, Settings, read
from app.identity.ways.base import Asked
from app.identity.ways.proxy import know
from errors import InputError

OIDC = """[oidc]
issuer = "https://login.example/realms/main/"
client_id = "chipledger"
client_secret_env = "SECRET"
url = "https://chipledger.example/"
"""
PROXY = '[proxy]\nuser_header = "X-Forwarded-Email"\nfrom = ["10.0.0.5", "fd00::/64"]\n'


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "from the environment")

    def told(text):
        path = tmp_path / "identity.toml"
        path.write_text(text)
        return read(path)

    return told


def test_what_each_way_is_told(told, tmp_path):
    (tmp_path / "s").write_text("in a file\n")
    found = told(OIDC + PROXY + 'secret_header = "X-Secret"\nsecret_file = "s"\n')
    assert found.oidc.issuer == "https://login.example/realms/main" and found.oidc.url == "https://chipledger.example"
    assert found.oidc.client_secret == "from the environment" and found.oidc.session_hours == HOURS
    assert found.proxy.user_header == "x-forwarded-email" and found.proxy.secret == "in a file" and found.tokens
    assert "in a file" not in repr(found) and "from the environment" not in repr(found)
    assert told("").tokens and told("").roles.of("ann", frozenset()) is Role.NOBODY


def test_the_highest_role_that_fits_holds(told):
    roles = told(
        '[roles]\nrest = "viewer"\nuploader = {domains = ["@Corp.example"], groups = ["ml"]}\n'
        '[roles.admin]\npeople = ["Ann@corp.example"]\ngroups = ["platform"]\n'
    ).roles
    for name, groups, role in [
        ("ann@corp.example", (), Role.ADMIN),
        ("ANN@CORP.EXAMPLE", (), Role.ADMIN),
        ("bob@corp.example", (), Role.UPLOADER),
        ("bob@notcorp.example", (), Role.VIEWER),
        ("bob@corp.example.evil.example", (), Role.VIEWER),
        ("corp.example", (), Role.VIEWER),
        ("x@evil.example", ("ml",), Role.UPLOADER),
        ("x@evil.example", ("ML",), Role.VIEWER),
        ("x@evil.example", ("ml", "platform"), Role.ADMIN),
    ]:
        assert roles.of(name, frozenset(groups)) is role, (name, groups)


@given(some.text(max_size=30), some.frozensets(some.text(max_size=5), max_size=4))
def test_whoever_is_not_named_may_nothing(name, groups):
    roles = Roles(people={"ann@corp.example": Role.ADMIN}, domains={"corp.example": Role.VIEWER})
    known = name.casefold() == "ann@corp.example" or name.casefold().endswith("@corp.example")
    assert known or roles.of(name, groups) is Role.NOBODY


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tokens = false", "nobody can be known"),
        ("tokens = 1", "'tokens' is not understood"),
        ("token = true", "nothing is called 'token' here"),
        ("[", "is no TOML"),
        ('[roles]\nrest = "admin"', "rest = 'admin'"),
        ('[roles]\nviewers = ["x"]', "nothing is called 'viewers'"),
        ('[roles]\nviewer = ["x"]', "'viewer' is no table"),
        ('[roles.viewer]\ngroups = "ml"', "'groups' is not understood"),
        ('[roles.viewer]\ngroup = ["ml"]', "Did you mean"),
        (OIDC.replace("https://login", "http://login"), "is not over TLS"),
        (OIDC.replace("https://chipledger", "http://chipledger"), "is not over TLS"),
        (OIDC.replace('example/"\n', 'example/below"\n'), "the root of a host name"),
        (OIDC.replace("https://login.example", "ftp://x"), "is not over TLS"),
        (OIDC.replace("https://login.example/realms/main/", "login"), "is no address"),
        (OIDC.replace("https://login.example", "https://me:pw@login.example"), "is no address"),
        (OIDC.replace('client_secret_env = "SECRET"', 'client_secret = "x"'), "stands in the file itself"),
        (OIDC.replace('client_secret_env = "SECRET"', ""), "'client_secret' is missing"),
        (OIDC.replace('"SECRET"', '"NOT_SET"'), "is empty"),
        (OIDC.replace("client_secret_env", "client_secret_file"), "cannot be read"),
        (OIDC + 'client_secret_file = "x"', "is told twice"),
        (OIDC.replace("client_id", "client"), "'client_id' is missing"),
        (OIDC + 'scopes = "email"', "scopes without openid"),
        (OIDC + "session_hours = 0", "'session_hours' is not understood"),
        (OIDC + "session_hours = nan", "'session_hours' is not understood"),
        (OIDC + "session_hours = inf", "'session_hours' is not understood"),
        (OIDC + "session_hours = 1e308", "'session_hours' is not understood"),
        (OIDC + "session_hours = true", "'session_hours' is not understood"),
        (OIDC + "unverified_email = 1", "'unverified_email' is not understood"),
        ('[proxy]\nuser_header = "X-User"', "anybody could send its headers"),
        ('[proxy]\nuser_header = "X-User"\nfrom = ["0.0.0.0/0"]', "every address"),
        ('[proxy]\nuser_header = "X-User"\nfrom = ["::/0"]', "every address"),
        ('[proxy]\nuser_header = "X-User"\nfrom = ["10.0.0.1/8"]', "no address of a proxy"),
        ('[proxy]\nuser_header = "X-User"\nfrom = ["proxy.local"]', "no address of a proxy"),
        ('[proxy]\nuser_header = "X User:"\nfrom = ["10.0.0.1"]', "no name of a header"),
        (PROXY + 'secret_header = "X-S"', "go together"),
        (PROXY + 'secret_env = "SECRET"', "go together"),
        (PROXY + 'name = "x"\n', "nothing is called 'name'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(told, text, says):
    with pytest.raises(InputError) as refused:
        told(text)
    assert says in str(refused.value) and "\n" not in str(refused.value)
    assert "from the environment" not in str(refused.value), "no secret is repeated"


def test_a_file_that_is_none(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="cannot be read"):
            read(path)
    (tmp_path / "deep").write_text("a = " + "[" * 10_000)
    with pytest.raises(InputError, match="is no TOML"):
        read(tmp_path / "deep")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is no TOML"):
        read(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ([], "10.0.0.2"),
        (["203.0.113.9"], "203.0.113.9 by 10.0.0.2"),
        (["198.51.100.7, 203.0.113.9"], "203.0.113.9 by 10.0.0.2"),
        (["198.51.100.7", "203.0.113.9"], "203.0.113.9 by 10.0.0.2"),  # as HAProxy adds its own
        (["198.51.100.7", "nobody"], "10.0.0.2"),
    ],
)
def test_what_a_client_claims_is_no_address_of_the_audit_log(headers, address):
    proxy = Proxy(user_header="x-user", networks=(ipaddress.ip_network("10.0.0.0/8"),))
    said = [(b"x-user", b"ann"), *((b"x-forwarded-for", text.encode()) for text in headers)]
    books: Any = SimpleNamespace(settings=Settings(roles=Roles(), proxy=proxy))
    found = anyio.run(know, books, Asked(headers=Headers(raw=said), peer="10.0.0.2"))
    assert found is not None and (found.identity.name, found.address) == ("ann", address)
