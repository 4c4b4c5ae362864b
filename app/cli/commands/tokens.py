"""`chipledger tokens`: what programs ask a server with that knows who asks."""

import argparse
from typing import Any

from app.cli.commands.base import JSON, print_json, print_table, printable, user
from app.options import add_arguments, add_flags, by_place, values
from app.workspace import Workspace, workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import Number
from errors.options import SWITCH, Option

NAME = "tokens"
HELP = "make, list and revoke the tokens that programs ask this store's server with"
API = "/api/tokens"
LIST, CREATE, REVOKE = ACTS = ("list", "create", "revoke")
ROLES = ("viewer", "uploader", "admin")
DAYS, MOST_DAYS = 90, 3650
ACT = Option("act", ACTS, LIST, "create a token, which is shown this once; revoke one; or list all", local=True)
TOKEN = Option(
    "name", str, None, "what it is called, such as ci; to revoke: its name or its id", local=True, form="NAME"
)
ROLE = Option("role", ROLES, ROLES[0], "what it may: read, add runs too, or all", local=True)
EXPIRES = Option(
    "expires_days", Number(0, MOST_DAYS, above=True), DAYS, "until it expires", unit="days", local=True, form="DAYS"
)
NEVER = Option("no_expiry", SWITCH, False, "it does not expire", local=True)
GROUP = Option("group", str, (), "a group that it is in", several=True, local=True, form="GROUP")
ARGUMENTS = MAY_LACK = (ACT, TOKEN)
OPTIONS = (ROLE, EXPIRES, NEVER, GROUP, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    told, given, place = by_place(args, ARGUMENTS), values(args, OPTIONS), workspace(args.store)
    act, name = told[ACT.name], told[TOKEN.name]
    if (name is None) != (act == LIST):
        takes = "" if act == LIST else " NAME"
        raise QuestionError(
            f"`tokens {act}` is given {'nothing' if name is None else 'a name'}",
            expected=f"chipledger tokens {act}{takes}",
        )
    if act == LIST:
        _list(place, given[JSON.name])
    elif act == CREATE:
        _create(place, name, given)
    else:
        _revoke(place, name, given[JSON.name])


def _create(place: Workspace, name: str, given: dict[str, Any]) -> None:
    from app.identity import tokens
    from app.identity.base import Role

    days = None if given[NEVER.name] else given[EXPIRES.name]
    role = Role[given[ROLE.name].upper()]
    token, text = tokens.create(place, name, role, days=days, groups=given[GROUP.name], by=user())
    _note(place, "create a token", f"{token.name} ({token.token_id}), {token.role}")
    if given[JSON.name]:
        print_json({**token.to_dict(), "token": text})
        return
    until = "does not expire" if token.ends_ns is None else f"holds until {fmt.date(token.ends_ns)}"
    print(text)
    print(printable(f"{token.name} ({token.token_id}), {token.role}, {until}. It is shown this once."))


def _revoke(place: Workspace, name: str, as_json: bool) -> None:
    from app.identity import tokens

    token = tokens.revoke(place, name)
    _note(place, "revoke a token", f"{token.name} ({token.token_id})")
    if as_json:
        print_json(token.to_dict())
    else:
        print(printable(f"{token.name} ({token.token_id}) is revoked; servers that run see it within seconds."))


def _list(place: Workspace, as_json: bool) -> None:
    from app.identity import tokens

    kept = [token.to_dict() for token in tokens.listed(place)]
    if as_json:
        print_json({"tokens": kept})
    elif not kept:
        print("No tokens. Make one with `chipledger tokens create NAME`.")
    else:
        print_table(("id", "name", "role", "groups", "by", "made", "until", "last used", "it is"), map(_row, kept))


def _row(token: dict[str, Any]) -> tuple[str, ...]:
    made, until, used = (
        "" if token[key] is None else fmt.date(token[key]) for key in ("made_ns", "ends_ns", "used_ns")
    )
    groups = ", ".join(token["groups"])
    return token["token_id"], token["name"], token["role"], groups, token["made_by"], made, until, used, token["state"]


def _note(place: Workspace, what: str, about: str) -> None:
    """Tell the audit log, under the name by which this machine calls who asks."""
    from app.identity.base import Identity, Role
    from app.identity.noting import Noting

    Noting(place).note(
        Identity(name=user(), role=Role.ADMIN, how="server"), what, about, "done", address="command line"
    )
