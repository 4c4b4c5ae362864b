"""`chipledger show RUN ANALYSIS`: the answer to one question about a run."""

import argparse
from typing import Any

from app import format as fmt
from app import theme
from app.commands.base import pairs, print_json, print_table
from app.workspace import workspace

NAME = "show"
HELP = "answer one question about a run, such as `ledger` or `steps`"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, or name of a run")
    parser.add_argument("analysis", metavar="ANALYSIS", help="the question: ledger, steps")
    parser.add_argument("--option", action="append", metavar="KEY=VALUE", help="an option; may be given several times")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def run(args: argparse.Namespace) -> None:
    from app import questions

    place = workspace(args.store)
    questions.analyzer(args.analysis)
    found = place.store.find(args.run)
    result = questions.ask(found, args.analysis, pairs(args.option, "option"), place.registry)
    if args.json:
        print_json(questions.answer_dict(found, result))
        return
    PRINTED[args.analysis](result)


def _ledger(result: Any) -> None:
    from app.verdicts import ledger_verdict

    print(ledger_verdict(result), end="\n\n")
    whole = result.ledger.chip_seconds or 1.0
    print_table(
        ("account", "chip-hours", "share", "dollars", "basis", "source"),
        (
            ("  " * (len(path) - 1) + theme.title(a.name), fmt.number(a.chip_seconds / 3600),
             fmt.share(a.chip_seconds / whole), fmt.usd(a.usd), f"{theme.mark(a.basis).glyph} {a.basis}", a.source)
            for path, a in result.ledger.account.walk()
            if a.chip_seconds > 0
        ),
        right=(1, 2, 3),
    )  # fmt: skip
    _notes(result.notes)


def _steps(result: Any) -> None:
    from app.verdicts import steps_verdict

    print(steps_verdict(result), end="\n\n")
    print_table(
        ("figure", "value"),
        (
            ("steps", f"{result.steps:,}"),
            ("median step", fmt.duration(result.median_step_s)),
            ("best step", fmt.duration(result.best_step_s)),
            ("tokens per second and chip", fmt.number(result.tokens_per_s_per_chip)),
            ("TFLOP/s per chip", fmt.number(result.tflops_per_s_per_chip)),
        ),
        right=(1,),
    )
    _notes(result.notes)


def _notes(notes: tuple[str, ...]) -> None:
    if notes:
        print()
    for note in notes:
        print(f"- {note}")


PRINTED = {"ledger": _ledger, "steps": _steps}
