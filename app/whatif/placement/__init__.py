"""Onto which axes of a slice should the axes of a mesh go, which of them close to rings, and what does a step cost?"""

import argparse
from typing import TYPE_CHECKING

from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.placement.answers import Answer
    from app.workspace import Workspace

NAME = "placement"
HELP = "onto which axes of a slice the axes of a mesh should go, and what a step costs on each way"
MODEL, EXPERT_MODEL = "llama3.1-8b", "qwen3-30b-a3b"  # where none is named: a dense one; for expert axes one with them
SEQ = 4096
SHOWN, MOST_SHOWN = 20, 500
MOST_BATCH, MOST_SEQ = 10_000_000, 100_000_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topology", metavar="SPEC", help="such as v5p:4x4x8, v6e:8x16, v5e:16x16:slices=4, rail:1024")
    parser.add_argument(
        "--mesh",
        metavar="AXES",
        help="such as data=8,model=16; data, fsdp, tensor, expert, context, pipeline; axes that talk most last",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"a model of the catalogue (default: {MODEL}, with an expert axis {EXPERT_MODEL})",
    )
    parser.add_argument("--batch", type=int, metavar="N", help="sequences of a step (default: one for each chip)")
    parser.add_argument("--seq", type=int, metavar="TOKENS", help=f"tokens of a sequence (default: {SEQ})")
    parser.add_argument("--dtype", default="bf16", help="of weights and activations: bf16, fp8 or fp32")
    parser.add_argument(
        "--overlap",
        default="weights",
        help="what runs beside the maths: weights (default: weights and gradients), full or none",
    )
    parser.add_argument(
        "--microbatches",
        type=int,
        metavar="N",
        help="of a pipeline (default: 4 a stage, or as many sequences as there are)",
    )
    parser.add_argument("--chip", metavar="NAME", help="whose links and peak count, for a topology of none")
    for name, what in (
        ("link-bytes-per-s", "a link, one way"),
        ("dcn-bytes-per-s", "the data-centre network, a chip"),
        ("hop-s", "across a link"),
        ("peak-flops-per-s", "the peak of a chip"),
    ):
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=f"{what}, instead of the catalogue's")
    parser.add_argument("--limit", type=int, default=SHOWN, metavar="N", help=f"placements told (default: {SHOWN})")


def answer(args: argparse.Namespace, place: "Workspace | None") -> "Answer":
    """Raises QuestionError: a mesh that does not fit, with what would."""
    from app.topologies import network
    from app.whatif.placement.answers import Asked, answered
    from simulators.placement.build import Given
    from simulators.placement.mesh import parse_mesh

    for name, what in (("topology", "such as --topology v5p:4x4x8"), ("mesh", "such as --mesh data=8,model=16")):
        if not getattr(args, name):
            raise QuestionError(f"no {name}", expected=what)
    _check(args)
    spec, net = network(args.topology, place)
    axes = parse_mesh(args.mesh)
    given = Given(
        chip=args.chip,
        link_bytes_per_s=args.link_bytes_per_s,
        hop_s=args.hop_s,
        dcn_bytes_per_s=args.dcn_bytes_per_s,
        peak_flops_per_s=args.peak_flops_per_s,
    )
    asked = Asked(
        model=args.model,
        batch=args.batch,
        seq=args.seq,
        dtype=args.dtype,
        overlap=args.overlap,
        microbatches=args.microbatches,
        limit=args.limit,
    )
    return answered(spec, net, axes, asked, given)


def words(result: "Answer") -> "Words":
    from app.whatif.placement import wording

    return wording.words(result)


def _check(args: argparse.Namespace) -> None:
    from simulators.placement.search import OVERLAPS
    from simulators.placement.traffic import DTYPES

    for name, allowed in (("dtype", DTYPES), ("overlap", OVERLAPS)):
        if getattr(args, name) not in allowed:
            raise QuestionError(f"{name} {getattr(args, name)!r}", expected=f"one of {', '.join(allowed)}")
    most = {"batch": MOST_BATCH, "seq": MOST_SEQ, "microbatches": MOST_BATCH, "limit": MOST_SHOWN}
    for name, limit in most.items():
        value = getattr(args, name)
        if value is not None and not 1 <= value <= limit:
            raise QuestionError(f"{name} {value:,}", expected=f"a whole number from 1 to {limit:,}")
