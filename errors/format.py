"""Numbers as a person reads them: three significant digits, a unit, a space between them.

Values stay exact everywhere else; only what is about to be shown passes through here.
"""

import math
from datetime import UTC, datetime

NO_VALUE = "–"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits with thousands separators: 12,400; 459; 0.0319. Whole parts are never cut off."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        decimals -= 1  # 999.6 became 1,000: one decimal fewer says the same
    return f"{rounded:,.{max(decimals, 0)}f}" if decimals <= 9 else _powered(rounded, digits)


def at_most(value: float, digits: int = 3) -> str:
    """At most so many significant digits, without zeros that say nothing: 32; 32.11; 16,384. Whole parts are never cut
    off, and there is no exponent."""
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else number(value, digits) if "e-" in text else text


def upwards(value: float, digits: int = 3) -> float:
    """A number above 0 to so many digits, never less than it: what is advised as enough is enough as it is shown."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.ceil(value / step * (1 - 1e-12)) * step


def _powered(value: float, digits: int = 3) -> str:
    """`3.80 × 10²⁴`: as a person writes what has too many zeros."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}"


def count(value: int | None, noun: str, plural: str | None = None) -> str:
    """`1 step`, `2,000 steps`: a whole number is shown whole."""
    if value is None:
        return NO_VALUE
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def share(value: float | None, digits: int = 3) -> str:
    """A share (0 to 1) in per cent. What is not all is never shown as 100 %, what is not nothing never as 0 %."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    percent = value * 100
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{number(percent, digits)} %"


def change(value: float, digits: int = 3) -> str:
    """By how much something changed, a ratio less one, in per cent without its sign. To grow by all of it is no limit,
    as it is of a share: what is almost twice as much grew by 100 %."""
    return f"{number(value * 100, digits)} %" if 0.999 < value < 1 else share(abs(value), digits)


def whole_share(value: float) -> str:
    """A share in whole per cent, for a sentence: `61 %`."""
    percent = value * 100
    if percent < 0:
        return f"−{round(-percent):,} %" if round(-percent) else "0 %"
    if 0 < percent < 1:
        return "less than 1 %"
    if 99 < percent < 100:
        return "more than 99 %"
    return f"{percent:,.0f} %"


def duration(seconds: float | None) -> str:
    """`2 h 14 min`, `3 d 4 h`, `5.12 s`, `12.3 ms`: two units from a minute on, three digits below."""
    if seconds is None or not math.isfinite(seconds):
        return NO_VALUE
    if seconds < 0:
        return "−" + duration(-seconds)
    if seconds == 0:
        return "0 s"
    if seconds < 59.95:
        for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")):
            if seconds * factor >= 0.9995:
                return f"{number(seconds * factor)} {unit}"
        return f"{number(seconds * 1e9)} ns"
    for big, small, big_s, small_s in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        units = round(seconds / small_s)
        if units * small_s >= big_s:
            whole, rest = divmod(units, big_s // small_s)
            return f"{whole:,} {big} {rest} {small}" if rest else f"{whole:,} {big}"
    return f"{number(seconds)} s"


def exact_duration(seconds: float) -> str:
    """A duration that a person asked to see exactly, to six digits: `6.446 s`, `1 min 12 s (72.413 s)`."""
    if not math.isfinite(seconds):
        return NO_VALUE
    if abs(seconds) >= 59.95:
        return f"{duration(seconds)} ({seconds:,.10g} s)"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * factor >= 1 or not seconds:
            return f"{seconds * factor:.6g} {unit}"
    return f"{seconds * 1e9:.6g} ns"


def chip_time(chip_seconds: float | None) -> str:
    """`12,400 chip-hours`; below a tenth of a chip-hour `42.1 chip-seconds`."""
    if chip_seconds is None:
        return NO_VALUE
    if chip_seconds < 360:
        return f"{number(chip_seconds)} chip-second{'' if chip_seconds == 1 else 's'}"
    hours = chip_seconds / 3600
    return f"{number(hours)} chip-hour{'' if number(hours) == '1.00' else 's'}"


def held_time(chip_seconds: float, chips_known: bool) -> str:
    """`12,400 chip-hours`; where nobody tells how many chips there were, so that they are counted as one, `2 h 14 min
    of each chip`."""
    return chip_time(chip_seconds) if chips_known else f"{duration(chip_seconds)} of each chip"


def usd(value: float | None) -> str:
    """`$14,200`; cents from a dollar to a hundred."""
    if value is None:
        return NO_VALUE
    if 1 <= abs(value) < 100:
        return f"${value:,.2f}"
    return f"${number(value)}"


def flops_rate(per_second: float | None) -> str:
    """`459 TFLOP/s`, `1.10 PFLOP/s`."""
    if per_second is None or not math.isfinite(per_second):
        return NO_VALUE
    for factor, unit in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(per_second) >= factor:
            return f"{number(per_second / factor)} {unit}FLOP/s"
    return f"{number(per_second)} FLOP/s"


def flops(value: float | None) -> str:
    """`3.80 × 10²⁴ FLOPs`."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if value < 1e6:
        return f"{number(value)} FLOPs"
    return f"{_powered(value)} FLOPs"


def size(n_bytes: float | None) -> str:
    """Decimal units: `1.23 GB` is 1,230,000,000 bytes."""
    if n_bytes is None:
        return NO_VALUE
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= factor:
            return f"{number(n_bytes / factor)} {unit}"
    return count(int(n_bytes), "byte")


def date(ns: int | None) -> str:
    """Nanoseconds since 1970 UTC as `2025-06-01 14:03 UTC`."""
    if ns is None:
        return NO_VALUE
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return NO_VALUE
