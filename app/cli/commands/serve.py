"""`chipledger serve`: the dashboard and the HTTP API."""

import argparse
import os

from app.workspace import STORE_VARIABLE, store_path, workspace

NAME = "serve"
HELP = "serve the dashboard and the HTTP API, on this machine only unless --host says otherwise"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--upload-limit-bytes", type=int, metavar="N", help="the most bytes of one upload (default 20 GiB)"
    )
    parser.add_argument("--port", type=int, help="port (default: the first free one from 8501 on)")


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve

    prepare(args)
    serve(args.host, args.port)


def prepare(args: argparse.Namespace) -> None:
    """Settings for pages and API, which read them from the environment. Raises InputError for one that is wrong."""
    from app.serve.uploads import LIMIT_VARIABLE, limit_bytes

    os.environ[STORE_VARIABLE] = str(store_path(args.store))
    if args.upload_limit_bytes is not None:
        os.environ[LIMIT_VARIABLE] = str(args.upload_limit_bytes)
    limit_bytes()
    workspace()
