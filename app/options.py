"""Options as they are given: flags of the command line, and parameters of an address, both from the same `Option`s."""

import argparse
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from errors.numbers import Number
from errors.options import Option, once_each
from errors.times import Duration, Moment

AGAIN = "; may be given again"
Pairs = Mapping[str, str] | Iterable[tuple[str, str]]
_RECORDS: "WeakKeyDictionary[argparse.Action, Option]" = WeakKeyDictionary()


def add_flags(parser: "argparse._ActionsContainer", options: Iterable[Option], absent: str | None = None) -> None:
    """A flag for each option. Its text is checked by `from_args`, so that every way in is refused in the same words.

    `absent`: what stands for one that is not given, where that is not None.
    """
    for option in options:
        how: dict[str, Any] = {"nargs": "?", "const": option.bare} if option.bare is not None else {}
        if option.switch and option.default is None:  # it follows from what else is asked: both words can be said
            how = {"action": argparse.BooleanOptionalAction}
        elif option.switch:  # None where it is not given, as of every other option
            how = {"action": "store_const", "const": True}
        else:
            how["metavar"] = form_of(option)
        if option.several:
            how["action"] = "append"
        flags = (f"-{option.letter}", option.flag) if option.letter else (option.flag,)
        action = parser.add_argument(*flags, dest=option.name, default=absent, help=_help(option, AGAIN), **how)
        _RECORDS[action] = option


def add_arguments(parser: argparse.ArgumentParser, options: Iterable[Option], may_lack: Container[Option] = ()) -> None:
    """What a command is about, by its place: `ingest PATH`. `may_lack`: what need not be given."""
    for option in options:
        lacks = option in may_lack
        how: dict[str, Any] = {"nargs": "*" if lacks else "+"} if option.several else {"nargs": "?"} if lacks else {}
        how |= {"default": None} if lacks else {}  # else argparse says of a list that it is required
        _RECORDS[parser.add_argument(option.name, metavar=form_of(option), help=_help(option), **how)] = option


def add_telling(parser: argparse.ArgumentParser, option: Option, tell: Callable[[], str]) -> None:
    """A flag that prints a line and ends the command. The line is made when it is asked for."""

    class Tell(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *given: Any, **more: Any) -> None:
            print(tell())
            parser.exit()

    parser.add_argument(option.flag, dest=argparse.SUPPRESS, nargs=0, action=Tell, help=_help(option))


def record_of(action: argparse.Action) -> Option | None:
    """The option that a flag or a place of a parser was made of."""
    return _RECORDS.get(action)


def from_args(args: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """The values of what was given on the command line. Raises QuestionError for what cannot be."""
    told = [(o, getattr(args, o.name)) for o in options]
    return {o.name: o.parse(text, f"{o.flag} ") for o, text in told if text is not None}


def by_place(args: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """The values of what a command is about, `add_arguments`' options. Raises QuestionError for what cannot be."""
    told = [(o, getattr(args, o.name)) for o in options]
    return {o.name: o.parse(text, f"{o.name} ") for o, text in told}


def values(args: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """Every option's value: what was given, else its default. Raises QuestionError for what cannot be."""
    options = tuple(options)
    return {o.name: o.default for o in options} | from_args(args, options)


def from_query(query: Pairs, options: Iterable[Option], flags: bool = True) -> dict[str, Any]:
    """The values from `save_s=60&mttf_s=10800`, as pairs or by name; empty ones count as not given, and names may be
    written with dashes. Options that are `local` do not exist here. `flags`: a refusal names them as the command line
    does, else as an address does.

    Raises QuestionError for one that is unknown, cannot be, or stands there twice where once is meant.
    """
    known = {o.name: o for o in options if not o.local}
    pairs = [(k.replace("-", "_"), v) for k, v in (query.items() if isinstance(query, Mapping) else query)]
    once_each(pairs, known, {n for n, o in known.items() if o.several})
    given: dict[str, Any] = {}
    for name, text in pairs:
        if text != "" and known[name].several:
            given.setdefault(name, []).append(text)
        elif text != "":
            given[name] = text
    return {n: known[n].parse(text, f"{known[n].flag} " if flags else f"{n}=") for n, text in given.items()}


def form_of(option: Option) -> str:
    """What stands for the value in the help: `NUMBER`, `yes|no`."""
    if option.form:
        return option.form
    if isinstance(option.kind, tuple):
        return "|".join(option.kind)
    if isinstance(option.kind, Number):
        return "N" if option.kind.whole else "SECONDS" if option.unit == "s" else "NUMBER"
    if isinstance(option.kind, Duration | Moment):
        return "TIME"
    return "RUN" if option.of_run else "TEXT"


def _help(option: Option, again: str = "") -> str:
    """`again`: what is said of one that may be given again."""
    alone = "" if option.bare is None else f"; alone: {option.bare}"
    fixed = "" if option.switch or option.default in (None, (), "") else f" (default: {option.default})"
    return f"{option.help}{again if option.several else ''}{alone}{fixed}".replace("%", "%%")
