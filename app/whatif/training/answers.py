"""From the options of `whatif training` to layouts on each chip and number of chips, their days and dollars."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from app.whatif.cost.answers import MOST, named, numbers_of
from app.whatif.cost.asked import SEQ
from app.whatif.prices import prices
from app.whatif.training import lives
from app.whatif.training.asked import AXES, BATCH_TOKENS, PRECISIONS, REMAT, Asked
from app.whatif.training.choice import Choice, choice_of, fronted
from app.whatif.training.making import ToMake, made_real
from app.whatif.training.reasons import Reason, losers, refused
from app.whatif.training.same_loss import SameLoss, same_loss
from app.whatif.training.sensitivity import sensitivity
from app.whatif.training.slices import no_slice
from app.whatif.training.sweeps import planned as swept
from app.whatif.training.would_do import WouldDo, would_do
from catalog import chip, model
from catalog.chips import Chip
from catalog.models import Model
from catalog.slices import families
from errors import QuestionError
from errors.numbers import CHIPS, COUNT
from simulators.training.efficiency import fitted_file
from simulators.training.plan import Found, check_fixed
from simulators.training.refused import no_layout

LEAST_CHIPS, MOST_CHIPS = 8, 1 << 17
LAYOUTS = 5  # told of each number of chips
TOLD = 4  # sentences of a refusal
NOTES = (
    "Every layout that divides is timed by a model of the step whose shares of the peaks were fitted to published "
    "runs; the range is that in which nine of ten steps of runs lay that were held back.",
    "Sizes in bytes count what must be kept and a twentieth on top; optimiser state is dealt out over all copies.",
    "Networks are taken as uncontended, input as never waited for. Days and dollars are of the tokens that were asked "
    "for, whatever batch they come in.",
)
UNPRICED = "no price is given, so it is not known whether the budget is kept."


@dataclass(frozen=True)
class TrainingPlan:
    """Choices, the best first, and why chips and numbers of them are not among them."""

    asked: Asked
    model: Model
    seq: int
    batch: int
    choices: tuple[Choice, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    tried: int

    @property
    def best(self) -> Choice | None:
        return next((c for c in self.choices if c.feasible), None)

    @property
    def first(self) -> Choice:
        """The best choice, else the nearest to it."""
        return self.choices[0]

    @property
    def why_not(self) -> tuple[str, ...]:
        """What is to be known of chips and numbers of them that are not listed, and of some that are."""
        return tuple(r.text for r in self.reasons)

    @cached_property
    def losers(self) -> tuple[Reason, ...]:
        """Why each choice but the first is not the best."""
        return losers(self.choices, self.asked.tokens, self.batch * self.seq)

    @property
    def front(self) -> list[Choice]:
        """The choices that no other beats in days and dollars, the fastest first."""
        return sorted((c for c in self.choices if c.front), key=lambda c: c.days or ())

    @cached_property
    def would_do(self) -> tuple[WouldDo, ...]:
        """Where no choice keeps every limit, which limits one would, and which other number of chips keeps them."""
        return (*would_do(self.choices), *_other_chips(self))

    @cached_property
    def same_loss(self) -> SameLoss | None:
        return same_loss(self.asked.tokens, self.batch * self.seq)

    @property
    def safer(self) -> Choice | None:
        """Where the first choice fits only just: the next in order on the same chip that has room."""
        if not self.first.planned.tight:
            return None
        same = (c for c in self.choices if c.planned.chip == self.first.planned.chip)
        return next((c for c in same if not c.planned.tight), None)

    @cached_property
    def make(self) -> dict[str, Any]:
        """The texts that make the first choice real, by tool."""
        first = ToMake(model=self.model, asked=self.asked, choice=self.first, batch=self.batch, seq=self.seq)
        return made_real(first)

    def again(self, asked: Asked) -> "TrainingPlan":
        """The same plan, asked otherwise. Raises QuestionError as `find` does."""
        return find(asked, self.model)

    def of_any_number(self) -> "TrainingPlan":
        """The same of every number of chips that is usual."""
        return self.again(replace(self.asked, chips=None))

    @property
    def firsts(self) -> list[Choice]:
        """The best layout of each chip and number of chips."""
        found: dict[tuple[str, int], Choice] = {}
        for choice in self.choices:
            found.setdefault((choice.planned.chip, choice.planned.chips), choice)
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        first = self.first
        return {
            "model": self.model.name,
            "seq": self.seq,
            "global_batch_tokens": self.batch * self.seq,
            "precision": self.asked.precision,
            "tokens": self.asked.tokens,
            "fitted": fitted_file()["fitted"],
            "best": None if self.best is None else self.best.to_dict(),
            "layouts_tried": self.tried,
            "layouts": [c.to_dict() for c in self.choices],
            "why_not": [r.to_dict() for r in (*self.reasons, *self.losers)],
            "would_do": [w.to_dict() for w in self.would_do],
            "critical_batch": self.same_loss and self.same_loss.to_dict(first.days, first.usd),
            "sensitivity": [m.to_dict() for m in sensitivity(first)],
            "safer": self.safer and self.safer.to_dict(),
            "make": self.make,
            "ledger": {
                "unit": "chip-seconds of a step",
                "held": first.planned.step_s * first.planned.chips,
                "accounts": {k: v * first.planned.chips for k, v in first.planned.accounts.items()},
                "parts": {k: v * first.planned.chips for k, v in first.planned.parts.items()},
                "basis": "modelled",
            },
            "notes": list(self.notes),
        }


def find(asked: Asked, of: Model | None = None) -> TrainingPlan:
    """Raises QuestionError where something is missing, or no chip that was named can train the model. `of`: the model,
    where the catalogue need not have it."""
    asked = replace(asked, precision=asked.precision or PRECISIONS[0], remat=asked.remat or REMAT)
    missing = [f"--{n}" for n in ("model", "on") if getattr(asked, n) is None and not (n == "model" and of)]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(missing))
    if (asked.days is not None or asked.usd is not None) and asked.tokens is None:
        raise QuestionError("a deadline or a budget, without what is to be done until then", expected="--tokens")
    lives.check_lives(asked)
    wanted, seq = of or model(asked.model or ""), asked.seq or SEQ
    batch = _batch(asked, seq)
    fixed, listed = _fixed(asked.layout), numbers_of(asked.chips)
    paid = prices(asked.price)
    if asked.usd is not None and not paid:
        raise QuestionError("a budget, without the price of a chip", expected="--price")
    on = list({c.name: c for c in map(chip, named(asked.on))}.values())
    if idle := paid.keys() - {c.name for c in on}:
        raise QuestionError(f"a price for {', '.join(sorted(idle))}", expected="prices of chips that are tried (--on)")
    if len(on) * max(1, len(listed)) > MOST:
        raise QuestionError(f"{len(on)} chips in {len(listed)} numbers", expected=f"at most {MOST} together")
    choices, reasons, tried = list[Choice](), list[Reason](), 0
    for one in on:
        for found in _planned(one, wanted, asked, batch, seq, fixed, listed, reasons):
            tried += found.tried
            priced = lives.told(found.layouts, asked, paid.get(one.name), reasons)
            choices += [choice_of(p, lived, asked, paid.get(one.name)) for p, lived in priced]
            if asked.usd is not None and one.name not in paid and found.layouts:
                reasons.append(Reason(kind="unpriced", text=f"{one.name}: {UNPRICED}", chip=one.name))
    if not choices:
        texts = list(dict.fromkeys(r.text for r in reasons))
        rest = f" {len(texts) - TOLD} more likewise." if len(texts) > TOLD else ""
        raise QuestionError((" ".join(texts[:TOLD]) + rest).removesuffix("."), advice=_advice(reasons))
    notes = (*lives.notes(asked), *NOTES)
    ordered = tuple(sorted(fronted(choices), key=in_order(choices, asked)))
    once = tuple({r.text: r for r in reasons}.values())
    return TrainingPlan(asked, wanted, seq, batch, ordered, once, notes, tried)


def _advice(reasons: Sequence[Reason]) -> str:
    """The nearest that would do, where it is known."""
    if reasons and all(r.kind == "number" for r in reasons):
        return "Name another --precision, of which its peak is published, or other chips"
    if reasons and all(r.kind == "axes" for r in reasons):
        return "Give the axes sizes that divide, or leave them free"
    found = next((r for r in reasons if r.try_chips), None)
    if found is None:
        return "Name other chips, more of them, or a smaller batch"
    return f"Try --chips {','.join(map(str, found.try_chips))} of {found.chip}, other chips, or another batch"


def _batch(asked: Asked, seq: int) -> int:
    """Sequences of a step."""
    tokens = asked.global_batch_tokens or BATCH_TOKENS
    if tokens < seq:
        raise QuestionError(f"{tokens:,.0f} tokens in a step", expected=f"at least one sequence, {seq:,}")
    return round(tokens / seq)


def _fixed(text: str | None) -> dict[str, int]:
    """`tp=8,pp=4` by axis. Raises QuestionError for another axis or no whole number."""
    found = dict[str, int]()
    for part in (p.strip() for p in (text or "").split(",") if p.strip()):
        name, _, value = (t.strip() for t in part.partition("="))
        if name not in AXES:
            raise QuestionError(f"axis {name[:40]!r}", expected=f"AXIS=N of {', '.join(AXES)}")
        if AXES[name] in found:
            raise QuestionError(f"axis {name!r} is given twice", expected="each axis once, such as tp=8,pp=4")
        found[AXES[name]] = COUNT.read(value, f"the size of {name},")
    if text is not None and not found:
        raise QuestionError(
            f"a layout without an axis, {text[:40]!r}", expected="AXIS=N such as tp=8,pp=4, or nothing at all"
        )
    return found


def _planned(
    one: Chip,
    wanted: Model,
    asked: Asked,
    batch: int,
    seq: int,
    fixed: dict[str, int],
    listed: Sequence[int],
    reasons: list[Reason],
) -> list[Found]:
    """What each number of chips has; `reasons` gets why it has nothing."""
    found, precision, remat = list[Found](), asked.precision or PRECISIONS[0], asked.remat or REMAT
    for number in listed or _offered(one, batch):
        if listed and fixed:
            check_fixed(fixed, number)
        try:
            this = swept(
                wanted,
                one,
                number,
                batch,
                seq,
                precision=precision,
                fixed=fixed,
                remat=remat,
                most=LAYOUTS,
            )
        except QuestionError as e:  # a number that the catalogue lacks
            reasons.append(Reason(kind="number", text=f"{one.name}: {e.args[0]}.", chip=one.name))
            break
        found.append(this)
        if this.layouts:
            reasons += [Reason(kind="assumed", text=said, chip=one.name) for said in this.assumed]
            if said := no_slice(one, number):
                reasons.append(Reason(kind="slice", text=said, chip=one.name, chips=number))
    if listed or not any(f.layouts for f in found):
        for one_found in found if listed else found[-1:]:
            why = no_layout(one_found, wanted, batch, seq, fixed, precision, remat)
            reasons += [refused(why, one.name, one_found.chips, seq, asked.tokens)] if why else []
    return found


def _offered(one: Chip, batch: int) -> list[int]:
    """Powers of two up to the chip's largest machine (GPUs: to `MOST_CHIPS`), and no more than 64 a sequence."""
    family = families().get(one.name)
    pod = family.numbers.get("pod_chips") if family else None
    most = min(int(pod.figure) if pod is not None and pod.figure else MOST_CHIPS, 64 * batch, CHIPS.high)
    return [n for n in (1 << k for k in range(18)) if LEAST_CHIPS <= n <= most]


def _other_chips(plan: TrainingPlan) -> list[WouldDo]:
    """The least number of chips, of those that were to be tried, that keeps every limit which the numbers asked for do
    not; none where all numbers were tried."""
    if plan.best is not None or not numbers_of(plan.asked.chips):
        return []
    try:
        found = plan.of_any_number().choices
    except QuestionError:  # of the usual numbers none has a layout
        return []
    least = min((c for c in found if c.feasible), key=lambda c: c.planned.chips, default=None)
    return [WouldDo("chips", float(least.planned.chips), least, False)] if least else []


def usual(plan: TrainingPlan) -> str:
    """The numbers of chips that are tried where none are named."""
    offered = {n for one in named(plan.asked.on) for n in _offered(chip(one), plan.batch)}
    return ",".join(map(str, sorted(offered)))


def in_order(choices: Sequence[Choice], asked: Asked):
    """Those that keep the limits first, by dollars, where all are priced, or chip time; then the others by how many
    times the worst limit they take; without tokens by the tokens of a chip's time. What has no price comes after what
    is known to keep a budget."""
    priced = all(c.usd is not None for c in choices)

    def key(c: Choice):
        if c.days is None:
            return (0, -c.planned.tokens_per_s_per_chip, c.planned.chips)
        chip_days = c.days[1] * c.planned.chips
        unknown = asked.usd is not None and c.usd is None
        if not c.feasible:  # the nearest to the limits first
            pairs = ((c.days, asked.days), (c.usd, asked.usd))
            beyond = max((taken[1] / limit for taken, limit in pairs if taken and limit), default=0.0)
            return (True, unknown, beyond, chip_days)
        return (not c.feasible, unknown, c.usd[1] if (priced or asked.usd) and c.usd else chip_days, c.days[1])

    return key
