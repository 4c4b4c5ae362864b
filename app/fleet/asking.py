"""A fleet out of the rows of the library: what page, command line, API and agents all ask."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from analyzers.fleet import FleetAsked, FleetResult, fleet
from analyzers.fleet.base import FleetRun
from analyzers.fleet.spent import Spent
from app.fleet.options import BY, CAPACITY, KEYS, SEARCH, SIMULATED, SINCE, TREND, UNTIL, ZONE
from app.library.columns import Row
from app.library.rows import found_ids, library
from app.library.table import CHUNK, table
from app.workspace import Workspace
from errors import QuestionError
from errors.nearest import did_you_mean
from errors.times import Moment

Numbers = Literal["later", "now", "kept"]
_S = 1_000_000_000
_YEARS = (1970, 2200)  # nanoseconds since 1970 are counted in 64 bits
_SHOWN = 80
MINUTE_NS = 60 * _S
_MOST_KEPT, _SPARE = 8, 20_000
_lock = threading.Lock()
_by_id: dict[str, tuple[int, FleetRun]] = {}  # with what tells that its row is the same
_kept: OrderedDict[Any, tuple[list[tuple[str, int]], FleetResult]] = OrderedDict()


def ask_fleet(place: Workspace, given: Mapping[str, Any], numbers: Numbers = "later") -> FleetResult:
    """`given`: values by the names of `OPTIONS`. `numbers` that a run lacks are worked out `later`, in the background,
    or `now`. Raises QuestionError for what cannot be asked."""
    asked, search = read(given), str(given.get(SEARCH.name) or "")
    ids = ids_of(place, search, numbers)
    key = (str(place.store.root), search, asked, place.store.hidden())
    mark = list(zip(ids, table(place).serials(ids), strict=True))
    with _lock:
        before = _kept.get(key)
    if before is not None and before[0] == mark:
        return before[1]
    result = fleet(runs_of(place, ids), asked)
    with _lock:
        _kept[key] = (mark, result)
        _kept.move_to_end(key)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return result


def ids_of(place: Workspace, search: str, numbers: Numbers = "later") -> list[str]:
    """What a search finds, archived runs too: their chips were held all the same. A run that cannot be read is in
    every search, since nothing tells that it is not meant."""
    library(place, search, archived=True, limit=0, numbers=numbers)
    if numbers == "now":
        table(place).work_out_of(found_ids(place, search, archived=True, pending=True))
    found = found_ids(place, search, archived=True, unread=True)
    there = set(found)
    return [*found, *(run_id for run_id in table(place).unread() if run_id not in there)]


def runs_of(place: Workspace, ids: Sequence[str]) -> list[FleetRun]:
    """The runs of these ids as a fleet's; of one that is the same as before, the same."""
    kept, root = table(place), place.store.root
    serials = kept.serials(ids)
    if len(_by_id) > 2 * len(ids) + _SPARE:  # of runs that are gone
        _by_id.clear()
    serial_of = dict(zip(ids, serials, strict=True))
    known = {i: k[1] for i, s in serial_of.items() if (k := _by_id.get(f"{root} {i}")) is not None and k[0] == s}
    lacking = [i for i in ids if i not in known]
    for at in range(0, len(lacking), CHUNK):
        for row in kept.made(lacking[at : at + CHUNK]):
            known[row.run_id] = run = run_of(row)
            _by_id[f"{root} {row.run_id}"] = serial_of[row.run_id], run
    return [known[i] for i in ids if i in known]  # of `_by_id` another may have taken some away meanwhile


def run_of(row: Row) -> FleetRun:
    """A row of the library as a fleet's run."""
    return FleetRun(
        run_id=row.run_id,
        name=row.name,
        kind=row.kind,
        simulated=row.simulated,
        damaged=row.problem is not None or not row.readable,
        pending=row.pending,
        created_ns=row.created_ns or 0,
        chip=row.chip or "",
        chips=row.chips,
        model=row.model or "",
        group=row.group,
        job=row.job,
        tags=row.tags,
        goodput=row.numbers.get("goodput"),
        mfu=row.numbers.get("mfu"),
        archived=row.archived,
        demo=row.demo,
        live=row.live is not None and row.live.state_at(time.time_ns()) in ("following", "failing"),
        spent=Spent.from_json(row.spent) if row.spent else None,
    )


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
