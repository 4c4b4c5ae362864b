"""From the options of `whatif serving-plan` to a plan: chips and prices by name, two pools where asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.whatif import serving
from app.whatif.base import from_query
from app.whatif.serving_answer import fit
from app.whatif.serving_inputs import run_setup
from catalog import chip, model
from errors import QuestionError
from runs.run import Run
from simulators.serving.calibrate import Calibration
from simulators.serving.disaggregated import Comparison, compare
from simulators.serving.efficiency import SOURCE, TYPICAL
from simulators.serving.objectives import LATENCIES, Objectives, Shape
from simulators.serving.planner import Choice, Plan, Wanted, plan

LIMITS = ("max_sequences", "token_budget")
LEAST_REPLICAS = 4  # to split in two pools; fewer leave no choice
ASSUMED = ("Uncalibrated: shares of the peaks are assumed, and the range of chips is that between the fastest and the "
           "slowest assumed. Calibrate on a run of the machine (--calibrate) before money is spent.")  # fmt: skip
NOTES = (
    "Requests of equal lengths. Replicas share the load evenly, each served by an engine with a queue of its own.",
    "8-bit weights change the answers: whether yours stay good enough is for you to measure. The cache stays in bf16.",
    "Chips are bought in whole replicas; hosts, networks and idle spares are not priced.",
)


@dataclass(frozen=True)
class ServingPlan:
    """The plan, what it was asked for, and the comparison with two pools where that was asked for too."""

    plan: Plan
    prices: Mapping[str, float]
    pools: Comparison | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        wanted = self.plan.wanted
        return {
            "model": wanted.model.name, "rate_per_s": wanted.rate_per_s, "shape": dict(vars(wanted.shape)),
            "objectives": dict(vars(wanted.objectives)), "usd_per_chip_hour": dict(self.prices),
            "choices": [choice_dict(c) for c in self.plan.choices], "basis": "modelled",
            "disaggregated": None if self.pools is None else pools_dict(self.pools), "notes": list(self.notes),
        }  # fmt: skip


def choice_dict(c: Choice) -> dict[str, Any]:
    seen = {name: value if value == value else None for name, value in c.seen.items()}  # NaN: not known
    return {
        "name": c.name, "chip": c.setup.chip.name, "format": c.setup.weights_precision, "tensor": c.setup.tensor,
        "expert": c.setup.expert, "replicas": c.replicas, "chips": c.chips, "chips_low": c.chips_low,
        "chips_high": c.chips_high, "feasible": c.feasible, "rate_per_replica": c.rate_per_replica, **seen,
        "limit": c.limit, "basis": c.basis, "usd_per_hour": c.usd_per_hour,
        "usd_per_million_output_tokens": c.usd_per_million, "why": c.why,
    }  # fmt: skip


def pools_dict(found: Comparison) -> dict[str, Any]:
    return {
        "one_pool_rate_per_s": found.aggregate.rate_per_s, "best": found.best.name if found.best else None,
        "two_pools_rate_per_s": found.disaggregated.rate_per_s if found.disaggregated else None, "gain": found.gain,
        "splits": {name: bears.rate_per_s for name, bears in found.splits}, "transfer_s": found.transfer_s,
        "prefill_by_decode": found.balance,
    }  # fmt: skip


def find(
    given: Mapping[str, Any], run: Run | None = None, progress: Callable[[float, str], None] = lambda share, what: None
) -> ServingPlan:
    """The plan for `given`, options by name with underscores; None counts as not given. `run`: what its chip is
    calibrated on. Raises QuestionError."""
    asked = {name: value for name, value in given.items() if value is not None}
    chips = [chip(name.strip()) for name in str(asked["on"]).split(",") if name.strip()]
    if not chips:
        raise QuestionError("no chip to try", expected="--on with names by comma, such as v6e,h100")
    objectives = Objectives(**{n: asked[n] for n in (*LATENCIES, "percentile") if n in asked})
    shape = Shape(asked["input"], asked["output"], asked.get("prefix", 0), asked.get("burst", 1.0))
    if not 0 <= shape.cached < shape.prompt:
        raise QuestionError(f"a prefix of {shape.cached:,} tokens", expected=f"fewer than the prompt, {shape.prompt:,}")
    wanted = Wanted(model=model(asked["model"]), shape=shape, rate_per_s=asked["rate"], objectives=objectives)
    formats = tuple(f.strip() for f in str(asked.get("formats") or "").split(",") if f.strip())
    priced = prices(asked.get("price"))
    calibrated, told = calibration(run) if run else ({}, ())
    made = plan(wanted, list({c.name: c for c in chips}.values()), priced, calibrated, formats, progress,
                **{n: asked[n] for n in LIMITS if n in asked})  # fmt: skip
    pools = in_two_pools(made) if asked.get("disaggregate") == "yes" and made.best else None
    assumed = () if {c.name for c in chips} <= calibrated.keys() else (SOURCE, ASSUMED)
    return ServingPlan(made, priced, pools, (*told, *assumed, *made.notes, *NOTES))


def calibration(run: Run) -> tuple[dict[str, Calibration], tuple[str, ...]]:
    """The fit to a run by the name of its chip, and its error in a sentence. Raises QuestionError."""
    ran = run_setup(from_query(serving, {}), run)
    found = fit(run, ran)
    missed = ", ".join(f"{name.replace('_s', '').replace('_', ' ').upper()} {error:+.1%}"
                       for name, error in found.errors.items())  # fmt: skip
    return {ran.chip.name: found}, (
        f"{ran.chip.name} is calibrated on {run.manifest.name} ({ran.model.name}, {ran.replica_chips} chips a "
        f"replica); on the half of its requests held back it missed by {missed}. Another model or split "
        "misses by more: 20 to 70 % where that was tried.",
    )  # fmt: skip


def prices(text: str | None) -> dict[str, float]:
    """`v6e=2.7,h100=3.5` by the catalogue's names. Raises QuestionError for what is no such list."""
    found = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, value = part.partition("=")
        try:
            usd = float(value)
        except ValueError:
            usd = -1.0
        if not 0 < usd < 1e6:
            raise QuestionError(f"price {part.strip()!r}", expected="CHIP=USD, dollars per chip-hour, such as v6e=2.7")
        found[chip(name.strip()).name] = usd
    return found


def in_two_pools(made: Plan) -> Comparison:
    """The best setup's chips (at least LEAST_REPLICAS replicas) in one pool and in two."""
    best, wanted = made.best, made.wanted
    replicas = max(best.replicas, LEAST_REPLICAS)
    setup = replace(best.setup, replicas=replicas, chips=replicas * best.setup.replica_chips)
    return compare(setup, wanted.shape, wanted.objectives, TYPICAL, most=3)
