"""The answer about power: what chips drew, what that was worth, and what held their clocks down."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

FAULTS = ("heat (software)", "heat (hardware)", "the power brake")  # nothing that a busy chip should meet
COLUMNS = (
    "host",
    "device",
    "mean_watts",
    "highest_watts",
    "limit_watts",
    "energy_j",
    "known_s",
    "idle_s",
    "idle_j",
    "clock_mhz",
    "below_reference_share",
    "mean_celsius",
    "highest_celsius",
    "slowed_share",
    "slowed_by",
    "energy_from",
)


@dataclass(frozen=True)
class Apart:
    """A chip whose clock is lower than that of the others, beyond `floor`, by which they differ among one another.
    `reference_mhz`: the median of all."""

    host: str | None
    device: int
    clock_mhz: float
    reference_mhz: float
    below_share: float
    floor_share: float
    celsius: float | None
    slowed_by: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "device": self.device,
            "clock_mhz": self.clock_mhz,
            "reference_mhz": self.reference_mhz,
            "below_share": self.below_share,
            "floor_share": self.floor_share,
            "mean_celsius": self.celsius,
            "slowed_by": self.slowed_by,
        }


@dataclass(frozen=True)
class Slowed:
    """What held clocks down: for which share of the time of all chips of which it is known, on how many of them at all,
    and what clocks were then and else."""

    by: str
    share: float
    chips: int
    most_share: float
    clock_mhz: float | None
    clock_else_mhz: float | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "share": self.share,
            "chips": self.chips,
            "most_share": self.most_share,
            "clock_mhz": self.clock_mhz,
            "clock_else_mhz": self.clock_else_mhz,
        }


@dataclass(frozen=True)
class Longer:
    """Steps while a chip was held down by `by`, against others: medians, and what they took more, in all. A step is of
    one reason alone."""

    by: str
    steps: int
    step_s: float
    other_steps: int
    other_step_s: float
    more_s: float
    floor_s: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "steps": self.steps,
            "step_s": self.step_s,
            "other_steps": self.other_steps,
            "other_step_s": self.other_step_s,
            "more_s": self.more_s,
            "floor_s": self.floor_s,
        }


@dataclass(frozen=True)
class PowerResult:
    """`window`: `job` where the job's own times say of when samples count, else `samples`. `devices`: COLUMNS, a row a
    chip. `limit_from`: `samples`, `catalogue` or None. `tokens_of`: what tokens are counted, `trained`, `generated` or
    None. `held_chips`: chips of the run, where that is known."""

    window: str
    window_s: float
    devices: pd.DataFrame
    held_chips: int | None
    mean_watts: float | None
    highest_watts: float | None
    limit_watts: float | None
    limit_from: str | None
    sheet_watts: float | None
    energy_j: float
    known_share: float
    step_j: float | None
    token_j: float | None
    tokens_of: str | None
    idle_energy_share: float | None
    energy_usd: float | None
    apart: tuple[Apart, ...]
    slowed: tuple[Slowed, ...] | None
    longer: tuple[Longer, ...]
    notes: tuple[str, ...] = ()

    @property
    def chips(self) -> int:
        return len(self.devices)

    def to_dict(self) -> dict[str, Any]:
        rows = self.devices.astype(object).where(self.devices.notna(), None)
        return {
            "window": self.window,
            "window_s": self.window_s,
            "sampled_chips": self.chips,
            "held_chips": self.held_chips,
            "mean_watts": self.mean_watts,
            "highest_watts": self.highest_watts,
            "limit_watts": self.limit_watts,
            "limit_from": self.limit_from,
            "sheet_watts": self.sheet_watts,
            "energy_j": self.energy_j,
            "energy_kwh": self.energy_j / 3.6e6,
            "known_share": self.known_share,
            "step_j": self.step_j,
            "token_j": self.token_j,
            "tokens_of": self.tokens_of,
            "idle_energy_share": self.idle_energy_share,
            "energy_usd": self.energy_usd,
            "apart": [one.to_dict() for one in self.apart],
            "slowed": None if self.slowed is None else [one.to_dict() for one in self.slowed],
            "longer": [one.to_dict() for one in self.longer],
            "devices": rows.to_dict("records"),
            "notes": list(self.notes),
        }
