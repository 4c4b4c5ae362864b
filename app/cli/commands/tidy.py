"""`chipledger tidy`: which runs go by age, number and size; with `--apply` they go into the bin."""

import argparse
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_flags, values
from app.workspace import workspace
from errors import format as fmt
from errors.numbers import Number
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.library.retention import Judged

NAME = "tidy"
HELP = "tell which runs go by age, number and size, and put them into the bin"
DAYS = Option("older_than_days", Number(0), None, "runs that were stored longer ago", unit="days", local=True)
PER_NAME = Option(
    "per_name", Number(1, whole=True), None, "all but the newest so many of each name", local=True, form="NUMBER"
)
PER_GROUP = Option(
    "per_group",
    Number(1, whole=True),
    None,
    "all but the newest so many of each group into which runs are sorted (`chipledger group`)",
    local=True,
    form="NUMBER",
)
MOST = Option(
    "most_bytes", Number(0, whole=True), None, "the oldest, until the library holds no more", unit="bytes", local=True
)
APPLY = Option("apply", SWITCH, False, "put them into the bin; else they are told alone", local=True)
RULES = (DAYS, PER_NAME, PER_GROUP, MOST)
OPTIONS = (*RULES, APPLY, JSON)
SHOWN = 20  # runs that are listed


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.retention import Plan, Policy, apply, bytes_of, plan

    given, place = values(args, OPTIONS), workspace(args.store)
    policy = Policy(**{o.name: given[o.name] for o in RULES})
    sweeps_alone = policy.empty and given[APPLY.name]
    planned = Plan([], [], sum(map(bytes_of, place.store.runs()))) if sweeps_alone else plan(place, policy)
    gone, problems = apply(place, planned) if given[APPLY.name] else ([], [])
    if given[APPLY.name]:
        place.store.sweep()
    if given[JSON.name]:
        done = {"gone": [j.run_id for j in gone], "problems": problems}
        print_json({**planned.to_dict(), "applied": given[APPLY.name], **done})
        return
    _print(planned.going, "go")
    _print(planned.kept, "stay")
    for problem in problems:
        print(printable(problem))
    size = fmt.size(sum(j.bytes for j in (gone if given[APPLY.name] else planned.going)))
    if given[APPLY.name]:
        print(f"{fmt.count(len(gone), 'run')} put into the bin for 30 days: {size}.")
    else:
        print(f"{fmt.count(len(planned.going), 'run')} would go into the bin: {size}. `--apply` puts them there.")
    if planned.over_bytes:
        print(f"The library stays {fmt.size(planned.over_bytes)} over: all else that is there is kept.")


def _print(judged: "list[Judged]", what: str) -> None:
    if not judged:
        return
    rows: list[Any] = [
        (j.run_id[:12], j.name[:40], fmt.date(j.created_ns), fmt.size(j.bytes), j.why, j.kept) for j in judged[:SHOWN]
    ]
    head = ("run", f"{len(judged):,} {what}", "stored", "size", "why", "stays because" if what == "stay" else "")
    print_table(head, rows, right=(3,))
    print()
