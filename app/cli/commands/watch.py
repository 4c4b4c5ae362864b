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
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, printable
from app.follow import options as following
from app.follow.alerts.evaluate import evaluate
from app.follow.options import (
    BACK,
    ENDPOINT_VARIABLE,
    EVERY_METRICS_S,
    EVERY_S,
    OF_JOBS,
    SINCE,
    Asked,
    asked,
)
from app.options import add_flags
from app.workspace import Workspace, workspace
from errors import ChipledgerError, InputError
from errors import format as fmt
from runs.live import PREFIX, Live, live_name
from runs.run import Run
from runs.share_book import clean_teams

if TYPE_CHECKING:
    from app.follow.scraping import MetricsPlan
    from app.follow.watching import Plan

NAME = "watch"
HELP = "follow jobs in Cloud Logging, or a serving engine's /metrics, into live runs"
OPTIONS = (*following.OPTIONS, replace(JSON, help="print each change as a line of JSON"))
_one_at_a_time = threading.Lock()  # alerts of several jobs, and lines on the terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


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
    what = asked(args)
    place, stop = workspace(args.store), threading.Event()
    named = plans(what, stop) if what.metrics is None else metrics_plans(what, what.metrics)
    _on_signal(stop)
    with contextlib.ExitStack() as locks:
        for name in named:
            locks.enter_context(place.store.live.following(name))
        if what.group:
            place.shares.share([PREFIX + name for name in named], clean_teams([what.group]))
        _follow(place, named, stop, what.once, bool(args.json))


def plans(what: Asked, stop: threading.Event) -> "dict[str, Plan]":
    """Live run's name: what to follow there. Raises InputError for what cannot be meant."""
    from app.follow.watching import Plan
    from collectors.cloud_logging.pace import Limiter
    from collectors.cloud_logging.query import Wanted, check_project
    from collectors.cloud_logging.service import Door

    if not what.job:
        raise InputError("nothing to follow", expected="--job NAME, or --metrics URL of a serving engine")
    if what.for_s is not None:
        raise InputError("--for with --job", expected="--for with --metrics: a job is followed until it ends")
    jobs = list(dict.fromkeys(what.job))
    if what.name is not None and len(jobs) > 1:
        raise InputError(f"one --name for {len(jobs)} jobs", advice="Leave it out: each is named after its job.")
    options = _of_run(what)
    endpoint = what.endpoint or os.environ.get(ENDPOINT_VARIABLE) or None
    if endpoint is not None and not re.fullmatch(r"https?://[^\s/]+[^\s]*", endpoint):
        raise InputError(f"{endpoint[:80]!r} is no endpoint", expected="such as http://127.0.0.1:8085")
    project = check_project(_project(what, endpoint))
    door = Door(project, endpoint, what.anonymous, Limiter(what.reads_per_minute), wait=stop.wait)
    since_ns = SINCE.parse(BACK) if what.since_ns is None else what.since_ns
    found = {}
    for job in jobs:
        wanted = Wanted(project, job, what.log_name, what.also)
        wanted.filter()  # raises now for what would be refused later
        found[live_name(what.name or job)] = Plan(wanted, door, since_ns, what.every_s or EVERY_S, options)
    return found


def metrics_plans(what: Asked, server: str) -> "dict[str, MetricsPlan]":
    """Live run's name: the server to poll. Raises InputError for what cannot be meant."""
    from app.follow.scraping import MetricsPlan, address, host

    if given := next((o for o in OF_JOBS if getattr(what, o.name)), None):
        raise InputError(f"{given.flag} with --metrics", expected="one of them: a job, or a server")
    url = address(server)
    plan = MetricsPlan(url, what.every_s or EVERY_METRICS_S, what.for_s, _of_run(what))
    return {live_name(what.name or host(url)): plan}


def _of_run(what: Asked) -> dict[str, Any]:
    """What a person says of the run, checked."""
    from collectors.own import sidecar

    for key, value in what.of_run.items():
        sidecar.check(key, value, "command line")
    return what.of_run


def _project(what: Asked, endpoint: str | None) -> str:
    from collectors.cloud_logging.service import default_project

    if project := what.project or os.environ.get("GOOGLE_CLOUD_PROJECT"):
        return project
    anonymous = bool(endpoint) if what.anonymous is None else what.anonymous
    if not anonymous and (project := default_project()):
        return project
    raise InputError("no project is named", expected="--project ID", advice="`gcloud projects list` shows the ids.")


def _follow(
    place: Workspace,
    named: "Mapping[str, Plan | MetricsPlan]",
    stop: threading.Event,
    once: bool,
    as_json: bool,
) -> None:
    """A thread for each job, until all have ended. The first error of any ends the others, and is raised."""
    from app.follow.scraping import MetricsPlan, MetricsWatcher
    from app.follow.watching import Watcher

    def tell(live: Live) -> None:
        with _one_at_a_time:
            say(live, as_json)

    watchers = [
        MetricsWatcher(place, name, plan, stop, tell, on_snapshot)
        if isinstance(plan, MetricsPlan)
        else Watcher(place, name, plan, stop, tell, on_snapshot)
        for name, plan in named.items()
    ]
    errors: list[BaseException] = []

    def follow(watcher: Watcher) -> None:
        try:
            watcher.follow(once)
        except BaseException as e:  # raised again in the main thread
            errors.append(e)
            if not once or not isinstance(e, ChipledgerError):
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
