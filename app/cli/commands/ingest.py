"""`chipledger ingest`: files in, one run out."""

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import ingest_options
from app.cli.commands.base import JSON, pairs, print_json, printable
from app.ingest_options import AUDIENCE, CLUSTER, GROUP, PATHS, PATHS_FROM, PRIORITY, TAG, WITHIN
from app.options import add_arguments, add_flags, from_args, values
from app.serve.upload_runs import in_use, note_run
from app.workspace import Workspace, workspace
from errors import ChipledgerError, InputError
from errors import format as fmt
from runs.begun_digests import begin
from runs.registry import sha256

if TYPE_CHECKING:
    from app.follow.alerts.evaluate import Outcome
    from collectors.ingest import Ingested
    from collectors.ingesting.told import FileTold
    from runs.spread.engine import Engine

NAME = "ingest"
HELP = "read profiles, logs and metrics into one run"
API = "POST /api/ingest"
ARGUMENTS = (PATHS,)
OPTIONS = (
    *ingest_options.OPTIONS,
    PATHS_FROM,
    WITHIN,
    CLUSTER,
    PRIORITY,
    replace(JSON, help="print run_id, tables, files and warnings as JSON"),
)
PROGRESS_VARIABLE = "CHIPLEDGER_PROGRESS_JSON"  # set by the server: progress as JSON lines on stderr
EVERY_SECONDS = 0.2  # progress is told no more often
MAY_LACK = (PATHS,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from runs.absent import arrow_alone

    if not args.within:  # else it is not known yet whether it may be read
        begin(map(Path, args.paths))
    arrow_alone()
    from app.fetching.given import given
    from app.sharing import audience
    from collectors.ingest import ingest

    said = from_args(args, ingest_options.OPTIONS)
    whose = {option.name: said.pop(option.name, None) for option in AUDIENCE}
    tags = pairs(said.pop(TAG.name, ()), "tag")
    place = workspace(args.store)
    readers, engine = audience(place, whose), _engine(**values(args, (CLUSTER, PRIORITY)))
    stop = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())  # the server's way to cancel: what was begun is removed
    tell = tell_file if os.environ.get(PROGRESS_VARIABLE) else None
    texts = (*args.paths, *_listed(args.paths_from))
    asked = given(texts, args.within, place, teller(), tell, stop.is_set, there=engine is not None)
    paths = list(asked.paths)
    named: dict[str, Any] = {"name": asked.name} | said if asked.name else dict(said)
    with in_use(paths, place.store.uploads_folder):
        done = ingest(
            paths,
            place.store,
            tags=tags,
            progress=teller(),
            cancel=stop.is_set,
            tell=tell,
            audience=readers,
            engine=engine,
            far=asked.far,
            **named,
        )
        warnings = [*done.warnings, *seen_by_more(place, done, whose), *_remembered(paths, place, done.run_id)]
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    alerts = alerts_of(place, done.run_id)
    if args.json:
        print_json(
            {
                "run_id": done.run_id,
                "existed": done.existed,
                "tables": dict(done.tables),
                "files": [file.to_dict() for file in done.files],
                "warnings": warnings,
                "alerts": alerts.to_dict(),
            }
        )
        return
    print(told(done, place))
    for table, rows in done.tables.items():
        print(f"  {table}: {rows:,} rows")
    for warning in warnings:
        print(f"  warning: {printable(warning)}")
    for rule in alerts.open:
        print(f"  alert: {rule} is open; `chipledger alerts` says why")
    for problem in alerts.problems:
        print(f"  warning: {printable(problem)}")


def _engine(cluster: str | None, priority: int) -> "Engine | None":
    """Whose workers read the files; None: this process. Raises InputError where they cannot be had."""
    from runs.spread.choosing import configured, engine_of

    cluster = cluster or configured()
    return engine_of(cluster, priority) if cluster else None


def seen_by_more(place: Workspace, done: "Ingested", whose: Mapping[str, Any]) -> list[str]:
    """What is not as was said of who sees the run: one that is stored already stays as it is."""
    if not (done.existed and whose[GROUP.name]) or place.shares.of(done.run_id):
        return []
    return [
        f"this input is stored already, and all who are signed in see it; `chipledger share {done.run_id[:12]} "
        "--group GROUP` changes that"
    ]


def _listed(file: str | None) -> list[str]:
    """The paths that a file names. Raises InputError where it cannot be read."""
    if file is None:
        return []
    try:
        return [line for line in Path(file).read_text("utf-8", "surrogateescape").split("\n") if line]
    except OSError as e:
        raise InputError(f"cannot be read ({e.strerror})", where=file, expected="paths, one a line") from e


def told(done: "Ingested", place: Workspace) -> str:
    """What became of the input, in a line."""
    if done.existed:
        manifest = place.store.find(done.run_id).manifest
        how = "Back from the bin" if done.restored else "Already stored"
        return f"{how}: run {done.run_id} ({printable(manifest.name)}, {fmt.date(manifest.created_ns)})"
    return f"{'Read anew' if done.replaced else 'Stored'}: run {done.run_id}"


def alerts_of(place: Workspace, run_id: str) -> "Outcome":
    """What the rules say of the run. That they could not be asked does not undo the run, and is told."""
    from app.follow.alerts.evaluate import Outcome, evaluate

    try:
        return evaluate(place, place.store.find(run_id))
    except ChipledgerError as e:
        return Outcome((), 0, (f"the run is stored; its alerts could not be looked at: {e}",))


def _remembered(paths: Sequence[Path], place: Workspace, run_id: str) -> list[str]:
    """Where the inputs lie is noted; a registry that cannot take it does not undo the run, and is told."""
    try:
        remember(paths, place, run_id)
    except ChipledgerError as e:
        return [f"the run is stored; where its inputs lie could not be noted: {e}"]
    return []


def remember(paths: Sequence[Path], place: Workspace, run_id: str) -> None:
    """Note where the run's inputs lie, for tools that read them anew: a run keeps tables, not its inputs. An upload
    among them is kept as long as the run is.

    A file inside an archive lies nowhere. What cannot be looked at is left out: the run is stored either way.
    """
    found = []
    folders = [path for path in paths if path.is_dir()]
    loose: dict[str, list[Path]] = {}  # the other paths by the ends of their names
    for path in {*paths} - {*folders}:
        loose.setdefault(path.name, []).append(path)
    for source in place.store.find(run_id).manifest.sources:
        name, digest, size = str(source["name"]), str(source["sha256"]), int(source["bytes"])
        names = (name, name.partition("/")[2])  # of equal names below several paths, later ones have a number in front
        files = {path / n for path in folders for n in names if n} | {*loose.get(name.rpartition("/")[2], ())}
        fitting = [f.absolute() for f in files if _bytes(f) == size and name.endswith(f.name)]
        if len(fitting) > 1:
            fitting = [f for f in fitting if sha256(f) == digest]
        found += [(digest, f, size) for f in fitting[:1]]
    note_run(paths, place.store.uploads_folder, run_id)
    place.registry.remember_files(found)


def _bytes(path: Path) -> int | None:
    """The size of a regular file; None for anything else."""
    with contextlib.suppress(OSError, ValueError):
        return path.stat().st_size if path.is_file() else None
    return None


def tell_file(file: "FileTold") -> None:
    """What is new of a file, for the server."""
    print(json.dumps({"file": file.to_dict()}), file=sys.stderr, flush=True)


def teller() -> Callable[[int, int, str], None]:
    """Progress for whoever listens: JSON lines for the server, one line that is rewritten for a terminal."""
    last = 0.0

    def tell(done_bytes: int, total_bytes: int, what: str) -> None:
        nonlocal last
        now, whole = time.monotonic(), done_bytes >= total_bytes
        if not whole and now - last < EVERY_SECONDS:
            return
        last = now
        part = min(done_bytes / total_bytes, 1.0) if total_bytes else 1.0
        if os.environ.get(PROGRESS_VARIABLE):
            print(json.dumps({"progress": part, "doing": what}), file=sys.stderr, flush=True)
        elif sys.stderr.isatty():
            print(f"\r\x1b[K{part:4.0%} {printable(what)[:60]}", end="", file=sys.stderr, flush=True)

    return tell
