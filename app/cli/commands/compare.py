"""`chipledger compare A B`: what changed from one run to the other, whether it is worse, and a gate for scripts."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.cli.several import print_several
from app.comparing.options import LOADS, SIDES
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import Option

NAME = "compare"
HELP = "what changed from one run to another, whether it is worse, and why; of served runs request by request"
GATE_FAILED, GATE_NOT_TOLD = 3, 4  # exit codes: a gate failed, a gate could not tell
FAIL_IF = Option(
    "fail_if",
    str,
    (),
    "end with 3 where this holds, with 4 where it cannot be told: step_time, held_per_step (all chip time a kept step) "
    "or an account of a step, against a share of A's: step_time>+1%",
    local=True,
    several=True,
    form="GATE",
)
MORE = Option(
    "more",
    str,
    (),
    "further runs: all are laid beside one another, and held against A",
    several=True,
    form="RUN",
    of_run=True,
)
ARGUMENTS = (*SIDES, MORE)
MAY_LACK = (MORE,)
OPTIONS = (*LOADS, FAIL_IF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from app.comparing.answer import Compared
    from app.comparing.gates import gate

    given, place = values(args, OPTIONS), workspace(args.store)
    gates = [gate(text) for text in given[FAIL_IF.name] or ()]
    if args.more:
        _refuse(gates or given[LOADS[0].name] or given[LOADS[1].name])
        print_several(place, (args.a, args.b, *args.more), args.json)
        return 0
    a, b = place.store.find(args.a), place.store.find(args.b)
    found = Compared(a, b, place, *(given[o.name] for o in LOADS))
    if gates and found.jobs is None:
        raise QuestionError(
            "a gate over two served runs",
            expected="two runs of a training job, or two that were compiled",
            advice="Read the differences with --json",
        )
    judged = [(g.text, g.judge(found.jobs)) for g in gates if found.jobs is not None]
    if args.json:
        print_json(found.to_dict() | ({"gates": [{"gate": t, "outcome": o} for t, o in judged]} if judged else {}))
    else:
        print_verdict(found.verdict)
        if found.table.rows:
            print_table(found.table.head, found.table.rows, right=found.table.right)
            print()
        for note in found.notes:
            print(f"- {printable(note)}")
        for text, outcome in judged:
            print(f"Gate {text}: {outcome}")
    outcomes = [outcome for _, outcome in judged]
    return GATE_FAILED if "failed" in outcomes else GATE_NOT_TOLD if "cannot be told" in outcomes else 0


def _refuse(given: object) -> None:
    """What is asked of two runs alone."""
    if given:
        raise QuestionError("a gate or a load over more than two runs", expected="two runs, A and B")
