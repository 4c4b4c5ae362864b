"""What agents and scripts can ask: one file each, listed once."""

from app.mcp.base import Tool
from app.mcp.tools.compare import COMPARE
from app.mcp.tools.facts import FACTS
from app.mcp.tools.findings import FIND
from app.mcp.tools.fleet import FLEET
from app.mcp.tools.query import QUERY
from app.mcp.tools.runs import RUNS
from app.mcp.tools.several import COMPARE_MANY
from app.mcp.tools.show import SHOW
from app.mcp.tools.topology import TOPOLOGY
from app.mcp.tools.whatif import WHATIF, WHATIF_TRAINING
from errors import QuestionError

TOOLS: tuple[Tool, ...] = (
    RUNS,
    FACTS,
    FIND,
    SHOW,
    QUERY,
    WHATIF,
    WHATIF_TRAINING,
    COMPARE,
    COMPARE_MANY,
    FLEET,
    TOPOLOGY,
)


def tool(name: str) -> Tool:
    """The tool of this name. Raises QuestionError where there is none."""
    for candidate in TOOLS:
        if name == candidate.name:
            return candidate
    raise QuestionError(f"no tool {name[:80]!r}", expected=f"one of {', '.join(t.name for t in TOOLS)}")
