"""`chipledger alerts`: what is watched for, where messages go, and what is open now."""

import argparse
import time

from app import format as fmt
from app.cli.commands.base import pairs, print_json, print_table, printable
from app.follow.alerts.evaluate import book, evaluate, tell
from app.follow.alerts.rules import RULES, rule
from app.follow.alerts.webhook import SHAPES, checked, masked, send
from app.workspace import workspace
from errors import InputError, QuestionError
from runs.alert_book import Alert, AlertBook, Target

NAME = "alerts"
HELP = "tell a webhook when goodput or MFU falls, a rank straggles or a job hangs, and when that is over"
DEFAULT_BASE_URL = "http://localhost:8501"


def arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(f"{r.name} ({r.title.lower()}; usually {r.usual:g})" for r in RULES)
    parser.add_argument("--on", action="append", metavar="RULE[=THRESHOLD]", help=f"watch for: {names}")
    parser.add_argument("--off", action="append", metavar="RULE", help="no longer watch for it")
    parser.add_argument("--webhook", metavar="URL", help="where messages are posted; `none` for nowhere")
    parser.add_argument("--shape", choices=SHAPES, help="shape of the JSON (default: slack)")
    parser.add_argument("--base-url", metavar="URL", help=f"of this dashboard, for links (default: {DEFAULT_BASE_URL})")
    parser.add_argument("--test", action="store_true", help="post a message that says it is a test")
    parser.add_argument("--check", metavar="RUN", help="evaluate the rules on a run now")
    parser.add_argument("--json", action="store_true", help="print rules and alerts as JSON")


def run(args: argparse.Namespace) -> None:
    place = workspace(args.store)
    kept = book(place)
    problems = _set(args, kept)
    outcome = None
    if args.check:
        outcome = evaluate(place, place.store.find(args.check))
    if args.test:
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


def _set(args: argparse.Namespace, kept: AlertBook) -> list[str]:
    """Change what is watched for; whoever heard of an alert that this closes hears of its end. Returns problems."""
    changes: dict[str, float | None] = {}
    for text in args.on or ():
        wanted = rule(text.partition("=")[0].strip())
        given = pairs([text], "rule").get(wanted.name) if "=" in text else None
        changes[wanted.name] = wanted.usual if given is None else _threshold(wanted.name, given)
    for name in args.off or ():
        changes[rule(name).name] = None
    target = _target(args, kept.target())
    for name, threshold in changes.items():
        kept.set_threshold(name, threshold)
    if target is not None or args.webhook == "none":
        kept.set_target(target)
    return tell(kept)[1] if args.off else []


def _threshold(name: str, text: str) -> float:
    wanted = rule(name)
    expected = f"a number from {wanted.lowest:g} to {wanted.highest:g}"
    try:
        value = float(text)
    except ValueError as e:
        raise QuestionError(f"threshold {text!r} of {name}", expected=expected) from e
    if not wanted.lowest <= value <= wanted.highest:
        raise QuestionError(f"threshold {text!r} of {name}", expected=expected)
    return value


def _target(args: argparse.Namespace, before: Target | None) -> Target | None:
    """The target as it shall be from now on; None where there is none."""
    if args.webhook == "none":
        return None
    if not args.webhook and before is None:
        if args.shape or args.base_url or args.webhook is not None:  # a variable that is empty names no address
            raise QuestionError("--shape and --base-url belong to a webhook", expected="--webhook URL")
        return None
    return checked(
        Target(
            args.webhook or before.url,
            args.shape or (before.shape if before else "slack"),
            args.base_url or (before.base_url if before else DEFAULT_BASE_URL),
        )
    )


def _test(kept: AlertBook) -> None:
    target = kept.target()
    if target is None:
        raise InputError("no webhook is set", expected="--webhook URL first")
    from app.follow.alerts.webhook import message

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
