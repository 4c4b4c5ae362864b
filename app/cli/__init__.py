"""The command line. Exit codes: 0 done; 2 the input or the question is wrong, said in one `error:` line; 3 what was
to be checked is not as it should be; 4 that could not be told; 1 a defect."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from app.cli.commands import COMMANDS
from app.cli.commands.base import STORE
from app.options import add_flags
from errors import ChipledgerError


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error here."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {' '.join(message.split())}. See `{self.prog} --help`.\n")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="chipledger", description="Every chip-second accounted for.", allow_abbrev=False)
    add_flags(top, (STORE,))
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for module in COMMANDS:
        command = commands.add_parser(
            module.NAME, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.", allow_abbrev=False
        )
        # SUPPRESS: without it the command's default would overwrite a --store that stands before the command
        add_flags(command, (STORE,), absent=argparse.SUPPRESS)
        module.arguments(command)
        command.set_defaults(run_command=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    try:
        code = args.run_command(args)
        sys.stdout.flush()
        return code or 0
    except ChipledgerError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its end
        return 0
    except Exception:
        traceback.print_exc()
        print("This is a defect of Chipledger. Please report it with the lines above.", file=sys.stderr)
        return 1
