"""Collectives of the systems compared: the same array on each, at the link rates of their chips."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.pages.topology.compare_figure import Bar, Small
from app.pages.topology.lab import Lab, networks_of
from errors import QuestionError
from errors import format as fmt
from simulators.collectives import Collective, collective
from simulators.topology.network import Network
from simulators.topology.report import Report

SIZES = {f"{n * 10**p}": f"{n} {u}" for p, u in ((6, "MB"), (9, "GB")) for n in (1, 16, 256)}
DEFAULT = str(10**9)
KINDS = (("all_to_all", "All-to-all"), ("all_reduce", "All-reduce"))


@dataclass(frozen=True)
class Times:
    """`found[kind]`: one for each system, None where it has no answer. `rate`: bytes/s of a link one way lent to those
    systems that name no chip, by the name of the chip that lent it."""

    array_bytes: int
    found: dict[str, list[Collective | None]]
    rate: tuple[float, str] | None


def times(lab: Lab, reports: Sequence[Report], array_bytes: int) -> Times:
    """All-to-all and all-reduce of an array of this size over all chips of each system."""
    networks = [broken for _, broken in networks_of(lab, reports)]
    rate = lent(networks)
    found = {kind: [_one(n, kind, array_bytes, rate) for n in networks] for kind, _ in KINDS}
    return Times(array_bytes, found, rate)


def lent(networks: Sequence[Network]) -> tuple[float, str] | None:
    """A system without a chip gets links as fast as the first named chip's, so that like is compared with like."""
    if all(n.oneway_bytes_per_s for n in networks):
        return None
    return next(
        ((max(n.oneway_bytes_per_s.values()), n.chip) for n in networks if n.oneway_bytes_per_s and n.chip), None
    )


def _one(network: Network, kind: str, array_bytes: int, rate: tuple[float, str] | None) -> Collective | None:
    given = rate[0] if rate and not network.oneway_bytes_per_s else None
    try:
        return collective(network, kind, array_bytes, link_bytes_per_s=given)
    except QuestionError:
        return None


def charts(told: Times) -> list[Small]:
    """One small chart for each kind of collective, bands as whiskers."""
    return [
        Small(f"{title}, {SIZES[str(told.array_bytes)]}", "less", tuple(_bar(c) for c in told.found[kind]))
        for kind, title in KINDS
    ]


def _bar(found: Collective | None) -> Bar:
    if found is None:
        return Bar(None, "not known")
    return Bar(found.seconds, fmt.duration(found.seconds), found.low_s, found.high_s)


def sentences(told: Times, reports: Sequence[Report]) -> list[str]:
    """Times with their bands, the fastest first, and whose link rate was lent."""
    lines = []
    for kind, title in KINDS:
        known = [(c, r.spec.text) for c, r in zip(told.found[kind], reports, strict=True) if c is not None]
        known.sort(key=lambda pair: pair[0].seconds)
        texts = [
            f"{name} {fmt.duration(c.seconds)} ({fmt.duration(c.low_s)} to {fmt.duration(c.high_s)}, bound by "
            f"{c.bound})"
            for c, name in known
        ]
        if len(known) > 1:
            ratio = known[-1][0].seconds / known[0][0].seconds
            lines.append(
                f"{title} of {SIZES[str(told.array_bytes)]}, modelled: {'; '.join(texts)}. {known[0][1]} is "
                f"{ratio:.2f} times as fast as {known[-1][1]}."
            )
    if lines and told.rate:
        lines.append(
            f"Systems that name no chip are given links as fast as those of {told.rate[1]}, "
            f"{fmt.size(told.rate[0])}/s one way."
        )
    return lines


def columns(told: Times, number: int) -> dict[str, float | None]:
    """What the table to take away says of one system."""
    row: dict[str, float | None] = {"array_bytes": told.array_bytes}
    for kind, _ in KINDS:
        one = told.found[kind][number]
        row |= {
            f"{kind}_s": one and one.seconds,
            f"{kind}_low_s": one and one.low_s,
            f"{kind}_high_s": one and one.high_s,
        }
    return row
