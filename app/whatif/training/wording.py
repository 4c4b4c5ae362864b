"""Chips and layouts in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.whatif.training import amounts
from app.whatif.training.amounts import amount, dollars
from app.whatif.training.asked import MAKES
from app.whatif.training.same_loss import TOLD_FROM
from app.whatif.training.same_loss import told as told_batch
from app.whatif.training.sensitivity import sensitivity
from app.words import Table, headline
from errors import QuestionError
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.training.answers import Choice, TrainingPlan
    from app.whatif.training.asked import Asked
    from app.whatif.training.limits import WouldDo
    from app.whatif.training.reasons import Reason
    from simulators.training.losing import Larger

LIMITS = {"days": "deadline", "usd": "budget"}
MORE = {  # before an amount
    "peak": "FLOPs at the peak cost",
    "roofline": "products below the peak, memory and the optimiser cost",
    "memory": "layers computed again, for lack of memory, cost",
    "network": "waiting for the network costs",
    "bubbles": "the pipeline's bubble costs",
    "launch": "waiting for the host costs",
}
RUNNERS_UP = 6
AXES = ("dp", "fsdp", "tp", "pp", "cp", "ep", "vp")


def verdict(result: "TrainingPlan") -> str:
    """The best choice with its layout and what it takes; or that none keeps the limits, and what would do."""
    best = result.best
    if best is None:
        near = result.choices[0]
        broken = " and ".join(LIMITS[n] for n, kept in near.meets.items() if not kept)
        return headline(
            f"Nothing that was tried is likely to keep the {broken}.",
            f"The nearest: {what(near)}, {takes(near)}.",
            *(needs(w) for w in result.would_do),
        )
    rate = f"A step takes {step(best)} at {fmt.share(best.planned.mfu)} MFU."
    return headline(headline_of(best), *reaches(best, result.asked), rate, _published(best), *_remarks(result))


def headline_of(choice: "Choice") -> str:
    """`2,048 H100 SXM as tp 8, pp 4, dp 64 take 83 d and $12.0 million, likely within the deadline.`"""
    laid = f"{what(choice)} as {axes(choice)}"
    if choice.days is None:
        return f"Most tokens for each chip's time: {laid}."
    verb = "takes" if choice.planned.chips == 1 else "take"
    return f"{laid} {verb} {takes(choice)}{keeps(choice)}."


def keeps(choice: "Choice") -> str:
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


def reaches(choice: "Choice", asked: "Asked") -> tuple[str, ...]:
    """How far beyond a limit the range reaches, where the limit is not kept at its high end."""
    said = []
    for name, limit in choice.limits.items():
        values = getattr(choice, name)
        if limit.likely and not limit.high and values:
            high, most = values[2], getattr(asked, name)
            shown = (amounts.time(high), amounts.time(most)) if name == "days" else tuple(map(dollars, (high, most)))
            said.append(f"The range reaches {shown[0]}, beyond the {LIMITS[name]} of {shown[1]}.")
    return tuple(said)


def needs(found: "WouldDo") -> str:
    """`A deadline of 45 d would do: 1,024 H100 SXM.`"""
    shown = amounts.time(found.value) if found.limit == "days" else dollars(found.value)
    alone = ", were there no other limit" if found.alone else ""
    return f"A {LIMITS[found.limit]} of {shown} is likely to do{alone}: {what(found.choice)}."


def lost(choice: "Choice", kind: str, more: "Larger | None", unit: str) -> str:
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


def _remarks(result: "TrainingPlan") -> tuple[str, ...]:
    """What is to be known of the best choice besides: that it fits only just, and what its batch costs."""
    said = [fits_just(result)] if result.first.planned.tight else []
    if result.same_loss and result.same_loss.more[1] >= TOLD_FROM:
        said.append(told_batch(result.same_loss))
    return tuple(said)


def fits_just(result: "TrainingPlan") -> str:
    """What is left of the memory, and the next choice that has room."""
    p = result.first.planned
    said = f"It fits only just: {fmt.size(p.bytes_left)} of {fmt.size(p.hbm_bytes)} are left."
    if (other := result.safer) is None:
        return f"{said} No other layout that was tried has more room on this chip."
    return f"{said} Safer: {what(other)} as {axes(other)}, {takes(other)}, {fmt.size(other.planned.bytes_left)} left."


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
    low, likely, high = map(amounts.time, choice.days)
    days = f"{likely} ({low} to {high})"
    if choice.usd is None:
        return days
    low, likely, high = map(dollars, choice.usd)
    return f"{days} and {likely} ({low} to {high})"


def step(choice: "Choice") -> str:
    """`5.8 s (4.7 s to 8.0 s)`."""
    p = choice.planned
    return f"{fmt.duration(p.step_s)} ({fmt.duration(p.low_s)} to {fmt.duration(p.high_s)})"


def words(result: "TrainingPlan") -> Words:
    """Each layout, the best first; or the text that was asked for. Raises QuestionError where there is none."""
    if result.asked.make:
        return Words("", Table((), ()), text=text_of(result, result.asked.make))
    rows = tuple(
        (
            c.planned.chip,
            f"{c.planned.chips:,}",
            axes(c),
            f"{fmt.duration(c.planned.step_s)}",
            fmt.share(c.planned.mfu),
            f"{c.planned.flops_per_s_per_chip / 1e12:,.0f}",
            fmt.size(c.planned.bytes_per_chip),
            "" if c.days is None else amounts.time(c.days[1]),
            "" if c.usd is None else dollars(c.usd[1]),
            ", ".join(marks(c)),
        )
        for c in result.choices
    )
    head = ("chip", "chips", "layout", "step", "MFU", "TFLOP/s and chip", "memory", "time", "dollars", "")
    return Words(verdict(result), Table(head, rows, right=(1, 3, 4, 5, 6, 7, 8)), _below(result))


def marks(choice: "Choice") -> list[str]:
    """`front` of one that no other beats in days and dollars, `just fits` of one with next to no memory left."""
    return ["front"] * bool(choice.front) + ["just fits"] * choice.planned.tight


def _below(result: "TrainingPlan") -> tuple[str, ...]:
    """What stands below the table: what is not listed, why the next ones lose, what the batch and each share do."""
    batch = (told_batch(result.same_loss),) if result.same_loss else ()
    runners = tuple(r.text for r in runners_up(result))
    moved = (sensitive(result.first),) if result.first.days is not None else ()
    return (*result.why_not, *runners, *moved, *batch, *result.notes)


def runners_up(result: "TrainingPlan") -> list["Reason"]:
    """Why the next layout of the same chips is not the first, and the best of each other chip: a few."""
    seen, found = {result.first.planned.chip}, list["Reason"]()
    for reason in result.losers:
        if reason.chip not in seen or not found:
            seen.add(reason.chip)
            found.append(reason)
    return found[:RUNNERS_UP]


def sensitive(choice: "Choice") -> str:
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


def text_of(result: "TrainingPlan", tool: str) -> str:
    """What makes the first choice real with a tool. Raises QuestionError, with the tools that can, where there is
    none."""
    made = result.make[tool]
    if "text" not in made:
        can = [name for name in MAKES if "text" in result.make[name]]
        raise QuestionError(made["unavailable"].removesuffix("."), expected=f"--make {' or '.join(can)}")
    first = made.get("node_pool", "")  # before a workload come the nodes: as comments, so that the YAML stays one
    return "".join(f"# {line}\n" for line in first.splitlines()) + made["text"]
