"""A fleet's figures and rows as its page shows them."""

from collections.abc import Mapping
from typing import Any

from analyzers.fleet import FleetResult
from analyzers.fleet.sums import Sum
from app import theme
from app.components.figures_row import Figure
from errors import format as fmt

MOST_RUNS = 200


def figures(result: FleetResult) -> list[Figure]:
    """Up to five, each with what it stands on."""
    total = result.total
    least = "≥ " if total.at_least and total.product is not None else ""
    money = f"{fmt.chip_time(total.unpriced_chip_s)} have no price and are not in it." if total.unpriced_runs else ""
    told = [
        Figure("Chip time", fmt.chip_time(total.chip_s), f"Held by {fmt.count(total.runs, 'run')}.", "measured"),
        Figure("Cost", fmt.usd(total.usd), f"At each run's own price. {money}", "derived"),
        Figure(
            "Runtime goodput",
            fmt.share(total.runtime_goodput),
            f"Kept steps over the time held, of {fmt.chip_time(total.runtime_chip_s)} that tell it.",
            "derived",
        ),
        Figure(
            "Runtime × program",
            f"{least}{fmt.share(total.product)}",
            f"Useful maths over the time held, of {fmt.chip_time(total.both_chip_s)} that tell it. "
            + _scheduling(result),
            "derived",
        ),
        Figure(
            "MFU",
            fmt.share(total.mfu),
            f"Weighted by {fmt.chip_time(total.mfu_chip_s)} in kept steps of runs that tell it.",
            "derived",
        ),
    ]
    if result.flops_per_developer is not None:
        who = fmt.count(result.developers, "developer")
        told.append(
            Figure(
                "Kept FLOPs per developer", fmt.flops(result.flops_per_developer), f"Of {who} named in tags.", "derived"
            )
        )
    return told[:1] + told[2:] if total.usd is None else told


def _scheduling(result: FleetResult) -> str:
    if result.scheduling is None:
        return "Scheduling goodput cannot be told without the number of chips that the fleet has."
    whole = result.scheduling * (result.total.product or 0.0)
    product = f"; all three together {fmt.share(whole)}" if result.total.product is not None else ""
    return f"Scheduling goodput is {fmt.share(result.scheduling)}{product}."


def _row(part: Sum) -> Mapping[str, Any]:
    return {
        "runs": part.runs,
        "chip_hours": part.chip_s / 3600,
        "usd": part.usd,
        "unpriced_chip_hours": part.unpriced_chip_s / 3600,
        "runtime_goodput_share": part.runtime_goodput,
        "program_goodput_share": part.program_goodput,
        "product_share": part.product,
        "mfu": part.mfu,
        "model_flops": part.flops,
    }


def group_rows(result: FleetResult) -> list[dict[str, Any]]:
    return [{result.asked.by.replace(":", " "): key, **_row(part)} for key, part in result.groups]


def trend_rows(result: FleetResult) -> list[dict[str, Any]]:
    rows = [{result.asked.every: p.name, **_row(part)} for p, part in result.trend]
    return rows + ([{result.asked.every: "no date", **_row(result.undated)}] if result.undated else [])


def cause_rows(result: FleetResult) -> list[dict[str, Any]]:
    return [
        {
            "lost_to": theme.title(c.account),
            "chip_hours": c.chip_s / 3600,
            "share": c.chip_s / result.total.chip_s,
            "usd": c.usd,
            "runs": c.runs,
            "owners": ", ".join(f"{name} {fmt.share(s / c.chip_s)}" for name, s in c.owners),
            "largest_in": c.run_name,
        }
        for c in result.causes
    ]


def run_rows(result: FleetResult) -> list[dict[str, Any]]:
    return [
        {
            "run": r.run.name,
            "chip_hours": r.chip_s / 3600,
            "counted_share": r.chip_s / r.whole_chip_s if r.whole_chip_s else None,
            "usd": r.usd,
            "team": r.run.team or None,
            "owner": r.run.owner or None,
            "run_id": r.run.run_id,
        }
        for r in result.runs[:MOST_RUNS]
    ]
