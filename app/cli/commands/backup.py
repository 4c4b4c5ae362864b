"""`chipledger backup FOLDER`: a copy of the store, made while it is used, and a store made of one again."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_arguments, add_flags, values
from app.workspace import store_path, workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import COUNT
from errors.options import SWITCH, Option
from runs.objects.opening import NOTE, is_url

if TYPE_CHECKING:
    from runs.backup import Backup, Backups

NAME = "backup"
HELP = "copy the store to another disk while it is used, or make a store of such a copy again"
FOLDER = Option("folder", str, None, "where the backups lie, outside of the store", local=True)
ARGUMENTS = (FOLDER,)
KEEP = Option(
    "keep",
    COUNT,
    None,
    "remove all but so many of the newest, and the newest in which nothing was damaged, once it is made",
    local=True,
    form="NUMBER",
)
LISTED = Option("list", SWITCH, False, "list the backups in the folder, and make none", local=True)
VERIFY = Option(
    "verify", SWITCH, False, "read every byte of a backup and say what is damaged (exit code 3)", local=True
)
RESTORE = Option(
    "restore_to",
    str,
    None,
    "make a store of a backup in this folder, which is empty or not there",
    local=True,
    form="STORE",
)
OF = Option("of", str, "", "which backup is verified or restored (default: the newest)", local=True, form="NAME")
OPTIONS = (KEEP, LISTED, VERIFY, RESTORE, OF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from runs.backup import Backups

    given = values(args, OPTIONS)
    backups = Backups(_folder(args.folder))
    ways = [n for n in (LISTED.name, VERIFY.name, RESTORE.name) if given[n]]
    if len(ways) > 1:
        raise QuestionError(f"{' and '.join(map(_flag, ways))} are both given", expected="one of them")
    if given[KEEP.name] is not None and ways:
        raise QuestionError(f"--keep is given with {_flag(ways[0])}", expected="--keep where a backup is made")
    if given[OF.name] and ways not in ([VERIFY.name], [RESTORE.name]):
        raise QuestionError("--of is given, and no backup is read", expected="--verify or --restore-to beside it")
    if given[LISTED.name]:
        return _listed(backups, given[JSON.name])
    if given[VERIFY.name]:
        return _verified(backups, backups.find(given[OF.name]), given[JSON.name])
    if given[RESTORE.name]:
        return _restored(backups, backups.find(given[OF.name]), _folder(given[RESTORE.name]), given[JSON.name])
    return _made(args.store, backups, given[KEEP.name], given[JSON.name])


def _folder(text: str) -> Path:
    """Raises QuestionError for an address: a folder of that name would be taken for it."""
    if is_url(text):
        raise QuestionError(
            "an address, where backups are made in folders, and stores of them",
            where=text[:120],
            expected="a folder",
            advice="`chipledger mirror` copies runs into a bucket.",
        )
    return Path(text)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _made(store: str | None, backups: "Backups", keep: int | None, as_json: bool) -> int:
    place = workspace(store)
    made = backups.make(place.store, place.registry.at)
    gone = backups.remove_old(keep) if keep else []
    if as_json:
        print_json({"backup": made.to_dict(), "removed": gone})
    else:
        before = ", the rest as in the one before" if made.copied_bytes < made.bytes else ""
        print(f"{made.name}: {_told(made)}; {fmt.size(made.copied_bytes)} of it copied{before}.")
        for problem in made.damaged:
            print(printable(f"damaged in the store already: {problem}"))
        if gone:
            print(f"Removed: {', '.join(gone)}.")
        if keep and (spared := [b.name for b in backups.all()[:-keep]]):
            print(f"Kept as well: {', '.join(spared)}, the newest in which nothing was damaged.")
    return 3 if made.damaged else 0


def _told(backup: "Backup") -> str:
    runs = "no run, since they lie in a bucket" if NOTE in backup.files else fmt.count(backup.runs, "run")
    return f"{runs}, {fmt.count(len(backup.files), 'file')}, {fmt.size(backup.bytes)}"


def _listed(backups: "Backups", as_json: bool) -> int:
    found, damaged = backups.all(), backups.unreadable()
    if as_json:
        print_json({"backups": [b.to_dict() for b in found], "damaged": damaged})
    elif not found and not damaged:
        print("No backup here.")
    else:
        rows: list[Any] = [(b.name, f"{b.runs:,}", f"{len(b.files):,}", fmt.size(b.bytes)) for b in found]
        rows += [(name, "-", "-", "its list is damaged") for name in damaged]
        print_table(("backup", "runs", "files", "size"), rows, right=(1, 2, 3))
    return 0


def _verified(backups: "Backups", backup: "Backup", as_json: bool) -> int:
    problems = backups.verify(backup)
    if as_json:
        print_json({"backup": backup.to_dict(), "problems": problems})
    else:
        for problem in problems:
            print(printable(f"damaged: {problem}"))
        print(f"{backup.name}: {_told(backup)}, every byte read; {fmt.count(len(problems), 'file')} damaged.")
    return 3 if problems else 0


def _restored(backups: "Backups", backup: "Backup", target: Path, as_json: bool) -> int:
    backups.restore(backup, target)
    where = str(store_path(str(target)))
    if as_json:
        print_json({"backup": backup.to_dict(), "store": where})
    else:
        print(
            printable(f"{backup.name} is a store again: {_told(backup)}. `chipledger serve --store {where}` serves it.")
        )
    return 0
