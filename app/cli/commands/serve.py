"""`chipledger serve`: the dashboard and the HTTP API."""

import argparse
import os
from dataclasses import dataclass

from app.options import add_flags, values
from app.serve.server import DEFAULT_PORT
from app.serve.uploads import DEFAULT_LIMIT_BYTES, LIMIT, LIMIT_VARIABLE, limit_bytes
from app.workspace import STORE_VARIABLE, store_path, workspace
from errors.numbers import Number
from errors.options import Option

NAME = "serve"
HELP = "serve the dashboard and the HTTP API, on this machine only unless --host says otherwise"
LOOPBACK, LAST_PORT = "127.0.0.1", (1 << 16) - 1
OPTIONS = (
    Option("host", str, LOOPBACK, "address to listen on", local=True, form="HOST"),
    Option(
        "upload_limit_bytes",
        LIMIT,
        None,
        f"the most bytes of one upload (default: ${LIMIT_VARIABLE}, else {DEFAULT_LIMIT_BYTES >> 30} GiB)",
        unit="bytes",
        local=True,
    ),
    Option(
        "port",
        Number(0, LAST_PORT, whole=True),
        None,
        f"port; 0: any that is free (default: the first free one from {DEFAULT_PORT} on)",
        local=True,
        form="PORT",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: the default that they tell."""

    host: str = LOOPBACK
    upload_limit_bytes: int | None = None
    port: int | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def asked(args: argparse.Namespace) -> Asked:
    """What is asked of the server. Raises QuestionError for what cannot be."""
    return Asked(**values(args, OPTIONS))


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve

    what = asked(args)
    prepare(args.store, what.upload_limit_bytes)
    serve(what.host, what.port)


def prepare(store: str | None, upload_limit_bytes: int | None) -> None:
    """Settings for pages and API, which read them from the environment. Raises InputError for one that is wrong."""
    os.environ[STORE_VARIABLE] = str(store_path(store))
    if upload_limit_bytes is not None:
        os.environ[LIMIT_VARIABLE] = str(upload_limit_bytes)
    limit_bytes()
    workspace()
