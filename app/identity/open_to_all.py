"""Where nobody is asked who they are, although others than this machine's own users can ask: it is said everywhere."""

import os

from app.identity.settings import OPEN_VARIABLE

SAID = "Whoever can reach this address can read, add and delete runs"
FLAG = "--open-to-all"


def warning() -> str:
    """What stands on every page of a server that is open to all on the network; empty elsewhere."""
    if os.environ.get(OPEN_VARIABLE) != "1":
        return ""
    return f"{SAID}: nobody is asked who they are here. `serve --identity FILE` changes that."
