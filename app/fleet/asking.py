"""A fleet out of the rows of the library: what page, command line, API and agents all ask."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from analyzers.fleet import FleetAsked, FleetResult
from analyzers.fleet.chosen import Chosen
from app.fleet.kept import kept_fleet
from app.fleet.options import BY, CAPACITY, KEYS, SEARCH, SIMULATED, SINCE, TREND, UNTIL, ZONE
from app.library.rows import Numbers
from app.workspace import Workspace
from errors import QuestionError
from errors.nearest import did_you_mean
from errors.times import Moment

_S = 1_000_000_000
_YEARS = (1970, 2200)  # nanoseconds since 1970 are counted in 64 bits
_SHOWN = 80
MINUTE_NS = 60 * _S


def ask_fleet(place: Workspace, given: Mapping[str, Any], numbers: Numbers = "later") -> FleetResult:
    """`given`: values by the names of `OPTIONS`. `numbers` that a run lacks are worked out `later`, in the background,
    or `now`. Raises QuestionError for what cannot be asked."""
    asked, search = read(given), str(given.get(SEARCH.name) or "")
    return kept_fleet(place).ask(search, asked, numbers)


def runs_of(place: Workspace, numbers: Numbers = "later") -> Chosen:
    """All runs that whoever asks sees, as a fleet's."""
    return kept_fleet(place).runs("", numbers)


def read(given: Mapping[str, Any]) -> FleetAsked:
    """What is asked, from values by name. Raises QuestionError for what cannot be."""
    zone = zone_named(str(given.get(ZONE.name) or ZONE.default))
    since, until = (_when(given.get(option.name), zone, option.flag) for option in (SINCE, UNTIL))
    if given.get(CAPACITY.name) is not None:
        until = _so_far(since, until)
    return FleetAsked(
        by=key_named(str(given.get(BY.name) or BY.default)),
        every=given.get(TREND.name) or TREND.default,
        since_ns=since,
        until_ns=until,
        zone=zone,
        simulated=bool(given.get(SIMULATED.name)),
        capacity_chips=given.get(CAPACITY.name),
    )


def key_named(text: str) -> str:
    """What runs are counted under, as it is kept."""
    word = text.strip()
    head, colon, tag = word.partition(":")
    if colon and head.casefold() == "tag" and tag.strip():
        return f"tag:{tag.strip()}"
    if word.casefold() in KEYS:
        return word.casefold()
    raise QuestionError(
        f"{BY.flag} {text[:_SHOWN]!r}",
        expected=f"one of {', '.join(KEYS)}, or tag:KEY",
        advice=did_you_mean(word, KEYS),
    )


def zone_named(text: str) -> tzinfo:
    if text.strip().upper() == "UTC":
        return UTC
    with suppress(ValueError, KeyError, OSError):
        return ZoneInfo(text.strip())
    raise QuestionError(
        f"{ZONE.flag} {text[:_SHOWN]!r}",
        expected="the name of a time zone, such as UTC or Europe/Berlin",
        advice=did_you_mean(text, available_timezones()),
    )


def _so_far(since_ns: int | None, until_ns: int | None) -> int | None:
    """Until when the fleet had its chips: the end of this minute, where only a beginning or a later end is asked for.
    Time that has not been is no time in which they stood idle."""
    now = (time.time_ns() // MINUTE_NS + 1) * MINUTE_NS
    if since_ns is not None and since_ns >= now:
        return until_ns
    if until_ns is None:
        return None if since_ns is None else now
    return min(until_ns, now)


def _when(text: Any, zone: tzinfo, flag: str) -> int | None:
    """An instant, ns since 1970: a date and time without a zone is one of `zone`."""
    if not text:
        return None
    shown = f"{flag} {str(text)[:_SHOWN]!r}"
    told: datetime | None = None
    with suppress(ValueError):
        told = datetime.fromisoformat(str(text).strip())
    if told is None:
        return Moment().read(text, flag, shown) // MINUTE_NS * MINUTE_NS  # or no answer would ever be asked again
    if not _YEARS[0] < told.year < _YEARS[1]:
        raise QuestionError(shown, expected=f"a year between {_YEARS[0]} and {_YEARS[1]}")
    return int((told if told.tzinfo else told.replace(tzinfo=zone)).timestamp()) * _S
