"""A network in three dimensions: turned, zoomed, hovered and clicked in the browser by WebGL 2, without any library."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_SCRIPTS = (
    "data",
    "camera",
    "scene",
    "webgl",
    "picking",
    "flat",
    "look",
    "words",
    "labels",
    "legend",
    "gestures",
    "view",
    "main",
)  # one module, in this order
_HTML = """
<div class="network3d">
  <div class="stage">
    <canvas class="picture" tabindex="0" role="img"></canvas>
    <canvas class="labels" aria-hidden="true"></canvas>
    <div class="tools">
      <button type="button" class="out" aria-label="Zoom out">−</button>
      <button type="button" class="in" aria-label="Zoom in">+</button>
      <button type="button" class="reset">Reset view</button>
    </div>
    <div class="card" hidden></div>
    <div class="tip" role="tooltip" hidden></div>
    <p class="said" role="status" hidden></p>
  </div>
  <div class="legend"></div>
</div>
"""

_network3d = st.components.v2.component(
    "chipledger_network3d",
    html=_HTML,
    css=(_HERE / "network3d.css").read_text(),
    js="\n".join((_HERE / f"{name}.js").read_text() for name in _SCRIPTS),
)


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
