"""What `whatif collective` can be asked, and how its texts are read."""

import re
from dataclasses import dataclass

from errors import QuestionError
from errors.numbers import COUNT, HOP, PER_SECOND
from errors.options import Option

_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{binary}b": (1024 if binary else 1000) ** power
    for power, prefix in enumerate("kmgtp", 1)
    for binary in ("", "i")
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)\s*([a-z]*)")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. topology, kind and bytes must be given; of the rest None: the catalogue's."""

    topology: str | None = None
    kind: str | None = None
    bytes: str | None = None
    axes: str | None = None
    shards: int = 1
    rates: str = "docs"
    link_bytes_per_s: float | None = None
    hop_s: float | None = None
    dcn_bytes_per_s: float | None = None
    routing: str = "shortest"
    sharp: str = "no"
    fail: tuple[str, ...] = ()


OPTIONS: tuple[Option, ...] = (
    Option(
        "topology",
        str,
        None,
        "such as v5p:4x4x8, boardfly:1024, nvl:72, rail:1024, v5p:4x4x4:slices=2 or graph:FILE",
        form="SPEC",
    ),
    Option(
        "kind",
        ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"),
        None,
        "which collective",
        label="Collective",
    ),
    Option("bytes", str, None, "the whole array, spread over the chips: 1GB, 64kB, 1e9", label="Array", form="SIZE"),
    Option(
        "axes",
        str,
        None,
        "of a mesh or torus, such as x,y: each group of chips along them by itself (default: all chips)",
        label="Over all chips, or within groups along",
        form="AXES",
    ),
    Option("shards", COUNT, 1, "parts that axes not named cut the array into as well"),
    Option("rates", ("docs", "scaling-book"), "docs", "whose rates of links", label="Link rates"),
    Option("link_bytes_per_s", PER_SECOND, None, "of each link, one way, instead of the catalogue's", "bytes/s"),
    Option("hop_s", HOP, None, "to cross a link, in seconds (default: 1e-6, assumed)", "s"),
    Option("dcn_bytes_per_s", PER_SECOND, None, "of a chip between slices, one way; the same", "bytes/s"),
    Option(
        "routing",
        ("shortest", "one_ocs", "dimension_order"),
        "shortest",
        "of an all-to-all or a permutation, where the network has it",
    ),
    Option("sharp", ("yes", "no"), "no", "an all-reduce is added up in the switches"),
    Option(
        "fail",
        str,
        (),
        "what failed, such as chip=5 or link=12-13; several with ; between",
        form="WHAT",
        several=True,
    ),
)


def size_of(text: str) -> float:
    """Bytes of `1GiB`, `64 kB`, `1e9`. Raises QuestionError."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise QuestionError(f"size {text[:40]!r}", expected="bytes, such as 1073741824, 1GiB, 512MiB or 64kB")
    return float(found[1]) * _UNITS[found[2]]


def axes_of(text: str | None) -> tuple[str, ...]:
    """`x,y` as names; nothing for all chips."""
    return tuple(a.strip().lower() for a in (text or "").split(",") if a.strip())


def failures_of(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Each failure by itself."""
    return tuple(f.strip() for text in texts for f in text.split(";") if f.strip())
