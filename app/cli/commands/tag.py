"""`chipledger tag RUN key=value ...`: tags by which runs are found again."""

import argparse

from app.cli.commands.base import JSON, RUN, pairs, print_json, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import Option

NAME = "tag"
HELP = "set tags of a run, or take them away; without any, list them"
API = "PATCH /api/runs/RUN"
TAGS = Option("tag", str, (), "a tag to set", local=True, several=True, form="KEY=VALUE")
ARGUMENTS = (RUN, TAGS)
REMOVE = Option("remove", str, (), "a tag to take away that people set", local=True, several=True, form="KEY")
OPTIONS = (REMOVE, JSON)
MAY_LACK = (TAGS,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import tag_many
    from app.summary import tags_of

    given, place = values(args, OPTIONS), workspace(args.store)
    changes: dict[str, str | None] = {**pairs(args.tag, "tag")}
    for key in given[REMOVE.name]:
        if key in changes:
            raise QuestionError(f"tag {key[:80]!r} is set and taken away", expected="one of both")
        changes[key] = None
    if changes:
        tag_many(place, [args.run], changes)
    found = place.store.find(args.run)
    tags = tags_of(found, place.registry.extras(found.run_id))
    if given[JSON.name]:
        print_json({"run_id": found.run_id, "tags": tags})
    else:
        print(printable(" ".join(f"{k}={v}" for k, v in tags.items())) or "No tags.")
