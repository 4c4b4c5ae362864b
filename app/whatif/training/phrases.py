"""A choice in words: what it is, what it takes, whether it keeps the limits, why it is not the best."""

from app.whatif.training import amounts
from app.whatif.training.amounts import amount, dollars
from app.whatif.training.choice import Choice
from app.whatif.training.sensitivity import sensitivity
from errors import format as fmt
from simulators.training.losing import Larger
from simulators.training.plan import Planned

LIMITS = {"days": "deadline", "usd": "budget"}
AXES = ("dp", "fsdp", "tp", "pp", "cp", "ep", "vp")
MORE = {  # before an amount
    "peak": "FLOPs at the peak cost",
    "roofline": "products below the peak, memory and the optimiser cost",
    "memory": "layers computed again, for lack of memory, cost",
    "network": "waiting for the network costs",
    "bubbles": "the pipeline's bubble costs",
    "launch": "waiting for the host costs",
    "other": "what no layout changes of a step, such as waits of the run, costs",
}


def what(choice: Choice) -> str:
    """`2,048 H100 SXM`."""
    return f"{choice.planned.chips:,} {choice.planned.chip}"


def axes(choice: Choice) -> str:
    """`tp 8, pp 4, dp 64`: the axes that cut anything, the innermost first."""
    return laid(choice.planned)


def laid(planned: Planned) -> str:
    """As `axes` has it."""
    return ", ".join(f"{n} {planned.layout[n]}" for n in AXES if planned.layout[n] != 1) or "one copy"


def takes(choice: Choice) -> str:
    """Days and dollars, the likely value and its range."""
    if choice.days is None:
        return f"{step(choice)} a step"
    low, likely, high = map(amounts.time, choice.days)
    days = f"{likely} ({low} to {high})"
    if choice.usd is None:
        return days
    low, likely, high = map(dollars, choice.usd)
    return f"{days} and {likely} ({low} to {high})"


def step(choice: Choice) -> str:
    """`5.8 s (4.7 s to 8.0 s)`."""
    p = choice.planned
    return f"{fmt.duration(p.step_s)} ({fmt.duration(p.low_s)} to {fmt.duration(p.high_s)})"


def headline_of(choice: Choice) -> str:
    """`2,048 H100 SXM as tp 8, pp 4, dp 64 take 83 d and $12.0 million, likely within the deadline.`"""
    laid = f"{what(choice)} as {axes(choice)}"
    if choice.days is None:
        return f"Most tokens for each chip's time: {laid}."
    verb = "takes" if choice.planned.chips == 1 else "take"
    return f"{laid} {verb} {takes(choice)}{keeps(choice)}."


def keeps(choice: Choice) -> str:
    """`, within the deadline and likely within the budget`; empty without limits."""
    said = {name: _sure(limit.word, LIMITS[name]) for name, limit in choice.limits.items()}
    words = {limit.word for limit in choice.limits.values()}
    if len(said) == 2 and len(words) == 1:
        said = {"both": _sure(words.pop(), " and ".join(LIMITS.values()))}
    return f", {' and '.join(said.values())}" if said else ""


def _sure(word: str, limit: str) -> str:
    return {
        "yes": f"within the {limit}",
        "likely": f"likely within the {limit}",
        "perhaps": f"within the {limit} only at the good end",
        "no": f"beyond the {limit}",
    }[word]


def published(choice: Choice) -> str:
    if choice.planned.published:
        return ""
    return "No run on such a chip at this precision was published: the range is wide."


def lost(choice: Choice, kind: str, more: Larger | None, unit: str) -> str:
    """Why a choice is not the best, in a sentence."""
    laid = f"{what(choice)} as {axes(choice)}"
    if kind == "deadline" and choice.days:
        return f"{laid}: {amounts.time(choice.days[1])} is beyond the deadline."
    if kind == "budget":
        taken = dollars(choice.usd[1]) if choice.usd else "what it costs is not known: it has no price"
        return f"{laid}: {taken}{' is beyond the budget' if choice.usd else ''}."
    if more is None:
        return f"{laid}: as good, and it comes later in order."
    of = f"{MORE[more.kind]} {amount(more.by, unit)}"
    if more.total <= 0:
        return f"{laid}: cheaper in all, though {of} more."
    return (
        f"{laid}: {amount(more.total, unit)} more; {of} of it."
        if more.by <= more.total
        else (f"{laid}: {amount(more.total, unit)} more; {of} alone, made up for in part by other accounts.")
    )


def marks(choice: Choice) -> list[str]:
    """`front` of one that no other beats in days and dollars, `just fits` of one with next to no memory left."""
    return ["front"] * bool(choice.front) + ["just fits"] * choice.planned.tight


def sensitive(choice: Choice) -> str:
    """`MFU 10 % lower: 22 d 15 h and $1.66 million; ...`"""
    said = []
    for moved in sensitivity(choice):
        name, shown = {
            "mfu": ("MFU", fmt.share(moved.value)),
            "goodput": ("goodput", fmt.share(moved.value)),
            "price": ("price", fmt.usd(moved.value)),
        }[moved.what]
        paid = "" if moved.usd is None else f" and {dollars(moved.usd)}"
        said.append(f"{name} {shown} {amounts.time(moved.days)}{paid}")
    return f"{what(choice)}, were one of it another: {'; '.join(said)}."
