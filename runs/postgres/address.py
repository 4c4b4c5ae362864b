"""The address of a registry on PostgreSQL, `postgresql://USER@HOST:PORT/DATABASE`, as libpq reads it; with it, and
never told, the password.

A password may stand in the address where that lies in a file or the environment, or where libpq looks for one itself:
`PGPASSWORD`, `PGPASSFILE`, `~/.pgpass`.
"""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from errors import InputError

SCHEMES = ("postgresql://", "postgres://")
SECRET = ("password", "sslpassword", "passfile", "oauth_client_secret", "scram_client_key", "scram_server_key")
FORM = "postgresql://USER@HOST:5432/DATABASE"
EXTRA = "chipledger[postgres]"


@dataclass(frozen=True)
class Address:
    """`parts`: what libpq connects by, the password among them; `plain`: the address without what is secret."""

    plain: str
    parts: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """As people are told it: without settings of the connection."""
        return self.plain.partition("?")[0]

    @property
    def has_secret(self) -> bool:
        return any(self.parts.get(name) for name in SECRET)


def is_address(text: str) -> bool:
    return text.strip().lower().startswith(SCHEMES)


def address(text: str) -> Address:
    """Raises InputError for one that is not understood, without telling any of it: it may hold a password."""
    from runs.postgres.library import conninfo_to_dict, is_refusal

    what = "the address of the registry is not understood"
    if not is_address(text):
        raise InputError(what, expected=FORM)
    try:
        parts = {name: value for name, value in conninfo_to_dict(text.strip()).items() if value is not None}
        if not all(port.isdigit() for port in str(parts.get("port", "0")).split(",") if port):
            raise ValueError("a port that is no number")
        if any("@" in str(parts.get(name, "")) for name in ("host", "dbname")):
            raise ValueError("most likely the rest of a password")
    except Exception as e:
        if not (is_refusal(e) or isinstance(e, ValueError)):
            raise
        advice = "Letters that have a meaning in addresses, such as @ / ? # %, are written as %40 %2F %3F %23 %25."
        raise InputError(what, expected=FORM, advice=advice) from None  # its own words quote what it holds
    return Address(_plain(parts), parts)


def _plain(parts: dict[str, Any]) -> str:
    told = {name: str(value) for name, value in parts.items() if name not in SECRET}
    user, host = told.pop("user", ""), told.pop("host", "")
    port, database = told.pop("port", ""), told.pop("dbname", "")
    if host.startswith("/") or "," in host:  # a folder of sockets, or several hosts
        told = {"host": host} | told
        host = ""
    host = f"[{host}]" if ":" in host else quote(host)
    where = f"{quote(user, safe='')}@" if user else ""
    where += host + (f":{port}" if port and "," not in port else "")
    if "," in port:
        told["port"] = port
    rest = f"?{urlencode(told, quote_via=quote)}" if told else ""
    return f"postgresql://{where}/{quote(database, safe='')}{rest}"
