"""`chipledger demo`: load the bundled reference runs and open the dashboard."""

import argparse
import os
import sys
from pathlib import Path

from app.cli.commands import serve
from app.options import add_flags
from app.workspace import workspace
from errors.options import SWITCH, Option

NAME = "demo"
HELP = "load the bundled reference runs and open the dashboard"
NO_BROWSER = Option("no_browser", SWITCH, False, "only print the address", local=True)
OPTIONS = (*serve.OPTIONS, NO_BROWSER)
REFERENCE_RUNS = Path(__file__).parents[3] / "reference" / "runs"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve as serve_forever

    what = serve.asked(args)
    serve.prepare(args.store, what.upload_limit_bytes)
    for line in load(args.store):
        print(line, flush=True)
    serve_forever(what.host, what.port, open_browser=not args.no_browser and _desktop())


def load(store: str | None) -> list[str]:
    """Ingest every reference run that the store lacks; one line about each."""
    from app.cli.commands.ingest import remember
    from collectors.ingest import ingest

    place = workspace(store)
    said = []
    for folder in reference_runs():
        done = ingest([folder], place.store)
        remember([folder], place, done.run_id)
        name = place.store.find(done.run_id).manifest.name
        said.append(f"{'Already here' if done.existed else 'Loaded'}: {name} ({done.run_id[:12]})")
    return said or ["No reference run is bundled here; add runs of your own."]


def reference_runs() -> list[Path]:
    """Folders of bundled runs, those that hold files. The library, newest first, begins with the last of them."""
    if not REFERENCE_RUNS.is_dir():
        return []
    return sorted(p for p in REFERENCE_RUNS.iterdir() if p.is_dir() and any(f.is_file() for f in p.rglob("*")))


def _desktop() -> bool:
    """Whether a browser opened now would be seen by the person who started this."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
