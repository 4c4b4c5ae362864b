"""What the command line takes, made of the commands' records; and what was probably meant by a word that is none."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from app.cli.commands import NAMES, command
from app.cli.commands.base import CACHE, STORE
from app.cli.every_command import help_of_all, helps
from app.cli.version import VERSION, version_line
from app.listing_options import QUERY
from app.options import add_flags, add_telling
from errors import QuestionError
from errors.nearest import did_you_mean

_HELP = ("-h", "--help")
_NEGATED = re.compile(r"-\w+[:<>=]")  # a term of a search that shall not hold, `-is:archived`; flags have two dashes
_NEGATED_WORD = re.compile(r"-[^\W\d]\w")  # `-llama`
About = Callable[[Sequence[str]], str]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error here.

    about   what else its help says, by the words that were given with it; told last
    searches   whether its words are a search, in which one may be negated
    """

    about: About | None = None
    searches: bool = False

    def error(self, message: str) -> NoReturn:
        raise QuestionError(" ".join(message.split()).rstrip("."), advice=self._see())

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - its overloads differ in what comes back
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        words = self._joined(list(args or ()))
        if self.about is not None and any(word in _HELP for word in words):
            print(self.format_help() if (told := self.about(_plain(words))) == "" else told, end="")
            self.exit(0)
        found, rest = super().parse_known_args(self._places_last(words), namespace)
        if more := [str(word) for word in rest if word != "--"]:
            self._refuse(more[0])
        return found, rest

    def _joined(self, words: list[str]) -> list[str]:
        """`--sort -cost` as `--sort=-cost`: argparse takes whatever begins with a dash for a flag."""
        joined: list[str] = []
        for at, word in enumerate(words):
            before = self._option_string_actions.get(words[at - 1]) if at else None
            value = re.match(r"-[^-]", word) and word not in self._option_string_actions
            if value and before is not None and before.nargs is None and joined[-1] == words[at - 1]:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined

    def _places_last(self, words: list[str]) -> list[str]:
        """Flags first, then what a command is about: argparse takes a place that may lack for lacking where a flag
        stands before it."""
        if self._subparsers is not None:
            return words
        end = words.index("--") if "--" in words else len(words)
        flags: list[str] = []
        plain: list[str] = []
        taking = False
        for word in words[:end]:
            flag = not self._negated(word) and self._parse_optional(word) is not None
            (flags if flag or taking else plain).append(word)
            action = self._option_string_actions.get(word) if flag else None
            taking = action is not None and action.nargs != 0
        plain += words[end + 1 :]
        return [*flags, "--", *plain] if plain else flags

    def _negated(self, word: str) -> bool:
        """Whether it is a term of a search, and no letter with its value."""
        letter = self._option_string_actions.get(word[:2])
        if self.searches and _NEGATED_WORD.match(word) and f"-{word}" not in self._option_string_actions:
            return True
        return _NEGATED.match(word) is not None and (letter is None or letter.nargs == 0)

    def _refuse(self, word: str) -> NoReturn:
        """It takes no such word."""
        if not word.startswith("-") or self._negated(word):
            raise QuestionError(f"{word[:80]!r} is one word too many", advice=self._see())
        flag = word.partition("=")[0]
        known = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        near = did_you_mean(flag, known)
        raise QuestionError(f"no option {flag[:80]} here", advice=f"{near} {self._see()}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        what, known = action.dest.replace("whatif", "what-if"), [str(c) for c in action.choices]
        advice = f"{did_you_mean(str(value), known)} {self._see()}"
        raise QuestionError(f"no {what} {str(value)[:80]!r}", expected=f"one of {', '.join(known)}", advice=advice)

    def _see(self) -> str:
        return f"See `{self.prog} --help`."


class Top(Parser):
    """The whole command line: its help leads whoever meets it."""

    def format_help(self) -> str:
        return help_of_all(helps())


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Of all commands, or where `words` begin with one, of that alone: the others are not imported for it."""
    top = Top(prog="chipledger", allow_abbrev=False)
    add_flags(top, (STORE, CACHE))
    add_telling(top, VERSION, version_line)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name in _begun_with(words):
        module = command(name)
        made = commands.add_parser(
            module.NAME, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.", allow_abbrev=False
        )
        # SUPPRESS: without it the command's default would overwrite a --store that stands before the command
        add_flags(made, (STORE, CACHE), absent=argparse.SUPPRESS)
        module.arguments(made)
        made.about = getattr(module, "about", None)
        made.searches = any(argument.name == QUERY.name for argument in getattr(module, "ARGUMENTS", ()))
        made.set_defaults(run_command=module.run)
    return top


def _begun_with(words: Sequence[str]) -> Sequence[str]:
    """The names of the commands that these words may lead to."""
    flag = f"--{STORE.name}"
    rest = words[2:] if words[:1] == [flag] else words[1:] if "".join(words[:1]).startswith(f"{flag}=") else words
    return rest[:1] if rest and rest[0] in NAMES else NAMES


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are no flags."""
    return [word for word in words if not word.startswith("-")]
