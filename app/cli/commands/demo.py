"""`chipledger demo`: load the bundled reference runs and open the dashboard."""

import argparse

from app.bundled_runs import load
from app.bundled_runs import reference_runs as reference_runs  # by this name, too, for who asks the command
from app.cli.commands import serve
from app.cli.commands.open import NO_BROWSER, desktop
from app.options import add_flags

NAME = "demo"
HELP = "load the bundled reference runs and open the dashboard"
OPTIONS = (*serve.OPTIONS, NO_BROWSER)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve as serve_forever

    what = serve.asked(args)
    serve.prepare(args.store, what.upload_limit_bytes, what.registry, what.registry_file)
    serve.allow(what)
    for line in load(args.store):
        print(line, flush=True)
    opened = not args.no_browser and desktop()
    serve_forever(what.host, what.port, open_browser=opened, rate_limits=what.rate_limits, work=what.work)
