"""Which setup serves this traffic cheapest within its objectives, and why does each of the others lose?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.own_chip import MOST_CHARACTERS
from errors import InputError, QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.serving_plan.answers import ServingPlan
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
    parser.add_argument(
        "--formats",
        metavar="NAMES",
        help="of the weights, by comma: bf16, fp8, int8, fp4, int4, "
        "mxfp4, nvfp4, awq, gptq, published (default: as the model is published; in bf16 also "
        "the chip's faster 8-bit format)",
    )
    parser.add_argument(
        "--own-chip",
        metavar="JSON",
        help="a chip of your own: name, bf16_flops_per_s, hbm_bytes, "
        "hbm_bytes_per_s and other numbers of the catalogue, or like; usd_per_chip_hour",
    )
    if parser.add_help:  # a terminal's; the server takes no file
        parser.add_argument("--chip-file", metavar="FILE", help="the same in a file; may hold a list of chips")
    for name, what in TOKENS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=what)
    for name, what in NUMBERS.items():
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    parser.add_argument(
        "--calibrate",
        dest="run",
        metavar="RUN",
        help="a measured run of the store: its chip's shares "
        "of the peaks are fitted to it, those of other chips stay assumed",
    )
    parser.add_argument(
        "--stage",
        metavar="NAME",
        help="the load of that run that counts, where it holds several (default: the busiest that is kept whole)",
    )
    parser.add_argument(
        "--ran",
        metavar="NAME=VALUE",
        help="corrects or completes what that run says of its own "
        "setup, by comma: chips=2,max-sequences=64,cache-tokens=90000",
    )
    parser.add_argument(
        "--disaggregate",
        nargs="?",
        const="yes",
        choices=("yes", "no"),
        help="also compare with prefill and decode on machines of their own",
    )


def answer(args: argparse.Namespace, place: "Workspace | None") -> "ServingPlan":
    """Raises QuestionError where something is missing or cannot be."""
    from app.whatif.serving_plan.answers import find

    if getattr(args, "chip_file", None):
        if args.own_chip is not None:
            raise QuestionError("a chip of your own in two ways", expected="one of --own-chip and --chip-file")
        args.own_chip = _read(Path(args.chip_file))
    needed = ("model", "input", "output", "rate") if args.own_chip else ("model", "on", "input", "output", "rate")
    missing = [n for n in needed if getattr(args, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(f"--{m}" for m in missing))
    if args.run and place is None:
        raise QuestionError(f"no store is open to look for run {args.run!r}")
    runs = place.store.listing()[0] if place else ()
    return find(vars(args), place.store.find(args.run) if args.run and place else None, runs=runs)


def _read(path: Path) -> str:
    """The text of a chip file. Raises InputError where it cannot be read."""
    try:
        with path.open(encoding="utf-8") as f:
            return f.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "no text"
        raise InputError(f"the chip file cannot be read ({why})", where=str(path)) from e


def words(result: "ServingPlan") -> "Words":
    from app.whatif.serving_plan import wording

    return wording.words(result)
