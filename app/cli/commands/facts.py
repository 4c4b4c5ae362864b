"""`chipledger facts RUN`: what is known of a run as a whole, what is missing, and saying what no file could."""

import argparse
import getpass
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, model_config, print_json, print_table, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import InputError
from errors import format as fmt
from errors.options import Option

if TYPE_CHECKING:
    from app.facts.told import FactsTold

NAME = "facts"
HELP = "list what is known of a run and what is missing, and say what no file could: `facts RUN chip=v5p chips=256`"
API = "/api/runs/RUN/facts"
SAY = Option(
    "say",
    str,
    (),
    "a fact to say, such as chip=v5p, chips=256 or model=config.json; with nothing after = it is taken back",
    local=True,
    several=True,
    form="NAME=VALUE",
)
ARGUMENTS = (Option("run", str, None, "id, beginning of an id, or name of a run", of_run=True, local=True), SAY)
WHO = Option("who", str, None, "who says it (default: $USER)", local=True, form="NAME")
OPTIONS = (WHO, JSON)
SHOWN = 72  # characters of a value in a table
HISTORY = 10  # declarations that are listed
MAY_LACK = (SAY,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.facts.told import declare, facts_told

    options, place = values(args, OPTIONS), workspace(args.store)
    run, said = place.store.find(args.run), pairs(args.say)
    if said:
        run = declare(run, said, user() if options["who"] is None else options["who"], place)
    told = facts_told(run, place)
    if options["json"]:
        print_json(told.to_dict())
        return
    show(told)


def user() -> str:
    """Who runs the command; empty where nothing tells."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def pairs(given: list[str]) -> dict[str, Any]:
    """`["chip=v5p"]` as values by name; a model may be a file. Raises InputError for one without =, or said twice."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{text[:SHOWN]!r} is no fact", expected="name=value, such as chip=v5p")
        if name.strip() in found:
            raise InputError(f"{name.strip()[:SHOWN]!r} is said twice", expected="once")
        is_file = name.strip() == "model" and value.endswith(".json") and Path(value).is_file()
        found[name.strip()] = model_config(Path(value), value) if is_file else value
    return found


def show(told: "FactsTold") -> None:
    from app.facts.kinds import written

    rows = [(k.name, _cut(written(k.fact.value)), k.unit, k.fact.basis, _cut(k.source)) for k in told.known]
    print_table(("fact", "value", "unit", "basis", "source"), rows)
    for one in told.contradictions:
        print(f"\nContradiction: {printable(one.sentence)}")
    opening = [m for m in told.missing if m.opens]
    if opening:
        print("\nMissing, and what each would open:")
    for one in opening:
        print(f"  {one.fact.name}: {', '.join(one.opens)}")
        for guess in one.guesses:
            value, sure = written(guess.value), "" if guess.certain else "perhaps "
            print(f"    {sure}{printable(value)}: {printable(guess.reason)}")
    if opening:
        first = opening[0].fact
        print(f"Say one with `chipledger facts RUN {first.name}={first.example}`.")
    if others := [m.fact.name for m in told.missing if not m.opens]:
        print(f"\nMay be said too: {', '.join(others)}.")
    if told.history:
        print("\nSaid so far, the newest first:")
    for said in told.history[:HISTORY]:
        what = f"{said.key} taken back" if said.value is None else f"{said.key}={_cut(written(said.value))}"
        print(f"  {fmt.date(said.written_ns)}  {printable(what)}{f'  by {printable(said.who)}' if said.who else ''}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
