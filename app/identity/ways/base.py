"""What a way of being known is given, and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from app.identity.base import Identity
from errors import ChipledgerError

if TYPE_CHECKING:
    from app.identity.knowing import Books


class Unknown(ChipledgerError):
    """What a request says of who asks is not believed: it is refused, whatever else it says."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as ways see it. `peer`: the address at the other end of its connection, whatever headers say."""

    headers: Headers
    peer: str


@dataclass(frozen=True, kw_only=True)
class Known:
    """Whoever asks. `browser`: by what a browser sends of itself (a cookie, a proxy's login), so that a page of another
    site could ask in their name. `address`: where they are, which behind a proxy is not its own."""

    identity: Identity
    browser: bool = False
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way of being known. `know` answers None where a request says nothing that is its own, and raises Unknown
    where that is wrong."""

    name: str
    title: str
    help: str
    know: Callable[["Books", Asked], Awaitable[Known | None]]
