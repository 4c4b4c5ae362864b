"""A timeline in words: what it holds, and its lanes as a terminal prints them."""

from analyzers.timeline import TimelineResult
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import CODES, DEVICE, HOST, Lane
from app.words import Table, Verdict, headline, short
from errors import format as fmt
from runs.accounts import ACCOUNTS

ROLES = {
    "compute": "operations",
    "async": "beside them",
    "module": "programs",
    "step": "steps",
    "host": "",
    "other": "",
    "request": "",
    "pass": "passes",
    "account": "accounts",
    "job": "",
}


def verdict(result: TimelineResult) -> Verdict:
    """How much there is, and that all of it is drawn."""
    of = result.timeline
    told = result.to_dict()
    span = fmt.duration(told["first_to_last_event_s"])
    held = f"{fmt.count(of.stored, 'event')} in {fmt.count(len(of.lanes), 'lane')} over {span}"
    lost = told["events_stored"] - told["events_in_tiles"]
    drawn = "all of them are drawn" if not lost else f"{lost:,} of them {'has' if lost == 1 else 'have'} no place"
    return headline(f"{held}: {drawn}.", _busiest(result))


def _busiest(result: TimelineResult) -> str:
    """The account that strips of devices show most of, beside computing."""
    of = result.timeline
    seconds: dict[str, int] = {}
    whole = 0
    for row in of.lanes:
        if row.lane.group != DEVICE or row.lane.role != ACCOUNT:
            continue
        for code, held in row.by_code:
            seconds[CODES[code]] = seconds.get(CODES[code], 0) + held
            whole += held
    lost = {name: held for name, held in seconds.items() if name not in ("productive", "unattributed") and held}
    if not lost:
        return ""
    most = max(lost, key=lambda name: lost[name])
    said = f"{ACCOUNTS[most].title[:1].lower()}{ACCOUNTS[most].title[1:]} is {fmt.share(lost[most] / whole)}"
    return f"Of what devices' strips show, {said}, the most beside computing."


def title(lane: Lane, most: int = 60) -> str:
    """`host 0/3, operations`, `host 0, thread python`; of at most so many characters."""
    where = lane.host if lane.device is None else f"{lane.host}/{lane.device}"
    what = ROLES.get(lane.role, lane.role) or lane.line
    if lane.group == HOST:
        what = lane.line
    if lane.role == ACCOUNT and not where:
        return "job, accounts"
    return short(", ".join(part for part in (where, what) if part), most)


def table(result: TimelineResult) -> Table:
    """Lanes, in the order in which they are drawn."""
    seconds = result.timeline.tick_ps / 1e12
    rows = [
        (
            row.lane.group,
            title(row.lane),
            row.lane.line,
            f"{row.events:,}",
            f"{row.rows:,}",
            fmt.duration(row.busy_ticks * seconds),
        )
        for row in result.timeline.lanes
    ]
    return Table(("", "lane", "line", "events", "rows", "covered"), tuple(rows), right=(3, 4, 5))
