"""How many chips a run held, for every question alike."""

from dataclasses import dataclass

from analyzers.base import OPTION, Facts, fact
from analyzers.subject import devices_per_chip
from catalog.chip_count import chips_held, chips_seen
from errors import format as fmt
from errors.numbers import USD
from errors.options import Option
from runs.devices import seen_devices
from runs.tables import Tables

PRICE = Option(
    "usd_per_chip_hour",
    USD,
    None,
    "price of a chip-hour in dollars; without it nothing has a price",
    unit="USD",
    label="Dollars per chip-hour",
)


@dataclass(frozen=True)
class Held:
    """`chips`: held at one time, None where no input tells. `seen`: of how many a profile shows devices."""

    chips: int | None
    seen: int
    devices_per_chip: int
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> int:
        """The chips to reckon with: one where their number is not known, as the notes say."""
        return self.chips or 1


def held(tables: Tables, facts: Facts) -> Held:
    """The larger of what the run states and what its profiles show; what a question is asked with counts as asked."""
    per_chip = devices_per_chip(facts)
    stated = fact(facts, "chips")
    if stated and facts["chips"].source == OPTION:
        return Held(int(stated), 0, per_chip)
    seen = chips_seen(len(seen_devices(tables)), per_chip)
    chips = chips_held(stated, seen)
    notes = []
    if chips is None:
        notes.append("No input says how many chips were held: counted as one. Say it under Facts.")
    elif stated and seen > stated:
        notes.append(
            f"{fmt.count(int(stated), 'chip was', 'chips were')} stated, but the profile shows {seen}: counted as "
            f"{seen}."
        )
    return Held(chips, seen, per_chip, tuple(notes))
