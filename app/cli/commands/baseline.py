"""`chipledger baseline`: names for the runs that others are held against, and what each of them ever led to."""

import argparse
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, print_json, print_table, printable, user
from app.options import add_arguments, add_flags, by_place, values
from app.workspace import Workspace, workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import Option

if TYPE_CHECKING:
    from app.baselines import Baseline
    from runs.baseline_book import Move

NAME = "baseline"
HELP = "name the run that others are held against: `compare baseline:NAME RUN` finds it"
API = "/api/baselines"
LIST, SHOW, SET, ACCEPT, REMOVE = ACTS = ("list", "show", "set", "accept", "remove")
ACT = Option(
    "act",
    ACTS,
    LIST,
    "set a new name, accept another run under it (the former stays told), show where it led, remove it, or list all",
    local=True,
)
BASELINE = Option("name", str, None, "name of a baseline, such as main", local=True, form="NAME")
RUN = Option("run", str, None, "the run that it is to lead to", of_run=True, local=True)
WHY = Option("why", str, "", "why, as its history tells it", local=True)
ARGUMENTS = MAY_LACK = (ACT, BASELINE, RUN)
OPTIONS = (WHY, JSON)
TAKES = {LIST: "", SHOW: "NAME", SET: "NAME RUN", ACCEPT: "NAME RUN", REMOVE: "NAME"}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    told, given, place = by_place(args, ARGUMENTS), values(args, OPTIONS), workspace(args.store)
    act, name, of = (told[o.name] for o in ARGUMENTS)
    _check(act, name, of)
    body, lines = ANSWERS[act](place, name, of, given[WHY.name])
    if given[JSON.name]:
        print_json(body)
    else:
        for line in lines:
            print(printable(line))
        if act in (LIST, SHOW):
            _print_rows(act, body)


def _check(act: str, name: str | None, of: str | None) -> None:
    """Raises QuestionError where it is given less than it takes, or more."""
    given = " ".join(form for form, value in (("NAME", name), ("RUN", of)) if value is not None)
    if given != TAKES[act]:
        raise QuestionError(
            f"`baseline {act}` is given {given or 'nothing'}",
            expected=f"chipledger baseline {act} {TAKES[act]}".strip(),
        )


Told = tuple[dict[str, Any], list[str]]  # as JSON, and in lines


def _listed(place: Workspace, name: str, of: str, why: str) -> Told:
    from app.baselines import baselines

    found = baselines(place)
    none = [] if found else ["No baseline is named. Name one with `chipledger baseline set NAME RUN`."]
    return {"baselines": [b.to_dict() for b in found]}, none


def _shown(place: Workspace, name: str, of: str, why: str) -> Told:
    from app.baselines import shown

    now, past = shown(place, name)
    line = f"{past[0].name} was removed." if now is None else _leads(now)
    return {"baseline": now.to_dict() if now else None, "history": [m.to_dict() for m in past]}, [line]


def _set(place: Workspace, name: str, of: str, why: str) -> Told:
    from app.baselines import set_baseline

    now = set_baseline(place, name, of, who=user(), why=why)
    return {"baseline": now.to_dict()}, [_leads(now)]


def _accepted(place: Workspace, name: str, of: str, why: str) -> Told:
    from app.baselines import accept

    before, now = accept(place, name, of, who=user(), why=why)
    former = "It led there already." if before == now.move else f"Before it led to {_run(before)}."
    return {"baseline": now.to_dict(), "before": before.to_dict()}, [f"{_leads(now)} {former}"]


def _removed(place: Workspace, name: str, of: str, why: str) -> Told:
    from app.baselines import remove

    before = remove(place, name, who=user(), why=why)
    return {"removed": before.to_dict()}, [f"{before.name} leads nowhere any more; it led to {_run(before)}."]


ANSWERS = {LIST: _listed, SHOW: _shown, SET: _set, ACCEPT: _accepted, REMOVE: _removed}


def _leads(now: "Baseline") -> str:
    return f"{now.name} leads to {now.now_called} ({str(now.move.run_id)[:12]}), {now.where}."


def _run(move: "Move") -> str:
    return f"{move.run_name} ({str(move.run_id)[:12]})"


def _print_rows(act: str, body: dict[str, Any]) -> None:
    rows = body["history" if act == SHOW else "baselines"]
    if not rows:
        return
    head = ("name", "run", "id", "since" if act == LIST else "when", "by", "why", *(("it is",) if act == LIST else ()))
    print_table(head, [_row(r) for r in rows])


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    run = row["run_name"] if row["run_id"] else "(removed)"
    last = (row["state"],) if "state" in row else ()
    return row["name"], run, (row["run_id"] or "")[:12], fmt.date(row["written_ns"]), row["who"], row["why"], *last
