"""Days, weeks and months of a time zone, as instants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from analyzers.fleet.base import Every

MOST = 400  # periods that are told apart; what lies before is told as one
_S = 1_000_000_000


@dataclass(frozen=True)
class Period:
    """[start, end) in ns since 1970. `name`: such as 2026-11-26, 2026-W48 (ISO weeks, from Monday on), 2026-11."""

    name: str
    start_ns: int
    end_ns: int


def periods(first_ns: int, last_ns: int, every: Every, zone: tzinfo = UTC) -> tuple[Period, ...]:
    """Those that hold every instant of [first, last], as the clocks of the zone tell them: a day in which they are set
    has 23 or 25 hours. Of more than MOST the newest; the first then begins with `first`, and is named `before ...`."""
    at, found = _start(last_ns, every, zone), list[Period]()
    while True:
        after = _next(at, every)
        found.append(Period(_name(at, every), _ns(at), _ns(after)))
        if _ns(at) <= first_ns or len(found) >= MOST:
            break
        at = _start(_ns(at) - 1, every, zone)
    found.reverse()
    if found[0].start_ns > first_ns:
        found[0] = Period(f"before {found[1].name}", first_ns, found[0].end_ns)
    return tuple(found)


def period_of(ns: int, every: Every, zone: tzinfo = UTC) -> Period:
    """The one that holds an instant."""
    start = _start(ns, every, zone)
    return Period(_name(start, every), _ns(start), _ns(_next(start, every)))


def edges(told: Sequence[Period]) -> list[int]:
    return [*(p.start_ns for p in told), told[-1].end_ns]


def _start(ns: int, every: Every, zone: tzinfo) -> datetime:
    """Midnight at which it begins."""
    here = datetime.fromtimestamp(ns // _S, UTC).astimezone(zone)
    day = here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if every == "week":
        return day - timedelta(days=day.weekday())  # wall time: the zone's offset follows
    return day.replace(day=1) if every == "month" else day


def _next(start: datetime, every: Every) -> datetime:
    if every == "month":
        return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start + timedelta(days=7 if every == "week" else 1)


def _ns(at: datetime) -> int:
    return int(at.timestamp()) * _S


def _name(start: datetime, every: Every) -> str:
    if every == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02}"
    return start.strftime("%Y-%m" if every == "month" else "%Y-%m-%d")
