"""The weekly digest: the last whole week beside the one before, its largest loss, and budgets near their end.

It goes where alerts go (`chipledger alerts --webhook URL`), once a week, from the server or from `chipledger digest
--send`; one that could not be delivered is tried again.
"""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from urllib.parse import urlencode

from analyzers.fleet import FleetAsked, FleetResult, fleet
from analyzers.fleet.base import NOT_TOLD
from analyzers.fleet.budget import ELSEWHERE, WITHIN, Left
from analyzers.fleet.causes import Cause
from analyzers.fleet.periods import Period, period_of
from app import theme
from app.fleet import budgets
from app.fleet.asking import runs_of, zone_named
from app.fleet.words import left_out, most_lost
from app.follow.alerts.webhook import send, slack
from app.library.rows import Numbers
from app.words import sentence, short
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.alert_book import AlertBook, Target
from runs.digest_book import DigestBook

LOOK_S = 600.0  # how often a server looks whether one is due
MUCH = 0.005  # of the time: a smaller change of a share is none worth a sentence
MOST_BUDGETS = 10


@dataclass(frozen=True, kw_only=True)
class Digest:
    """`now` and `before`: the fleet in the week and in the one before; `budgets`: as they stand at the week's end."""

    week: Period
    now: FleetResult
    before: FleetResult
    budgets: tuple[Left, ...]

    @property
    def near(self) -> tuple[Left, ...]:
        """Budgets that somebody should look at."""
        return tuple(b for b in self.budgets if b.state not in ("", WITHIN))

    @property
    def sentences(self) -> tuple[str, ...]:
        said = [self._held(), self._kept(), self._lost(), self._grew(), *self._budgets(), *left_out(self.now)]
        return tuple(text for text in said if text)

    def _held(self) -> str:
        now, before = self.now.total, self.before.total
        if not now.runs:
            was = f"; the week before it was {fmt.chip_time(before.chip_s)}" if before.runs else ""
            none = "no run is counted" if set(self.now.left_out) - ELSEWHERE else "no run held a chip"
            return f"Week {self.week.name}: {none}{was}."
        cost = "" if now.usd is None else f", {'at least ' if now.unpriced_runs else ''}{fmt.usd(now.usd)}"
        held = f"{fmt.chip_time(now.chip_s)} in {fmt.count(now.runs, 'run')}{cost}"
        return f"Week {self.week.name}: {held}{_against(now.chip_s, before.chip_s)}."

    def _kept(self) -> str:
        now, before = self.now.total.runtime_goodput, self.before.total.runtime_goodput
        if now is None:
            return ""
        was = "" if before is None else f", {fmt.share(before)} the week before"
        return f"{fmt.share(now)} of the time that tells it went into kept steps or answers{was}."

    def _lost(self) -> str:
        if not self.now.causes:
            return ""
        worst = self.now.causes[0]
        lost = f"{fmt.chip_time(worst.chip_s)} ({fmt.share(worst.chip_s / self.now.total.chip_s)})"
        return f"{most_lost(self.now.total, worst)} {_called(worst.account)}: {lost}{_whose(worst)}."

    def _grew(self) -> str:
        """The loss whose share grew most."""
        if not self.before.total.runs or not self.now.total.runs:
            return ""
        now, before = ({c.account: c.chip_s / r.total.chip_s for c in r.all_causes} for r in (self.now, self.before))
        grown = {name: share - before.get(name, 0.0) for name, share in now.items()}
        worst = max(grown, key=grown.__getitem__, default="")
        if not worst or grown[worst] < MUCH:
            return ""
        was = fmt.share(before.get(worst, 0.0))
        return f"{sentence(_called(worst))} grew most: {fmt.share(now[worst])} of the time, {was} the week before."

    def _budgets(self) -> list[str]:
        shown = self.near[:MOST_BUDGETS]
        rest = len(self.near) - len(shown)
        more = [f"{rest:,} more budgets are near their end or over."] if rest else []
        return [f"Budget {b.state}: {budgets.sentence(b)}" for b in shown] + more

    def to_dict(self) -> dict[str, Any]:
        return {
            "week": self.week.name,
            "start_ns": self.week.start_ns,
            "end_ns": self.week.end_ns,
            "sentences": list(self.sentences),
            "total": self.now.total.to_dict(),
            "before": self.before.total.to_dict(),
            "causes": [c.to_dict() for c in self.now.causes],
            "budgets": [b.to_dict() for b in self.near],
            "left_out": dict(self.now.left_out),
        }


def _whose(cause: Cause) -> str:
    """Who lost most of it; nothing where that is nobody who is named."""
    name, chip_s = cause.owners[0] if cause.owners else (NOT_TOLD, 0.0)
    if name == NOT_TOLD:
        return ""
    much = "most of it" if chip_s > cause.chip_s / 2 else f"{fmt.whole_share(chip_s / cause.chip_s)} of it"
    return f", {much} of {short(name)}"


def _called(account: str) -> str:
    title = theme.title(account)
    return title[:1].lower() + title[1:]


def _against(now: float, before: float) -> str:
    """By how much it changed."""
    if before <= 0:
        return ", nothing the week before"
    ratio = now / before
    if ratio > 2:
        return f", {fmt.number(ratio)} times the week before"
    return f", {fmt.change(ratio - 1)} {'more' if ratio >= 1 else 'less'} than the week before"


def of_last_week(place: Workspace, zone: tzinfo = UTC, numbers: Numbers = "later", now_ns: int | None = None) -> Digest:
    """Of the last week that is over at `now_ns` (None: now)."""
    now = time.time_ns() if now_ns is None else now_ns
    week = period_of(period_of(now, "week", zone).start_ns - 1, "week", zone)
    before = period_of(week.start_ns - 1, "week", zone)
    runs = runs_of(place, numbers)

    def within(period: Period) -> FleetResult:
        return fleet(runs, FleetAsked(zone=zone, since_ns=period.start_ns, until_ns=period.end_ns))

    left = budgets.standing(place, zone, numbers, week.end_ns - 1)
    return Digest(week=week, now=within(week), before=within(before), budgets=left)


def book(place: Workspace) -> DigestBook:
    return DigestBook(place.registry.at)


def body(digest: Digest, target: Target) -> dict[str, Any]:
    """The JSON that is posted, in the target's shape."""
    url = f"{target.base_url}/fleet?{urlencode(_asked(digest))}"
    if target.shape == "slack":
        return slack(":bar_chart:", "Fleet", digest.sentences, url)
    return {"source": "chipledger", "kind": "digest", "url": url, **digest.to_dict()}


def _asked(digest: Digest) -> dict[str, str]:
    """What its page is asked."""
    zone = digest.now.asked.zone
    since, until = (datetime.fromtimestamp(ns / 1e9, zone) for ns in (digest.week.start_ns, digest.week.end_ns))
    return {"since": f"{since:%Y-%m-%d}", "until": f"{until:%Y-%m-%d}", "every": "day", "zone": str(zone)}


def tell(place: Workspace, zone: tzinfo, now_ns: int | None = None) -> str:
    """Send the last week's where nobody did yet. Returns what happened, as a sentence; never raises for the message."""
    target, kept = AlertBook(place.registry.at).target(), book(place)
    if target is None:
        return "No webhook is set: `chipledger alerts --webhook URL` sets one."
    now = time.time_ns() if now_ns is None else now_ns
    week = period_of(period_of(now, "week", zone).start_ns - 1, "week", zone).name
    there = f"The digest of {week} was sent already, or is being sent."
    if kept.was_told(week):
        return there
    written, problem = _written(place, zone, now, target)  # it takes as long as it takes, a claim does not last
    if not kept.claim(week):
        return there
    try:
        if written is not None:
            send(written, target)
    except ChipledgerError as e:
        problem = str(e)
    except BaseException:
        kept.told(week, problem="a defect of this program")
        raise
    kept.told(week, problem)
    return f"The digest of {week} was " + ("delivered." if problem is None else f"not delivered: {problem}")


def _written(place: Workspace, zone: tzinfo, now_ns: int, target: Target) -> tuple[dict[str, Any] | None, str | None]:
    """What is posted, or why it cannot be worked out."""
    try:
        return body(of_last_week(place, zone, "now", now_ns), target), None
    except ChipledgerError as e:
        return None, str(e)


def keep_telling(place: Workspace, stop: threading.Event) -> None:
    """Look now and then whether one is wanted and due, until `stop`."""
    while not stop.wait(LOOK_S):
        _tell_if_wanted(place)


def _tell_if_wanted(place: Workspace) -> None:
    try:
        zone = book(place).zone()
        if zone is not None:
            tell(place, zone_named(zone))
    except ChipledgerError:  # a store that cannot be read: its pages say so
        return
