"""A network in three dimensions: turned, zoomed, hovered and clicked in the browser by WebGL 2, without any library."""

from collections.abc import Callable
from pathlib import Path

from app.components.browser import component

_network3d = component("chipledger_network3d", Path(__file__).parent / "network3d")


def network3d(message: bytes, key: str, told: Callable[[str], None]) -> None:
    """Draw a message of `packing.message`. A person may ask to fail a part, to repair it or for a route: `told` is
    called with `fail`, `repair` or `route` before the page runs again, and the session's state has its value."""
    _network3d(
        key=key,
        data=message,
        on_fail_change=lambda: told("fail"),
        on_repair_change=lambda: told("repair"),
        on_route_change=lambda: told("route"),
    )
