"""The plan for checkpoints: intervals, goodput and cures, from numbers given or from what a run measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyzers.lost.checkpoints import CheckpointsResult
from app.whatif.checkpoint.asked import Asked
from errors import QuestionError
from errors import format as fmt
from simulators.checkpointing import (
    Job,
    curve,
    daly_s,
    first_order_goodput,
    first_order_holds,
    goodput,
    mttf_of_nodes_s,
    need_seconds,
    optimal_s,
    with_mttf,
    young_s,
)
from simulators.cures import Cures, Measured, cures
from simulators.failures import Drawn, simulate
from simulators.recovery import elastic_goodput, wait_for_gain
from simulators.training.claim import GAIN
from simulators.two_tier import Local, best_two_tier

EXPONENTIAL = 1.0  # the shape of Weibull times that are
LOCAL_SHARE = 0.8  # of the failures, which a local tier survives where nobody says
WORTH = {"span_s", "chips", "usd_per_chip_hour"}  # what only gives the gains a size


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer. `measured` holds what was asked; `basis`: how each input is known; `check`: the goodput at the best
    interval (or the one in use) by drawing failures one by one; `bound`: no failure was seen, and the mean time to
    failure is the least that this allows; `observed`: the goodput that the run really had, over the same losses.

    `two_tier`: (work between saves, every how many-th is remote, goodput); `elastic`: (goodput if it waits, if it goes
    on, seconds of waiting from which going on gains GAIN). Both None unless asked.
    """

    measured: Measured
    basis: Mapping[str, str]
    check: Drawn
    cures: Cures
    bound: bool = False
    observed: float | None = None
    two_tier: tuple[float, int, float] | None = None
    elastic: tuple[float, float, float | None] | None = None
    notes: tuple[str, ...] = ()

    @property
    def job(self) -> Job:
        return self.measured.job

    @property
    def intervals(self) -> dict[str, float]:
        """Seconds of work between saves by name: young, daly, optimal and, if known, yours."""
        found = {"young": young_s(self.job), "daly": daly_s(self.job), "optimal": optimal_s(self.job)}
        return found | ({"yours": self.measured.interval} if self.measured.interval_s else {})

    def saved_at(self, name: str) -> float:
        """Of one of them, the seconds of work between saves that it comes to: the next save waits until the one before
        is safe."""
        return max(self.intervals[name], self.job.shortest_s)

    @property
    def optimal_range_s(self) -> tuple[float, float | None]:
        """The best interval at either end of the mean time to failure; None: not bounded."""
        low, high = self.measured.mttf_low_s or self.job.mttf_s, self.measured.mttf_high_s
        if self.bound:
            return optimal_s(self.job), None
        return optimal_s(with_mttf(self.job, low)), optimal_s(with_mttf(self.job, high or self.job.mttf_s))

    def to_dict(self) -> dict[str, Any]:
        job, m = self.job, self.measured
        at = self.intervals
        comes_to = {n: self.saved_at(n) for n in at}
        first = {f"first_order_{n}": first_order_goodput(job, s) for n, s in comes_to.items()}
        tau, share = curve(job, m.interval_s)
        return {
            "young_s": at["young"],
            "daly_s": at["daly"],
            "optimal_s": at["optimal"],
            "goodput": {n: float(goodput(job, s)) for n, s in comes_to.items()} | first,
            "first_order_holds": {n: first_order_holds(job, s) for n, s in comes_to.items()},
            "interval_s": m.interval_s,
            "save_s": job.save_s,
            "blocked_s": job.blocking_s,
            "mttf_s": job.mttf_s,
            "mttf_low_s": m.mttf_low_s,
            "mttf_high_s": m.mttf_high_s,
            "mttf_is_a_lower_bound": self.bound,
            "optimal_low_s": self.optimal_range_s[0],
            "optimal_high_s": self.optimal_range_s[1],
            "restart_s": job.restart_s,
            "wait_s": job.wait_s,
            "span_s": m.span_s,
            "chips": m.chips,
            "usd_per_chip_hour": m.usd_per_chip_hour,
            "basis": dict(self.basis),
            "observed_goodput": self.observed,
            "check": {
                "goodput": self.check.goodput,
                "standard_error": self.check.standard_error,
                "failures": self.check.failures,
                "interval_s": at.get("yours", at["optimal"]),
            },
            "two_tier": None
            if self.two_tier is None
            else dict(zip(("interval_s", "saves_per_remote_save", "goodput"), self.two_tier, strict=True)),
            "elastic": None
            if self.elastic is None
            else dict(zip(("goodput_waiting", "goodput_elastic", "wait_s_for_15_points"), self.elastic, strict=True)),
            "cures": [vars(c) for c in self.cures.offered],
            "cures_left_out": dict(self.cures.left_out),
            "curve": {"interval_s": tau.tolist(), "goodput": share.tolist()},
            "notes": list(self.notes),
        }


def plan(asked: Asked, run: CheckpointsResult | None = None) -> Plan:
    """The answer from numbers and from what a run measured."""
    used, basis, bound = inputs(asked, run)
    if used.save_s is None or used.mttf_s is None:
        name = "save_s" if used.save_s is None else "mttf_s"
        raise QuestionError(_missing(name, run is not None), expected=f"--{name.replace('_', '-')} SECONDS")
    job = Job(
        save_s=used.save_s,
        mttf_s=used.mttf_s,
        restart_s=used.restart_s or 0.0,
        wait_s=used.wait_s or 0.0,
        blocked_s=used.blocked_s,
    )
    for name in ("interval_s", "span_s", "resume_s", "local_save_s", "local_restart_s"):  # a run may tell a time of 0
        if (value := getattr(used, name)) is not None:
            need_seconds(f"--{name.replace('_', '-')}", value, zero=name in ("resume_s", "local_restart_s"))
    measured = _measured(job, used, asked, run)
    return Plan(
        measured=measured,
        basis=basis,
        check=simulate(job, measured.interval, shape=used.weibull_shape or EXPONENTIAL),
        cures=cures(measured),
        bound=bound,
        observed=run.goodput if run is not None and not asked.given - WORTH else None,
        two_tier=_two_tier(job, used),
        elastic=_elastic(job, used),
        notes=_notes(measured, used, basis, bound),
    )


def inputs(asked: Asked, run: CheckpointsResult | None) -> tuple[Asked, dict[str, str], bool]:
    """All inputs, how each is known, and whether the mean time to failure is but a bound. What is asked wins."""
    used, basis, bound = Asked(), {}, False
    if run is not None:
        used, basis = _of_run(run)
        bound = run.mttf.mean_s is None and used.mttf_s is not None
    mttf_s = used.mttf_s if asked.mttf_s is None else asked.mttf_s
    if asked.failures_per_1000_node_days is not None:
        if asked.mttf_s is not None:
            raise QuestionError("two mean times to failure", expected="either --mttf-s or a rate of failures per node")
        nodes = used.nodes if asked.nodes is None else asked.nodes
        if nodes is None:
            raise QuestionError("how many nodes fail at that rate?", expected="--nodes NUMBER")
        mttf_s = mttf_of_nodes_s(nodes, asked.failures_per_1000_node_days)
        basis["mttf_s"], bound = "derived", False
    if asked.mttf_s is not None:
        bound = False
    given = {name: getattr(asked, name) for name in asked.given}
    return replace(used, **given | {"mttf_s": mttf_s}), basis | dict.fromkeys(given, "declared"), bound


def _of_run(run: CheckpointsResult) -> tuple[Asked, dict[str, str]]:
    """What a run tells, and how it is known."""
    chips = run.chips if run.chips_known else None  # else counted as one: no size of a gain, and no number of nodes
    found = {
        "save_s": (run.save.mean_s, "measured"),
        "restart_s": (run.restart.mean_s, "derived"),
        "wait_s": (run.wait.mean_s, "derived"),
        "interval_s": (run.interval_s, "measured"),
        "mttf_s": (run.mttf.mean_s or run.mttf.low_s, "derived"),
        "span_s": (run.modelled_s, "derived"),
        "chips": (chips, "declared"),
        "slices": (run.slices, "measured"),
        "usd_per_chip_hour": (run.usd_per_chip_hour, "declared"),
        "nodes": (chips / run.chips_per_node if chips and run.chips_per_node else None, "derived"),
    }
    used = Asked(**{name: value for name, (value, _) in found.items() if value is not None})
    return used, {name: basis for name, (value, basis) in found.items() if value is not None}


def _missing(name: str, run: bool) -> str:
    what = {"save_s": "how long a save takes", "mttf_s": "how often the job fails"}[name]
    return f"this run does not tell {what}" if run else f"nothing says {what}"


def _measured(job: Job, used: Asked, asked: Asked, run: CheckpointsResult | None) -> Measured:
    own = run is not None and asked.mttf_s is None and asked.failures_per_1000_node_days is None
    parts = run.parts if run is not None and asked.restart_s is None else {}
    startups = run.stops.loc[run.stops["complete"], "program_startup_s"] if run is not None and parts else []
    return Measured(
        job=job,
        interval_s=used.interval_s,
        mttf_low_s=run.mttf.low_s if own and run.mttf.mean_s else None,
        mttf_high_s=run.mttf.high_s if own and run.mttf.mean_s else None,
        parts=parts,
        fastest_startup_s=float(np.quantile(startups, 0.1)) if len(startups) > 1 else None,
        resume_s=used.resume_s,
        span_s=used.span_s,
        chips=used.chips,
        usd_per_chip_hour=used.usd_per_chip_hour,
        nodes=used.nodes,
        slices=used.slices,
    )


def _two_tier(job: Job, used: Asked) -> tuple[float, int, float] | None:
    if used.local_save_s is None:
        return None
    local = Local(
        save_s=used.local_save_s,
        restart_s=job.restart_s if used.local_restart_s is None else used.local_restart_s,
        share=LOCAL_SHARE if used.local_share is None else used.local_share,
    )
    return best_two_tier(job, local)


def _elastic(job: Job, used: Asked) -> tuple[float, float, float | None] | None:
    if not used.slices or used.slices < 2 or not job.wait_s:
        return None
    resume, best = job.restart_s if used.resume_s is None else used.resume_s, optimal_s(job)
    return (
        float(goodput(job, best)),
        elastic_goodput(job, best, used.slices, resume),
        wait_for_gain(job, used.slices, resume, GAIN),
    )


def _notes(m: Measured, used: Asked, basis: Mapping[str, str], bound: bool) -> tuple[str, ...]:
    job = m.job
    notes = []
    if bound:
        notes.append(
            f"No failure struck: taken as one every {fmt.duration(job.mttf_s)}, the most often that the time "
            "at risk allows (95 %). What concerns failures is therefore an upper bound."
        )
    if m.interval_s and m.interval_s < job.shortest_s:
        notes.append(
            f"A save every {fmt.duration(m.interval_s)} would begin before the last one is safe: taken as "
            f"every {fmt.duration(job.shortest_s)}."
        )
    if short := [n for n, s in (("Young", young_s(job)), ("Daly", daly_s(job))) if s < job.shortest_s]:
        notes.append(
            f"{' and '.join(short)} would have the next save begin before the last one is safe: goodput there is that "
            f"of a save every {fmt.duration(job.shortest_s)}."
        )
    if not first_order_holds(job, max(young_s(job), job.shortest_s)):
        notes.append(
            "The first-order form (1 − C/τ − τ/2M − R/M) does not hold here: failures come too often for it. "
            "It is shown for comparison only."
        )
    if basis.get("save_s") == "measured":
        notes.append("Save, wait and restart are means over this run, since what they cost in all follows the mean.")
    notes.append("Failures are taken as random and independent of one another (exponential times between them).")
    if job.asynchronous:
        notes.append(
            f"A save blocks for {fmt.duration(job.blocking_s)} and is safe {fmt.duration(job.save_s)} after "
            "it began; training runs at full speed meanwhile, and the next save waits for it."
        )
    if used.weibull_shape not in (None, EXPONENTIAL):
        notes.append(
            f"The check by simulation draws Weibull times of shape {used.weibull_shape:g} with the same "
            "mean; the formulas are for exponential times."
        )
    notes.append(
        "What the cures give back overlaps, since two of them save the same second only once: do not add them up."
    )
    return tuple(notes)
