"""Which record of rights holds for a request: that of the route which would answer it, found as Starlette finds it."""

import functools
from collections.abc import Collection, Iterable
from typing import Any

from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from app.identity.rights import ANY, PAGE, RIGHTS, UNNAMED, WEBSOCKET, Right

REMEMBERED = 4096  # requests whose record is known at once
_BY_ROUTE = {(right.method, right.path): right for right in RIGHTS}


class Table:
    """The records of a server's routes. `pages`: addresses of pages, which all have one record."""

    def __init__(self, routes: Iterable[BaseRoute], pages: Collection[str]):
        self._routes = list(routes)
        self._pages = frozenset(pages)
        self._begins = [_begin(route) for route in self._routes]
        self.right = functools.lru_cache(REMEMBERED)(self._right)

    def _right(self, method: str, path: str) -> Right:
        """The record for a method (or WEBSOCKET) and a decoded path; UNNAMED where there is none."""
        for route, begin in zip(self._routes, self._begins, strict=True):
            if path.startswith(begin) and _answers(route, method, path):
                return record(route, method, self._pages)
        return UNNAMED


def record(route: BaseRoute, method: str, pages: Collection[str]) -> Right:
    """The record of a route for a method."""
    path = template(route)
    if isinstance(route, Route) and path in pages and path != "/":
        path = PAGE
    asked = "GET" if method == "HEAD" else method
    return _BY_ROUTE.get((asked, path)) or _BY_ROUTE.get((ANY, path)) or UNNAMED


def template(route: BaseRoute) -> str:
    """How the records write a route's path."""
    path = str(getattr(route, "path", ""))
    return f"{path}/{{path:path}}" if isinstance(route, Mount) else path


def _answers(route: BaseRoute, method: str, path: str) -> bool:
    """Whether this route answers, not only to another method."""
    if isinstance(route, Mount):
        return route.path_regex.match(path) is not None
    if isinstance(route, WebSocketRoute):
        return method == WEBSOCKET and route.path_regex.match(path) is not None
    if isinstance(route, Route):
        fits = method != WEBSOCKET and (not route.methods or method in route.methods)
        return fits and route.path_regex.match(path) is not None
    return True  # of another kind, whose paths are not known: it has no record


def _begin(route: Any) -> str:
    """What every path begins with that a route answers."""
    return str(getattr(route, "path", "")).partition("{")[0]
