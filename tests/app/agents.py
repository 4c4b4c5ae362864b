"""An agent as scripts write them: the official client, at either door, with what it asked and got counted."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client import Transport

from app.mcp.base import BYTES_PER_TOKEN
from tests.app.serving import environment

MODES = ("auto", "legacy")  # the newest protocol, and that of clients before it


class Agent:
    """What it asks, and what that costs it: calls, and tokens of all that it sent, was told and was listed."""

    def __init__(self, client: Client):
        self.client = client
        self.calls = 0
        self.bytes = 0

    @property
    def tokens(self) -> float:
        return self.bytes / BYTES_PER_TOKEN

    async def tools(self) -> list[dict[str, Any]]:
        """As a model is given them, with the server's instructions."""
        found = await self.client.list_tools()
        listed = [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in found.tools]
        self._count(listed), self._count(self.client.instructions or "")
        return listed

    async def text(self, tool: str, **given: Any) -> tuple[str, bool]:
        """What was answered, and whether that is an error."""
        self.calls += 1
        told = await self.client.call_tool(tool, given)
        assert [c.type for c in told.content] == ["text"] and told.structured_content is None
        self._count({"name": tool, "arguments": given}), self._count(told.content[0].text)
        return told.content[0].text, bool(told.is_error)

    async def ask(self, tool: str, **given: Any) -> dict[str, Any]:
        text, failed = await self.text(tool, **given)
        assert not failed, text
        return json.loads(text)

    async def refused(self, tool: str, **given: Any) -> str:
        text, failed = await self.text(tool, **given)
        assert failed, text
        return text

    def _count(self, said: Any) -> None:
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        self.bytes += len(text.encode())


Script = Callable[[Agent], Awaitable[Any]]


@contextlib.asynccontextmanager
async def agent(door: str | Path, mode: str = "auto", errors: Path | None = None) -> AsyncIterator[Agent]:
    """An agent at the door of a server (its address), or of a process of its own over a store (its folder), whose
    standard error goes to the file `errors`."""
    with open(errors or os.devnull, "a") as log:
        where: str | Transport = f"{door}/mcp" if isinstance(door, str) else stdio_client(_started(door), errlog=log)
        async with Client(where, mode=mode, read_timeout_seconds=120) as client:
            yield Agent(client)


def _started(store: Path) -> StdioServerParameters:
    arguments = ["-m", "app.cli", "mcp", "--store", str(store)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment())


def scripted(
    door: str | Path, script: Callable[[Agent], Awaitable[Any]], mode: str = "auto", errors: Path | None = None
) -> Any:
    """What a script of an agent's comes to."""

    async def run() -> Any:
        with anyio.fail_after(240):
            async with agent(door, mode, errors) as one:
                return await script(one)

    return anyio.run(run)
