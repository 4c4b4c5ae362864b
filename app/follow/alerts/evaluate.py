"""When alerts open, close and are told: called after every ingest and after every snapshot of a live run."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.follow.alerts.rules import RULES
from app.identity.may import changing
from app.workspace import Workspace
from errors import ChipledgerError
from runs.alert_book import Alert, AlertBook, Judged, Moment
from runs.limits import NO_NETWORK_VARIABLE
from runs.live import Live
from runs.run import Run

TIMES = {
    "steps": ["start_ns"],
    "lifecycle": ["start_ns", "end_ns"],
    "requests": ["arrival_ns", "first_token_ns", "last_token_ns"],
    "stages": ["start_ns"],
    "iterations": ["start_ns"],
    "engine": ["ts_ns"],
    "scalars": ["ts_ns"],
    "captures": ["start_ns", "stop_ns"],
}
"""Columns that say until when a run tells, by table."""
SUBJECT = 400  # characters of what an alert is about: with a hash of all, what an index can hold


@dataclass(frozen=True)
class Outcome:
    """What an evaluation did: rules that are open for this run, messages that went out, and what went wrong."""

    open: tuple[str, ...]
    told: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"open": list(self.open), "told": self.told, "problems": list(self.problems)}


def book(place: Workspace) -> AlertBook:
    return AlertBook(place.registry.at)


def alerts_told(place: Workspace) -> list[Alert]:
    """Open ones first, then the latest resolved: those about runs that whoever asks sees."""
    return [alert for alert in book(place).alerts() if place.tells_of(alert.run_id)]


def subject_of(run: Run, live: str | None = None) -> str:
    """What an alert is about: the live run, else the job that the run names, else the run itself."""
    job = run.manifest.fact("job_name")
    return f"live:{live}" if live else f"job:{job}" if job else f"run:{run.run_id}"


def moment_of(run: Run, live: Live | None = None) -> Moment:
    """Until when a run tells of its job: its last step, event or request, or as far as the log of a live run was read.
    0 where it has no times of day."""
    import pyarrow.compute as pc  # takes longer to load than most commands, which start with this module, to answer

    from analyzers.serving.own_clocks import CALENDAR_NS

    if live is not None and live.read_ns is not None:
        return live.read_ns, run.manifest.created_ns
    times = [t for name, columns in TIMES.items() for t in run.tables.arrow(name, columns).columns]
    last_ns = max((pc.max(t).as_py() or 0 for t in times), default=0)
    return last_ns if last_ns >= CALENDAR_NS else 0, run.manifest.created_ns


def evaluate(place: Workspace, run: Run, live: Live | None = None) -> Outcome:
    """Check every rule that has a threshold, and tell what changed. Never raises for an alert's sake.

    `live`: the live run that this is a snapshot of; some rules can judge nothing else. A rule that cannot be judged (no
    MFU without FLOPs) leaves its alerts as they are, and so does a run older than what was judged last. A message that
    could not be delivered is tried again with the next evaluation. A process that can open no connection leaves
    messages to the one that started it.
    """
    kept, open_rules = book(place), []
    subject = subject_of(run, live.name if live else None)
    if live is None and (teams := sorted(place.shares.of(run.run_id))):
        subject += f" of {json.dumps(teams)}"  # a job of this name that other people run is another
    if len(subject) > SUBJECT:
        digest = hashlib.sha256(subject.encode("utf-8", "backslashreplace")).hexdigest()
        subject = f"{subject[:SUBJECT]} {digest[:16]}"
    thresholds = kept.thresholds()
    for rule in RULES:
        if rule.name not in thresholds or (rule.live and live is None):
            continue
        try:
            found = rule.check(run, place.registry, thresholds[rule.name], live)
            moment = moment_of(run, live)
        except ChipledgerError:
            continue  # the run lacks what the question needs: its page says so
        if found is not None:
            kept.judge(
                Judged(
                    rule=rule.name,
                    subject=subject,
                    run_id=run.run_id,
                    name=run.manifest.name,
                    moment=moment,
                    state="open" if found.open else "over" if found.over else "between",
                    value=found.value,
                    threshold=thresholds[rule.name],
                    sentence=found.sentence,
                )
            )
        if kept.is_open(rule.name, subject):
            open_rules.append(rule.name)
    told, problems = (0, []) if os.environ.get(NO_NETWORK_VARIABLE) else tell(kept)
    return Outcome(tuple(open_rules), told, tuple(problems))


@changing("set what alerts watch for")
def watch_for(kept: AlertBook, changes: Mapping[str, float | None]) -> list[str]:
    """Set the thresholds of rules; None: no longer watch for it. Whoever heard of an alert that this closes hears of
    its end. Returns problems."""
    for name, threshold in changes.items():
        kept.set_threshold(name, threshold)
    return tell(kept)[1] if None in changes.values() else []


def tell(kept: AlertBook) -> tuple[int, list[str]]:
    """Send what nobody was told of yet: (messages sent, what went wrong). One failure does not hold up the others."""
    target = kept.target()
    if target is None:
        return 0, []
    from app.follow.alerts.webhook import message, send  # with what speaks HTTP, which few that come here need

    told, problems = 0, []
    for alert in kept.untold():
        if not kept.claim(alert):
            continue  # another process tells
        if alert.told_ns is None and alert.resolved_ns is not None:
            kept.untold_end(alert)  # opened and over before anybody could be told: not worth a message
            continue
        try:
            send(message(alert, target), target)
        except ChipledgerError as e:
            problems.append(str(e))
            kept.told(alert, problem=str(e))
            continue
        kept.told(alert)
        told += 1
    return told, problems
