"""`chipledger digest`: the last week of the fleet, and whether it is told to a webhook."""

import argparse
from typing import Any

from app.cli.commands.base import JSON, print_json, printable
from app.fleet.options import ZONE
from app.options import add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import SWITCH, Option

NAME = "digest"
HELP = "the last week of the fleet: what changed, the largest loss, budgets near their end; by webhook if wanted"
API = "/api/digest"
ON = Option(
    "on", SWITCH, False, "from now on a server posts it every week, to the webhook of `chipledger alerts`", local=True
)
OFF = Option("off", SWITCH, False, "no longer", local=True)
SEND = Option("send", SWITCH, False, "post it now, unless this week's was posted already", local=True)
OPTIONS = (ON, OFF, SEND, ZONE, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.fleet import digest
    from app.fleet.asking import zone_named

    given, place = values(args, OPTIONS), workspace(args.store)
    kept = digest.book(place)
    if given[ON.name] and given[OFF.name]:
        raise QuestionError("--on and --off", expected="one of both")
    name = (args.zone or kept.zone() or ZONE.default) if not given[ON.name] else given[ZONE.name]
    zone = zone_named(name)
    if given[ON.name] or given[OFF.name]:
        kept.want(str(zone) if given[ON.name] else None)
    sent = digest.tell(place, zone) if given[SEND.name] else ""
    told = digest.of_last_week(place, zone, "now")
    if given[JSON.name]:
        print_json({**told.to_dict(), "weekly": _weekly(kept), "sent": sent or None})
        return
    for text in told.sentences:
        print(printable(text))
    print(printable(sent or _state(kept)))


def _weekly(kept: Any) -> dict[str, Any]:
    last = kept.last()
    return {"on": kept.zone() is not None, "zone": kept.zone(), "last": None if last is None else vars(last)}


def _state(kept: Any) -> str:
    zone, last = kept.zone(), kept.last()
    if zone is None:
        return "It is not sent by itself: `chipledger digest --on` has a server post it every week."
    problem = "" if last is None or last.problem is None else f" The last one was not delivered: {last.problem}"
    return f"A server posts it every week ({zone}).{problem}"
