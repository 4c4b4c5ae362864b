"""Several topologies side by side in words: who is near, who carries all-to-all best, what the comparison hides."""

from collections.abc import Sequence

from app.topologies.words import ROUTED, hops, pairs
from catalog.chips import chip
from errors import format as fmt
from simulators.topology.report import Report


def compared(reports: Sequence[Report]) -> list[str]:
    """Sentences, the most important first. With one topology: what to do to compare."""
    if len(reports) < 2:
        return ["Add a topology to compare this one with."]
    return [s for s in (_size(reports), _distance(reports), _baseline(reports), _all_to_all(reports)) if s]


def beside(reports: Sequence[Report]) -> str:
    """How far the others are, in a sentence behind the verdict of the first; empty where nothing is compared."""
    others = "; ".join(f"{_name(r)}: {hops(r)}" for r in reports[1:])
    return f"Beside it: {others}." if others else ""


def _size(reports: Sequence[Report]) -> str:
    chips = {r.chips for r in reports}
    if len(chips) == 1:
        ports = {r.links for r in reports}
        and_links = f" and {fmt.count(ports.pop(), 'link')}" if len(ports) == 1 else ""
        return f"All have {fmt.count(chips.pop(), 'chip')}{and_links}."
    return (
        "They differ in size, "
        + ", ".join(f"{_name(r)} {r.chips:,}" for r in reports)
        + (" chips: hops grow with size, so read them with care.")
    )


def _distance(reports: Sequence[Report]) -> str:
    """Diameters and means; what the nearest saves on average against the first."""
    known = [r for r in reports if r.hops.diameter and r.hops.mean]
    if len(known) < 2:
        return ""
    near = sorted(known, key=lambda r: (r.hops.diameter, r.hops.mean))
    text = "; ".join(f"{_name(r)}: {hops(r)}" for r in near)
    first, best = reports[0], next((r for r in near if _joined(r)), None)
    if best is None or best is first or not _joined(first) or first.hops.mean is None:
        return f"{text}."
    far, usual = best.hops.diameter / first.hops.diameter - 1, best.hops.mean / first.hops.mean - 1
    return (
        f"{text}. Against {_name(first)}, {_name(best)} {_changes(far, 'the longest way')} and "
        f"{_changes(usual, 'the mean').removeprefix('takes ' if far < 0 else '')}: that is latency."
    )


def _changes(share: float, what: str) -> str:
    """`takes 56 % off the mean`, `adds 3 % to the mean`, `leaves the mean as it is`."""
    if not share:
        return f"leaves {what} as it is"
    return f"takes {fmt.whole_share(-share)} off {what}" if share < 0 else f"adds {fmt.whole_share(share)} to {what}"


def _baseline(reports: Sequence[Report]) -> str:
    """A torus that could be twisted is a weak baseline: says so where its twisted twin stands beside it."""
    for plain in reports:
        for twin in reports:
            same = sorted(plain.spec.dims) == sorted(twin.spec.dims) and plain.spec.dims
            if same and twin.spec.twisted and not plain.spec.twisted and plain.kind == "torus" and not plain.after:
                return (
                    f"The baseline of {plain.hops.diameter} hops is the untwisted torus; a twist of the same links "
                    f"has {twin.hops.diameter}."
                )
    return ""


def _all_to_all(reports: Sequence[Report]) -> str:
    """Busiest links under all-to-all, of equal sizes only; the least by the routings counted, and what is possible."""
    counted = [r for r in reports if r.busiest]
    known = [r for r in counted if _joined(r)]
    apart = " ".join(_apart(r) for r in counted if not _joined(r))
    if len(known) < 2 or len({r.chips for r in known}) > 1:
        return apart
    beside = " ".join(filter(None, (_rates(known), apart)))
    ranked = sorted(known, key=lambda r: min(r.busiest.values()))
    texts = [f"{_name(r)} {_loads(r)}" for r in ranked]
    best, worst = ranked[0], ranked[-1]
    if min(best.busiest.values()) == min(worst.busiest.values()):
        return f"All-to-all puts on the busiest link: {'; '.join(texts)} pairs: all carry it alike. {beside}".strip()
    text = (
        f"All-to-all puts on the busiest link: {'; '.join(texts)} pairs. {_name(best)} carries it best: "
        f"{_times(best, worst)} as well as {_name(worst)}"
    )
    for middle in ranked[1:-1]:
        text += f", {_name(middle)} {_times(middle, worst)}"
    open_ = [r for r in ranked[1:] if r.cut_bound and r.cut_bound < min(best.busiest.values())]
    if open_:
        text += f"; by its cut no routing of {_name(open_[0])} goes below {pairs(open_[0].cut_bound)}"
    return f"{text}. {beside}".strip()


def _joined(report: Report) -> bool:
    """Whether links join every pair of chips: else what loads the links is a part of an all-to-all."""
    return report.hops.unreachable == 0


def _apart(report: Report) -> str:
    """How much of an all-to-all its links do not carry."""
    share = report.hops.unreachable / (report.chips * (report.chips - 1))
    how = "over the data-centre network" if report.connected else "nowhere: no links join them"
    return f"{fmt.share(share)} of the pairs of {_name(report)} go {how}, so its links are not set against the others'."


def _rates(reports: Sequence[Report]) -> str:
    """Which links are quicker than others: pairs on a link tell no seconds then."""
    known = {r.spec.chip: chip(r.spec.chip).value("link_oneway_bytes_per_s") for r in reports if r.spec.chip}
    rates = {name: rate for name, rate in known.items() if rate}
    if len(set(rates.values())) < 2:
        return ""
    each = ", ".join(f"{name} {fmt.size(rate)}/s" for name, rate in rates.items())
    return f"That counts pairs, not seconds: a link moves, one way, {each}."


def _times(report: Report, worst: Report) -> str:
    """`1.3 to 1.4 times`: from its worse to its better routing, against the better one of the worst."""
    load = min(worst.busiest.values())
    least, most = (f"{load / pick(report.busiest.values()):.1f}" for pick in (max, min))
    return f"{most} times" if least == most else f"{least} to {most} times"


def _loads(report: Report) -> str:
    if len(report.busiest) == 1:
        return pairs(report.max_link_load)
    ranked = sorted(report.busiest.items(), key=lambda told: told[1])
    return " or ".join(f"{pairs(load)} ({ROUTED[routing]})" for routing, load in ranked)


def _name(report: Report) -> str:
    return report.spec.text


def costs(reports: Sequence[Report], usd_per_chip_hour: Sequence[float | None]) -> list[str]:
    """What an hour of each system costs, where every price was entered; else nothing."""
    if None in usd_per_chip_hour:
        return []
    texts = [f"{_name(r)} {fmt.usd(r.chips * usd)}" for r, usd in zip(reports, usd_per_chip_hour, strict=True)]
    return [f"An hour costs, at the prices entered: {', '.join(texts)}."]
