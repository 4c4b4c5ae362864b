"""`chipledger completion SHELL`: a script for a shell, which completes commands, options, questions and runs."""

import argparse

from app.cli.scripts import SCRIPTS
from app.options import add_arguments
from errors.options import Option

NAME = "completion"
HELP = (
    "print a script that completes commands, options, questions, runs and names of the catalogue in bash, zsh or fish"
)
WORDS = Option(
    "words",
    str,
    (),
    "what the script asks: the words so far, the last to be completed",
    several=True,
    local=True,
    form="WORD",
)
ARGUMENTS = (Option("shell", tuple(SCRIPTS), None, "which shell", local=True), WORDS)
MAY_LACK = (WORDS,)
OPTIONS = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)


def run(args: argparse.Namespace) -> None:
    shell = ARGUMENTS[0].parse(args.shell, "shell ")
    print(SCRIPTS[shell], end="")
