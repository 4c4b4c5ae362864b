"""When alerts open, close and are told: called after every ingest and after every snapshot of a live run."""

from dataclasses import dataclass
from typing import Any

from app.alerts.rules import RULES
from app.alerts.webhook import message, send
from app.workspace import Workspace
from errors import ChipledgerError
from runs.alert_book import AlertBook
from runs.run import Run


@dataclass(frozen=True)
class Outcome:
    """What an evaluation did: rules that are open for this run, messages that went out, and what went wrong."""

    open: tuple[str, ...]
    told: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"open": list(self.open), "told": self.told, "problems": list(self.problems)}


def book(place: Workspace) -> AlertBook:
    return AlertBook(place.registry.path)


def subject_of(run: Run, live: str | None = None) -> str:
    """What an alert is about: the live run, else the job that the run names, else the run itself."""
    job = run.manifest.fact("job_name")
    return f"live:{live}" if live else f"job:{job}" if job else f"run:{run.run_id}"


def evaluate(place: Workspace, run: Run, live: str | None = None) -> Outcome:
    """Check every rule that has a threshold, and tell what changed. Never raises for an alert's sake.

    `live`: name of the live run that this is a snapshot of; some rules can judge nothing else. A rule that cannot be
    judged (no MFU without FLOPs) leaves its alerts as they are. A message that could not be delivered is tried again
    with the next evaluation.
    """
    kept, open_rules = book(place), []
    subject = subject_of(run, live)
    thresholds = kept.thresholds()
    for rule in RULES:
        if rule.name not in thresholds or (rule.live and live is None):
            continue
        try:
            found = rule.check(run, place.registry, thresholds[rule.name], live is not None)
        except ChipledgerError:
            continue  # the run lacks what the question needs: its page says so
        if found is not None and found.open:
            kept.open(rule.name, subject, run.run_id, run.manifest.name, found.value, thresholds[rule.name],
                      found.sentence)  # fmt: skip
        elif found is not None and found.over:
            kept.resolve(rule.name, subject, run.run_id, found.sentence)
        if kept.is_open(rule.name, subject):
            open_rules.append(rule.name)
    told, problems = tell(kept)
    return Outcome(tuple(open_rules), told, tuple(problems))


def tell(kept: AlertBook) -> tuple[int, list[str]]:
    """Send what nobody was told of yet: (messages sent, what went wrong). One failure does not hold up the others."""
    target = kept.target()
    if target is None:
        return 0, []
    told, problems = 0, []
    for alert in kept.untold():
        if alert.told_ns is None and alert.resolved_ns is not None:
            kept.told(alert)  # opened and over before anybody could be told: not worth a message
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
