"""In which order parts of a log were written, as far as their names tell.

What rotates a log moves it aside, under a number that grows with age (`log.1`, then `log.2.gz`) or the day on which it
was moved (`log-20260304`, `log.2026-03-04`, a container's `0.log.20260304-050607.gz`), and goes on writing to `log`.
"""

import re
from collections.abc import Iterable

from analyzers.time.step_streams import natural_key

_MOVED = re.compile(
    r"(?P<log>.+?)(?:[-._](?P<day>20\d\d-?[01]\d-?[0-3]\d(?:[-._T]?[\d:-]+)?|1\d{9})|\.(?P<number>\d{1,18}))", re.ASCII
)
_BY_DAY, _BY_NUMBER, _WRITTEN_TO = range(3)


Age = tuple[list[str | int], int, int, list[str | int]]


def ages(names: Iterable[str]) -> dict[str, Age]:
    """Sorts what was moved aside before the log that was written to last, of several the oldest first, where that log
    is among `names`; and all else by its own name, `attempt_2` before `attempt_10`."""
    every = set(names)
    there = {_unpacked(name) for name in every}
    return {name: _age(name, there) for name in every}


def _age(name: str, there: set[str]) -> Age:
    moved = _MOVED.fullmatch(_unpacked(name))
    if moved is None or moved["log"] not in there:
        return natural_key(_unpacked(name)), _WRITTEN_TO, 0, natural_key(name)
    log = natural_key(moved["log"])
    if moved["day"]:
        return log, _BY_DAY, 0, natural_key(moved["day"])
    return log, _BY_NUMBER, -int(moved["number"]), []


def _unpacked(name: str) -> str:
    return name.removesuffix(".gz")
