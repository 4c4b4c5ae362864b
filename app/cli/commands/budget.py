"""`chipledger budget`: what a team may spend in a month, what it spent, and what is left."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, printable, user
from app.fleet.options import ZONE
from app.options import add_arguments, add_flags, from_args, values
from app.workspace import workspace
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option

NAME = "budget"
HELP = "what a team may spend in a month, what it spent, and what is left: set, list or remove"
API = "/api/budgets"
ACTIONS = ("list", "set", "remove")
ACTION = Option("action", ACTIONS, "list", "what to do", local=True)
TEAM = Option("team", str, None, "the team: runs are its own by their tag team", local=True, form="TEAM")
ARGUMENTS = (ACTION, TEAM)
_AMOUNT = Number(0, 1e12, above=True)
USD = Option("usd", _AMOUNT, None, "dollars in a calendar month", local=True, form="DOLLARS")
CHIP_HOURS = Option("chip_hours", _AMOUNT, None, "chip-hours in a calendar month", local=True, form="CHIP-HOURS")
UNIT = Option("unit", ("usd", "chip_hours"), None, "remove only the budget in this unit", local=True)
OPTIONS = (USD, CHIP_HOURS, UNIT, ZONE, JSON)
MAY_LACK = ARGUMENTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.fleet import budgets
    from app.fleet.asking import zone_named

    given, place = values(args, OPTIONS), workspace(args.store)
    action = ACTION.parse(args.action, "action ")
    zone = zone_named(given[ZONE.name])
    _fits(action, args.team, set(from_args(args, (USD, CHIP_HOURS, UNIT))))
    if action == "set":
        if given[USD.name] is not None:
            budgets.set_budget(place, args.team, "usd", given[USD.name], user())
        if given[CHIP_HOURS.name] is not None:
            budgets.set_budget(place, args.team, "chip_hours", given[CHIP_HOURS.name], user())
    if action == "remove":
        budgets.remove_budget(place, args.team, given[UNIT.name])
    told = budgets.standing(place, zone, "now")
    if given[JSON.name]:
        print_json({"budgets": [b.to_dict() for b in told]})
    elif not told:
        print("No team has a budget. Set one with `chipledger budget set TEAM --usd DOLLARS`.")
    else:
        found = budgets.table(told)
        print_table(found.head, found.rows, found.right)
        print()
        for budget in told:
            print(printable(budgets.sentence(budget)))


def _fits(action: str, team: str | None, given: set[str]) -> None:
    """Raises QuestionError where what was given does not belong together."""
    if action == "list" and (team is not None or given):
        raise QuestionError("`budget list` takes no team and no amount", expected="budget set TEAM, or budget list")
    if action != "list" and not (team or "").strip():
        raise QuestionError("nothing says of which team", expected=f"chipledger budget {action} TEAM")
    if action == "set" and not given & {USD.name, CHIP_HOURS.name}:
        raise QuestionError("nothing says how much", expected="--usd DOLLARS or --chip-hours CHIP-HOURS, or both")
    if (action == "set" and UNIT.name in given) or (action == "remove" and given - {UNIT.name}):
        raise QuestionError(
            f"`budget {action}` does not take {', '.join('--' + g.replace('_', '-') for g in sorted(given))}",
            expected="--usd and --chip-hours to set, --unit to remove",
        )
