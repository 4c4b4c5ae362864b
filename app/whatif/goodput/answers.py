"""From the options of `whatif goodput` to lives of a job and what became of its time."""

from dataclasses import dataclass, replace
from typing import Any

from app.whatif.goodput.asked import DAYS, TRIALS, Asked
from app.whatif.goodput.failing import Best
from app.whatif.goodput.failing import life as life_of
from errors import QuestionError
from simulators.recovery import spare_is_free
from simulators.training.cost import DAY_S
from simulators.training.lives import Life, Lives, live

NOTES = (
    "Failures come at random and each stops the whole job (or a slice of an elastic one); a step that hangs, or data "
    "that is wrong, is no failure here.",
    "The range holds nine of ten lives: it is luck, not doubt about the numbers that were given.",
)
LOCAL_COPIES = "A failure that the local copies do not survive takes the job back to its last remote save."


@dataclass(frozen=True)
class GoodputPlan:
    """Lives of a job; `closed_form` the goodput of a life without end, None where there is no formula. `whole`: of an
    elastic job, lives in which each failure restarts all of it, at the same interval."""

    asked: Asked
    life: Life
    lives: Lives
    closed_form: float | None
    best: Best
    spare_is_free: float | None
    whole: Lives | None

    @property
    def best_interval_s(self) -> float:
        return self.best.interval_s

    @property
    def goodput(self) -> float:
        return float(self.lives.goodput.mean())

    @property
    def range(self) -> tuple[float, float]:
        return self.lives.range

    @property
    def gain(self) -> float | None:
        """What elastic training adds to the goodput of the same job that restarts the whole; None without it."""
        return None if self.whole is None else self.goodput - float(self.whole.goodput.mean())

    @property
    def badput(self) -> dict[str, float]:
        """Share of all time by where it went, the largest first."""
        shares = {name: float(s.mean()) / self.life.span_s for name, s in self.lives.seconds.items() if name != "kept"}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    @property
    def notes(self) -> tuple[str, ...]:
        return (*NOTES, *((LOCAL_COPIES,) if self.life.local else ()))

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
            "saves_per_remote": self.life.saves_per_remote if self.life.local else None,
            "best_saves_per_remote": self.best.saves_per_remote if self.life.local else None,
            "spare_is_free": self.spare_is_free,
            "elastic": self._elastic(),
            "days": self.life.span_s / DAY_S,
            "trials": len(self.lives.failures),
            "basis": "modelled",
            "notes": list(self.notes),
        }

    def _elastic(self) -> dict[str, float] | None:
        if self.whole is None or self.gain is None:
            return None
        low, high = self.whole.range
        whole = float(self.whole.goodput.mean())
        told = {"slices": self.life.slices, "resume_s": self.life.resume_s, "goodput_whole": whole, "low_whole": low}
        return told | {"high_whole": high, "gain": self.gain}


def find(asked: Asked) -> GoodputPlan:
    """Raises QuestionError where something is missing or cannot be."""
    missing = [f"--{n.replace('_', '-')}" for n in ("chips", "mttf_chip_h", "save_s") if getattr(asked, n) is None]
    if missing:
        raise QuestionError("the question is not complete", expected=", ".join(missing))
    life, best = life_of(asked, asked.chips or 1, (asked.days or DAYS) * DAY_S)
    trials, seed = asked.trials or TRIALS, asked.seed or 0
    free = spare_is_free(life.spares, DAY_S / life.job.mttf_s, life.repair_s / DAY_S) if life.spares else None
    whole = live(replace(life, slices=1, resume_s=0.0), trials, seed) if life.slices > 1 else None
    return GoodputPlan(asked, life, live(life, trials, seed), life.closed_form(), best, free, whole)
