"""Where a job can be profiled: `HOST:PORT` of JAX's profiler server, `agent://HOST:PORT` of the module for jobs.

`HOST:9012-9019` is eight of them. Whatever else an address may be elsewhere (a path, a socket, a resolver's scheme) is
none here, and the target that is dialled is put together anew from host and port.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from errors import InputError

Kind = Literal["jax", "agent"]
ALLOWED_VARIABLE = "CHIPLEDGER_CAPTURE_ALLOWED"  # set by `chipledger serve` for pages, API and the jobs it starts
MOST = 256  # addresses of one capture, and of one server
LIST_BYTES = 1 << 16
EXPECTED = "HOST:PORT, HOST:FIRST-LAST, or the same after agent://"
_FORM = re.compile(
    r"(?:(?P<kind>jax|agent)://)?(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}))"
    r":(?P<first>[0-9]{1,5})(?:-(?P<last>[0-9]{1,5}))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Address:
    """One process of a job. `kind`: which protocol it speaks."""

    kind: Kind
    host: str
    port: int

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'agent://' if self.kind == 'agent' else ''}{name}:{self.port}"

    @property
    def label(self) -> str:
        """As a file may be called: no dot, at which readers of traces end a host's name."""
        return re.sub(r"[^A-Za-z0-9_]+", "-", self.host).strip("-") + f"-{self.port}"


def addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Each address once, in the order given; commas part them as well. Raises InputError for what is none."""
    found: dict[Address, None] = {}
    for text in (part.strip() for given in texts for part in given.split(",")):
        for one in _of(text) if text else ():
            found[one] = None
        if len(found) > MOST:
            raise InputError(f"more than {MOST} addresses", expected=f"1 to {MOST} at once")
    return tuple(found)


def _of(text: str) -> Sequence[Address]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:80]!r} is no address to capture from", expected=EXPECTED)
    first = int(match["first"])
    last = int(match["last"] or first)
    if not 1 <= first <= last < 1 << 16 or last - first >= MOST:
        raise InputError(f"{text[:80]!r} has no such ports", expected=f"1 to 65535, at most {MOST} of them")
    kind: Kind = "agent" if match["kind"] == "agent" else "jax"
    return [Address(kind, match["host"].strip("[]").lower(), port) for port in range(first, last + 1)]


def listed(file: Path) -> tuple[str, ...]:
    """The addresses in a file, one a line; what follows a `#` is a remark. Raises InputError."""
    try:
        with file.open("rb") as f:
            text = f.read(LIST_BYTES + 1).decode()
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is no text"
        raise InputError(f"cannot be read ({why})", where=str(file), expected="addresses, one a line") from e
    if len(text) > LIST_BYTES:
        raise InputError(f"more than {LIST_BYTES:,} bytes", where=str(file), expected="addresses, one a line")
    return tuple(filter(None, (line.partition("#")[0].strip() for line in text.splitlines())))


def allowed() -> tuple[Address, ...]:
    """What whoever started this server allows it to dial; nothing unless that was said."""
    return addresses([os.environ.get(ALLOWED_VARIABLE, "")])


def among_allowed(names: Iterable[str], known: Sequence[Address]) -> tuple[Address, ...]:
    """The operator's own records of these names. A name is looked up, never read as an address: what is dialled was
    written by the operator, whatever a request says. Raises InputError for a name that is not among them."""
    by_name: Mapping[str, Address] = {str(one): one for one in known}
    found: dict[Address, None] = {}
    for name in names:
        if name not in by_name:
            raise InputError(
                f"{name[:80]!r} is none of the addresses that this server may capture from",
                expected=f"one of {', '.join(list(by_name)[:10])}" if by_name else "",
                advice="" if by_name else "Start it with `chipledger serve --capture HOST:PORT`.",
            )
        found[by_name[name]] = None
    return tuple(found)
