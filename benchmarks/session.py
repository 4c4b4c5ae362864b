"""A session of the dashboard without a browser: Streamlit's own messages over a websocket, as its front end sends them.

What it costs a server is what a tab costs it, but for the files that a browser fetches once; what it costs the machine
beside the server is next to nothing, so that what is measured is the server.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect

STREAM, PROTOCOL = "_stcore/stream", "streamlit"
LARGEST = 200 << 20  # bytes of one message, as the server bounds them
COMPILE_ERROR, EARLY = 1, 2  # how a script may finish, as Streamlit numbers it


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What came of one navigation: seconds from the click to the first figure (to the end of the script where the page
    has none), and to the end of the script; the bytes that came; figures; what the page said was wrong."""

    figure_s: float
    whole_s: float
    told_bytes: int
    figures: int
    errors: tuple[str, ...] = ()


@dataclass
class Session:
    """One person at the dashboard."""

    address: str
    _socket: ClientConnection | None = None
    _pages: dict[str, str] = field(default_factory=dict[str, str])
    _kept: dict[str, bytes] = field(default_factory=dict[str, bytes])  # messages that the server only refers to

    @property
    def connected(self) -> bool:
        return self._socket is not None

    async def open(self) -> None:
        """Connect, as a page that was just loaded does. Raises OSError where the server refuses."""
        host = urlsplit(self.address).netloc
        self._socket = await connect(
            f"ws://{host}/{STREAM}",
            subprotocols=[PROTOCOL],  # type: ignore[list-item]
            additional_headers={"Origin": self.address},
            compression=None,
            max_size=LARGEST,
        )

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    async def go(self, path: str, query: str, patience_s: float) -> Drawn:
        """Open a page: by its name at first, as an address does, then by its number, as a link in the menu does.

        Raises TimeoutError where it is not drawn by then.
        """
        assert self._socket is not None
        began = time.perf_counter()
        await self._socket.send(self._asking(path, query))
        async with asyncio.timeout(patience_s):
            return await self._drawn(began)

    def _asking(self, path: str, query: str) -> bytes:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        asked = BackMsg()
        state = asked.rerun_script
        state.query_string = query
        state.context_info.url = f"{self.address}/{path}"
        state.context_info.color_scheme = "light"
        state.cached_message_hashes.extend(self._kept)
        if path in self._pages:
            state.page_script_hash = self._pages[path]
        else:
            state.page_name = path
        return asked.SerializeToString()

    async def _drawn(self, began: float) -> Drawn:
        """Read until the script that was asked for has finished."""
        assert self._socket is not None
        figure_s, told_bytes, figures, errors, begun = None, 0, 0, list[str](), False
        while True:
            raw = await self._socket.recv(decode=False)
            told_bytes += len(raw)
            message = self._message(raw)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                begun = True
            elif kind == "navigation":
                self._pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            elif kind == "page_not_found":
                errors.append("no such page")
            elif kind == "delta" and begun:
                for what, words in _shown(message.delta):
                    if what == "figure":
                        figures += 1
                        figure_s = figure_s or time.perf_counter() - began
                    else:
                        errors.append(words)
            elif kind == "script_finished" and begun and message.script_finished != EARLY:
                if message.script_finished == COMPILE_ERROR:
                    errors.append("the page could not be compiled")
                whole_s = time.perf_counter() - began
                return Drawn(
                    figure_s=figure_s or whole_s,
                    whole_s=whole_s,
                    told_bytes=told_bytes,
                    figures=figures,
                    errors=tuple(errors),
                )

    def _message(self, raw: bytes) -> Any:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        message = ForwardMsg.FromString(raw)
        if message.WhichOneof("type") == "ref_hash":
            return ForwardMsg.FromString(self._kept[message.ref_hash])
        if message.metadata.cacheable and message.hash:
            self._kept[message.hash] = raw
        return message


def _shown(delta: Any) -> Iterator[tuple[str, str]]:
    """("figure", "") of a figure, ("error", what is said) of a traceback, which no page may show."""
    if delta.WhichOneof("type") != "new_element":
        return
    element = delta.new_element
    if (kind := element.WhichOneof("type")) == "plotly_chart":
        yield "figure", ""
    elif kind == "exception":
        yield "error", f"{element.exception.type}: {element.exception.message}"[:300]
