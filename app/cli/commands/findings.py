"""`chipledger findings RUN`: what is wrong with a run, and a gate for scripts: `--fail-if "gain>5%"`."""

import argparse
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, printable
from app.options import add_arguments, add_flags, values
from app.words import rest_of
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import SHARE
from errors.options import Option

if TYPE_CHECKING:
    from analyzers.findings import FindingsResult

NAME = "findings"
HELP = "what is wrong with a run, what that costs and what to do; a gate for scripts"
FAILED, NOT_TOLD = 3, 4  # exit codes: a gate failed, a gate could not tell
GATE = re.compile(r"\s*(gain|joint|told|kept|useful)\s*([<>])\s*(\d{1,3}(?:\.\d{1,6})?)\s*(%?)\s*", re.ASCII)
GAINS = ("gain", "joint")
FORM = "gain>5%, joint>10%, told<80%, kept<90% or useful<30%"
ARGUMENTS = (Option("run", str, None, "id or name of a run, or the beginning of either", of_run=True, local=True),)
FLOOR = Option("floor", SHARE, None, "share of the chip time below which nothing is called a finding", local=True)
FAIL_IF = Option(
    "fail_if",
    str,
    (),
    "end with 3 where this holds, with 4 where it cannot be told: gain (of the largest finding), joint (of all), told, "
    "kept or useful against a share of the chip time",
    local=True,
    several=True,
    form="GATE",
)
OPTIONS = (FLOOR, FAIL_IF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from app.questions.asking import answer_dict, ask
    from app.questions.findings import FINDINGS

    given, place = values(args, OPTIONS), workspace(args.store)
    gates = [read_gate(text) for text in given[FAIL_IF.name] or ()]
    found = place.store.find(args.run)
    floor = {} if given[FLOOR.name] is None else {"floor": given[FLOOR.name]}
    result = ask(FINDINGS, found, floor, place.registry)
    judged = [(text, holds(result)) for text, holds in gates]
    if args.json:
        failed = [{"gate": text, "failed": outcome} for text, outcome in judged]
        print_json(answer_dict(found, result) | ({"gates": failed} if failed else {}))
    else:
        print_findings(result)
        for text, outcome in judged:
            words = {True: "failed", False: "passed", None: "cannot be told"}[outcome]
            print(f"Gate {text}: {words}")
    outcomes = [outcome for _, outcome in judged]
    return FAILED if True in outcomes else NOT_TOLD if None in outcomes else 0


def print_findings(result: "FindingsResult") -> None:
    """The verdict, and each finding with what it gives back, its evidence and its cure."""
    from app.questions.findings import FINDINGS, words

    said = FINDINGS.verdict(result)
    for text in (said, *rest_of(said)):
        print(printable(text))
    for number, finding in enumerate(result.findings, 1):
        worth = fmt.NO_VALUE
        if finding.gain is not None:
            low, likely, high = (
                fmt.share(s / result.whole) for s in (finding.gain.low, finding.gain.likely, finding.gain.high)
            )
            usd = result.usd(finding.likely)
            worth = f"{likely} of the chip time ({low} to {high}), {result.time(finding.likely)}"
            worth += f", {fmt.usd(usd)}" if usd is not None else ""
        print(f"\n{number}. {printable(finding.title)}")
        print(f"   gives back {worth}; {fmt.whole_share(finding.confidence)} sure of the cause")
        print(f"   {printable(result.cure(finding))}")
        evidence = words.evidence(finding, result.ledger.chips_known)
        print(f"   {printable(evidence)} See: show RUN {finding.question}")
    for gap in result.not_told:
        add = f" Add {gap.add}." if gap.add else ""
        print(f"\nNot told ({', '.join(gap.causes)}): {printable(gap.why)}.{add}")


def read_gate(text: str) -> tuple[str, Callable[["FindingsResult"], bool | None]]:
    """A gate as text, and what tells whether it holds of an answer (None: cannot be told). Raises QuestionError for
    what is none."""
    form = GATE.fullmatch(text)
    if form is None:
        raise QuestionError(f"no gate: {text[:40]!r}", expected=FORM)
    name, sign, number, percent = form.groups()
    bound = float(number) / (100 if percent else 1)
    if not 0 <= bound <= 1:
        raise QuestionError(f"{text[:40]!r} is no share of the chip time", expected=FORM)
    compare = operator.gt if sign == ">" else operator.lt

    def holds(result: "FindingsResult") -> bool | None:
        value = _value(result, name)
        if value is None or value <= bound < _at_most(result, name, value):
            return None
        return bool(compare(value, bound))

    return text.strip(), holds


def _at_most(result: "FindingsResult", name: str, value: float) -> float:
    """What a figure may be, as far as it is known: what cannot be judged, or was found and costs nobody knows how much,
    may give back any part of the chip time, and computing whose FLOPs nobody counts may be useful maths."""
    unknown = result.blind or result.unjudged is not None or any(f.gain is None for f in result.findings)
    if name in GAINS and (unknown or (name == "joint" and result.beyond)):
        return math.inf
    if name == "useful" and result.useful_least:
        return value + result.ledger.amount("compute_unsplit") / result.whole
    return value


def _value(result: "FindingsResult", name: str) -> float | None:
    """A figure of the answer as a share of the chip time. What is found stands; that nothing is found says nothing
    where most cannot be told."""
    if name in GAINS:
        gains: Sequence[float] = [f.likely for f in result.findings if f.gain]
        if not gains:
            return None if result.blind or result.unjudged or result.findings else 0.0
        return (max(gains) if name == "gain" else result.joint[-1]) / result.whole
    return {"told": result.told_share, "kept": result.kept_share, "useful": result.useful_share}[name]
