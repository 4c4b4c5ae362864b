"""Chips and layouts in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.training.answers import Choice, TrainingPlan

LIMITS = {"days": "deadline", "usd": "budget"}
AXES = ("dp", "fsdp", "tp", "pp", "cp", "ep", "vp")


def verdict(result: "TrainingPlan") -> str:
    """The best choice with its layout and what it takes; or that none keeps the limits, and the nearest."""
    best = result.best
    if best is None:
        near = result.choices[0]
        broken = " and ".join(LIMITS[n] for n, kept in near.meets.items() if not kept)
        return headline(
            f"Nothing that was tried is likely to keep the {broken}.",
            f"The nearest: {what(near)}, {takes(near)}.",
        )
    first = headline_of(best)
    rate = f"A step takes {step(best)} at {fmt.share(best.planned.mfu)} MFU."
    return headline(first, rate, _kept(result, best), _published(best))


def headline_of(choice: "Choice") -> str:
    """`2,048 H100 SXM as tp 8, pp 4, dp 64 take 83 d and $12 million`."""
    laid = f"{what(choice)} as {axes(choice)}"
    if choice.days is None:
        return f"Most tokens for each chip's time: {laid}."
    verb = "takes" if choice.planned.chips == 1 else "take"
    limits = " and ".join(LIMITS[n] for n in choice.meets)
    keeps = f", within the {limits}" if limits else ""
    return f"{laid} {verb} {takes(choice)}{keeps}."


def _kept(result: "TrainingPlan", choice: "Choice") -> str:
    """The share of time that lives of the job keep; of one whose goodput was given or is 1, nothing."""
    if result.asked.mttf_chip_h is None:
        return ""
    low, high = fmt.share(choice.lived.goodput.low), fmt.share(choice.lived.goodput.high)
    return f"Lives of the job keep {fmt.share(choice.goodput)} of the time ({low} to {high})."


def _published(choice: "Choice") -> str:
    if choice.planned.published:
        return ""
    return "No run on such a chip at this precision was published: the range is wide."


def what(choice: "Choice") -> str:
    """`2,048 H100 SXM`."""
    return f"{choice.planned.chips:,} {choice.planned.chip}"


def axes(choice: "Choice") -> str:
    """`tp 8, pp 4, dp 64`: the axes that cut anything, the innermost first."""
    cut = [f"{n} {choice.planned.layout[n]}" for n in AXES if choice.planned.layout[n] != 1]
    return ", ".join(cut) or "one copy"


def takes(choice: "Choice") -> str:
    """Days and dollars, the likely value and its range."""
    if choice.days is None:
        return f"{step(choice)} a step"
    low, likely, high = (fmt.duration(d * 86_400) for d in choice.days)
    days = f"{likely} ({low} to {high})"
    if choice.usd is None:
        return days
    low, likely, high = (fmt.usd(u) for u in choice.usd)
    return f"{days} and {likely} ({low} to {high})"


def step(choice: "Choice") -> str:
    """`5.8 s (4.7 s to 8.0 s)`."""
    p = choice.planned
    return f"{fmt.duration(p.step_s)} ({fmt.duration(p.low_s)} to {fmt.duration(p.high_s)})"


def words(result: "TrainingPlan") -> Words:
    """Each layout, the best first."""
    rows = tuple(
        (
            c.planned.chip,
            f"{c.planned.chips:,}",
            axes(c),
            f"{fmt.duration(c.planned.step_s)}",
            fmt.share(c.planned.mfu),
            f"{c.planned.flops_per_s_per_chip / 1e12:,.0f}",
            fmt.size(c.planned.bytes_per_chip),
            "" if c.days is None else fmt.duration(c.days[1] * 86_400),
            "" if c.usd is None else fmt.usd(c.usd[1]),
        )
        for c in result.choices
    )
    head = ("chip", "chips", "layout", "step", "MFU", "TFLOP/s and chip", "memory", "time", "dollars")
    return Words(verdict(result), Table(head, rows, right=(1, 3, 4, 5, 6, 7, 8)), (*result.why_not, *result.notes))
