"""`chipledger whatif NAME`: what would be, asked of a model instead of a run."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.options import add_flags, from_args
from app.whatif import WHATIFS
from app.whatif.base import named
from app.workspace import workspace
from errors.options import Option

NAME = "whatif"
HELP = "ask what would be: `whatif checkpoint` finds how often to save"

API = "/api/whatif/NAME"
WHATIF = Option("whatif", str, None, "which question; docs/whatifs.md tells what each can be asked", form="NAME")
ARGUMENTS = (WHATIF,)
OPTIONS = (JSON,)  # and those of the what-if


def arguments(parser: argparse.ArgumentParser) -> None:
    questions = parser.add_subparsers(dest=WHATIF.name, metavar=WHATIF.form, required=True)
    for whatif in WHATIFS:
        command = questions.add_parser(
            whatif.name, help=whatif.help, description=f"{whatif.help[0].upper()}{whatif.help[1:]}.", allow_abbrev=False
        )
        add_flags(command, (*whatif.options, *OPTIONS))


def run(args: argparse.Namespace) -> None:
    whatif = named(WHATIFS, args.whatif)
    asked = whatif.asked(**from_args(args, whatif.options))
    place = workspace(args.store) if whatif.run_of(asked) else None  # a model alone needs no store
    result = whatif.answer(asked, place)
    if args.json:
        print_json(whatif.told(result))
        return
    said = whatif.words(result)
    if said.text:
        print(said.text, end="")
        return
    print_verdict(said.verdict)
    print_table(said.table.head, said.table.rows, right=said.table.right)
    if said.notes:
        print()
    for note in said.notes:
        print(f"- {printable(note)}")
