"""Chips and layouts in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.whatif.training import amounts
from app.whatif.training.amounts import dollars
from app.whatif.training.asked import MAKES
from app.whatif.training.phrases import LIMITS, axes, headline_of, marks, published, sensitive, step, takes, what
from app.whatif.training.same_loss import TOLD_FROM
from app.whatif.training.same_loss import told as told_batch
from app.words import Table, headline
from errors import QuestionError
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.training.answers import Choice, TrainingPlan
    from app.whatif.training.asked import Asked
    from app.whatif.training.reasons import Reason
    from app.whatif.training.would_do import WouldDo


RUNNERS_UP = 6


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
    rest = (rate, _kept(result, best), published(best), *_remarks(result))
    return headline(headline_of(best), *reaches(best, result.asked), *rest)


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
    """`A deadline of 45 d is likely to do: 1,024 H100 SXM.`"""
    if found.limit == "chips":
        return f"{what(found.choice)} are likely to keep {'them' if len(found.choice.limits) > 1 else 'it'}."
    shown = amounts.time_at_least(found.value) if found.limit == "days" else amounts.dollars_at_least(found.value)
    alone = ", were there no other limit" if found.alone else ""
    return f"A {LIMITS[found.limit]} of {shown} is likely to do{alone}: {what(found.choice)}."


def _kept(result: "TrainingPlan", choice: "Choice") -> str:
    """The share of time that lives of the job keep; of one whose goodput was given or is 1, nothing."""
    if result.asked.mttf_chip_h is None:
        return ""
    low, high = fmt.share(choice.lived.goodput.low), fmt.share(choice.lived.goodput.high)
    return f"Lives of the job keep {fmt.share(choice.goodput)} of the time ({low} to {high})."


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


def text_of(result: "TrainingPlan", tool: str) -> str:
    """What makes the first choice real with a tool. Raises QuestionError, with the tools that can, where there is
    none."""
    made = result.make[tool]
    if "text" not in made:
        can = [name for name in MAKES if "text" in result.make[name]]
        raise QuestionError(made["unavailable"].removesuffix("."), expected=f"--make {' or '.join(can)}")
    first = made.get("node_pool", "")  # before a workload come the nodes: as comments, so that the YAML stays one
    return "".join(f"# {line}\n" for line in first.splitlines()) + made["text"]
