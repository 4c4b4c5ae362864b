"""From the options of `whatif serving-plan` to a plan: chips and prices by name, two pools where asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.whatif.prices import prices
from app.whatif.serving.answers import fit
from app.whatif.serving.asked import Asked as RunAsked
from app.whatif.serving.inputs import run_setup
from app.whatif.serving.known import Band, BreakEven, Known, anchors, bands, break_evens, stored
from app.whatif.serving_plan.asked import Asked
from catalog import chip, model
from catalog.chips import Chip
from catalog.own_chip import own_chips
from errors import QuestionError
from runs.run import Run
from simulators.serving.disaggregated import Comparison, compare
from simulators.serving.efficiency import SOURCE, TYPICAL
from simulators.serving.objectives import LATENCIES, Objectives, Shape
from simulators.serving.planner import Choice, Plan, Wanted, plan

LIMITS = ("max_sequences", "token_budget")
LONGEST = {"input": 200_000, "output": 20_000}  # tokens of a request; trials of 20,000 longer ones take minutes
LEAST_REPLICAS = 4  # to split in two pools; fewer leave no choice
ASSUMED = (
    "Uncalibrated: shares of the peaks are assumed, and the range of chips is that between the fastest and the "
    "slowest assumed. Calibrate on a run of the machine (--calibrate) before money is spent."
)
NOTES = (
    "Requests of equal lengths. Replicas share the load evenly, each served by an engine with a queue of its own, to "
    "which requests come as unevenly as to all of them: a router that deals them out in turn does better.",
    "What a replica bears is settled by trials of 20,000 requests (three times as many where chance decides, fewer of "
    "very long answers); other arrivals move it by a few per cent.",
    "Weights in 8 or 4 bits that the maker does not publish so change the answers: whether yours stay good enough is "
    "for you to measure. The cache stays in bf16.",
    "Chips are bought in whole replicas; hosts, networks and idle spares are not priced.",
)


@dataclass(frozen=True)
class ServingPlan:
    """The plan, what it was asked for, and the comparison with two pools where that was asked for too."""

    plan: Plan
    prices: Mapping[str, float]
    pools: Comparison | None
    notes: tuple[str, ...]
    bands: Mapping[int, Band]
    break_evens: tuple[BreakEven, ...]
    unpriced: tuple[str, ...]

    @property
    def ranked(self) -> bool:
        """Whether the first is the first by more than its name: all are priced, or all are of one kind."""
        kinds = {c.setup.chip.name for c in self.plan.choices if c.feasible}
        return len(kinds) < 2 or not kinds & set(self.unpriced)

    def to_dict(self) -> dict[str, Any]:
        wanted = self.plan.wanted
        first = self.break_evens[0] if self.break_evens else None
        return {
            "model": wanted.model.name,
            "rate_per_s": wanted.rate_per_s,
            "shape": dict(vars(wanted.shape)),
            "objectives": dict(vars(wanted.objectives)),
            "usd_per_chip_hour": dict(self.prices),
            "ranked_by": _ranked_by(self),
            "unpriced_chips": list(self.unpriced),
            "break_even": first and first.to_dict(),
            "break_evens": [b.to_dict() for b in self.break_evens],
            "choices": [
                choice_dict(c, self.bands.get(i), wanted.shape.output) for i, c in enumerate(self.plan.choices)
            ],
            "basis": "modelled",
            "disaggregated": None if self.pools is None else pools_dict(self.pools),
            "notes": list(self.notes),
        }


def _ranked_by(made: ServingPlan) -> str:
    if not made.ranked:
        return "nothing across kinds of chips: no prices"
    return "chips" if made.plan.best is None or made.plan.best.usd_per_hour is None else "usd_per_hour"


def choice_dict(c: Choice, band: Band | None = None, output: int = 0) -> dict[str, Any]:
    seen = {name: value if value == value else None for name, value in c.seen.items()}  # NaN: not known
    return {
        "name": c.name,
        "chip": c.setup.chip.name,
        "format": c.setup.kept.name,
        "tensor": c.setup.tensor,
        "expert": c.setup.expert,
        "replicas": c.replicas,
        "chips": c.chips,
        "chips_low": c.chips_low,
        "chips_high": c.chips_high,
        "feasible": c.feasible,
        "rate_per_replica": c.rate_per_replica,
        **seen,
        "limit": c.limit,
        "basis": c.basis,
        "usd_per_hour": c.usd_per_hour,
        "usd_per_million_output_tokens": c.usd_per_million,
        "why": c.why,
        "multiplies_in": c.setup.machine.computes_in,
        "stand_ins": list(c.setup.machine.stand_ins),
        "output_tokens_per_s": c.rate_per_replica * output if output else None,
        "band": band and band.to_dict(),
    }


def pools_dict(found: Comparison) -> dict[str, Any]:
    return {
        "one_pool_rate_per_s": found.aggregate.rate_per_s,
        "best": found.best.name if found.best else None,
        "two_pools_rate_per_s": found.disaggregated.rate_per_s if found.disaggregated else None,
        "gain": found.gain,
        "splits": {name: bears.rate_per_s for name, bears in found.splits},
        "transfer_s": found.transfer_s,
        "prefill_by_decode": found.balance,
    }


def find(
    asked: Asked,
    run: Run | None = None,
    progress: Callable[[float, str], None] = lambda share, what: None,
    runs: Iterable[Run] = (),
) -> ServingPlan:
    """The plan. `run`: what its chip is calibrated on; `runs`: of the store, newest first, of which those of the same
    model and chip are used without being asked for. Raises QuestionError."""
    _complete(asked)
    own = {o.chip.name: o for o in own_chips(asked.own_chip)} if asked.own_chip else {}
    named = [n.strip() for n in (asked.on or "").split(",") if n.strip()]
    chips = [own[n].chip if n in own else chip(n) for n in named]
    chips = list({c.name: c for c in (*chips, *(o.chip for o in own.values()))}.values())
    if not chips:
        raise QuestionError("no chip to try", expected="--on with names by comma, such as v6e,h100")
    wanted = _wanted(asked)
    formats = tuple(f.strip() for f in (asked.formats or "").split(",") if f.strip())
    listed = {name: o.usd_per_chip_hour for name, o in own.items() if o.usd_per_chip_hour is not None}
    priced = listed | prices(asked.price, own)
    limits = {n: value for n in LIMITS if (value := getattr(asked, n)) is not None}
    known, told = _known(wanted, chips, run, runs, RunAsked(ran=asked.ran, stage=asked.stage))
    made = plan(wanted, chips, priced, known, formats, progress, **limits)
    pools = in_two_pools(made, known) if asked.disaggregate == "yes" and made.best else None
    assumed = () if {c.name for c in chips} <= known.keys() else (SOURCE, ASSUMED)
    unpriced = tuple(c.name for c in chips if c.name not in priced)
    if unpriced and len(chips) > 1:
        told = (
            *told,
            f"No price is given for {', '.join(unpriced)}: chips of unlike price are not compared by their "
            "number. Give one with --price; the break-even prices hold for any.",
        )
    found = bands(made, known)
    told = (*told, *(f"{name}: {note}" for name, o in own.items() for note in o.chip.notes))
    return ServingPlan(
        made, priced, pools, (*told, *assumed, *made.notes, *NOTES), found, break_evens(made, found, priced), unpriced
    )


def _complete(asked: Asked) -> None:
    needed = ("model", "input", "output", "rate") if asked.own_chip else ("model", "on", "input", "output", "rate")
    if missing := [n for n in needed if getattr(asked, n) is None]:
        raise QuestionError("the question is not complete", expected=", ".join(f"--{m}" for m in missing))
    for name, most in LONGEST.items():
        if (tokens := getattr(asked, name)) > most:
            raise QuestionError(
                f"requests with --{name} {tokens:,} tokens are longer than a plan can simulate in thousands",
                expected=f"at most {most:,}",
                advice="`chipledger whatif serving --requests 20` simulates a few long ones on one setup.",
            )


def _wanted(asked: Asked) -> Wanted:
    """Model, traffic and objectives; where nothing is said, as the planner has it."""
    said = {n: value for n in (*LATENCIES, "percentile") if (value := getattr(asked, n)) is not None}
    shape = Shape(asked.input, asked.output, asked.prefix or 0, 1.0 if asked.burst is None else asked.burst)
    if not 0 <= shape.cached < shape.prompt:
        raise QuestionError(f"a prefix of {shape.cached:,} tokens", expected=f"fewer than the prompt, {shape.prompt:,}")
    return Wanted(model=model(asked.model), shape=shape, rate_per_s=asked.rate, objectives=Objectives(**said))


def _known(
    wanted: Wanted, chips: Sequence[Chip], run: Run | None, runs: Iterable[Run], of_run: RunAsked
) -> tuple[dict[str, Known], tuple[str, ...]]:
    """What was measured, by chip: the run that was named, else one of the store, else a published case. `of_run`: the
    options about the run that was named."""
    known: dict[str, Known] = {}
    told: list[str] = []
    if run is None and of_run.stage is not None:
        raise QuestionError("--stage names a load of no run", advice="Name the run with --calibrate, or leave it out.")
    if run is not None:
        known, said = calibration(run, of_run)
        told += said
    for name, one in stored(runs, wanted, chips).items():
        if name not in known:
            try:
                fits, said = calibration(one)
            except QuestionError as e:
                told.append(f"The run {one.manifest.name} is of this model on {name}, but cannot be used: {e}")
                continue
            known |= fits
            told += said
    held, said = anchors(wanted, [c for c in chips if c.name not in known])
    return known | held, (*told, *said)


def calibration(run: Run, of_run: RunAsked | None = None) -> tuple[dict[str, Known], tuple[str, ...]]:
    """The fit to a run by the name of its chip, and its error in a sentence. `of_run`: `ran`, which corrects what it
    says of its setup, and `stage`, the load that counts. Raises QuestionError."""
    of_run = of_run or RunAsked()
    ran = run_setup(of_run, run)
    found = fit(run, ran, of_run.stage)
    missed = ", ".join(
        f"{name.replace('_s', '').replace('_', ' ').upper()} {error:+.1%}" for name, error in found.errors.items()
    )
    return {ran.chip.name: found}, (
        f"{ran.chip.name} is calibrated on {found.name} ({ran.model.name}, {ran.replica_chips} chips a "
        f"replica); where {found.worst} fitted (the worst split), it missed by {missed} on what was held back. Another "
        "model or split misses by more: 20 to 70 % where that was tried.",
    )


def in_two_pools(made: Plan, calibrated: Mapping[str, Known]) -> Comparison:
    """The best setup's chips (at least LEAST_REPLICAS replicas) in one pool and in two, with the shares of the plan."""
    best, wanted = made.best, made.wanted
    replicas = max(best.replicas, LEAST_REPLICAS)
    setup = replace(best.setup, replicas=replicas, chips=replicas * best.setup.replica_chips)
    known = calibrated.get(setup.chip.name)
    shares = known.for_setup(best.setup)[0] if known else TYPICAL
    return compare(setup, wanted.shape, wanted.objectives, shares, most=3)
