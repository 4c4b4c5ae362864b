"""Power in words: what chips drew, what a step and a token took of it, and what held clocks down."""

import math

import pandas as pd

from analyzers.device.power.result import FAULTS, Apart, Longer, PowerResult, Slowed
from analyzers.device.power.work import GENERATED
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt

MUCH_IDLE = 0.05  # of the energy: drawn by chips that did next to nothing
KWH_FROM = 3.6e5  # joules
LONG = 0.005  # of the time: what holds clocks down for less is no sentence


def verdict(result: PowerResult) -> Verdict:
    """Watts against the limit, energy, a chip that is slower than the others, what a step and a token took."""
    return headline(_drawn(result), *_apart(result), _each(result), *_slowed(result), *_idle(result))


def energy(joules: float | None, kwh_from: float = KWH_FROM) -> str:
    """`412 J`, `3.61 kJ`, `1.25 kWh`: kilowatt-hours from a tenth of one on, or from as many joules as `kwh_from`."""
    if joules is None or not math.isfinite(joules):
        return fmt.NO_VALUE
    if joules >= kwh_from:
        return f"{fmt.number(joules / 3.6e6)} kWh"
    for factor, unit in ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ")):
        if joules >= factor:
            return f"{fmt.number(joules / factor)} {unit}"
    return f"{fmt.number(joules * 1e3)} mJ"


def watts(value: float | None) -> str:
    return fmt.NO_VALUE if value is None or not math.isfinite(value) else f"{fmt.number(value)} W"


def chip(host: str | None, device: int) -> str:
    return f"chip {device} of {short(host)}" if host else f"chip {device}"


def _drawn(result: PowerResult) -> str:
    of = ""
    if result.mean_watts is not None and result.limit_watts:
        of = f", {fmt.whole_share(result.mean_watts / result.limit_watts)} of its limit of {watts(result.limit_watts)}"
    usd = "" if result.energy_usd is None else f" ({fmt.usd(result.energy_usd)})"
    chips = f"{fmt.count(result.chips, 'chip')} drew {energy(result.energy_j)}{usd}"
    if result.mean_watts is None:
        return f"Of {fmt.count(result.chips, 'chip')} no sample of power lies in the time of the job."
    return f"A chip drew {watts(result.mean_watts)} in the mean{of}; {chips}."


def _each(result: PowerResult) -> str:
    of = fmt.count(result.held_chips or result.chips, "chip")
    if result.tokens_of == GENERATED:
        return f"A token generated took {energy(result.token_j)} on {of}."
    if result.step_j is None:
        return ""
    token = "" if result.token_j is None else f"{energy(result.token_j)} a token"
    return f"A step took {energy(result.step_j)} on {of}{', ' + token if token else ''}."


def _apart(result: PowerResult) -> list[str]:
    """The chips whose clocks are lower than the others'."""
    if not result.apart:
        return []
    first, *more = result.apart
    others = f", and {fmt.count(len(more), 'other chip')} less so" if more else ""
    alone = result.tokens_of == GENERATED or result.chips > (result.held_chips or result.chips)
    waits = "" if alone else ": in a job all wait for it"
    return [f"{sentence(chip(first.host, first.device))} ran {_below(first)}{others}{waits}."]


def _below(one: Apart) -> str:
    why = f", held down by {one.slowed_by}" if one.slowed_by else ""
    heat = f" at {one.celsius:.0f} °C" if one.celsius is not None else ""
    return (
        f"at {fmt.number(one.clock_mhz)} MHz, {fmt.whole_share(one.below_share)} below the median of "
        f"{fmt.number(one.reference_mhz)} MHz{heat}{why}"
    )


def _slowed(result: PowerResult) -> list[str]:
    if result.slowed is None:
        return ["No sample tells whether clocks were held down."]
    first = sorted(result.slowed, key=lambda one: (one.by not in FAULTS, -one.share))
    said = [_reason(one, result.chips) for one in first if one.most_share >= LONG]
    said += [_longer(one) for one in result.longer]
    return said or ["Nothing held clocks down."]


def _reason(one: Slowed, chips: int) -> str:
    """Of some of the chips the time of the one that was held down most: the share is of the time of all."""
    of = f"{one.chips:,} of {fmt.count(chips, 'chip')}" if chips > 1 else "it"
    share, most = (one.share, "") if one.chips == chips else (one.most_share, "" if one.chips == 1 else "up to ")
    clocks = ""
    if one.clock_mhz is not None and one.clock_else_mhz is not None:
        clocks = f", to {fmt.number(one.clock_mhz)} MHz from {fmt.number(one.clock_else_mhz)}"
    return f"{sentence(one.by)} held {of} down for {most}{fmt.whole_share(share)} of the time{clocks}."


def _longer(one: Longer) -> str:
    return (
        f"Steps meanwhile took {fmt.duration(one.step_s)} ({fmt.count(one.steps, 'step')}) against "
        f"{fmt.duration(one.other_step_s)}: {fmt.duration(one.more_s)} more in all."
    )


def _idle(result: PowerResult) -> list[str]:
    if result.idle_energy_share is None or result.idle_energy_share < MUCH_IDLE:
        return []
    return [
        f"{fmt.whole_share(result.idle_energy_share)} of the energy was drawn by chips below a quarter of their limit."
    ]


def table(result: PowerResult) -> Table:
    """A row a chip, their energy in one unit."""
    in_kwh = len(result.devices) > 0 and float(result.devices["energy_j"].max()) >= KWH_FROM
    rows = tuple(
        (
            chip(row["host"] if isinstance(row["host"], str) else None, int(row["device"])),
            watts(_known(row["mean_watts"])),
            watts(_known(row["highest_watts"])),
            watts(_known(row["limit_watts"])),
            energy(_known(row["energy_j"]), 0.0 if in_kwh else KWH_FROM),
            _number(row["clock_mhz"]),
            _number(row["mean_celsius"]),
            fmt.share(_known(row["slowed_share"])),
            row["slowed_by"] if isinstance(row["slowed_by"], str) else fmt.NO_VALUE,
        )
        for row in result.devices.to_dict("records")
    )
    head = ("chip", "mean", "highest", "limit", "energy", "clock (MHz)", "°C", "held down", "by")
    return Table(head, rows, right=(1, 2, 3, 4, 5, 6, 7))


def _known(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not pd.isna(value) else None


def _number(value: object) -> str:
    return fmt.number(_known(value))
