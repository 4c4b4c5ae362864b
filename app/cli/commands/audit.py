"""`chipledger audit`: who did what, when, about what, from where, and what came of it."""

import argparse
from dataclasses import replace

from app.cli.commands.base import JSON, print_json, print_table
from app.identity.audit import MOST, SINCE, csv_of, entries
from app.options import add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option

NAME = "audit"
HELP = "list the audit log: logins, changes and refusals, where the server knows who asks"
API = "/api/audit"
CSV = Option("csv", SWITCH, False, "print it as a table for a spreadsheet", local=True)
OPTIONS = (replace(SINCE, local=True), replace(MOST, local=True), CSV, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    given, place = values(args, OPTIONS), workspace(args.store)
    if given[CSV.name] and given[JSON.name]:
        raise QuestionError("both --csv and --json are given", expected="one of them")
    told = entries(place, given[SINCE.name], given[MOST.name])
    if given[JSON.name]:
        print_json({"audit": [entry.to_dict() for entry in told]})
    elif given[CSV.name]:
        print(csv_of(told), end="")
    elif not told:
        print("The audit log is empty. It is kept where `chipledger serve --identity FILE` knows who asks.")
    else:
        rows = ((fmt.date(e.at_ns), e.who, e.role, e.what, e.about, e.address, e.outcome, e.more) for e in told)
        print_table(("when", "who", "role", "what", "about", "from", "outcome", "why"), rows)
