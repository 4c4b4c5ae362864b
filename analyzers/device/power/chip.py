"""One chip in the time that counts: its energy, and the state that it was in."""

from typing import Any

from analyzers.device.power.energy import Stretches, held, joules, slowed, within
from analyzers.device.power.samples import CLOCK, HEAT, Sampled
from analyzers.intervals import Spans

IDLE = 0.25  # of its limit: what a chip draws less than is called idle


class Chip:
    """A chip's samples, as far as they lie in the window."""

    def __init__(self, chip: Sampled, span: Spans):
        self.chip, self.span = chip, span
        self.energy, self.energy_from = joules(chip)
        self.slowed = {by: told for by, told in slowed(chip).items() if self.of(told)[1]}

    def of(self, told: Stretches) -> tuple[float, float]:
        """(amount, seconds known) in the window."""
        amount, seconds = within(told, self.span)
        return float(amount.sum()), float(seconds.sum())

    def mean(self, what: str) -> float | None:
        amount, seconds = self.of(held(self.chip.of(what)))
        return amount / seconds if seconds else None

    def highest(self, what: str | None = None) -> float | None:
        series = self.chip.power if what is None else self.chip.of(what)
        inside = (series.at >= self.span.start[0]) & (series.at <= self.span.end[0])
        return float(series.value[inside].max()) if inside.any() else None

    def row(self, limit: float | None) -> dict[str, Any]:
        energy, seconds = self.of(self.energy)
        shares = {by: amount / known for by, told in self.slowed.items() for amount, known in [self.of(told)] if known}
        most = max(shares, key=lambda by: shares[by], default=None)
        limit = self.chip.limit_watts or limit
        idle_j, idle_s = self._idle(limit)
        return {
            "host": self.chip.host,
            "device": self.chip.device,
            "mean_watts": energy / seconds if seconds else None,
            "highest_watts": self.highest(),
            "limit_watts": limit,
            "energy_j": energy,
            "known_s": seconds,
            "idle_s": idle_s,
            "idle_j": idle_j,
            "clock_mhz": self.mean(CLOCK),
            "mean_celsius": self.mean(HEAT),
            "highest_celsius": self.highest(HEAT),
            "slowed_share": shares[most] if most else None,
            "slowed_by": most if most and shares[most] else None,
            "energy_from": self.energy_from,
        }

    def _idle(self, limit: float | None) -> tuple[float | None, float | None]:
        if limit is None or not len(self.energy.start):
            return None, None
        watts = self.energy.amount / self.energy.seconds
        idle = watts < IDLE * limit
        return self.of(Stretches(self.energy.start[idle], self.energy.end[idle], self.energy.amount[idle]))
