"""Axes that figures of several pages share: units of time and size, and logarithmic seconds."""

import numpy as np

from app.figures.base import GRID
from errors import format as fmt

PLAIN = {"gridcolor": GRID, "zeroline": False}


def time_unit(seconds: float | None) -> tuple[str, float]:
    """The unit that an axis of durations about so long is drawn in, and how many of it a second has."""
    return ("s", 1.0) if seconds is None or seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)


def size_unit(peak: float) -> tuple[str, float]:
    """(unit, bytes in it) in which a size reads best."""
    return next(((u, f) for u, f in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if peak >= f), ("bytes", 1.0))


def log_axis(low: float, high: float) -> dict:
    """A logarithmic axis of seconds, `high` at least `low` > 0, with as many ticks written out as fit."""
    decades = np.log10(high / low)
    steps = (1, 1.5, 2, 3, 4, 5, 7) if decades < 1 else (1, 2, 5) if decades < 4 else (1,)
    powers = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    ticks = [m * 10.0**p for p in powers for m in steps]
    edge = 0.02 * max(decades, 0.3)
    return {
        "type": "log",
        "tickvals": ticks,
        "ticktext": [tick(t) for t in ticks],
        "range": [np.log10(low) - edge, np.log10(high) + edge],
        **PLAIN,
    }


def log_ticks(low: float, high: float) -> dict:
    """A logarithmic axis in its own unit with 1, 2 and 5 of each power of ten written out, `low` above 0; where fewer
    than two of those lie on it, every digit."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        ticks = {m * 10.0**p: 2 if m == 1.5 else 1 for p in powers for m in steps}
        if sum(low <= t <= high for t in ticks) >= 2:
            break
    return {"type": "log", "tickvals": list(ticks), "ticktext": [fmt.number(t, digits) for t, digits in ticks.items()]}


def tick(seconds: float) -> str:
    """`20 ms`, `1.5 s`: a duration for an axis."""
    unit, factor = time_unit(seconds)
    value = seconds * factor
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"
