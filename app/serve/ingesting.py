"""A request to ingest an upload: fields as `chipledger ingest` has options, so that neither takes what the other does
not. Anything else is refused: a chip that is dropped silently makes another ledger."""

import argparse
from collections.abc import Mapping
from typing import Any

from app.cli.commands import ingest
from collectors.own import sidecar
from errors import InputError

UPLOAD, TAGS = "upload_id", "tags"
_ELSEWHERE = {"help", "paths", "json", "tag", "store"}  # the upload, the answer, `tags`, and the server's own store
_WHERE = "request"


def fields() -> dict[str, argparse.Action]:
    """Options of the command that a request may give, by name."""
    parser = argparse.ArgumentParser(add_help=False)
    ingest.arguments(parser)
    return {a.dest: a for a in parser._actions if a.dest not in _ELSEWHERE}


def ingest_arguments(asked: Mapping[str, Any]) -> list[str]:
    """The options of the command from the fields of a request; null and "" count as not given. Raises InputError."""
    known = fields()
    allowed = (UPLOAD, TAGS, *known)
    for name in asked:
        if name not in allowed:
            raise InputError(f"no field {str(name)[:40]!r} here", expected=f"one of {', '.join(allowed)}")
    given = {name: asked[name] for name in known if asked.get(name) not in (None, "")}
    words = [_option(known[name], name, value) for name, value in given.items()]
    return [*filter(None, words), *(f"--tag={key}={value}" for key, value in _tags(asked.get(TAGS)).items())]


def line(value: Any, name: str) -> str:
    """One line of text, as it may stand on a command line. Raises InputError for anything else."""
    if not isinstance(value, str) or not value.isprintable():
        raise InputError(f"{name!r} is not understood", where=_WHERE, expected="a text of one line")
    return value.strip()


def _option(action: argparse.Action, name: str, value: Any) -> str:
    option = action.option_strings[0]
    if action.nargs == 0:  # a switch
        if not isinstance(value, bool):
            raise InputError(f"{name!r} is not understood", where=_WHERE, expected="true or false")
        return option if value else ""
    if action.type is not int:
        value = line(value, name)
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if name in sidecar.KEYS:
        sidecar.check(name, value, _WHERE)
    return f"{option}={value}"


def _tags(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InputError("tags is not understood", where=_WHERE, expected="an object of texts")
    tags: dict[str, str] = {}
    for key, value in given.items():
        name = line(key, TAGS)
        if name in tags:  # but for spaces around it
            raise InputError(f"tag {name[:40]!r} is given twice", where=_WHERE, expected="once")
        tags[name] = line(value, TAGS)
    sidecar.check(TAGS, tags, _WHERE)
    return tags
