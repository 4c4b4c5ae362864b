"""`chipledger watch`: follow jobs in Cloud Logging, or a server's /metrics, into live runs whose pages refresh
themselves."""

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app import format as fmt
from app.cli.commands.base import printable
from app.follow.alerts.evaluate import evaluate
from app.ingest_options import CHIP, COUNT, FROM_INPUTS, MODEL
from app.ingest_options import NAME as NAMED
from app.options import add_flags, from_args
from app.workspace import Workspace, workspace
from errors import ChipledgerError, InputError
from errors.options import SWITCH, Option
from runs.live import Live, live_name
from runs.run import Run

if TYPE_CHECKING:
    from app.follow.scraping import MetricsPlan
    from app.follow.watching import Plan, Watcher

NAME = "watch"
HELP = "follow jobs in Cloud Logging, or a serving engine's /metrics, into live runs"
ENDPOINT_VARIABLE = "CHIPLEDGER_LOGGING_ENDPOINT"
SINCE, EVERY, EVERY_METRICS = "30d", "30s", "5s"
OF_JOBS = ("project", "job", "log_name", "also", "endpoint")  # options that have no meaning with --metrics
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LEAST_EVERY_S = 1.0
ONCE = Option("once", SWITCH, False, "read what there is, then end", local=True)
OF_RUN = (  # as `chipledger ingest` takes them, but that the inputs are not there yet
    replace(NAMED, help="name of the live run, where there is one (default: the job's name)"),
    *(replace(o, help=o.help.removesuffix(FROM_INPUTS)) for o in (CHIP, COUNT, MODEL)),
)
_one_at_a_time = threading.Lock()  # alerts of several jobs, and lines on the terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics", metavar="URL", help="poll a serving engine instead: such as http://127.0.0.1:8000/metrics"
    )
    parser.add_argument("--for", dest="duration", metavar="TIME", help="with --metrics: how long, such as 10m")
    parser.add_argument("--project", help="project id (default: $GOOGLE_CLOUD_PROJECT, else the credentials' own)")
    parser.add_argument("--job", action="append", help="job_name of its entries; may be given again")
    parser.add_argument(
        "--since",
        default=SINCE,
        metavar="WHEN",
        help="how far to go back: such as 30d or 12h, or a date (default %(default)s)",
    )
    parser.add_argument(
        "--every", metavar="TIME", help=f"how often to look (default {EVERY}, of metrics {EVERY_METRICS})"
    )
    add_flags(parser, (ONCE, *OF_RUN))
    parser.add_argument("--log-name", action="append", help="log that holds the entries (default: goodput_<job>)")
    parser.add_argument(
        "--also",
        action="append",
        metavar="FILTER",
        help="further entries, by a filter, whose text may tell why the job stopped",
    )
    parser.add_argument(
        "--endpoint", metavar="URL", help=f"another address than Google's (default: ${ENDPOINT_VARIABLE})"
    )
    parser.add_argument(
        "--anonymous",
        action=argparse.BooleanOptionalAction,
        help="go without credentials (default: with --endpoint only)",
    )
    parser.add_argument(
        "--reads-per-minute",
        type=int,
        default=50,
        metavar="N",
        help="the most reads of the project's quota of 60 (default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print each change as a line of JSON")


def on_snapshot(place: Workspace, run: Run, live: Live) -> None:
    """After every poll of a live run: `run` is its newest snapshot, the same as before where nothing was new.

    That nothing comes is news as well: a job that hangs makes no entries.
    """
    try:
        with _one_at_a_time:
            outcome = evaluate(place, run, live)
    except Exception:  # a defect of ours in a rule must not end the following of the job
        traceback.print_exc()
        return
    for problem in outcome.problems:
        print(f"warning: {printable(problem)}", file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> None:
    place, stop = workspace(args.store), threading.Event()
    named = plans(args, stop) if args.metrics is None else metrics_plans(args)
    _on_signal(stop)
    with contextlib.ExitStack() as locks:
        for name in named:
            locks.enter_context(place.store.live.following(name))
        _follow(place, named, stop, args)


def plans(args: argparse.Namespace, stop: threading.Event) -> "dict[str, Plan]":
    """Live run's name: what to follow there. Raises InputError for what cannot be meant."""
    from app.follow.watching import Plan
    from collectors.cloud_logging.pace import QUOTA_READS, Limiter
    from collectors.cloud_logging.query import Wanted, check_project
    from collectors.cloud_logging.service import Door

    if not args.job:
        raise InputError("nothing to follow", expected="--job NAME, or --metrics URL of a serving engine")
    if args.duration is not None:
        raise InputError("--for with --job", expected="--for with --metrics: a job is followed until it ends")
    jobs = list(dict.fromkeys(args.job))
    if args.name is not None and len(jobs) > 1:
        raise InputError(f"one --name for {len(jobs)} jobs", advice="Leave it out: each is named after its job.")
    if not 1 <= args.reads_per_minute <= QUOTA_READS:
        raise InputError(f"{args.reads_per_minute} reads a minute", expected=f"1 to {QUOTA_READS}, the quota")
    every_s, options = _every_s(args, EVERY), _options(args)
    endpoint = args.endpoint or os.environ.get(ENDPOINT_VARIABLE) or None
    if endpoint is not None and not re.fullmatch(r"https?://[^\s/]+[^\s]*", endpoint):
        raise InputError(f"{endpoint[:80]!r} is no endpoint", expected="such as http://127.0.0.1:8085")
    project = check_project(_project(args, endpoint))
    door = Door(project, endpoint, args.anonymous, Limiter(args.reads_per_minute), wait=stop.wait)
    since_ns = moment_ns(args.since)
    found = {}
    for job in jobs:
        wanted = Wanted(project, job, tuple(args.log_name or ()), tuple(args.also or ()))
        wanted.filter()  # raises now for what would be refused later
        found[live_name(args.name or job)] = Plan(wanted, door, since_ns, every_s, options)
    return found


def metrics_plans(args: argparse.Namespace) -> "dict[str, MetricsPlan]":
    """Live run's name: the server to poll. Raises InputError for what cannot be meant."""
    from app.follow.scraping import MetricsPlan, address, host

    if given := next((o for o in OF_JOBS if getattr(args, o)), None):
        raise InputError(f"--{given.replace('_', '-')} with --metrics", expected="one of them: a job, or a server")
    url = address(args.metrics)
    for_s = None if args.duration is None else seconds(args.duration, "--for")
    return {live_name(args.name or host(url)): MetricsPlan(url, _every_s(args, EVERY_METRICS), for_s, _options(args))}


def _every_s(args: argparse.Namespace, default: str) -> float:
    every_s = seconds(args.every or default, "--every")
    if every_s < LEAST_EVERY_S:
        raise InputError(f"--every {args.every}", expected=f"at least {LEAST_EVERY_S:.0f}s")
    return every_s


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What a person says of the run, checked."""
    from collectors.own import sidecar

    options = from_args(args, OF_RUN)
    for key, value in options.items():
        sidecar.check(key, value, "command line")
    return options


def seconds(text: str, where: str) -> float:
    """`90s`, `5m`, `12h` or `30d` in seconds. Raises InputError for anything else."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)\s*([smhd])", text.strip())
    if not match:
        raise InputError(f"{where} {text!r} is no time", expected="such as 30s, 5m, 12h or 30d")
    return float(match[1]) * UNITS_S[match[2]]


def moment_ns(text: str) -> int:
    """So long ago, or a date: ns since the epoch. Raises InputError for neither."""
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * 1_000_000_000
    return max(time.time_ns() - int(seconds(text, "--since")) * 1_000_000_000, 0)


def _project(args: argparse.Namespace, endpoint: str | None) -> str:
    from collectors.cloud_logging.service import default_project

    if project := args.project or os.environ.get("GOOGLE_CLOUD_PROJECT"):
        return project
    anonymous = bool(endpoint) if args.anonymous is None else args.anonymous
    if not anonymous and (project := default_project()):
        return project
    raise InputError("no project is named", expected="--project ID", advice="`gcloud projects list` shows the ids.")


def _follow(
    place: Workspace, named: "dict[str, Plan] | dict[str, MetricsPlan]", stop: threading.Event, args: argparse.Namespace
) -> None:
    """A thread for each job, until all have ended. The first error of any ends the others, and is raised."""
    if args.metrics is None:
        from app.follow.watching import Watcher as Following
    else:
        from app.follow.scraping import MetricsWatcher as Following

    def tell(live: Live) -> None:
        with _one_at_a_time:
            say(live, args.json)

    watchers = [Following(place, name, plan, stop, tell, on_snapshot) for name, plan in named.items()]
    errors: list[BaseException] = []

    def follow(watcher: "Watcher") -> None:
        try:
            watcher.follow(bool(args.once))
        except BaseException as e:  # raised again in the main thread
            errors.append(e)
            if not args.once or not isinstance(e, ChipledgerError):
                stop.set()

    threads = [threading.Thread(target=follow, args=(w,), name=w.live.name) for w in watchers]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):  # with a time limit, so that signals are heard
        for thread in threads:
            thread.join(0.1)
    if errors:
        raise errors[0]


def say(live: Live, as_json: bool) -> None:
    """One line: where a live run stands."""
    told: dict[str, Any] = live.to_dict()
    if as_json:
        print(json.dumps(told, allow_nan=False), flush=True)
        return
    odd = ", ".join(f"{n:,} {what}" for what, n in live.counts.items())
    polled = not live.project  # a server's answers, not a job's log
    parts = [
        live.state if live.state != "finished" else "finished: the job ended, a restart is picked up",
        (fmt.count(live.entries, "answer") if polled else fmt.count(live.entries, "entry", "entries"))
        + (f" ({odd})" if odd else ""),
        f"until {fmt.date(live.last_entry_ns)}" if live.last_entry_ns else "",
        f"run {live.run_id[:12]}" if live.run_id else "no run yet",
    ]
    print(f"{printable(live.address)}: " + ", ".join(filter(None, parts)), flush=True)
    if live.run_id is None and not live.problem and not live.entries and not polled:
        print(
            "It appears with the job's first goodput entry. Is the job's name right (MaxText: run_name)? "
            "--log-name and --since look elsewhere.",
            flush=True,
        )
    if live.problem:
        print(f"warning: {printable(live.problem)}", file=sys.stderr, flush=True)


def _on_signal(stop: threading.Event) -> None:
    """The first Ctrl-C or SIGTERM ends after what is being written; a second Ctrl-C at once."""

    def end(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
