"""`chipledger alerts`: what is watched for, where messages go, and what is open now."""

import argparse
import time
from dataclasses import replace

from app.cli.commands.base import JSON, pairs, print_json, print_table, printable
from app.follow.alerts import options
from app.follow.alerts.evaluate import book, evaluate, watch_for
from app.follow.alerts.options import BASE_URL_DEFAULT, NOWHERE, ON, SHAPE_DEFAULT, Asked, asked
from app.follow.alerts.rules import RULES, rule
from app.follow.alerts.webhook import checked, masked, message, send
from app.options import add_flags
from app.workspace import workspace
from errors import InputError, QuestionError
from errors import format as fmt
from runs.alert_book import Alert, AlertBook, Target

NAME = "alerts"
HELP = "tell a webhook when goodput or MFU falls, a rank straggles or a job hangs, and when that is over"
OPTIONS = (*options.OPTIONS, replace(JSON, help="print rules and alerts as JSON"))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    what, place = asked(args), workspace(args.store)
    kept = book(place)
    problems = _set(what, kept)
    outcome = None
    if what.check:
        found = place.store.find(what.check)
        outcome = evaluate(place, found, place.store.live.current(found.run_id))
    if what.test:
        _test(kept)
    if args.json:
        print_json({**as_dict(kept), **({"check": outcome.to_dict()} if outcome else {})})
        return
    _print(kept)
    for problem in (*problems, *(outcome.problems if outcome else ())):
        print(f"  warning: {printable(problem)}")


def as_dict(kept: AlertBook) -> dict:
    """Rules with their thresholds, the target without its secret, and the alerts."""
    thresholds, target = kept.thresholds(), kept.target()
    return {
        "rules": [
            {"rule": r.name, "meaning": f"{r.title}: {r.help}", "threshold": thresholds.get(r.name)} for r in RULES
        ],
        "webhook": None
        if target is None
        else {"url": masked(target.url), "shape": target.shape, "base_url": target.base_url},
        "alerts": [vars(alert) for alert in kept.alerts()],
    }


def _set(what: Asked, kept: AlertBook) -> list[str]:
    """Change what is watched for, and where messages go. Returns problems."""
    changes: dict[str, float | None] = {}
    for text in what.on:
        wanted = rule(text.partition("=")[0].strip())
        given = pairs([text], "rule").get(wanted.name) if "=" in text else None
        changes[wanted.name] = wanted.option.parse(given, f"{ON.flag} {wanted.name}=")
    changes |= dict.fromkeys(what.off)
    target = _target(what, kept.target())
    if target is not None or what.webhook == NOWHERE:
        kept.set_target(target)
    return watch_for(kept, changes)


def _target(what: Asked, before: Target | None) -> Target | None:
    """The target as it shall be from now on; None where there is none."""
    if what.webhook == NOWHERE:
        return None
    url = what.webhook or (before.url if before else None)
    if url is None:
        if what.shape or what.base_url or what.webhook is not None:  # a variable that is empty names no address
            raise QuestionError("--shape and --base-url belong to a webhook", expected="--webhook URL")
        return None
    return checked(
        Target(
            url,
            what.shape or (before.shape if before else SHAPE_DEFAULT),
            what.base_url or (before.base_url if before else BASE_URL_DEFAULT),
        )
    )


def _test(kept: AlertBook) -> None:
    target = kept.target()
    if target is None:
        raise InputError("no webhook is set", expected="--webhook URL first")
    now = time.time_ns()
    send(
        message(
            Alert(
                id=0,
                rule="goodput",
                subject="test",
                run_id="test",
                name="Test",
                value=None,
                threshold=None,
                sentence="This is a test of Chipledger's alerts; nothing is wrong.",
                opened_ns=now,
            ),
            target,
        ),
        target,
    )
    print("The test message was delivered.")


def _print(kept: AlertBook) -> None:
    thresholds, target = kept.thresholds(), kept.target()
    rows = [(r.name, r.title, f"{thresholds[r.name]:g}" if r.name in thresholds else "off") for r in RULES]
    print_table(("rule", "meaning", "threshold"), rows, right=(2,))
    where = (
        f"Messages go to {masked(target.url)} ({target.shape})."
        if target
        else "Messages go nowhere yet: set one with --webhook URL."
    )
    print(where)
    alerts = kept.alerts()
    if not alerts:
        print("No alert so far.")
        return
    print_table(
        ("state", "since", "rule", "run", "what"),
        [
            (
                "open" if a.resolved_ns is None else "resolved",
                fmt.date(a.opened_ns),
                a.rule,
                a.name,
                a.sentence if a.problem is None else f"{a.sentence} (not delivered: {a.problem})",
            )
            for a in alerts
        ],
    )
