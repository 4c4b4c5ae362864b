"""`chipledger mcp`: the door for agents and scripts, over stdio."""

import argparse

from app.workspace import workspace
from errors.options import Option

NAME = "mcp"
HELP = "answer agents and scripts in the Model Context Protocol, over standard input and output"
API = "/mcp"
OPTIONS: tuple[Option, ...] = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none of its own."""


def run(args: argparse.Namespace) -> None:
    from app.mcp import ADVICE, MISSING, installed
    from errors import InputError

    if not installed():
        raise InputError(MISSING, advice=ADVICE)
    from app.mcp.server import over_stdio

    over_stdio(workspace(args.store))
