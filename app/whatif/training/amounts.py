"""Dollars, days and other amounts of a plan in a few characters, however large they are."""

from errors import format as fmt

LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
YEAR_D = 365.25
LONG_D = 3650  # from ten years on days say little
MOST = 1e15  # beyond, powers of ten


def dollars(usd: float) -> str:
    """`$14,200`, `$1.50 million`, `$4.10 × 10²⁴`."""
    if usd >= MOST:
        return f"${fmt.flops(usd).removesuffix(' FLOPs')}"
    for size, word in LARGE:
        if usd >= size * 0.9995:
            return f"${fmt.number(usd / size)} {word}"
    return fmt.usd(usd)


def time(days: float) -> str:
    """`20 d 9 h`, `54.8 years`."""
    if days < LONG_D:
        return fmt.duration(days * 86_400)
    years = days / YEAR_D
    return f"{fmt.number(years)} years" if years < MOST else f"{fmt.flops(years).removesuffix(' FLOPs')} years"


def amount(value: float, unit: str) -> str:
    """Of `usd`, `chip_hours` or `chip_seconds`."""
    if unit == "usd":
        return dollars(value)
    return fmt.chip_time(value * 3600 if unit == "chip_hours" else value)
