"""`chipledger push`: files to a server, that makes a run of them; the last line of a job."""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import ingest_options
from app.cli.commands.base import JSON, pairs, print_json, printable
from app.ingest_options import TAG
from app.options import add_arguments, add_flags, from_args, values
from errors import InputError, QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option
from errors.times import Duration

if TYPE_CHECKING:
    from app.client import Client, Job, Pushed

NAME = "push"
HELP = "send what a job wrote to a server, which reads it into one run; goes on where an earlier try was cut off"
API = "POST /api/uploads"
SERVER_VARIABLE, TOKEN_VARIABLE = "CHIPLEDGER_SERVER", "CHIPLEDGER_TOKEN"
TOKEN_BYTES = 8192
EVERY_SECONDS = 0.2
PATHS = Option("paths", str, (), "file or folder", several=True, local=True, form="PATH")
SERVER = Option("server", str, None, f"address of the server (default: ${SERVER_VARIABLE})", local=True, form="URL")
WAIT = Option("wait", SWITCH, False, "wait until the run is there, and print its address", local=True)
TOKEN_FILE = Option(
    "token_file", str, None, f"a file that holds the token (default: ${TOKEN_VARIABLE})", local=True, form="FILE"
)
PLAIN = Option("plain", SWITCH, False, "send the token over plain http too, within a network of your own", local=True)
PATIENCE = Option(
    "patience", Duration(), None, "how long a server that does not answer is asked again (default: 5m)", local=True
)
OWN = (SERVER, WAIT, TOKEN_FILE, PLAIN, PATIENCE)
ARGUMENTS = (PATHS,)
OPTIONS = (*OWN, *ingest_options.OPTIONS, replace(JSON, help="print upload_id, job_id, run_id and url as JSON"))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.client import Client
    from app.client.door import PATIENCE_S

    asked, said = values(args, OWN), from_args(args, ingest_options.OPTIONS)
    if tags := pairs(said.pop(TAG.name, ()), "tag"):
        said["tags"] = tags
    with Client(
        _server(asked["server"]),
        _token(asked["token_file"]),
        plain=asked["plain"],
        patience_s=PATIENCE_S if asked["patience"] is None else asked["patience"],
    ) as server:
        tell = Teller()
        try:
            pushed = server.push(args.paths, progress=tell.sent, **said)
            job = server.wait(pushed, progress=tell.read) if asked["wait"] else None
        finally:
            tell.end()
        _print(args.json, server, pushed, job)


def _print(as_json: bool, server: "Client", pushed: "Pushed", job: "Job | None") -> None:
    page = server.page_of(job.run_id) if job else ""
    if as_json:
        told: dict[str, Any] = {"upload_id": pushed.upload_id, "job_id": pushed.job_id, "files": pushed.files}
        told |= {"bytes": pushed.n_bytes, "sent_bytes": pushed.sent_bytes, "run_id": job.run_id if job else None}
        told |= {"existed": job.existed if job else None, "warnings": list(job.warnings) if job else []}
        print_json({**told, "url": page or server.url})
        return
    there = pushed.n_bytes - pushed.sent_bytes
    held = f", of which {fmt.size(there)} were there already" if there else ""
    print(f"Sent {fmt.count(pushed.files, 'file')}, {fmt.size(pushed.n_bytes)}{held}.")
    if job is None:
        print(f"Job {printable(pushed.job_id)} reads them: see {server.url}")
        return
    for warning in job.warnings:
        print(f"  warning: {printable(warning)}")
    print(f"{'Already stored' if job.existed else 'Added'}: run {printable(job.run_id)}")
    print(page)


class Teller:
    """Progress on a terminal, in one line that is rewritten; nothing elsewhere."""

    def __init__(self) -> None:
        self._shows, self._last = sys.stderr.isatty(), 0.0

    def sent(self, done: int, total: int, what: str) -> None:
        self._line(min(done / total, 1.0) if total else 1.0, what)

    def read(self, job: "Job") -> None:
        self._line(job.progress, job.doing or job.state)

    def end(self) -> None:
        if self._shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _line(self, part: float | None, what: str) -> None:
        now = time.monotonic()
        if not self._shows or now - self._last < EVERY_SECONDS:
            return
        self._last = now
        share = "" if part is None else f"{part:4.0%} "
        print(f"\r\x1b[K{share}{printable(what)[:60]}", end="", file=sys.stderr, flush=True)


def _server(given: str | None) -> str:
    """Raises QuestionError where no server is named."""
    if url := given or os.environ.get(SERVER_VARIABLE, "").strip():
        return url
    raise QuestionError("no server is named", expected=f"--server URL, or ${SERVER_VARIABLE}")


def _token(file: str | None) -> str:
    """The token; empty where none is given: a server without identity asks for none. Raises InputError."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        with Path(file).open("rb") as f:
            token = f.read(TOKEN_BYTES).decode("utf-8").strip()
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or "no text"
        raise InputError(f"cannot be read ({why})", where=file, expected="a token") from e
    if not token:
        raise InputError("holds no token", where=file)
    return token
