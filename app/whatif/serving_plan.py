"""Which setup serves this traffic cheapest within its objectives, and why does each of the others lose?"""

import argparse
from typing import TYPE_CHECKING

from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.serving_plan_answer import ServingPlan
    from app.workspace import Workspace

NAME = "serving-plan"
HELP = "find the setup that serves a traffic cheapest, and why the others lose"
TOKENS = {
    "input": "prompt tokens of a request",
    "output": "tokens generated for a request",
    "prefix": "prompt tokens found in the prefix cache (default: 0)",
    "max-sequences": "requests that a replica may run at a time (default: 256)",
    "token-budget": "tokens of one step of the engine (default: 8192)",
}
NUMBERS = {
    "rate": "requests per second",
    "burst": "coefficient of variation of the gaps between requests (default: 1, Poisson)",
    "ttft-s": "time to first token that must be kept, seconds",
    "tpot-s": "time per output token that must be kept, seconds",
    "e2e-s": "time to the last token that must be kept, seconds",
    "percentile": "of the requests that must keep them (default: 99)",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="a model of the catalogue")
    parser.add_argument("--on", metavar="CHIPS", help="chips to try, by comma: v6e,h100,b200")
    parser.add_argument("--price", metavar="CHIP=USD", help="dollars per chip-hour, by comma: v6e=2.7,h100=3.5")
    parser.add_argument("--formats", metavar="NAMES", help="of the weights, by comma: bf16,fp8,int8 (default: bf16 and "
                        "the chip's faster 8-bit format)")  # fmt: skip
    for name, what in TOKENS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=what)
    for name, what in NUMBERS.items():
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    parser.add_argument("--calibrate", dest="run", metavar="RUN", help="a measured run of the store: its chip's shares "
                        "of the peaks are fitted to it, those of other chips stay assumed")  # fmt: skip
    parser.add_argument("--disaggregate", nargs="?", const="yes", choices=("yes", "no"),
                        help="also compare with prefill and decode on machines of their own")  # fmt: skip


def answer(args: argparse.Namespace, place: "Workspace | None") -> "ServingPlan":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.serving_plan_answer import find

    missing = [n for n in ("model", "on", "input", "output", "rate") if getattr(args, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(f"--{m}" for m in missing))
    if args.run and place is None:
        raise QuestionError(f"no store is open to look for run {args.run!r}")
    return find(vars(args), place.store.find(args.run) if args.run and place else None)


def words(result: "ServingPlan") -> "Words":
    from app.whatif import serving_plan_words

    return serving_plan_words.words(result)
