"""How long does a collective take on a topology, what bounds it, and from which size is it worth its hops?"""

import argparse
import re
from typing import TYPE_CHECKING

from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.collective.answers import CollectiveAnswer
    from app.workspace import Workspace

NAME = "collective"
HELP = "how long a collective takes on a topology, whether hops or bytes bound it, and where one gives way to the other"
_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{binary}b": (1024 if binary else 1000) ** power
    for power, prefix in enumerate("kmgtp", 1)
    for binary in ("", "i")
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)\s*([a-z]*)")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topology",
        metavar="SPEC",
        help="such as v5p:4x4x8, boardfly:1024, nvl:72, rail:1024, v5p:4x4x4:slices=2 or graph:FILE",
    )
    parser.add_argument("--kind", metavar="KIND", help="all_gather, reduce_scatter, all_reduce, all_to_all or permute")
    parser.add_argument("--bytes", metavar="SIZE", help="the whole array, spread over the chips: 1GiB, 64kB, 1e9")
    parser.add_argument(
        "--axes",
        metavar="AXES",
        help="of a mesh or torus, such as x,y: each group of chips along them by itself (default: all chips)",
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=1,
        metavar="N",
        help="parts that axes not named cut the array into as well (default: 1)",
    )
    parser.add_argument("--rates", default="docs", metavar="SOURCE", help="of links: docs (default) or scaling-book")
    for name, what in (
        ("link-bytes-per-s", "of each link, one way, instead of the catalogue's"),
        ("hop-s", "to cross a link, in seconds (default: 1e-6, assumed)"),
        ("dcn-bytes-per-s", "of a chip between slices, one way; the same"),
    ):
        parser.add_argument(f"--{name}", type=float, metavar="NUMBER", help=what)
    parser.add_argument(
        "--routing",
        default="shortest",
        metavar="ROUTING",
        help="of an all-to-all: shortest (default), one_ocs, dimension_order",
    )
    parser.add_argument("--sharp", default="no", metavar="yes|no", help="an all-reduce is added up in the switches")
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="WHAT",
        help="what failed, such as chip=5 or link=12-13; several with ; between",
    )


def answer(args: argparse.Namespace, place: "Workspace | None") -> "CollectiveAnswer":
    """Raises QuestionError: what is missing, or cannot be asked of this topology."""
    from app.whatif.collective.answers import answered

    for name, example in (("topology", "v5p:4x4x8"), ("kind", "all_gather"), ("bytes", "1GiB")):
        if not getattr(args, name):
            raise QuestionError(f"no {name}", expected=f"such as --{name} {example}")
    if args.sharp not in ("yes", "no"):
        raise QuestionError(f"sharp {args.sharp!r}", expected="yes or no")
    return answered(
        args.topology,
        tuple(f.strip() for text in args.fail for f in text.split(";") if f.strip()),
        place,
        kind=args.kind,
        array_bytes=size_of(args.bytes),
        axes=axes_of(args.axes),
        shards=args.shards,
        rates=args.rates,
        link_bytes_per_s=args.link_bytes_per_s,
        hop_s=args.hop_s,
        dcn_bytes_per_s=args.dcn_bytes_per_s,
        routing=args.routing,
        sharp=args.sharp == "yes",
    )


def words(result: "CollectiveAnswer") -> "Words":
    from app.whatif.collective import wording

    return wording.words(result)


def size_of(text: str) -> float:
    """Bytes of `1GiB`, `64 kB`, `1e9`. Raises QuestionError."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise QuestionError(f"size {text[:40]!r}", expected="bytes, such as 1073741824, 1GiB, 512MiB or 64kB")
    return float(found[1]) * _UNITS[found[2]]


def axes_of(text: str | None) -> tuple[str, ...]:
    """`x,y` as names; nothing for all chips."""
    return tuple(a.strip().lower() for a in (text or "").split(",") if a.strip())
