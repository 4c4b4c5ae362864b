"""How often should checkpoints be saved, and what would each cure give back? From numbers given, or from a run."""

import argparse
from typing import TYPE_CHECKING

from app.questions.checkpoints import CHECKPOINTS
from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.checkpoint.plan import Plan
    from app.workspace import Workspace

NAME = "checkpoint"
HELP = "how often to save checkpoints, and what asynchronous saves, spares or elastic training would give back"
_SECONDS = {
    "save-s": "from the beginning of a save until the checkpoint is safe",
    "blocked-s": "the part of a save that blocks training (default: all of it)",
    "mttf-s": "mean time to failure of the whole job",
    "restart-s": "from having machines again to training: initialisation, restore, compilation (default: 0)",
    "wait-s": "from a failure to having machines again; nothing can fail then (default: 0)",
    "interval-s": "work between two saves as it is now",
    "local-save-s": "blocking time of a save to a local tier",
    "local-restart-s": "a restart from the local tier (default: as any restart)",
    "resume-s": "each of the two pauses of elastic training (default: a restart)",
    "span-s": "time to which the gains are applied",
}
_NUMBERS = {
    "nodes": "nodes of the job, instead of --mttf-s with --failures-per-1000-node-days",
    "failures-per-1000-node-days": "failures of one node in 1,000 days, times 1,000 nodes over a day",
    "local-share": "share of failures that the local tier survives, 0 to 1 (default: 0.8)",
    "slices": "slices of the job: what elastic training goes on without one of",
    "chips": "chips of the job",
    "usd-per-chip-hour": "price of a chip-hour in dollars",
    "weibull-shape": "shape of the times between failures in the check by simulation (default: 1, exponential)",
}


KNOWN = {name.replace("-", "_") for name in (*_SECONDS, *_NUMBERS)}


def arguments(parser: argparse.ArgumentParser) -> None:
    for name, what in _SECONDS.items():
        parser.add_argument(f"--{name}", type=float, metavar="SECONDS", help=what)
    for name, what in _NUMBERS.items():
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    parser.add_argument("--run", metavar="RUN", help="a run of the store: what is not given is taken from it")


def answer(args: argparse.Namespace, place: "Workspace | None") -> "Plan":
    """Raises QuestionError where a number is missing or cannot be."""
    from app.questions import asking as questions
    from app.whatif.checkpoint.plan import plan

    given = {n: v for n, v in vars(args).items() if n in KNOWN and v is not None}
    found = None
    if args.run:
        if place is None:
            raise QuestionError(f"no store is open to look for run {args.run!r}")
        found = questions.ask(CHECKPOINTS, place.store.find(args.run), {}, place.registry)
    return plan(given, found)


def words(result: "Plan") -> "Words":
    from app.whatif.checkpoint import wording

    return wording.words(result)
