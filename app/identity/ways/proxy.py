"""Known by a reverse proxy that signs people in: its headers, from its addresses, with its secret.

The same headers from anybody else are forged: such a request is refused whole.
"""

import functools
import ipaddress
from hmac import compare_digest

from starlette.datastructures import Headers

from app.identity.base import Identity
from app.identity.books import Books
from app.identity.settings import Network, Proxy
from app.identity.ways.base import Asked, Known, Unknown, Way

LONGEST = 320  # characters of a name; an address of mail has no more
MOST_GROUPS = 1000


async def know(books: Books, asked: Asked) -> Known | None:
    proxy = books.settings.proxy
    if proxy is None:
        return None
    names = asked.headers.getlist(proxy.user_header)
    if not names and not (proxy.groups_header and proxy.groups_header in asked.headers):
        return None
    if not believed(proxy, asked):
        raise Unknown(f"the header {proxy.user_header} does not come from the proxy that may send it")
    if len(names) != 1:
        raise Unknown(f"the header {proxy.user_header} stands there {len(names)} times", expected="once")
    name = _text(names[0])
    if not 1 <= len(name) <= LONGEST or not name.isprintable():
        raise Unknown(f"the header {proxy.user_header} holds no name", expected=f"1 to {LONGEST} characters")
    groups = _groups(proxy, asked.headers)
    role = books.settings.roles.of(name, groups)
    return Known(
        identity=Identity(name=name, role=role, groups=groups, how="proxy"),
        browser=True,
        address=_from(asked),
    )


def believed(proxy: Proxy, asked: Asked) -> bool:
    """Whether it comes from the proxy: its address and its secret, as far as each is set."""
    if proxy.networks and not _within(asked.peer, proxy.networks):
        return False
    if not proxy.secret:
        return True
    given = asked.headers.getlist(proxy.secret_header)
    return len(given) == 1 and compare_digest(given[0].encode("latin-1"), proxy.secret.encode())


@functools.lru_cache(1024)
def _within(peer: str, networks: tuple[Network, ...]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # a socket of both families calls 10.0.0.5 ::ffff:10.0.0.5
    return any(address in network for network in networks)


def _groups(proxy: Proxy, headers: Headers) -> frozenset[str]:
    if not proxy.groups_header:
        return frozenset()
    given = headers.getlist(proxy.groups_header)
    if len(given) > 1:
        raise Unknown(f"the header {proxy.groups_header} stands there {len(given)} times", expected="once")
    told = [g.strip() for g in _text(given[0]).split(proxy.groups_separator)] if given else []
    found = frozenset(g for g in told if g and g.isprintable())
    if len(found) > MOST_GROUPS:
        raise Unknown(f"{len(found):,} groups", expected=f"at most {MOST_GROUPS:,}")
    return found


def _text(value: str) -> str:
    """Of a header's bytes, which proxies write in UTF-8."""
    try:
        return value.encode("latin-1").decode().strip()
    except ValueError:
        return value.strip()


def _from(asked: Asked) -> str:
    """Where they are: what the proxy itself added, the last of the addresses that it tells; some add a header of their
    own behind those that came."""
    last = ",".join(asked.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    try:
        return f"{ipaddress.ip_address(last)} by {asked.peer}"
    except ValueError:
        return asked.peer


PROXY = Way(name="proxy", title="Reverse proxy", help="a proxy that signs people in says who asks", know=know)
