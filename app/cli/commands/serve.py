"""`chipledger serve`: the dashboard and the HTTP API."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from app import registry_place
from app.capture.addresses import ALLOWED_VARIABLE, addresses, listed
from app.fetching.allowed import ALLOWED_VARIABLE as INGEST_VARIABLE
from app.fetching.allowed import prefixes
from app.identity.settings import OPEN_VARIABLE, VARIABLE, read
from app.operations.log_options import AS_JSON, KINDS, LOG_VARIABLE, TEXT
from app.options import add_flags, values
from app.quota import OPTIONS as QUOTAS
from app.quota import quota
from app.serve import bounds
from app.serve.addresses import is_loopback
from app.serve.server import DEFAULT_PORT
from app.serve.upload_room import DEFAULT_LIMIT_BYTES, LIMIT, LIMIT_VARIABLE, limit_bytes
from app.workspace import STORE_VARIABLE, store_path, workspace
from errors import QuestionError
from errors.numbers import Number
from errors.options import SWITCH, Option

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
    Option(
        "capture",
        str,
        (),
        "let pages and API record jobs at this address (HOST:PORT, agent://HOST:PORT, several with commas), and at no "
        "other",
        several=True,
        local=True,
        form="ADDRESS",
    ),
    Option(
        "ingest_from",
        str,
        (),
        "let pages and API add runs from files below this folder of this machine, or this prefix (gs://bucket/runs)",
        several=True,
        local=True,
        form="PREFIX",
    ),
    Option(
        "log",
        KINDS,
        None,
        f"how the log is written to stderr: {TEXT} tells jobs and defects, {AS_JSON} each request too, an object "
        f"a line (default: ${LOG_VARIABLE}, else {TEXT})",
        local=True,
    ),
    Option(
        "rate_limits",
        ("auto", "on", "off"),
        "auto",
        "whether one address or person that asks too much is told to come later; auto: where other machines can ask, "
        "or the server knows who asks",
        local=True,
    ),
    Option(
        "with_demo",
        SWITCH,
        False,
        "load the bundled reference runs that the store lacks while the server answers already, marked as they are by "
        "`chipledger demo`",
        local=True,
    ),
    Option("capture_file", str, None, "the same from a file, an address a line", local=True, form="FILE"),
    Option(
        "identity",
        str,
        None,
        f"who is known by what, and who may what: a TOML file (default: ${VARIABLE}; without one nobody is asked)",
        local=True,
        form="FILE",
    ),
    Option(
        "open_to_all",
        SWITCH,
        False,
        f"listen on a network address although nobody is asked who they are (or ${OPEN_VARIABLE}=1)",
        local=True,
    ),
    Option("no_worker", SWITCH, False, "run no jobs here: leave them to `chipledger worker`", local=True),
    *registry_place.OPTIONS,
    *bounds.OPTIONS,
    *QUOTAS,
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: the default that they tell."""

    host: str = LOOPBACK
    upload_limit_bytes: int | None = None
    port: int | None = None
    capture: tuple[str, ...] = ()
    capture_file: str | None = None
    ingest_from: tuple[str, ...] = ()
    identity: str | None = None
    open_to_all: bool = False
    log: str | None = None
    rate_limits: str = "auto"
    with_demo: bool = False
    no_worker: bool = False
    registry: str | None = None
    registry_file: str | None = None
    job_hours: float = bounds.HOURS.default
    job_memory_gb: float | None = None
    grace_s: float = bounds.GRACE.default

    @property
    def work(self) -> bounds.Working:
        told = {o.name: getattr(self, o.name) for o in bounds.OPTIONS}
        return bounds.Working(works=not self.no_worker, **told)

    quota_bytes: int | None = None
    quota_person_bytes: int | None = None
    quota_group_bytes: int | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def asked(args: argparse.Namespace) -> Asked:
    """What is asked of the server. Raises QuestionError for what cannot be."""
    return Asked(**values(args, OPTIONS))


def run(args: argparse.Namespace) -> None:
    from app.serve.server import serve

    what = asked(args)
    prepare(args.store, what.upload_limit_bytes, what.registry, what.registry_file)
    allow(what)
    limit(what)
    serve(what.host, what.port, rate_limits=what.rate_limits, with_demo=what.with_demo, work=what.work)


def prepare(
    store: str | None,
    upload_limit_bytes: int | None,
    registry: str | None = None,
    registry_file: str | None = None,
) -> None:
    """Settings for pages and API, which read them from the environment. Raises InputError for one that is wrong."""
    os.environ[STORE_VARIABLE] = str(store_path(store))
    registry_place.settle(registry, registry_file)
    if upload_limit_bytes is not None:
        os.environ[LIMIT_VARIABLE] = str(upload_limit_bytes)
    limit_bytes()
    workspace()


def limit(what: Asked) -> None:
    """How much may be kept, for the pages and the API. Raises InputError for a setting that is wrong."""
    for option in QUOTAS:
        if (most := getattr(what, option.name)) is not None:
            os.environ[f"CHIPLEDGER_{option.name.upper()}"] = str(most)
    quota()


def allow(what: Asked) -> None:
    """What the server may dial, and whose files it may read by address, for pages, API and the jobs that it starts: it
    is settled here, once, by who starts it. Raises InputError for what is no address."""
    if what.log:
        os.environ[LOG_VARIABLE] = what.log
    os.environ[INGEST_VARIABLE] = "\n".join(map(str, prefixes(what.ingest_from)))
    told = (*what.capture, *(listed(Path(what.capture_file)) if what.capture_file else ()))
    os.environ[ALLOWED_VARIABLE] = ",".join(map(str, addresses(told)))
    _identify(what)


def _identify(what: Asked) -> None:
    """Who is asked who they are. Raises InputError for settings that cannot be, QuestionError where a network address
    would be open to all and nobody said that it may."""
    file = what.identity or os.environ.get(VARIABLE)
    if file and what.open_to_all:
        raise QuestionError("the server is to know who asks, and to be open to all", expected="one of both")
    if file:
        read(Path(file))
        os.environ[VARIABLE] = str(Path(file).absolute())
        os.environ.pop(OPEN_VARIABLE, None)
        return
    os.environ.pop(VARIABLE, None)
    opened = what.open_to_all or os.environ.get(OPEN_VARIABLE) == "1"
    if not is_loopback(what.host) and not opened:
        raise QuestionError(
            f"at {what.host} whoever reaches the server could read, add and delete runs",
            expected="--identity FILE, by which it knows who asks",
            advice="--open-to-all serves it without, with a warning on every page; docs/team.md tells of both.",
        )
    os.environ[OPEN_VARIABLE] = "0" if is_loopback(what.host) else "1"
