"""The help of the whole command line: first steps, and the commands by purpose.

Each command says in a line what it is for. To read those lines all would be imported: they are kept as words are.
"""

from collections.abc import Mapping

from app.cli.columns import columns
from app.cli.commands import PURPOSES
from app.cli.commands.base import CACHE, STORE
from app.cli.kept_words import kept_or_made
from app.cli.version import VERSION, version_line

FIRST = (
    ("chipledger demo", "open the dashboard on runs that are bundled here"),
    ("chipledger ingest FILES", "add what your job wrote: profiles, logs, results of load tests"),
    ("chipledger findings RUN", "what is wrong with a run, what that costs and what to do"),
)


def helps() -> dict[str, str]:
    """What each command is for, by its name, in the order in which they are listed."""

    def told() -> dict[str, dict[str, str]]:
        from app.cli.commands import COMMANDS

        return {"helps": {module.NAME: module.HELP for module in COMMANDS}}

    return kept_or_made("helps", told)["helps"]


def help_of_all(helps: Mapping[str, str]) -> str:
    sorted_in = {name for names in PURPOSES.values() for name in names.split()}
    groups = {purpose: [n for n in names.split() if n in helps] for purpose, names in PURPOSES.items()}
    groups["More"] = [name for name in helps if name not in sorted_in]
    parts = [f"{version_line()}: every chip-second accounted for.", columns("First steps", FIRST)]
    parts += [columns(title, [(n, helps[n]) for n in names]) for title, names in groups.items() if names]
    flags = [
        ("--store STORE", STORE.help),
        ("--cache FOLDER", CACHE.help),
        (VERSION.flag, VERSION.help),
        ("COMMAND --help", "what a command takes; the store may be named before it or after it"),
    ]
    return "\n\n".join([*parts, columns("With every command", flags)]) + "\n"
