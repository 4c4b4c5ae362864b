"""`chipledger report RUN` and `chipledger report A B`: what the pages tell, as one file to hand on."""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.cells import file_name
from app.cli.commands.base import JSON, print_json, printable
from app.comparing.options import LOADS
from app.options import add_arguments, add_flags, values
from app.reporting.files import check, keep
from app.reporting.formats import FORMATS, HTML, MARKDOWN, Format, asked_for, written
from app.workspace import Workspace, workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.reporting.document import Document
    from runs.run import Run

NAME = "report"
HELP = "write what the pages tell of a run, or of two beside each other, into one file to hand on"
API = "/api/runs/RUN/report"
PRINTED = "-"
RUN = Option("run", str, None, "id or name of a run, or the beginning of either", of_run=True, local=True)
OTHER = Option(
    "other",
    str,
    None,
    "a second run, which is held against the first; of two either may be baseline:NAME",
    of_run=True,
    local=True,
)
OUTPUT = Option(
    "output",
    str,
    None,
    "where to write it, also as -o: .html opens in any browser without a network, .md is text, .pdf is printed by a "
    "Chromium of this machine; - prints Markdown; default: the run's name with .html, in this folder",
    local=True,
    form="FILE",
    letter="o",
)
FORMAT = Option("format", tuple(f.name for f in FORMATS), None, "instead of what the file's ending says", local=True)
FORCE = Option("force", SWITCH, False, "write over a file that is there", local=True)
ARGUMENTS = (RUN, OTHER)
MAY_LACK = (OTHER,)
OPTIONS = (OUTPUT, FORMAT, FORCE, *LOADS, JSON)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS."""

    output: str | None = None
    format: str | None = None
    force: bool = False
    load_a: str | None = None
    load_b: str | None = None
    json: bool = False


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    asked = Asked(**values(args, OPTIONS))
    report(workspace(args.store), args.run, args.other, asked)


def report(place: Workspace, name: str, other: str | None, asked: Asked) -> None:
    """Write it. Raises QuestionError for what cannot be asked, InputError for a file that cannot be written."""
    if asked.output == PRINTED:
        if asked.json:
            raise QuestionError("a report is printed, and --json given", expected="one of both")
        document = made(place, name, other, asked)
        sys.stdout.buffer.write(written(document, asked_for("", asked.format or MARKDOWN.name)))
        return
    path, format = _target(place, name, other, asked)
    check(path, asked.force)
    data = written(made(place, name, other, asked), format)
    keep(path, data, asked.force)
    if asked.json:
        print_json({"file": str(path), "format": format.name, "bytes": len(data)})
    else:
        print(printable(f"{path}: {fmt.size(len(data))}"))


def made(place: Workspace, name: str, other: str | None, asked: Asked) -> "Document":
    from app.reporting.made import of_pair, of_run

    found = _runs(place, name, other)
    if len(found) == 2:
        return of_pair(found[0], found[1], place, asked.load_a, asked.load_b)
    if asked.load_a or asked.load_b:
        raise QuestionError("a load of one run alone", expected="two runs, of which loads are compared")
    return of_run(found[0], place)


def _target(place: Workspace, name: str, other: str | None, asked: Asked) -> tuple[Path, Format]:
    """The file and its format; where no file is named, the name of the run in this folder."""
    if asked.output:
        return Path(os.path.expanduser(asked.output)), asked_for(asked.output, asked.format)
    names = [run.manifest.name for run in _runs(place, name, other)]
    format = asked_for("", asked.format or HTML.name)
    return Path(f"{file_name(' and '.join(names))}{format.endings[0]}"), format


def _runs(place: Workspace, name: str, other: str | None) -> "list[Run]":
    """One as any command finds it; of two, either by a baseline too."""
    from app.baselines import find_run

    return [place.store.find(name)] if other is None else [find_run(place, one) for one in (name, other)]
