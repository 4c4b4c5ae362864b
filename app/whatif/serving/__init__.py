"""What would a model on these chips answer, and how fast, at this load? Every step of the engine is simulated."""

import argparse
from typing import TYPE_CHECKING, Any

from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.workspace import Workspace

NAME = "serving"
HELP = "latencies, throughput and cache of a model served on some chips at some load, by simulation"
COUNTS = {
    "chips": "all chips",
    "tensor": "chips that split every matrix (default: all of a replica)",
    "expert": "chips over which routed experts are dealt out",
    "replicas": "copies that run batches of their own",
    "input": "prompt tokens of a request",
    "output": "tokens generated for a request",
    "concurrency": "requests in flight at any time, instead of a rate",
    "prefix": "prompt tokens found in the cache",
    "requests": "how many requests (default: 1,000, or all of a trace)",
    "seed": "of what is drawn at random",
    "max-sequences": "requests that a replica may run at a time (default: 256)",
    "token-budget": "tokens of one step (default: 8192)",
    "page-tokens": "tokens of a page of the cache (default: 16)",
    "draft": "tokens that are proposed ahead in each step",
}
NUMBERS = {
    "rate": "requests per second",
    "burst": "coefficient of variation of the gaps between them (default: 1, Poisson)",
    "faster": "traffic of a trace or a run, so many times as fast",
    "memory-utilization": "share of a chip's memory that the engine may use (default: 0.9)",
    "acceptance": "share of proposed tokens kept, each given all before it were",
    "cost": "time of a draft step by that of a step (default: 0)",
    "peak-flops-per-s": "dense peak of a chip, where the catalogue knows none",
}
FORMATS = {
    "precision": "weights (default: the run's, else as the model is published)",
    "experts-precision": "weights of routed experts",
    "kv-precision": "the key-value cache (default: bf16)",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="a model of the catalogue")
    parser.add_argument("--chip", metavar="NAME", help="a chip of the catalogue")
    for name, what in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=what, default=0 if name == "seed" else None)
    for name, what in NUMBERS.items():
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    for name, what in FORMATS.items():
        parser.add_argument(f"--{name}", metavar="FORMAT", help=f"format of {what}")
    parser.add_argument(
        "--routing",
        choices=("round_robin", "least_loaded"),
        default="round_robin",
        help="which replica a request goes to",
    )
    parser.add_argument(
        "--disaggregate",
        nargs="?",
        const="yes",
        choices=("yes", "no"),
        default="no",
        help="prefill and decode on machines of their own",
    )
    parser.add_argument(
        "--calibrate",
        dest="run",
        metavar="RUN",
        help="a measured run of the store: the model is "
        "fitted to it, and its setup and traffic count where no other is given",
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
    if parser.add_help:  # a terminal's; the server takes no file
        parser.add_argument("--trace", metavar="FILE", help="requests to replay: Azure, Mooncake, CSV or JSON lines")
        parser.add_argument("--out", metavar="FOLDER", help="write the simulated run there, to be ingested")


def answer(args: argparse.Namespace, place: "Workspace | None") -> Any:
    """Raises QuestionError where something is missing, does not fit, or cannot be."""
    from app.whatif.serving import answers

    run = None
    if args.run:
        if place is None:
            raise QuestionError(f"no store is open to look for run {args.run!r}")
        run = place.store.find(args.run)
    return answers.find(args, run)


def words(result: Any) -> "Words":
    from app.whatif.serving import wording

    return wording.words(result)
