"""What the command line takes, made of the commands' records; and how it helps: first steps, commands by purpose, and
what was probably meant by a word that is none."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from app.cli.columns import columns
from app.cli.commands import COMMANDS, PURPOSES
from app.cli.commands.base import STORE
from app.cli.version import VERSION, version_line
from app.options import add_flags, add_telling
from errors import QuestionError
from errors.nearest import did_you_mean

FIRST = (
    ("chipledger demo", "open the dashboard on runs that are bundled here"),
    ("chipledger ingest FILES", "add what your job wrote: profiles, logs, results of load tests"),
    ("chipledger findings RUN", "what is wrong with a run, what that costs and what to do"),
)
_HELP = ("-h", "--help")
About = Callable[[Sequence[str]], str]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error here.

    about   what else its help says, by the words that were given with it; told last
    """

    about: About | None = None

    def error(self, message: str) -> NoReturn:
        raise QuestionError(" ".join(message.split()).rstrip("."), advice=self._see())

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - its overloads differ in what comes back
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        words = self._joined(list(args or ()))
        if self.about is not None and any(word in _HELP for word in words):
            print(self.format_help() if (told := self.about(_plain(words))) == "" else told, end="")
            self.exit(0)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self._refuse(str(rest[0]))
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

    def _refuse(self, word: str) -> NoReturn:
        """It takes no such word."""
        if not word.startswith("-"):
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
        helps = {module.NAME: module.HELP for module in COMMANDS}
        sorted_in = {name for names in PURPOSES.values() for name in names.split()}
        groups = {purpose: [n for n in names.split() if n in helps] for purpose, names in PURPOSES.items()}
        groups["More"] = [name for name in helps if name not in sorted_in]
        parts = [f"{version_line()}: every chip-second accounted for.", columns("First steps", FIRST)]
        parts += [columns(title, [(n, helps[n]) for n in names]) for title, names in groups.items() if names]
        flags = [
            ("--store STORE", STORE.help),
            (VERSION.flag, VERSION.help),
            ("COMMAND --help", "what a command takes; the store may be named before it or after it"),
        ]
        return "\n\n".join([*parts, columns("With every command", flags)]) + "\n"


def parser() -> argparse.ArgumentParser:
    top = Top(prog="chipledger", allow_abbrev=False)
    add_flags(top, (STORE,))
    add_telling(top, VERSION, version_line)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for module in COMMANDS:
        command = commands.add_parser(
            module.NAME, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.", allow_abbrev=False
        )
        # SUPPRESS: without it the command's default would overwrite a --store that stands before the command
        add_flags(command, (STORE,), absent=argparse.SUPPRESS)
        module.arguments(command)
        command.about = getattr(module, "about", None)
        command.set_defaults(run_command=module.run)
    return top


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are no flags."""
    return [word for word in words if not word.startswith("-")]
