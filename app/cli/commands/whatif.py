"""`chipledger whatif NAME`: what would be, asked of a model instead of a run."""

import argparse

from app.cli.commands.base import print_json, print_table
from app.whatif import WHATIFS
from app.workspace import workspace

NAME = "whatif"
HELP = "ask what would be: `whatif checkpoint` finds how often to save"


def arguments(parser: argparse.ArgumentParser) -> None:
    questions = parser.add_subparsers(dest="whatif", metavar="NAME", required=True)
    for module in WHATIFS:
        command = questions.add_parser(
            module.NAME, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.", allow_abbrev=False
        )
        module.arguments(command)
        command.add_argument("--json", action="store_true", help="print the answer as JSON")
        command.set_defaults(answer=module.answer, words=module.words)


def run(args: argparse.Namespace) -> None:
    place = workspace(args.store) if getattr(args, "run", None) else None  # a model alone needs no store
    result = args.answer(args, place)
    if args.json:
        print_json(result.to_dict())
        return
    said = args.words(result)
    print(said.verdict, end="\n\n")
    print_table(said.table.head, said.table.rows, right=said.table.right)
    if said.notes:
        print()
    for note in said.notes:
        print(f"- {note}")
