"""From the options of `whatif cost` to days and dollars on each chip and number of chips, as a range."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.whatif.cost.asked import SEQ, Asked
from app.whatif.cost.contours import Kind, Line, equal_time
from app.whatif.prices import prices
from catalog import chip, model
from catalog.chips import Chip
from catalog.flops import flops_per_token
from catalog.models import Model
from catalog.slices import families
from errors import QuestionError
from errors.numbers import CHIPS
from simulators.training.cost import DAY_S, Cost, Held, Work, chips_for, cost, flops_per_developer
from simulators.training.rates import Range, peak_flops_per_s, utilisation

WORDS = ("no", "perhaps", "likely", "yes")
SURE = ("yes", "likely")
SAME = 1e-9  # dollars that differ by less are the same: at one MFU more chips cost as much
MOST = 50  # chips times numbers of chips
NOTES = (
    "Model FLOPs are counted causally, forward and backward; recomputation is no use and lowers the MFU.",
    "Dollars are the chip-hours from the first step to the last: storage, networks, spares and trials come on top.",
    "Whether the model fits these chips, and whether so large a batch still learns as well, is not looked at here.",
)
PUBLISHED = (
    "The MFU is that of published runs, mostly of well-tuned jobs. Until yours is measured, reckon with the low end; "
    "yours can be named instead."
)
PER_DEVELOPER = (
    "FLOPs per developer: model FLOPs a month that are kept, over the developers who are active in it, while this job "
    "runs. What a team has is the sum over its jobs: n P MFU goodput t of each."
)
ALL_KEPT = "Goodput is taken as 1: every step is kept and nothing waits. What your jobs reach can be named instead."


@dataclass(frozen=True)
class Choice:
    """A chip and a number of them: `likely` and, where the MFU is a range, at its `worst` and `best` ends.

    `basis` of the rates: modelled (from an MFU that was given) or published, `published_chips` then those of the
    largest run. `meets`: of each limit that was asked for, `yes` at either end of the range, `likely`, `perhaps` (at
    the best end alone) or `no`; beyond the largest published run, where MFU falls by an unknown amount, a word less;
    `unknown` of a budget where the chip has no price.
    """

    chip: Chip
    chips: int
    mfu: tuple[float, float, float]
    likely: Cost
    worst: Cost
    best: Cost
    basis: str
    meets: dict[str, str]
    published_chips: int | None
    remark: str
    developers: int | None = None

    @property
    def per_developer(self) -> tuple[float, float, float] | None:
        """Kept model FLOPs a month for each developer: low, likely, high; None where it is not said how many they
        are."""
        if self.developers is None:
            return None
        each = (
            flops_per_developer(c.effective_flops_per_s, self.developers) for c in (self.worst, self.likely, self.best)
        )
        low, likely, high = each
        return low, likely, high

    @property
    def broken(self) -> list[str]:
        """Limits that it is not sure enough to keep."""
        return [name for name, word in self.meets.items() if word not in SURE]

    @property
    def feasible(self) -> bool:
        return not self.broken

    def to_dict(self) -> dict[str, Any]:
        return {
            "chip": self.chip.name,
            "chips": self.chips,
            "feasible": self.feasible,
            "meets": dict(self.meets),
            "mfu": dict(zip(("low", "likely", "high"), self.mfu, strict=True)),
            "days": {"low": self.best.days, "likely": self.likely.days, "high": self.worst.days},
            "usd": None
            if self.likely.usd is None
            else {"low": self.best.usd, "likely": self.likely.usd, "high": self.worst.usd},
            "chip_hours": self.likely.chip_hours,
            "tokens_per_s_per_chip": self.likely.tokens_per_s_per_chip,
            "effective_flops_per_s": self.likely.effective_flops_per_s,
            "usd_per_million_tokens": self.likely.usd_per_million_tokens,
            "flops_per_developer_month": self.per_developer
            and dict(zip(("low", "likely", "high"), self.per_developer, strict=True)),
            "basis": self.basis,
            "published_chips": self.published_chips,
            "remark": self.remark,
        }


@dataclass(frozen=True)
class CostPlan:
    """Choices, the best first, and why chips that were named are not among them."""

    asked: Asked
    model: Model
    work: Work
    seq: int
    choices: tuple[Choice, ...]
    why_not: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def best(self) -> Choice | None:
        return next((c for c in self.choices if c.feasible), None)

    @property
    def priced(self) -> bool:
        return all(c.likely.usd is not None for c in self.choices)

    @property
    def front(self) -> tuple[Choice, ...]:
        """Choices that no other beats in both days and dollars, the fastest first; of those without a price none."""
        priced = sorted(
            (c for c in self.choices if c.likely.usd is not None), key=lambda c: (c.likely.days, c.likely.usd)
        )
        best, found = math.inf, list[Choice]()
        for c in priced:
            if (usd := c.likely.usd or 0.0) < best * (1 - SAME):
                best, found = usd, [*found, c]
        return tuple(found)

    @property
    def equal_time(self) -> list[Line]:
        """Of each chip, around the deadline or the days of the best choice."""
        first, goodput = self.best or self.choices[0], self.asked.goodput or 1.0
        by_chip = {c.chip.name: c for c in reversed(self.choices)}
        kinds = [
            Kind(
                chip=name,
                tried=[o.chips for o in self.choices if o.chip.name == name],
                peak_flops_per_s=c.likely.effective_flops_per_s / (c.chips * c.mfu[1] * goodput),
                mfu=c.mfu[1],
            )
            for name, c in reversed(by_chip.items())
        ]
        return equal_time(self.work, kinds, self.asked.days or float(f"{first.likely.days:.1g}"), goodput)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "tokens": self.work.tokens,
            "seq": self.seq,
            "precision": self.asked.precision,
            "flops_per_token": self.work.flops_per_token,
            "flops": self.work.flops,
            "goodput": self.asked.goodput or 1.0,
            "best": None if self.best is None else self.best.to_dict(),
            "choices": [c.to_dict() for c in self.choices],
            "developers": self.asked.developers,
            "pareto_front": [{"chip": c.chip.name, "chips": c.chips} for c in self.front],
            "equal_time": [asdict(line) for line in self.equal_time],
            "why_not": list(self.why_not),
            "notes": list(self.notes),
        }


def find(asked: Asked) -> CostPlan:
    """Raises QuestionError where something is missing, or no chip that was named can be reckoned with."""
    missing = [f"--{n}" for n in ("model", "on", "tokens") if getattr(asked, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(missing))
    if asked.chips is None and asked.days is None:
        raise QuestionError("neither a number of chips nor a deadline", expected="--chips, --days or both")
    wanted = model(asked.model or "")
    seq = asked.seq or SEQ
    work = Work(flops_per_token=flops_per_token(wanted, seq).total, tokens=asked.tokens or 0.0)
    paid, counts = prices(asked.price), numbers_of(asked.chips)
    chips = list({c.name: c for c in map(chip, named(asked.on))}.values())
    if idle := paid.keys() - {c.name for c in chips}:
        raise QuestionError(f"a price for {', '.join(sorted(idle))}", expected="prices of chips that are tried (--on)")
    if len(chips) * max(1, len(counts)) > MOST:
        raise QuestionError(f"{len(chips)} chips in {len(counts)} numbers", expected=f"at most {MOST} together")
    choices, why_not, ranges = list[Choice](), list[str](), list[Range]()
    for one in chips:
        peak = peak_flops_per_s(one, asked.precision)
        found = utilisation(one, asked.precision, wanted) if peak and asked.mfu is None else None
        if why := _why_not(one, asked, peak, found):
            why_not.append(why)
            continue
        ranges += [found] if found else []
        choices += _choices(one, asked, work, peak or 0.0, found, counts, paid.get(one.name))
    if not choices:
        raise QuestionError(" ".join(why_not).removesuffix("."), advice="Name other chips or another precision")
    more = (*((PER_DEVELOPER,) if asked.developers else ()), *_unjudged(asked, choices))
    notes = (*more, *((PUBLISHED,) if ranges else ()), *(() if asked.goodput else (ALL_KEPT,)), *NOTES)
    return CostPlan(asked, wanted, work, seq, tuple(sorted(choices, key=_order(choices, asked))), tuple(why_not), notes)


def _unjudged(asked: Asked, choices: list[Choice]) -> tuple[str, ...]:
    """Chips of which a budget says nothing, as they have no price. Raises QuestionError where none has one."""
    unpriced = list(dict.fromkeys(c.chip.name for c in choices if c.likely.usd is None))
    if asked.usd is None or not unpriced:
        return ()
    if all(c.likely.usd is None for c in choices):
        example = f"--price with it, such as {unpriced[0]}=2.7"
        raise QuestionError("a budget, without the price of a chip", expected=example)
    return (f"No price is given for {', '.join(unpriced)}: whether the budget is kept there is not known.",)


def named(text: str | None) -> list[str]:
    """Names by comma. Raises QuestionError for none."""
    names = [n.strip() for n in (text or "").split(",") if n.strip()]
    if not names:
        raise QuestionError("no chip to try", expected="--on with names by comma, such as v5p,h100")
    return names


def numbers_of(text: str | None) -> list[int]:
    """Numbers of chips by comma."""
    parts = [n.strip() for n in (text or "").split(",") if n.strip()]
    return list(dict.fromkeys(CHIPS.read(n, "a number of chips,") for n in parts))


def _why_not(one: Chip, asked: Asked, peak: float | None, found: Range | None) -> str:
    if peak is None:
        return f"{one.name}: no peak in {asked.precision} is published."
    if asked.mfu is None and found is None:
        return f"{one.name}: too few runs in {asked.precision} were published to reckon with: name the MFU yourself."
    return ""


def _choices(
    one: Chip, asked: Asked, work: Work, peak: float, found: Range | None, counts: list[int], usd: float | None
) -> Iterator[Choice]:
    """One for each number of chips; where none is asked for, as many as the deadline needs, in whole hosts."""
    same = asked.mfu or 0.0
    mfu = (found.low, found.likely, found.high) if found else (same, same, same)
    goodput = asked.goodput or 1.0
    if not counts:
        host = int(one.value("chips_per_host") or 1)
        counts = [chips_for(work, (asked.days or 0.0) * DAY_S, peak * mfu[1] * goodput, host)]
    for number in counts:
        if number > CHIPS.high:
            raise QuestionError(
                f"a deadline of {asked.days:g} days takes {number:.2g} {one.name}",
                expected=f"one that at most {CHIPS.high:,} chips can keep",
                advice="Give it more days, or name the chips that there are with --chips",
            )
        held = Held(chips=number, peak_flops_per_s=peak, mfu=mfu[1], goodput=goodput, usd_per_chip_hour=usd)
        worst, likely, best = (cost(work, replace(held, mfu=u)) for u in mfu)
        basis = "published" if found else "modelled"
        yield Choice(
            one,
            number,
            mfu,
            likely,
            worst,
            best,
            basis,
            _meets(asked, worst, likely, best, bool(found and number > found.most_chips)),
            found and found.most_chips,
            _remark(one, number, found),
            asked.developers,
        )


def _meets(asked: Asked, worst: Cost, likely: Cost, best: Cost, beyond: bool) -> dict[str, str]:
    """Of each limit that was asked for, how well it is kept. Worst to best: dear and slow first."""
    found = {}
    for name, limit, take in (("days", asked.days, lambda c: c.days), ("usd", asked.usd, lambda c: c.usd)):
        values = [take(c) for c in (worst, likely, best)]
        if limit is None:
            continue
        if None in values:
            found[name] = "unknown"
            continue
        kept = [value <= limit * (1 + 1e-9) for value in values]
        sure = sum(kept)
        found[name] = WORDS[max(1, sure - 1) if beyond and sure else sure]
    return found


def _remark(one: Chip, number: int, found: Range | None) -> str:
    """What is to be known of it: more chips than one slice or than was ever published, runs of another kind."""
    said = []
    family = families().get(one.name)
    pod = family.numbers.get("pod_chips") if family else None
    if pod is not None and pod.figure and number > pod.figure:
        said.append(
            f"more than the {pod.figure:,.0f} chips of its largest machine: several, joined by a slower network"
        )
    if found and not found.alike:
        said.append("published runs are of another class, dense or with experts: the MFU may be far off")
    if found and number > found.most_chips:
        said.append(f"the largest published run had {found.most_chips:,} chips: beyond, MFU falls by an unknown amount")
    return "; ".join(said)


def _order(choices: list[Choice], asked: Asked):
    """Those that meet what was asked first, then those of which a limit is not known last; then by dollars where all
    have a price (or a budget asks for one), else by chip-hours."""
    by_usd = asked.usd is not None or all(c.likely.usd is not None for c in choices)

    def key(c: Choice) -> tuple[bool, bool, float, float, str]:
        paid = c.likely.usd if by_usd else None
        first = c.likely.chip_hours if paid is None else paid
        return not c.feasible, "unknown" in c.meets.values(), first, c.likely.days, c.chip.name

    return key
