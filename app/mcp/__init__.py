"""The door for agents and scripts: tools and resources of the Model Context Protocol, over stdio and over HTTP.

Its package, `mcp`, is an extra: what needs it is imported within functions, and without it one sentence says so.
"""

import importlib.util

NAME = "chipledger"
PATH = "/mcp"  # on the served app
MISSING = "agents have no door here, since the package mcp is not installed"
ADVICE = "Install it where the server runs: pip install 'chipledger[mcp]'. Nothing else here needs it."


def installed() -> bool:
    """Whether the package that speaks the protocol is there."""
    return importlib.util.find_spec("mcp") is not None
