"""Numbers that a person gives: read and bounded in one way, whether they come from the command line, an address or a
page. What is no number, not finite, or out of bounds is refused with what would be right, never rounded or dropped.
"""

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

from errors import QuestionError

_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_SHOWN = 40  # characters of what was given


@dataclass(frozen=True)
class Number:
    """A kind of number: from `low` (`above`: more than that) to `high`, `whole` or not; always finite."""

    low: float = -1e30
    high: float = 1e30
    whole: bool = False
    above: bool = False

    @property
    def expected(self) -> str:
        """Such as `a whole number from 1 to 1,000`, `a number above 0` or `a share from 0 to 1`."""
        what = "a whole number" if self.whole else "a share" if (self.low, self.high) == (0, 1) else "a number"
        least = "" if self.low <= -1e30 else f"above {_said(self.low)}" if self.above else f"from {_said(self.low)}"
        to = "and up to" if self.above else "to" if least else "up to"
        most = "" if self.high >= 1e30 else f"{to} {_said(self.high)}"
        return " ".join(filter(None, (what, least, most)))

    def read(self, given: Any, name: str, shown: str | None = None) -> Any:
        """The number, from text or a number. Raises QuestionError: `name`, what was given, and what would be right."""
        value = self._value(given)
        if value is None or not self.low <= value <= self.high or (self.above and value == self.low):
            said = shown if shown is not None else f"{name} {str(given)[:_SHOWN]}"
            raise QuestionError(said, expected=self.expected)
        return value

    def reads(self, given: Any) -> bool:
        """Whether it is a finite number of this kind, whatever its size."""
        return self._value(given) is not None

    def _value(self, given: Any) -> Any:
        """A finite number of this kind, whatever its size; None for anything else."""
        if isinstance(given, str):
            text = given.strip()
            if not (_WHOLE if self.whole else _DECIMAL).fullmatch(text):
                return None
            given = int(text) if self.whole else float(text)
        if isinstance(given, bool) or not hasattr(given, "__float__"):
            return None
        try:
            value = float(given)
        except (OverflowError, TypeError, ValueError):  # of more digits than a number holds
            return None
        if not isfinite(value) or (self.whole and given != int(given)):
            return None
        return int(given) if self.whole else value


def _said(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e13 else f"{value:g}"


ANY = Number()
ANY_WHOLE = Number(-1e18, 1e18, whole=True)
NOT_NEGATIVE = Number(0)
COST = Number(0, 1000)  # of one thing, in units of another
SHARE = Number(0, 1)
SHARE_OF_SOME = Number(0, 1, above=True)
COUNT = Number(1, 1e12, whole=True)  # of things there are: chips, tokens, requests
CHIPS = Number(1, (1 << 31) - 1, whole=True)  # that one run holds
FROM_ZERO = Number(0, 1e12, whole=True)  # the same, and positions in a row of them
SECONDS = Number(0, 1e12, above=True)  # a time that passes; the longest is some thirty thousand years
SECONDS_OR_NONE = Number(0, 1e12)
HOP = Number(0, 1000)  # seconds across one link
SPAN = Number(1e-9, 9e9)  # seconds that are counted in whole ns
SIZE = Number(1, 1e18)  # bytes
PER_SECOND = Number(1, 1e24)  # bytes, FLOPs or ticks of one chip or link in a second
USD = Number(0, 1e6)
RATE = Number(1e-9, 1e9)  # requests a second, and how many times as many
VARIATION = Number(0, 100)  # of gaps between requests: 0 even, 1 Poisson, more comes in bursts
PERCENTILE = Number(0, 100, above=True)
WEIBULL = Number(0.2, 10)  # the shape of times between failures; 1 is exponential
NODES = Number(1, 1e9)
FAILURES = Number(0, 1e6, above=True)  # of 1,000 nodes in a day
DURATION = Number(1e-9, 1e12)  # seconds: below a nanosecond nothing is told apart any more
SEED = Number(0, (1 << 32) - 1, whole=True)
