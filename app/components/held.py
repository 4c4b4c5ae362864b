"""Buttons that change something are shown to everybody, and pressed by those who may."""

from typing import TypedDict

from app.identity.base import Role
from app.identity.may import HELP, may


class Held(TypedDict):
    """What a button is given."""

    disabled: bool
    help: str | None


def held(help: str | None = None, least: Role = Role.UPLOADER) -> Held:
    """For a button that needs this role: `help` stands beside it, and why it cannot be pressed where it cannot."""
    return {"disabled": False, "help": help} if may(least) else {"disabled": True, "help": HELP}
