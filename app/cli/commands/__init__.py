"""The command line's commands: one file each, listed once, and in the help by purpose.

A file is imported when its command is asked for: who runs one does not wait for what the others need.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

NAMES = (
    "demo",
    "serve",
    "open",
    "ingest",
    "push",
    "capture",
    "runs",
    "facts",
    "rename",
    "note",
    "tag",
    "star",
    "group",
    "archive",
    "delete",
    "restore",
    "share",
    "tidy",
    "searches",
    "fleet",
    "budget",
    "digest",
    "findings",
    "promise",
    "show",
    "query",
    "timeline",
    "compare",
    "baseline",
    "history",
    "report",
    "compile",
    "topology",
    "whatif",
    "catalog",
    "alerts",
    "watch",
    "mcp",
    "tokens",
    "audit",
    "jobs",
    "worker",
    "doctor",
    "backup",
    "registry",
    "mirror",
    "completion",
)

PURPOSES = {  # the heads in the help of all, and the names below each; what stands in none comes last
    "See it in a browser": "demo serve open",
    "Add runs": "ingest push capture watch facts",
    "Ask about a run": "runs findings show query timeline report promise",
    "Ask about many": "compare baseline history fleet budget digest",
    "Keep runs in order": "rename note tag star group archive delete restore share tidy searches",
    "Ask what would be": "whatif topology compile catalog",
    "Look after it": "alerts mcp jobs worker tokens audit doctor backup mirror registry completion",
}

if TYPE_CHECKING:
    COMMANDS: tuple[ModuleType, ...]


def command(name: str) -> ModuleType:
    """The command of this name, one of NAMES."""
    return import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> tuple[ModuleType, ...]:
    """`COMMANDS`: all of them, each imported."""
    if name != "COMMANDS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = tuple(map(command, NAMES))
    return found
