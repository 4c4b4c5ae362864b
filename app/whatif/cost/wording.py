"""Days and dollars in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.cost.answers import Choice, CostPlan

LIMITS = {"days": "deadline", "usd": "budget"}


def verdict(result: "CostPlan") -> str:
    """The cheapest choice that keeps every limit, as a range; or that none does, and how near the nearest comes."""
    best = result.best
    if best is None:
        near = result.choices[0]
        broken = " and ".join(LIMITS[n] for n in near.broken)
        nearest = f"{what(near)} would take {takes(near)}"
        return headline(f"Nothing that was tried is sure enough to keep the {broken}.", f"The nearest: {nearest}.")
    if not best.meets:
        return headline(f"{what(best)} {_verb(best, 'take')} {takes(best)}.")
    sure = (
        _verb(best, "keep") if all(word == "yes" for word in best.meets.values()) else f"likely {_verb(best, 'keep')}"
    )
    limits = " and ".join(LIMITS[n] for n in best.meets)
    return headline(f"{what(best)} {sure} the {limits}: {takes(best)}.")


def what(choice: "Choice") -> str:
    """`2,048 H100 SXM`."""
    return f"{choice.chips:,} {choice.chip.name}"


def takes(choice: "Choice") -> str:
    """`83.2 d (75.1 d to 96.5 d) and $12.3 million ...`: the likely value and, where it is a range, its ends."""
    days = _range(*(fmt.duration(c.days * 86_400) for c in (choice.likely, choice.best, choice.worst)))
    if choice.likely.usd is None:
        return days
    return f"{days}, {_range(*(fmt.usd(c.usd) for c in (choice.likely, choice.best, choice.worst)))}"


def _verb(choice: "Choice", many: str) -> str:
    """As it follows the chips: one takes, two take."""
    return f"{many}s" if choice.chips == 1 else many


def _range(likely: str, low: str, high: str) -> str:
    return likely if low == high else f"{likely} ({low} to {high})"


def words(result: "CostPlan") -> Words:
    """Each chip and number of chips, the best first."""
    rows = tuple(
        (
            c.chip.name,
            f"{c.chips:,}",
            _range(*(fmt.share(c.mfu[i]) for i in (1, 0, 2))),
            _range(*(fmt.duration(x.days * 86_400) for x in (c.likely, c.best, c.worst))),
            _range(*(fmt.usd(x.usd) for x in (c.likely, c.best, c.worst))),
            fmt.number(c.likely.tokens_per_s_per_chip),
            ", ".join(f"{LIMITS[n]}: {word}" for n, word in c.meets.items()),
        )
        for c in result.choices
    )
    head = ("chip", "chips", "MFU", "time", "dollars", "tokens/s and chip", "keeps")
    remarks = tuple(dict.fromkeys(f"{c.chip.name}: {c.remark}." for c in result.choices if c.remark))
    return Words(verdict(result), Table(head, rows, right=(1, 2, 3, 4, 5)), (*result.why_not, *remarks, *result.notes))
