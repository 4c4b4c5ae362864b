"""A topology in words: how far, how narrow, how loaded, and the one thing that matters about it."""

from collections.abc import Sequence

from app.words import Table, Verdict, headline, sentence
from catalog.slices import families
from errors import format as fmt
from simulators.topology.lattice import Lattice
from simulators.topology.report import Report
from simulators.topology.systems.boardfly import GROUP

NAME = "topology"
KINDS = {
    "boardfly": "a Boardfly",
    "nvlink": "an NVLink domain",
    "direct": "each joined to each other",
    "rail": "a rail-optimised fat tree",
    "graph": "a graph of your own",
}
ROUTED = {"shortest": "all shortest paths alike", "one_ocs": "at most one OCS hop", "dimension_order": "axis by axis"}


def verdict(report: Report) -> Verdict:
    """What happened to it, what it is with its hops, its narrowest half and its busiest link, and what matters."""
    told = [*(report.after["truth"][:1] if report.after else ()), f"{who(report)}: {hops(report)}."]
    joined = cut(report)
    return headline(*told, matter(report), f"{sentence(joined)}." if joined else "")


def who(report: Report) -> str:
    """`512 chips, TPU v5p 4x8x16, a torus of 8 cubes`."""
    spec = report.spec
    chips = "GPUs" if spec.chip and not spec.chip.startswith("TPU") else "chips"
    text = fmt.count(report.chips, chips[:-1])
    if report.after:
        text = f"{report.chips:,} of {spec.chips:,} {chips} left"
    shape = "x".join(map(str, spec.dims))
    kind = KINDS.get(report.kind, f"a {report.kind}") + (f" of {shape}" if shape and not spec.chip else "")
    if report.kind == "boardfly":
        kind += f" of {fmt.count(spec.chips // GROUP, 'group')}"
    if chips == "GPUs":
        kind = f"{spec.chip}, {kind}"
    if spec.chip and shape:
        slices = f"{spec.slices} slices of " if spec.slices > 1 else ""
        kind = f"{slices}{spec.chip} {shape}, {kind}"
    if report.cubes:
        kind += f" of {fmt.count(report.cubes, 'cube')}"
    return f"{text}, {kind}"


def hops(report: Report) -> str:
    """`at most 16 hops, 8.01 on average`."""
    if report.hops.diameter is None or not report.hops.mean:
        return "no pair of chips has a path"
    inside = " inside a slice" if report.dcn_pairs else ""
    return f"at most {fmt.count(report.hops.diameter, 'hop')}, {fmt.number(report.hops.mean)} on average{inside}"


def cut(report: Report) -> str:
    """`128 links join its halves; under all-to-all the busiest carries 2,048 pairs of chips each way`."""
    load = report.max_link_load
    busy = f"under all-to-all the busiest link carries {pairs(load)} pairs of chips" if load else ""
    return "; ".join(filter(None, (halves(report), busy)))


def pairs(load: float) -> str:
    """`2,048`, `1,189`, `3.94`: ordered pairs of chips on a link."""
    return f"{load:,.0f}" if load >= 100 or load == round(load) else fmt.number(load)


def halves(report: Report) -> str:
    """How many links join the two halves where they are joined least, or between which bounds that lies."""
    found = report.bisection
    each = "the halves of a slice" if report.dcn_pairs else "its halves"
    if found.links is None:
        return ""
    if found.exact:
        return f"{fmt.count(found.links, 'link')} join{'s' * (found.links == 1)} {each}"
    low = f" and at least {found.low:,}" if found.low else ""
    return f"at most {found.links:,}{low} links join {each}"


def matter(report: Report) -> str:
    """What a person who asks for this should know before anything else; empty where nothing stands out."""
    spec = report.spec
    if not report.connected:
        apart = report.hops.unreachable - report.dcn_pairs
        return f"It is not connected: {fmt.count(apart, 'ordered pair')} of chips have no path."
    if report.dcn_pairs:
        apart = report.dcn_pairs / (report.dcn_pairs + int(report.hops.counts[1:].sum()))
        return (
            f"{fmt.share(apart)} of all pairs are in different slices: no link joins them, they go over the "
            "data-centre network."
        )
    if report.after:
        return ""
    if spec.dims and spec.twisted:
        plain = whole(spec.dims, True)
        return f"Without the twist it would be {plain[0]} hops, {fmt.number(plain[1])} on average."
    if spec.dims and spec.chip and not all(w or k == 1 for w, k in zip(spec.wraps, spec.dims, strict=True)):
        return _lines(report)
    if spec.inferred:
        return f"No shape of {spec.chip} is published: this one follows the rule of the generations before."
    if report.kind == "boardfly":
        return (
            "Its counts are published, which chip holds which port is not: this port map is inferred, and so is a "
            "host for each board."
        )
    if report.switches:
        return "A hop is one link, so two GPUs under one switch are 2 hops apart."
    return ""


def _lines(report: Report) -> str:
    """Why axes of a TPU slice are lines, and what wraps would be worth."""
    spec = report.spec
    rule = {
        "cube": "a dimension under 4 has no optical wrap",
        "axis_of_16": "only an axis of 16 is a ring",
        "full_pod": "only the full pod has wraps",
    }[families()[spec.chip].wrap]
    ring = whole(spec.dims, True)
    worth = f"; with wraps it would be {fmt.count(ring[0], 'hop')}" if ring[0] < (report.hops.diameter or 0) else ""
    lines = [a for a, k in zip(report.axes, spec.dims, strict=False) if a not in report.wraps and k > 1]
    what = "It is a mesh, no torus" if not report.wraps else f"Axis {' and '.join(lines)} is a line, no ring"
    return f"{what}: {rule}{worth}."


def within(report: Report) -> str:
    """`torus:8x8x16: half of the pairs within 8 hops, 99 % within 14, all within 16.`"""
    if report.hops.diameter is None:
        return f"{report.spec.text}: no pair of chips has a path."
    half, most = report.share_within(0.5), report.share_within(0.99)
    return (
        f"{report.spec.text}: half of the pairs within {fmt.count(half, 'hop')}, 99 % within {most:,}, all within "
        f"{report.hops.diameter:,}."
    )


def host_mark(report: Report) -> str:
    """What is to be said behind a number of hosts: of a Boardfly nobody has published how many chips share one."""
    return " (inferred: one a board)" if report.kind == "boardfly" and report.hosts else ""


def whole(dims: tuple[int, ...], wrapped: bool) -> tuple[int, float]:
    """(diameter, mean hops) of a lattice of these axes with all or no wraps, without twist."""
    counts = Lattice(dims, (wrapped,) * len(dims)).hop_counts()
    pairs = int(counts[1:].sum())
    return len(counts) - 1, float(sum(d * int(n) for d, n in enumerate(counts)) / pairs) if pairs else 0.0


def table(reports: Sequence[Report]) -> Table:
    """One column for each topology."""
    columns = [dict(_rows(r)) for r in reports]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = tuple((name, *(column.get(name, fmt.NO_VALUE) for column in columns)) for name in names)
    return Table(("", *(r.spec.text for r in reports)), rows, right=tuple(range(1, len(reports) + 1)))


def _rows(report: Report) -> list[tuple[str, str]]:
    def exact(value: float | None) -> str:
        return fmt.NO_VALUE if value is None else f"{value:,.4f}".rstrip("0").rstrip(".")

    links = ", ".join(f"{n:,} {kind}" for kind, n in report.links_by_kind.items())
    least, _, most = report.degrees
    found = report.bisection
    rows = [
        ("kind", report.kind),
        ("chips", f"{report.chips:,}"),
        ("links", f"{report.links:,}"),
        ("of which", links),
        ("links a chip", f"{most}" if least == most else f"{least} to {most}"),
        ("diameter (hops)", exact(report.hops.diameter)),
        ("mean hops", exact(report.hops.mean)),
        ("half of pairs within (hops)", exact(report.share_within(0.5))),
        ("99 % of pairs within (hops)", exact(report.share_within(0.99))),
        ("bisection (links)", ("" if found.exact else "<= ") + exact(found.links)),
        ("bisection at least (links)", exact(found.low)),
        ("busiest link, all-to-all (pairs)", exact(report.max_link_load)),
        *(
            (f"busiest, {ROUTED[routing]} (pairs)", exact(load))
            for routing, load in report.busiest.items()
            if routing != report.routing
        ),
        ("no routing below (pairs)", exact(report.cut_bound)),
        ("pairs without a path", f"{report.hops.unreachable:,}"),
        ("rings", ", ".join(report.wraps) or "none"),
        ("hosts", exact(report.hosts) + host_mark(report)),
        ("cubes", exact(report.cubes)),
        ("machine type", report.manifest.get("machine_type") or fmt.NO_VALUE),
    ]
    return [row for row in rows if row[1] not in (fmt.NO_VALUE, "<= " + fmt.NO_VALUE)]
