"""`chipledger compare A B`: what changed from one run to the other, whether it is worse, and a gate for scripts."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.options import add_arguments, add_flags, from_args, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import Option
from runs.run import Run

NAME = "compare"
HELP = "what changed from one run to another, whether it is worse, and why; of served runs request by request"
GATE_FAILED, GATE_NOT_TOLD = 3, 4  # exit codes: a gate failed, a gate could not tell
LOAD_A = Option("load_a", str, None, "served runs: a load of the first; default: all its requests", form="LOAD")
LOAD_B = Option("load_b", str, None, "served runs: a load of the second; default: all its requests", form="LOAD")
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
ARGUMENTS = (
    Option("a", str, None, "id or name of the first run (A), or the beginning of either", of_run=True),
    Option("b", str, None, "the second run (B); of served runs also the same one with another load", of_run=True),
)
OPTIONS = (LOAD_A, LOAD_B, FAIL_IF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from app.comparing.gates import gate

    given, place = from_args(args, OPTIONS), workspace(args.store)
    gates = [gate(text) for text in values(args, OPTIONS)[FAIL_IF.name] or ()]
    a, b = place.store.find(args.a), place.store.find(args.b)
    if served(a, b, given):
        if gates:
            raise QuestionError(
                "a gate over two served runs",
                expected="two runs of a training job, or two that were compiled",
                advice="Read the differences with --json",
            )
        _served(a, b, given, args.json)
        return 0
    from app.comparing import job_words
    from app.comparing.sides import compare_jobs

    result = compare_jobs(a, b, place)
    judged = [(g.text, g.judge(result)) for g in gates]
    said = job_words.verdict(result)
    if args.json:
        told = {"a": a.run_id, "b": b.run_id, "verdict": said.whole, **result.to_dict()}
        print_json(told | ({"gates": [{"gate": t, "outcome": o} for t, o in judged]} if judged else {}))
    else:
        print_verdict(said)
        table = job_words.table(result)
        if table.rows:
            print_table(table.head, table.rows, right=table.right)
            print()
        for note in result.notes:
            print(f"- {printable(note)}")
        for text, outcome in judged:
            print(f"Gate {text}: {outcome}")
    outcomes = [outcome for _, outcome in judged]
    return GATE_FAILED if "failed" in outcomes else GATE_NOT_TOLD if "cannot be told" in outcomes else 0


def served(a: Run, b: Run, given: dict[str, object]) -> bool:
    """Whether two runs are compared request by request: both were served, or a load of one is named."""
    loads = given.get(LOAD_A.name) or given.get(LOAD_B.name)
    return bool(loads) or all(r.manifest.kind == "serving" for r in (a, b))


def _served(a: Run, b: Run, given: dict[str, str], json: bool) -> None:
    from app.comparing import compare_runs, words

    result = compare_runs(a, b, given.get(LOAD_A.name), given.get(LOAD_B.name))
    if json:
        print_json({"a": a.run_id, "b": b.run_id, **result.to_dict()})
        return
    print_verdict(words.verdict(result, a.manifest.name, b.manifest.name))
    table = words.table(result)
    print_table(table.head, table.rows, right=table.right)
    print()
    for note in (*result.traffic.warnings, *result.notes):
        print(f"- {printable(note)}")
