"""Who is known by what, and who may what: one TOML file, named by `serve --identity FILE`. Read once, checked whole.

Secrets stand in files of their own or in the environment, never in this file, on a command line or in a log.
"""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.identity.base import Role
from errors import InputError
from errors.nearest import did_you_mean

VARIABLE = "CHIPLEDGER_IDENTITY"
OPEN_VARIABLE = "CHIPLEDGER_OPEN_TO_ALL"
MOST_BYTES = 1 << 20
HOURS = 12.0  # of a login
MOST_HOURS = 24.0 * 30
EXPECTED = "docs/team.md tells what the file holds"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Who may what: by name, by the part of the name after `@`, by group; the highest that fits. `rest`: everybody else
    who is known; unless it is said they may nothing."""

    people: Mapping[str, Role] = field(default_factory=dict)
    domains: Mapping[str, Role] = field(default_factory=dict)
    groups: Mapping[str, Role] = field(default_factory=dict)
    rest: Role = Role.NOBODY

    def of(self, name: str, groups: frozenset[str]) -> Role:
        folded = name.casefold()
        found = [self.rest, self.people.get(folded, Role.NOBODY)]
        if "@" in folded:
            found.append(self.domains.get(folded.rpartition("@")[2], Role.NOBODY))
        return max([*found, *(self.groups.get(group, Role.NOBODY) for group in groups)])


@dataclass(frozen=True, kw_only=True)
class Oidc:
    """A provider of OpenID Connect. `url`: the address by which browsers reach this server."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    url: str
    scopes: str = "openid email profile"
    name_claim: str = "email"
    groups_claim: str = "groups"
    session_hours: float = HOURS
    unverified_email: bool = False

    @property
    def https(self) -> bool:
        return self.url.startswith("https://")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """A reverse proxy that signs people in, and says in headers who asks. It is believed from `networks` alone, and
    where a secret is set with this secret alone."""

    user_header: str
    groups_header: str = ""
    groups_separator: str = ","
    networks: tuple[Network, ...] = ()
    secret_header: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the file says. A way that is None, or off, is not known here."""

    roles: Roles
    oidc: Oidc | None = None
    proxy: Proxy | None = None
    tokens: bool = True


def read(path: Path) -> Settings:
    """The settings of a file. Raises InputError: where in it, what was expected."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode()
        given = tomllib.loads(text)
    except OSError as e:
        raise InputError(f"cannot be read ({e.strerror or e})", where=str(path), advice=f"{EXPECTED}.") from e
    except (ValueError, RecursionError) as e:
        raise InputError(f"is no TOML ({e})", where=str(path), advice=f"{EXPECTED}.") from e
    table = Table(given, str(path), "")
    roles, oidc, proxy = table.part("roles"), table.part("oidc"), table.part("proxy")
    tokens = table.switch("tokens", True)
    table.end()
    settings = Settings(
        roles=Roles() if roles is None else _roles(roles),
        oidc=None if oidc is None else _oidc(oidc),
        proxy=None if proxy is None else _proxy(proxy),
        tokens=tokens,
    )
    if not (settings.oidc or settings.proxy or settings.tokens):
        raise table.wrong("nobody can be known", "[oidc], [proxy] or tokens = true")
    return settings


class Table:
    """A table of the file, each key taken once; `end` refuses what is left."""

    def __init__(self, given: Mapping[str, Any], file: str, name: str):
        self._given, self._file, self._name = dict(given), file, name
        self._known: list[str] = []

    def wrong(self, what: str, expected: str, advice: str = "") -> InputError:
        where = f"{self._file} [{self._name}]" if self._name else self._file
        return InputError(what, where=where, expected=expected, advice=advice)

    def take(self, key: str) -> Any:
        self._known.append(key)
        return self._given.pop(key, None)

    def part(self, key: str) -> "Table | None":
        found = self.take(key)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise self.wrong(f"{key!r} is no table", f"[{key}]")
        return Table(found, self._file, f"{self._name}.{key}" if self._name else key)

    def text(self, key: str, default: str | None = None) -> str:
        """A text of one line; without a default it must be there."""
        found = self.take(key)
        if found is None and default is not None:
            return default
        if not isinstance(found, str) or not found.strip() or not found.isprintable():
            raise self.wrong(f"{key!r} is {'missing' if found is None else 'not understood'}", f'{key} = "..."')
        return found.strip()

    def texts(self, key: str) -> list[str]:
        found = self.take(key)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(t, str) and t.strip() and t.isprintable() for t in found):
            raise self.wrong(f"{key!r} is not understood", f'{key} = ["...", "..."]')
        return [t.strip() for t in found]

    def switch(self, key: str, default: bool) -> bool:
        found = self.take(key)
        if found is not None and not isinstance(found, bool):
            raise self.wrong(f"{key!r} is not understood", "true or false")
        return default if found is None else found

    def number(self, key: str, default: float, most: float) -> float:
        found = self.take(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= most:
            raise self.wrong(f"{key!r} is not understood", f"a number above 0, up to {most:g}")
        return float(found)

    def secret(self, key: str, optional: bool = False) -> str:
        """From the file that `KEY_file` names, or the variable of the environment that `KEY_env` names."""
        if self.take(key) is not None:
            raise self.wrong(f"{key!r} stands in the file itself", f"{key}_file or {key}_env, which say where it is")
        file, variable = self.text(f"{key}_file", ""), self.text(f"{key}_env", "")
        if file and variable:
            raise self.wrong(f"{key!r} is told twice", f"{key}_file or {key}_env")
        if optional and not file and not variable:
            return ""
        if not file and not variable:
            raise self.wrong(f"{key!r} is missing", f"{key}_file or {key}_env, which say where it is")
        found = self._read(file) if file else os.environ.get(variable, "")
        if not found.strip() or not found.strip().isprintable():
            raise self.wrong(f"{key!r} is empty, or more than a line", f"a secret in {file or '$' + variable}")
        return found.strip()

    def _read(self, file: str) -> str:
        path = Path(self._file).parent / file
        try:
            with path.open("rb") as opened:
                return opened.read(MOST_BYTES).decode()
        except (OSError, ValueError) as e:
            raise self.wrong(f"{file} cannot be read", "a file that holds the secret") from e

    def end(self) -> None:
        for key in self._given:
            raise self.wrong(
                f"nothing is called {key[:40]!r} here",
                f"one of {', '.join(self._known)}",
                did_you_mean(key, self._known),
            )


def _roles(table: Table) -> Roles:
    """`[roles]`: for each role a table of people, domains and groups; `rest`: the role of all others who are known."""
    found: dict[str, dict[str, Role]] = {"people": {}, "domains": {}, "groups": {}}
    words = {role.word: role for role in Role}
    rest = table.text("rest", Role.NOBODY.word)
    if rest not in words or rest == Role.ADMIN.word:
        raise table.wrong(f"rest = {rest[:40]!r}", "nobody, viewer or uploader")
    for role in (Role.VIEWER, Role.UPLOADER, Role.ADMIN):
        part = table.part(role.word)
        if part is None:
            continue
        for kind, kept in found.items():
            for name in part.texts(kind):
                key = name if kind == "groups" else name.casefold().removeprefix("@" * (kind == "domains"))
                kept[key] = max(role, kept.get(key, Role.NOBODY))
        part.end()
    table.end()
    return Roles(rest=words[rest], **found)


def _oidc(table: Table) -> Oidc:
    found = Oidc(
        issuer=_address(table, "issuer").rstrip("/"),
        client_id=table.text("client_id"),
        client_secret=table.secret("client_secret"),
        url=_address(table, "url").rstrip("/"),
        scopes=table.text("scopes", Oidc.scopes),
        name_claim=table.text("name_claim", Oidc.name_claim),
        groups_claim=table.text("groups_claim", Oidc.groups_claim),
        session_hours=table.number("session_hours", HOURS, MOST_HOURS),
        unverified_email=table.switch("unverified_email", False),
    )
    table.end()
    if "openid" not in found.scopes.split():
        raise table.wrong("scopes without openid", '"openid email profile"')
    if urlsplit(found.url).path:
        raise table.wrong("url has a path", "the root of a host name: this server cannot be below a path")
    return found


def _address(table: Table, key: str) -> str:
    """An address over TLS; plain http on this machine alone, where nobody else listens in."""
    text = table.text(key)
    try:
        parts = urlsplit(text)
        host, plain = parts.hostname, parts.scheme == "http"
    except ValueError:
        host, plain, parts = None, False, None
    if parts is None or not host or parts.query or parts.fragment or parts.username:
        raise table.wrong(f"{key} = {text[:80]!r} is no address", "https://host, without parameters")
    if parts.scheme != "https" and not (plain and (host in ("localhost", "::1") or host.startswith("127."))):
        raise table.wrong(f"{key} = {text[:80]!r} is not over TLS", "https://...; http:// on this machine alone")
    return text


def _proxy(table: Table) -> Proxy:
    found = Proxy(
        user_header=_header(table, "user_header", None),
        groups_header=_header(table, "groups_header", ""),
        groups_separator=table.text("groups_separator", ","),
        networks=tuple(_network(table, text) for text in table.texts("from")),
        secret_header=_header(table, "secret_header", ""),
        secret=table.secret("secret", optional=True),
    )
    table.end()
    if bool(found.secret) != bool(found.secret_header):
        raise table.wrong("a shared secret and its header go together", "secret_header with secret_file or secret_env")
    if not found.networks and not found.secret:
        expected = 'from = ["10.0.0.5"], or secret_header with secret_file'
        raise table.wrong("nothing says which proxy is believed: anybody could send its headers", expected)
    return found


def _header(table: Table, key: str, default: str | None) -> str:
    name = table.text(key, default)
    if name and not (name.isascii() and name.replace("-", "").isalnum()):
        raise table.wrong(f"{key} = {name[:80]!r} is no name of a header", "letters, digits and -")
    return name.lower()


def _network(table: Table, text: str) -> Network:
    try:
        found = ipaddress.ip_network(text)
    except ValueError as e:
        raise table.wrong(f"{text[:80]!r} is no address of a proxy ({e})", "10.0.0.5 or 10.0.0.0/24") from e
    if found.prefixlen == 0:
        raise table.wrong(
            f"{text!r} is every address: anybody could send the proxy's headers", "the proxy's own address"
        )
    return found
