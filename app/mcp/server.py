"""The server that speaks the protocol: tools and resources over stdio, or mounted on the served app.

All reads. A few calls run at once and the rest wait, so that a client with many questions leaves room for pages.
"""

import functools
import signal
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from app.mcp import ADVICE, MISSING, NAME, installed
from app.mcp import resources as reading
from app.mcp.budget import text
from app.mcp.calling import call
from app.mcp.schemas import schema
from app.mcp.tools import TOOLS, tool
from app.querying import AT_ONCE
from app.serve.places import placeless
from app.workspace import Workspace
from errors import ChipledgerError, InputError, QuestionError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

QUICK_AT_ONCE = 4  # calls that mostly read answers which are kept
MOST_WAITING = 64  # calls taken up and not answered yet
ERROR_CHARACTERS = 2_000
DEFECT = "This is a defect of Chipledger. Its log, where the server runs, tells more; please report it."
INSTRUCTIONS = (
    "Chipledger tells where the chip time of training and serving jobs went. Asked why a run is slow or costly, call "
    "`runs` for its id and then `findings`: causes with their place, what mending gives back, and the cure. For "
    "evidence call `show` with the question that a finding names; for what no question tells, `query`. Links in "
    "answers are paths from the address of `chipledger serve`. Numbers carry their unit in their name; `gain_share` is "
    "of the chip time."
)


class Asking:
    """Runs what is asked in threads, a few at a time. Made inside an event loop."""

    def __init__(self, place: Workspace):
        self._place = place
        self._quick, self._slow = anyio.CapacityLimiter(QUICK_AT_ONCE), anyio.CapacityLimiter(AT_ONCE)
        self._waiting = 0

    async def tool(self, name: str, arguments: Any) -> tuple[str, bool]:
        """The answer, or the sentence of its error, and whether it is one."""
        try:
            asked = tool(name)
            return await self._run(lambda: call(asked, arguments, self._place), slow=asked.slow), False
        except ChipledgerError as e:
            return self._sentence(e), True
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return DEFECT, True

    async def resource(self, uri: str) -> str:
        """What stands at an address. Raises QuestionError with a sentence fit to be handed on."""
        try:
            return await self._run(lambda: text(reading.read(uri, self._place)))
        except ChipledgerError as e:
            raise QuestionError(self._sentence(e)) from e
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            raise QuestionError(DEFECT) from e

    async def _run(self, work: Callable[[], str], *, slow: bool = False) -> str:
        if self._waiting >= MOST_WAITING:
            raise QuestionError(f"{MOST_WAITING} calls are waiting already", advice="Ask again when they are answered.")
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._slow if slow else self._quick)
        finally:
            self._waiting -= 1

    def _sentence(self, error: ChipledgerError) -> str:
        return placeless(str(error), self._place.store.root)[:ERROR_CHARACTERS]


def server(place: Workspace) -> "Server[Any]":
    """The server over one workspace. Raises InputError where its package is not installed."""
    if not installed():
        raise InputError(MISSING, advice=ADVICE)
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    asking = Asking(place)

    async def list_tools(context: Any, asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_tools())

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        told, failed = await asking.tool(asked.name, asked.arguments)
        return types.CallToolResult(content=[types.TextContent(type="text", text=told)], is_error=failed)

    async def list_resources(context: Any, asked: Any) -> types.ListResourcesResult:
        found = [
            types.Resource(uri=r.uri, name=r.name, description=r.help, mime_type="application/json")
            for r in reading.listed()
        ]
        return types.ListResourcesResult(resources=found)

    async def list_templates(context: Any, asked: Any) -> types.ListResourceTemplatesResult:
        found = [
            types.ResourceTemplate(uri_template=r.uri, name=r.name, description=r.help, mime_type="application/json")
            for r in reading.templates()
        ]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(context: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            told = await asking.resource(str(asked.uri))
        except QuestionError as e:
            raise MCPError(types.INVALID_PARAMS, str(e)) from e
        content = types.TextResourceContents(uri=asked.uri, mime_type="application/json", text=told)
        return types.ReadResourceResult(contents=[content])

    made = Server(
        NAME,
        version=_version(),
        title="Chipledger",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: next((schema(t) for t in TOOLS if t.name == name), None),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    made.middleware.clear()  # the package's own would tell of each call to whatever collects traces here
    return made


def over_stdio(place: Workspace) -> None:
    """Serve one client until it closes its end. Raises InputError where the package is not installed."""
    made = server(place)

    async def serve() -> None:
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await made.run(incoming, outgoing, made.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would wait for the client's next line
    try:
        anyio.run(serve)
    except* BrokenPipeError:  # the client went away before it was answered
        pass


@functools.cache
def _tools() -> Any:
    import mcp_types as types

    reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        types.Tool(name=t.name, title=t.title, description=t.help, input_schema=schema(t), annotations=reads)
        for t in TOOLS
    ]


def _version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:
        return ""
