"""From the options of `whatif goodput` to lives of a job and what became of its time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.whatif.goodput.asked import DAYS, TRIALS, Asked
from errors import QuestionError
from simulators.checkpointing import Job, optimal_s
from simulators.recovery import spare_is_free
from simulators.training.cost import DAY_S, HOUR_S
from simulators.training.lives import Life, Lives, live

REPAIR_H, SLICES = 24.0, 8
LOW, HIGH = 5, 95  # per cent of lives below the ends of the range
NOTES = (
    "Failures come at random and each stops the whole job (or a slice of an elastic one); a step that hangs, or data "
    "that is wrong, is no failure here.",
    "The range holds nine of ten lives: it is luck, not doubt about the numbers that were given.",
)


@dataclass(frozen=True)
class GoodputPlan:
    """Lives of a job; `closed_form` the goodput of a life without end, None where there is no formula."""

    asked: Asked
    life: Life
    lives: Lives
    closed_form: float | None
    best_interval_s: float
    spare_is_free: float | None

    @property
    def goodput(self) -> float:
        return float(self.lives.goodput.mean())

    @property
    def range(self) -> tuple[float, float]:
        low, high = np.percentile(self.lives.goodput, [LOW, HIGH])
        return float(low), float(high)

    @property
    def badput(self) -> dict[str, float]:
        """Share of all time by where it went, the largest first."""
        shares = {name: float(s.mean()) / self.life.span_s for name, s in self.lives.seconds.items() if name != "kept"}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def to_dict(self) -> dict[str, Any]:
        low, high = self.range
        return {
            "goodput": self.goodput,
            "low": low,
            "high": high,
            "closed_form": self.closed_form,
            "badput": self.badput,
            "mttf_s": self.life.job.mttf_s,
            "failures": float(self.lives.failures.mean()),
            "interval_s": self.life.interval_s,
            "best_interval_s": self.best_interval_s,
            "spare_is_free": self.spare_is_free,
            "days": self.life.span_s / DAY_S,
            "trials": len(self.lives.failures),
            "basis": "modelled",
            "notes": list(NOTES),
        }


def find(asked: Asked) -> GoodputPlan:
    """Raises QuestionError where something is missing or cannot be."""
    missing = [f"--{n.replace('_', '-')}" for n in ("chips", "mttf_chip_h", "save_s") if getattr(asked, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(missing))
    _check(asked)
    job = Job(
        save_s=asked.save_s or 0.0,
        mttf_s=(asked.mttf_chip_h or 0.0) * HOUR_S / (asked.chips or 1),
        restart_s=asked.restart_s or 0.0,
        wait_s=asked.wait_s or 0.0,
        blocked_s=asked.blocked_s,
    )
    best = optimal_s(job)
    repair_s = HOUR_S * (REPAIR_H if asked.repair_h is None else asked.repair_h) if asked.spares else 0.0
    life = Life(
        job=job,
        interval_s=best if asked.interval_s is None else asked.interval_s,
        span_s=(asked.days or DAYS) * DAY_S,
        spares=asked.spares or 0,
        repair_s=repair_s,
        slices=(asked.slices or SLICES) if asked.elastic else 1,
        resume_s=job.restart_s if asked.resume_s is None else asked.resume_s,
    )
    free = spare_is_free(life.spares, DAY_S / job.mttf_s, repair_s / DAY_S) if life.spares else None
    return GoodputPlan(asked, life, live(life, asked.trials or TRIALS, asked.seed or 0), life.closed_form(), best, free)


def _check(asked: Asked) -> None:
    """What belongs together."""
    if not asked.elastic and (asked.slices is not None or asked.resume_s is not None):
        raise QuestionError("slices or their pauses, of a job that is not elastic", expected="--elastic with them")
    if asked.slices == 1:
        raise QuestionError("elastic training on 1 slice", expected="two slices or more")
    if asked.elastic and asked.spares:
        raise QuestionError("spares for an elastic job", expected="one of the two", advice="Name --wait-s instead")
    if asked.repair_h is not None and not asked.spares:
        raise QuestionError("a repair without spares", expected="--spares with it", advice="Name --wait-s instead")
    if asked.interval_s is not None and asked.blocked_s is not None and asked.save_s is not None:
        shortest = asked.save_s - asked.blocked_s
        if asked.interval_s < shortest:
            raise QuestionError(
                f"saves after every {asked.interval_s:g} s of work, while one is written for {shortest:g} s",
                expected=f"at least {shortest:g} s between two",
            )
