"""From the options of `whatif training` to layouts on each chip and number of chips, their days and dollars."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.whatif.cost.answers import MOST, named, numbers_of
from app.whatif.cost.asked import SEQ
from app.whatif.prices import prices
from app.whatif.training.asked import AXES, BATCH_TOKENS, PRECISIONS, REMAT, Asked
from catalog import chip, model
from catalog.chips import Chip
from catalog.models import Model
from catalog.slices import families, slice_
from errors import QuestionError
from errors.numbers import CHIPS, COUNT
from simulators.training.cost import DAY_S, HOUR_S
from simulators.training.efficiency import fitted_file
from simulators.training.plan import Found, Planned, check_fixed, plan, why_not

LEAST_CHIPS, MOST_CHIPS = 8, 1 << 17
LAYOUTS = 5  # told of each number of chips
NOTES = (
    "Every layout that divides is timed by a model of the step whose shares of the peaks were fitted to published "
    "runs; the range is that in which nine of ten steps of runs lay that were held back.",
    "Sizes in bytes count what must be kept and a twentieth on top; optimiser state is dealt out over all copies.",
    "Networks are taken as uncontended, input as never waited for, and whether so large a batch learns as well is not "
    "looked at.",
)
UNPRICED = "no price is given, so it is not known whether the budget is kept."
ALL_KEPT = "Goodput is taken as 1: every step is kept and nothing waits. What your jobs reach can be named instead."


@dataclass(frozen=True)
class Choice:
    """A layout with its days and dollars: low, likely and high; None without tokens or a price."""

    planned: Planned
    goodput: float
    days: tuple[float, float, float] | None
    usd: tuple[float, float, float] | None
    meets: dict[str, bool]

    @property
    def feasible(self) -> bool:
        return all(self.meets.values())

    def to_dict(self) -> dict[str, Any]:
        p = self.planned
        return {
            "chip": p.chip,
            "chips": p.chips,
            "topology": _slice(p),
            "layout": p.layout,
            "step_s": p.step_s,
            "tflops_per_s_per_chip": p.flops_per_s_per_chip / 1e12,
            "mfu": p.mfu,
            "tokens_per_s_per_chip": p.tokens_per_s_per_chip,
            "bytes_per_chip": p.bytes_per_chip,
            "fits": True,
            "tight": p.tight,
            "layers_recomputed": p.recomputed,
            "goodput": self.goodput,
            "days": self.days and self.days[1],
            "usd": self.usd and self.usd[1],
            "band": {"low": p.low_s, "high": p.high_s},
            "published_runs": p.published,
            "meets": dict(self.meets),
            "basis": "modelled",
        }


@dataclass(frozen=True)
class TrainingPlan:
    """Choices, the best first, and why chips and numbers of them are not among them."""

    asked: Asked
    model: Model
    seq: int
    batch: int
    choices: tuple[Choice, ...]
    why_not: tuple[str, ...]
    notes: tuple[str, ...]
    tried: int

    @property
    def best(self) -> Choice | None:
        return next((c for c in self.choices if c.feasible), None)

    @property
    def firsts(self) -> list[Choice]:
        """The best layout of each chip and number of chips."""
        found: dict[tuple[str, int], Choice] = {}
        for choice in self.choices:
            found.setdefault((choice.planned.chip, choice.planned.chips), choice)
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        first = self.best or self.choices[0]
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
            "why_not": list(self.why_not),
            "ledger": {
                "unit": "chip-seconds of a step",
                "held": first.planned.step_s * first.planned.chips,
                "accounts": {k: v * first.planned.chips for k, v in first.planned.accounts.items()},
                "parts": {k: v * first.planned.chips for k, v in first.planned.parts.items()},
                "basis": "modelled",
            },
            "notes": list(self.notes),
        }


def _slice(planned: Planned) -> str | None:
    return slice_name(planned.chip, planned.chips)


def slice_name(chip_name: str, chips: int) -> str | None:
    """What its cloud calls a slice of so many chips; None where there is none, or no such names."""
    family = families().get(chip_name)
    name = family.accelerator_type(chips) if family else None
    try:
        return slice_(name).name if name else None
    except QuestionError:
        return None


def _no_slice(one: Chip, number: int) -> str:
    """What a number of chips means that is no slice; empty for one that is, and for chips that do not come so."""
    family = families().get(one.name)
    if family is None or not family.count_per_chip or slice_name(one.name, number):
        return ""
    if number > (pod := family.count("pod_chips")):
        meet = "groups of chips beyond it meet over the data-centre network"
        return f"{number:,} {one.name} are more than a pod, which has {pod:,}: {meet}."
    near = [max((t.chips for t in family.topologies if t.chips < number), default=0)]
    near += [min((t.chips for t in family.topologies if t.chips > number), default=0)]
    told = " and ".join(f"{n:,}" for n in near if n)
    return f"{number:,} {one.name} are no slice that is offered; the nearest that are listed have {told} chips."


def find(asked: Asked, of: Model | None = None) -> TrainingPlan:
    """Raises QuestionError where something is missing, or no chip that was named can train the model. `of`: the model,
    where the catalogue need not have it."""
    asked = replace(asked, precision=asked.precision or PRECISIONS[0], remat=asked.remat or REMAT)
    missing = [f"--{n}" for n in ("model", "on") if getattr(asked, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(missing))
    if (asked.days is not None or asked.usd is not None) and asked.tokens is None:
        raise QuestionError("a deadline or a budget, without what is to be done until then", expected="--tokens")
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
    choices, reasons, tried = list[Choice](), list[str](), 0
    for one in on:
        for found in _planned(one, wanted, asked, batch, seq, fixed, listed, reasons):
            tried += found.tried
            choices += [chosen(p, asked, paid.get(one.name)) for p in found.layouts]
            if asked.usd is not None and one.name not in paid and found.layouts:
                reasons.append(f"{one.name}: {UNPRICED}")
    if not choices:
        raise QuestionError(
            " ".join(reasons).removesuffix("."), advice="Name other chips, more of them, or a smaller batch"
        )
    notes = (*(() if asked.goodput or asked.tokens is None else (ALL_KEPT,)), *NOTES)
    ordered = tuple(sorted(choices, key=in_order(choices, asked)))
    return TrainingPlan(asked, wanted, seq, batch, ordered, tuple(dict.fromkeys(reasons)), notes, tried)


def _batch(asked: Asked, seq: int) -> int:
    """Sequences of a step."""
    tokens = asked.global_batch_tokens or BATCH_TOKENS
    if tokens < seq:
        raise QuestionError(f"{tokens:,.0f} tokens in a step", expected=f"at least one sequence, {seq:,}")
    return round(tokens / seq)


def _fixed(text: str | None) -> dict[str, int]:
    """`tp=8,pp=4` by axis. Raises QuestionError for another axis or no whole number."""
    found = {}
    for part in (p.strip() for p in (text or "").split(",") if p.strip()):
        name, _, value = part.partition("=")
        if name.strip() not in AXES:
            raise QuestionError(f"axis {name.strip()[:40]!r}", expected=f"AXIS=N of {', '.join(AXES)}")
        found[AXES[name.strip()]] = COUNT.read(value, f"the size of {name.strip()},")
    return found


def _planned(
    one: Chip,
    wanted: Model,
    asked: Asked,
    batch: int,
    seq: int,
    fixed: dict[str, int],
    listed: Sequence[int],
    reasons: list[str],
) -> list[Found]:
    """What each number of chips has; `reasons` gets why it has nothing."""
    found = list[Found]()
    for number in listed or _offered(one, batch):
        if listed and fixed:
            check_fixed(fixed, number)
        try:
            this = plan(
                wanted,
                one,
                number,
                batch,
                seq,
                precision=asked.precision or "",
                fixed=fixed,
                remat=asked.remat or "",
                most=LAYOUTS,
            )
        except QuestionError as e:  # a number that the catalogue lacks
            reasons.append(f"{one.name}: {e.args[0]}.")
            break
        found.append(this)
        if this.layouts:
            reasons += [said for said in (*this.assumed, _no_slice(one, number)) if said]
    if listed or not any(f.layouts for f in found):
        reasons += [why for f in (found if listed else found[-1:]) if (why := why_not(f, wanted, batch, seq, fixed))]
    return found


def _offered(one: Chip, batch: int) -> list[int]:
    """Powers of two up to the chip's largest machine (GPUs: to `MOST_CHIPS`), and no more than 64 a sequence."""
    family = families().get(one.name)
    pod = family.numbers.get("pod_chips") if family else None
    most = min(int(pod.figure) if pod is not None and pod.figure else MOST_CHIPS, 64 * batch, CHIPS.high)
    return [n for n in (1 << k for k in range(18)) if LEAST_CHIPS <= n <= most]


def chosen(planned: Planned, asked: Asked, price: float | None) -> Choice:
    """Time is what all tokens take at the rate, over the goodput; dollars are chip-hours at the price."""
    goodput = asked.goodput or 1.0
    if asked.tokens is None:
        return Choice(planned, goodput, None, None, {})
    likely = asked.tokens / (planned.tokens_per_s_per_chip * planned.chips * goodput)
    low, high = (likely * end / planned.step_s for end in (planned.low_s, planned.high_s))
    days = (low / DAY_S, likely / DAY_S, high / DAY_S)
    usd = None
    if price is not None:
        low, likely, high = (s / HOUR_S * planned.chips * price for s in (low, likely, high))
        usd = (low, likely, high)
    meets = {}
    if asked.days is not None:
        meets["days"] = days[1] <= asked.days
    if asked.usd is not None:
        meets["usd"] = usd is not None and usd[1] <= asked.usd
    return Choice(planned, goodput, days, usd, meets)


def in_order(choices: Sequence[Choice], asked: Asked):
    """Those that keep the limits first; then by dollars, where all are priced, or chip time; without tokens by the
    tokens of a chip's time. What has no price comes after what is known to keep a budget."""
    priced = all(c.usd is not None for c in choices)

    def key(c: Choice):
        if c.days is None:
            return (0, -c.planned.tokens_per_s_per_chip, c.planned.chips)
        chip_days = c.days[1] * c.planned.chips
        unknown = asked.usd is not None and c.usd is None
        return (not c.feasible, unknown, c.usd[1] if (priced or asked.usd) and c.usd else chip_days, c.days[1])

    return key
