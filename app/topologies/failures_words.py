"""A failure in words: what it means for the job first, then how little or how much the hops move."""

from app.topologies.words import halves
from app.words import Table
from errors import format as fmt
from simulators.topology.report import Report

HARDLY = 0.01  # a smaller change of the mean is told as none to speak of


def verdict(before: Report, after: Report) -> str:
    """The weightiest sentence of what it means, then the hops."""
    truth = after.after["truth"] if after.after else ()
    return " ".join([*truth[:1], moved(before, after)])


def moved(before: Report, after: Report) -> str:
    """`Hops hardly move among the 127 chips left: 4.032 on average against 4.031, at most 8 as before. ...`."""
    was, now = before.hops, after.hops
    if not was.mean:
        return "No pair of chips had a path before either."
    if not now.mean:
        return "No pair of chips has a path any more."
    change = now.mean / was.mean - 1
    lead = f"Hops {'grow' if change > 0 else 'shrink'} by {fmt.change(change)}"
    if abs(change) < HARDLY:
        lead = "Hops hardly move"
    far = f"at most {now.diameter} " + ("as before" if now.diameter == was.diameter else f"against {was.diameter}")
    if after.chips < before.chips:
        lead += f" among the {fmt.count(after.chips, 'chip')} left"
    text = f"{lead}: {fmt.number(now.mean, 5)} on average against {fmt.number(was.mean, 5)}, {far}."
    loads = before.busiest.get("shortest"), after.busiest.get("shortest")
    if all(loads):
        change = loads[1] / loads[0] - 1
        text += (
            f" The busiest link of an all-to-all carries {_pairs(loads[1])} pairs of chips against "
            f"{_pairs(loads[0])} ({'+' if change >= 0 else '-'}{fmt.change(change)})."
        )
    return text


def table(before: Report, after: Report) -> Table:
    """What was and what is left, row by row."""
    return Table(("", "before", "after"), tuple(_rows(before, after)), right=(1, 2))


def _rows(before: Report, after: Report) -> list[tuple[str, str, str]]:
    def both(title: str, told) -> tuple[str, str, str]:
        return title, told(before), told(after)

    lost = after.after or {}
    return [
        both("Chips", lambda r: f"{r.chips:,}"),
        both("Links", lambda r: f"{r.links:,}"),
        both("Diameter (hops)", lambda r: fmt.NO_VALUE if r.hops.diameter is None else str(r.hops.diameter)),
        both("Mean hops", lambda r: fmt.number(r.hops.mean, 6)),
        both("Bisection", lambda r: halves(r) or fmt.NO_VALUE),
        both("Busiest link, all-to-all (pairs)", lambda r: _pairs(r.busiest.get("shortest"))),
        ("Connected", "yes" if before.connected else "no", "yes" if lost.get("connected", True) else "no"),
        both("Ordered pairs without a path", lambda r: f"{r.hops.unreachable - r.dcn_pairs:,}"),
        ("Chips cut off from the rest", "", f"{lost.get('cut_off_chips', 0):,}"),
    ]


def _pairs(load: float | None) -> str:
    if load is None:
        return fmt.NO_VALUE
    return f"{load:,.0f}" if load >= 1000 or load == round(load) else f"{load:.4g}"
