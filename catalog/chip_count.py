"""How many chips a run held: the one rule for ingest, for every question and for every page."""

from catalog.chips import Chip

MOST = 1 << 31


def devices_of_a_chip(said: object, chip: Chip | None) -> int:
    """Devices that a framework makes of one chip: as the run says, where that is a number from 1; else by the
    catalogue, else 1."""
    told = said if isinstance(said, int | float) and 1 <= said < MOST else None
    return int(told or (chip and chip.value("jax_devices_per_chip")) or 1)


def chips_seen(devices: int, per_chip: int) -> int:
    """Chips that so many devices are of: a chip of which one device was seen was held as a whole."""
    return -(-devices // per_chip)


def chips_held(stated: int | float | None, seen: int) -> int | None:
    """The larger of what is stated and what profiles show: a profile of one host says nothing of the others, and what
    it shows was there. None where neither tells."""
    return max(int(stated or 0), seen) or None
