"""A plan whose goodput, price or MFU are moved, for so many chips: what a slider asks, of layouts already swept."""

from dataclasses import dataclass, replace

from app.whatif.prices import prices
from app.whatif.training import lives
from app.whatif.training.answers import TrainingPlan, in_order
from app.whatif.training.asked import Asked
from app.whatif.training.choice import Choice, choice_of, fronted
from app.whatif.training.reasons import Reason
from errors import QuestionError
from simulators.training.end_to_end import EndToEnd, sure


@dataclass(frozen=True)
class Moved:
    """The whole plan at the goodput and the price, and the choice on so many chips at the MFU."""

    plan: TrainingPlan
    choice: Choice


def counts(plan: TrainingPlan) -> list[int]:
    """Numbers of chips that have a layout, of the first choice's chip."""
    name = plan.first.planned.chip
    return sorted({c.planned.chips for c in plan.choices if c.planned.chip == name})


def moved(
    plan: TrainingPlan,
    chips: int,
    *,
    goodput: float | None = None,
    price: float | None = None,
    mfu: float | None = None,
) -> Moved:
    """The plan with another goodput (of all chips) and price (of the first choice's chip); its fastest layout on so
    many of these chips, at another MFU. None: as it was."""
    name, asked = plan.first.planned.chip, plan.asked
    if price is not None:
        paid = {**prices(asked.price), name: price}
        asked = replace(asked, price=",".join(f"{n}={usd!r}" for n, usd in paid.items()))
    if goodput is not None and asked.mttf_chip_h is None:
        asked = replace(asked, goodput=goodput)
    other = plan if asked == plan.asked else plan.again(asked)
    if goodput is not None and asked.mttf_chip_h is not None:  # what lives give, moved: spares stay what they are
        choices = fronted([at_goodput(c, goodput, asked) for c in other.choices])
        by = in_order(choices, asked)
        other = replace(other, choices=tuple(sorted(choices, key=by)))
    same = [c for c in other.choices if c.planned.chip == name and c.planned.chips == chips]
    fastest = min(same, key=lambda c: c.planned.step_s)
    return Moved(other, fastest if mfu is None else at_mfu(fastest, mfu, other))


def at_goodput(choice: Choice, goodput: float, asked: Asked) -> Choice:
    """The same layout at another goodput: its days and dollars go with the inverse, with the band that they have."""
    by = goodput / choice.goodput
    lived = EndToEnd(
        goodput=sure(goodput),
        tokens_per_day=choice.lived.tokens_per_day.times(by),
        days=choice.lived.days and choice.lived.days.times(1 / by),
        usd=choice.lived.usd and choice.lived.usd.times(1 / by),
    )
    return choice_of(choice.planned, lived, asked, choice.price)


def at_mfu(choice: Choice, mfu: float, plan: TrainingPlan) -> Choice:
    """The same layout at another MFU: its step, days and dollars go with the inverse, useful maths and memory stay.

    Raises QuestionError where so long a job keeps too little of its time."""
    p = choice.planned
    longer, useful_s = p.mfu / mfu, p.accounts["useful_maths"]
    rest = (p.step_s * longer - useful_s) / (p.step_s - useful_s)
    other = replace(
        p,
        step_s=p.step_s * longer,
        low_s=p.low_s * longer,
        high_s=p.high_s * longer,
        mfu=mfu,
        flops_per_s_per_chip=p.flops_per_s_per_chip / longer,
        tokens_per_s_per_chip=p.tokens_per_s_per_chip / longer,
        accounts={name: v if name == "useful_maths" else v * rest for name, v in p.accounts.items()},
        parts={name: v * longer for name, v in p.parts.items()},
    )
    reasons = list[Reason]()
    for planned, lived in lives.told([other], plan.asked, choice.price, reasons):
        return choice_of(planned, lived, plan.asked, choice.price)
    raise QuestionError(reasons[0].text.removesuffix("."), advice="Move the sliders back")
