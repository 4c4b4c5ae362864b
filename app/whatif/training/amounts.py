"""Dollars, days and other amounts of a plan in a few characters, however large they are."""

import math

from errors import format as fmt

LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
YEAR_D = 365.25
LONG_D = 3650  # from ten years on days say little
MOST = 1e15  # beyond, powers of ten


def dollars(usd: float) -> str:
    """`$14,200`, `$1.50 million`, `$4.10 × 10²⁴`."""
    if usd >= MOST:
        return f"${fmt.flops(usd).removesuffix(' FLOPs')}"
    worded = _worded(usd)
    return f"${worded}" if worded else fmt.usd(usd)


def time(days: float) -> str:
    """`20 d 9 h`, `54.8 years`."""
    if days < LONG_D:
        return fmt.duration(days * 86_400)
    years = days / YEAR_D
    if years >= MOST:
        return f"{fmt.flops(years).removesuffix(' FLOPs')} years"
    return f"{_worded(years) or fmt.number(years)} years"


def dollars_at_least(usd: float) -> str:
    """Rounded up, so that what is advised is enough."""
    return dollars(fmt.upwards(usd))


def time_at_least(days: float) -> str:
    """Rounded up to the hour (below a day the minute, below an hour the second), from ten years on to three digits."""
    if days >= LONG_D:
        return time(fmt.upwards(days / YEAR_D) * YEAR_D)
    each = 24 if days >= 1 else 1440 if days >= 1 / 24 else 86_400
    return time(math.ceil(days * each) / each)


def amount(value: float, unit: str) -> str:
    """Of `usd`, `chip_hours` or `chip_seconds`."""
    if unit == "usd":
        return dollars(value)
    return fmt.chip_time(value * 3600 if unit == "chip_hours" else value)


def _worded(value: float) -> str:
    """`1.50 million`; empty below a million."""
    return next((f"{fmt.number(value / size)} {word}" for size, word in LARGE if value >= size * 0.9995), "")
