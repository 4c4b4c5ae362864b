"""What an address of files may be: `/data/run-1`, `/data/**/*.log`, `file:///data`, `gs://bucket/run-1`, `s3://...`.

Whatever else a library of file systems would take (chains of schemes, credentials, `..`) is none here.
"""

import re
from dataclasses import dataclass

from errors import InputError

MOST_CHARACTERS = 4096
MAGIC = re.compile(r"[*?\[]")
EXPECTED = "a folder, file or glob, or an address such as gs://bucket/run"
_FORM = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_HIDDEN_WAYS = re.compile(r"%2e|%2f|%5c|%00|\\", re.IGNORECASE)


@dataclass(frozen=True)
class Scheme:
    """A kind of address. `package`: what fsspec needs for it, empty where it needs nothing more."""

    name: str
    package: str = ""
    other_names: tuple[str, ...] = ()


SCHEMES = (
    Scheme("gs", "gcsfs", ("gcs",)),
    Scheme("s3", "s3fs", ("s3a",)),
    Scheme("az", "adlfs", ("abfs", "abfss")),
    Scheme("https"),
    Scheme("http"),
    Scheme("memory"),  # of the process that reads: in use for tests alone
)
FILE, WEB = "file", ("http", "https")
_BY_NAME = {name: s for s in SCHEMES for name in (s.name, *s.other_names)}


@dataclass(frozen=True)
class Address:
    """`scheme` is `file` for this machine, `rest` what follows it: a path, or bucket and key without slashes around."""

    scheme: str
    rest: str

    def __str__(self) -> str:
        return self.rest if self.scheme == FILE else f"{self.scheme}://{self.rest}"

    @property
    def package(self) -> str:
        return _BY_NAME[self.scheme].package

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in self.rest.split("/") if part)

    @property
    def base(self) -> tuple[str, ...]:
        """The parts before the first that is a pattern."""
        first = next((n for n, part in enumerate(self.parts) if MAGIC.search(part)), len(self.parts))
        return self.parts[:first]

    @property
    def is_pattern(self) -> bool:
        return self.scheme not in WEB and len(self.base) < len(self.parts)

    @property
    def name(self) -> str:
        """What a run of it is called where nothing else is said."""
        return self.base[-1] if self.base else self.scheme


def address(text: str) -> Address:
    """Raises InputError for what is none."""
    if not text or len(text) > MOST_CHARACTERS or "\0" in text:
        raise InputError(f"an address of {len(text):,} characters", expected=EXPECTED)
    match = _FORM.fullmatch(text)
    if match is None and "://" not in text:
        return Address(FILE, text)
    scheme, rest = (match["scheme"].lower(), match["rest"]) if match else ("", text)
    if scheme == FILE:
        if not rest.startswith("/"):
            raise InputError(
                "file:// takes a whole path of this machine", where=_short(text), expected="file:///data/run"
            )
        return Address(FILE, rest)
    known = _BY_NAME.get(scheme)
    if known is None or "::" in text:
        names = ", ".join(f"{s.name}://" for s in SCHEMES if s.name != "memory")
        raise InputError("files cannot be read from there", where=_short(text), expected=f"a path, or one of {names}")
    if not text.isprintable() or not _plain(rest, known.name):
        raise InputError(
            "this address is not plain", where=_short(text), expected="bucket and key without .., // or %2e"
        )
    return Address(known.name, rest.strip("/"))


def _plain(rest: str, scheme: str) -> bool:
    path = rest.partition("?")[0] if scheme in WEB else rest
    parts = path.strip("/").split("/")
    web = scheme in WEB and ("@" in parts[0] or "#" in rest)
    return not web and not _HIDDEN_WAYS.search(path) and not any(p in ("", ".", "..") for p in parts)


def within(one: Address, prefixes: tuple[Address, ...]) -> bool:
    """Whether an address of a bucket lies below one of the prefixes. Of this machine `local` looks where links lead."""
    return any(one.scheme == p.scheme and one.parts[: len(p.parts)] == p.parts for p in prefixes)


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
