"""`chipledger compare A B`: what changed from one run to the other, whether it is worse, and a gate for scripts."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable, write_file
from app.comparing.options import LOADS, SIDES, WHATIF, B
from app.options import add_arguments, add_flags, values
from app.workspace import Workspace, workspace
from errors import ChipledgerError, QuestionError
from errors.options import Option

if TYPE_CHECKING:
    from app.comparing.answer import Compared
    from app.comparing.gates import Judged

NAME = "compare"
HELP = "what changed from one run to another, whether it is worse, and why; of served runs request by request"
GATE_FAILED, GATE_NOT_TOLD = 3, 4  # exit codes: a gate failed, a gate could not tell
FAIL_IF = Option(
    "fail_if",
    str,
    (),
    "end with 3 where this holds, with 4 where it cannot be told: step_time>+1%, tokens_per_s<-1%, peak_memory>+5%, "
    "held_per_step>+5% (all chip time a kept step) or an account of a step such as input_wait>+0.5%, each a share of "
    "A's; mfu<-0.5 or goodput<-2 in points; of served runs ttft_p99>+10%, tpot_p50>+5%, e2e_mean>+5% (each also _mean, "
    "_p50, _p99) or output_tokens_per_s<-5%",
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
MARKDOWN = Option(
    "markdown", str, None, "write it as Markdown for a comment on a pull request", local=True, form="FILE"
)
JUNIT = Option(
    "junit",
    str,
    None,
    "write the gates as JUnit XML: a case each, a failure where it failed, an error where it could not be told",
    local=True,
    form="FILE",
)
ARGUMENTS = (*SIDES, MORE)
MAY_LACK = (B, MORE)
OPTIONS = (*LOADS, WHATIF, FAIL_IF, MARKDOWN, JUNIT, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from app.comparing.gates import FAILED, NOT_TOLD, gates

    given, place = values(args, OPTIONS), workspace(args.store)
    if given[WHATIF.name] is not None:
        _beside_model(args.a, args.b, given, place)
        return 0
    if args.b is None:
        raise QuestionError("one run is compared with nothing", expected=f"another run, or {WHATIF.flag} {WHATIF.form}")
    try:
        asked = gates(given[FAIL_IF.name] or ())
        if args.more:
            _refuse(any(given[o.name] for o in (FAIL_IF, MARKDOWN, JUNIT, *LOADS)))
            from app.cli.several import print_several

            print_several(place, (args.a, args.b, *args.more), args.json)
            return 0
        if given[JUNIT.name] and not asked:
            raise QuestionError(f"{JUNIT.flag} has no gate to tell of", expected=f"{FAIL_IF.flag} beside it")
        found = _found(args.a, args.b, given, place)
        judged = [g.look(found.sides) for g in asked]
    except ChipledgerError as e:
        _write_refused(args.a, args.b, given, str(e))
        raise
    _write(found, judged, given)
    _print(found, judged, args.json)
    outcomes = {j.outcome for j in judged}
    return GATE_FAILED if FAILED in outcomes else GATE_NOT_TOLD if NOT_TOLD in outcomes else 0


def _beside_model(a: str, b: str | None, given: Mapping[str, Any], place: Workspace) -> None:
    from app.comparing import modelled_words as words
    from app.comparing.modelled import beside_model

    if b is not None or any(given[o.name] for o in (FAIL_IF, MARKDOWN, JUNIT, *LOADS)):
        wanted = "one run, and no gate, load or report: a model has no scatter that a gate could tell"
        raise QuestionError(f"{WHATIF.flag} beside another run, a gate, a load or a report", expected=wanted)
    found = beside_model(a, given[WHATIF.name], place)
    if given[JSON.name]:
        print_json(words.told(found))
        return
    print_verdict(words.verdict(found))
    print_table(words.table(found).head, words.table(found).rows, right=words.table(found).right)
    print()
    for note in found.notes:
        print(f"- {printable(note)}")


def _refuse(given: object) -> None:
    """What is asked of two runs alone."""
    if given:
        raise QuestionError("a gate, a load or a report over more than two runs", expected="two runs, A and B")


def _found(a: str, b: str, given: Mapping[str, Any], place: Workspace) -> "Compared":
    from app.baselines import find_run
    from app.comparing.answer import Compared

    return Compared(find_run(place, a), find_run(place, b), place, *(given[o.name] for o in LOADS))


def _print(found: "Compared", judged: "Sequence[Judged]", as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict() | ({"gates": [j.to_dict() for j in judged]} if judged else {}))
        return
    print_verdict(found.verdict)
    if found.table.rows:
        print_table(found.table.head, found.table.rows, right=found.table.right)
        print()
    for note in found.notes:
        print(f"- {printable(note)}")
    for j in judged:
        print(f"Gate {j.gate}: {j.outcome}. {printable(j.why)}")


def _write(found: "Compared", judged: "Sequence[Judged]", given: Mapping[str, Any]) -> None:
    from app.comparing.junit import junit
    from app.comparing.markdown import markdown

    if given[MARKDOWN.name]:
        write_file(given[MARKDOWN.name], markdown(found, judged))
    if given[JUNIT.name]:
        write_file(given[JUNIT.name], junit(*found.names, judged, found.verdict.whole))


def _write_refused(a: str, b: str, given: Mapping[str, Any], why: str) -> None:
    """What a build reads says why nothing was compared; what an earlier one left there is not taken for an answer."""
    from app.comparing.gates import NOT_TOLD, Judged
    from app.comparing.junit import junit
    from app.comparing.markdown import refused

    texts = dict.fromkeys(text.strip()[:80] for text in given[FAIL_IF.name] or ())
    judged = [Judged(gate=text, outcome=NOT_TOLD, why=why) for text in texts]
    if given[MARKDOWN.name]:
        write_file(given[MARKDOWN.name], refused(a, b, judged, why))
    if given[JUNIT.name]:
        none = Judged(gate="no gate", outcome=NOT_TOLD, why=why)  # a file without a case would be taken for passed
        write_file(given[JUNIT.name], junit(a, b, judged or [none], why))
