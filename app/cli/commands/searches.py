"""`chipledger searches`: searches that are kept under a name, for all who use the store."""

import argparse
from dataclasses import replace

from app.cli.commands.base import JSON, print_json, print_table, printable, user
from app.cli.commands.runs import COLUMNS
from app.listing_options import QUERY, SORT
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import SWITCH, Option

NAME = "searches"
HELP = "list the searches that are kept; `chipledger runs --saved NAME` asks one"
API = "/api/searches"
SEARCH = Option("name", str, None, "name of a search to keep or to delete", local=True, form="NAME")
ARGUMENTS = (SEARCH,)
KEPT = replace(QUERY, name="query", default=None, help="keep this search under the name", local=True)
DELETE = Option("delete", SWITCH, False, "delete the search", local=True)
OPTIONS = (KEPT, replace(COLUMNS, help="columns it shows"), replace(SORT, default=None, local=True), DELETE, JSON)
MAY_LACK = ARGUMENTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library import changes

    given, place = values(args, OPTIONS), workspace(args.store)
    query, columns = given[KEPT.name], [c.strip() for text in given[COLUMNS.name] for c in text.split(",") if c.strip()]
    if (query is not None or given[DELETE.name]) and args.name is None:
        raise QuestionError("nothing says under which name", expected="chipledger searches NAME --query QUERY")
    if query is not None and given[DELETE.name]:
        raise QuestionError("a search is kept and deleted", expected="one of both")
    if query is None and (given[SORT.name] or columns):
        flag = SORT.flag if given[SORT.name] else COLUMNS.flag
        raise QuestionError(f"{flag} without a search to keep", expected=f"{KEPT.flag} QUERY beside it")
    if given[DELETE.name]:
        changes.delete_search(place, args.name)
    elif query is not None:
        changes.save_search(place, args.name, query, columns=columns, sort=given[SORT.name] or "", who=user())
    kept = (
        changes.searches(place)
        if args.name is None or query is not None or given[DELETE.name]
        else [changes.search_of(place, args.name)]
    )
    if given[JSON.name]:
        print_json({"searches": [search.to_dict() for search in kept]})
    elif not kept:
        print("No searches are kept. Keep one with `chipledger searches NAME --query QUERY`.")
    else:
        rows = ((s.name, s.query, ",".join(s.columns), s.sort, s.who) for s in kept)
        print_table(("name", "query", "columns", "sort", "by"), rows)
    if not given[JSON.name] and given[DELETE.name]:
        print(printable(f"{args.name} is no longer kept"))
