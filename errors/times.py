"""Lengths and moments of time as a person writes them: `30s`, `12h`, `2026-01-31`."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from errors import QuestionError

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LENGTH = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([smhd])", re.ASCII)
_SHOWN = 40  # characters of what was given
_SUCH = "such as 30s, 5m, 12h or 30d"


@dataclass(frozen=True)
class Duration:
    """A kind of option: so many seconds, minutes, hours or days, at least `low_s` seconds."""

    low_s: float = 0.0

    @property
    def expected(self) -> str:
        return f"a time {_SUCH}" + (f", at least {self.low_s:g}s" if self.low_s else "")

    def read(self, given: Any, name: str, shown: str | None = None) -> float:
        """Seconds. Raises QuestionError: `name`, what was given, and what would be right."""
        seconds = _seconds(str(given))
        if seconds is None or seconds < self.low_s:
            raise QuestionError(_said(given, name, shown), expected=self.expected)
        return seconds


@dataclass(frozen=True)
class Moment:
    """A kind of option: so long ago, or a date; without a zone it is in UTC."""

    @property
    def expected(self) -> str:
        return f"a date, or a time ago {_SUCH}"

    def read(self, given: Any, name: str, shown: str | None = None) -> int:
        """ns since the epoch. Raises QuestionError: `name`, what was given, and what would be right."""
        with suppress(ValueError):
            moment = datetime.fromisoformat(str(given))
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * 1_000_000_000
        ago_s = _seconds(str(given))
        if ago_s is None:
            raise QuestionError(_said(given, name, shown), expected=self.expected)
        return max(time.time_ns() - int(ago_s) * 1_000_000_000, 0)


def _seconds(text: str) -> float | None:
    match = _LENGTH.fullmatch(text.strip())
    return float(match[1]) * _UNITS_S[match[2]] if match else None


def _said(given: Any, name: str, shown: str | None) -> str:
    return shown if shown is not None else f"{name} {str(given)[:_SHOWN]!r}"
