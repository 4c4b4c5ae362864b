"""`chipledger demo`: load the bundled reference runs and open the dashboard."""

import argparse
from pathlib import Path

from app.cli.commands import serve
from app.cli.commands.open import NO_BROWSER, desktop
from app.options import add_flags
from app.workspace import workspace

NAME = "demo"
HELP = "load the bundled reference runs and open the dashboard"
OPTIONS = (*serve.OPTIONS, NO_BROWSER)
# what a person would pay is not known: a process stands for one chip, at about what a TPU v5e costs by the hour
ASSUMED_USD = {"reference-training": 1.2, "reference-pytorch": 1.2, "reference-serving": 1.2}
REFERENCE_RUNS = Path(__file__).parents[3] / "reference" / "runs"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve as serve_forever

    what = serve.asked(args)
    serve.prepare(args.store, what.upload_limit_bytes)
    serve.allow(what)
    for line in load(args.store):
        print(line, flush=True)
    opened = not args.no_browser and desktop()
    serve_forever(what.host, what.port, open_browser=opened, rate_limits=what.rate_limits, work=what.work)


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
        if place.demo.add(done.run_id) and not done.existed and name in ASSUMED_USD:
            place.registry.price(done.run_id, ASSUMED_USD[name])
            place.registry.tag(done.run_id, "price", "assumed")
        said.append(f"{'Already here' if done.existed else 'Loaded'}: {name} ({done.run_id[:12]})")
    return said or ["No reference run is bundled here; add runs of your own."]


def reference_runs() -> list[Path]:
    """Folders of bundled runs, those that hold files. The library, newest first, begins with the last of them."""
    if not REFERENCE_RUNS.is_dir():
        return []
    return sorted(p for p in REFERENCE_RUNS.iterdir() if p.is_dir() and any(f.is_file() for f in p.rglob("*")))
