"""What every tool is: one record, from which come its schema, the check of what is given, and its description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.mcp.arguments import Pairs
from app.workspace import Workspace
from errors.numbers import FROM_ZERO, Number
from errors.options import Option

BYTES_PER_TOKEN = 4  # by which tokens are counted here: bytes of the answer's text in UTF-8, by this
RUN = Option("run", str, None, "id or name of a run, or the beginning of either", of_run=True)
PART = Option("part", str, "", "part of the answer, a JSON pointer such as /steps; empty: all")
START = Option("start", FROM_ZERO, 0, "from which entry of that part on")
TOKENS = Option(
    "tokens",
    Number(500, 50_000, whole=True),
    3_000,
    f"most of the answer, at {BYTES_PER_TOKEN} bytes each",
    unit="tokens",
)
CUT = (PART, START, TOKENS)  # of every tool


@dataclass(frozen=True)
class Told:
    """What a tool found.

    says    the answer in one plain statement; empty: it has none
    answer  as JSON
    links   where it stands on the server: of pages, of its JSON, of its rows
    """

    says: str
    answer: Any
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Something that an agent can ask.

    name     as it is called
    title    as a client may show it
    help     what it is for, and when it is the one to call
    options  what can be given besides CUT
    needed   names of those that must be given
    choices  of a tool that asks one of several things: what each of them can be asked, by its name, as `options`
    answer   the answer to the values of `options`, and to what was given as `options`, as pairs
    slow     it may take cores and seconds: few of its calls run at once
    """

    name: str
    title: str
    help: str
    options: tuple[Option, ...]
    answer: Callable[[Workspace, Mapping[str, Any], Pairs], Told]
    needed: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Option, ...]] | None = None
    slow: bool = False
