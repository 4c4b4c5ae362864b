"""Servers that mostly have no request: chips that are paid for and serve nobody."""

import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told, Where
from analyzers.findings.rules.sampled import named
from analyzers.serving.engine import EngineResult
from analyzers.serving.loads import loads
from analyzers.serving.seats import seats
from analyzers.serving.served import has_requests
from errors import format as fmt

CAUSE, QUESTION = "idle_engine", "engine"
MOSTLY = 0.5  # of a replica's time: less is the room that a server for people needs
KEPT = 0.3  # of the time of chips that are left, in which they still have no request: room for more traffic
STARTED_S = 600.0
"""So long before its first request a server may have only just been started."""
SHORT_S, HOUR_S, DAY_S = 600.0, 3600.0, 86_400.0
SURE = ((DAY_S, 0.85), (HOUR_S, 0.7), (0.0, 0.5))
"""How sure it is by how long was watched: traffic of minutes tells little of that of a day."""
LONGER = "the engine's log or scrapes of a day of its traffic"


def idle(seen: Seen) -> Told:
    """Replicas without a request for most of the time. What that is worth is modelled: the most is all of that time, as
    where something else takes the chips; likely is what is over where those chips that are left have no request in KEPT
    of their time, or what scaling to zero gives back of stretches longer than a start, whichever is more."""
    engine = seen.answer(QUESTION, EngineResult)
    if engine is None or not engine.timed:
        return Told()
    each = engine.each[engine.each["known_s"] > 0]
    if not len(each):
        return Told()
    since = each.assign(
        watched_s=each["dt_s"] - each["lead_s"].clip(upper=STARTED_S),
        idle_s=each["idle_s"] - each["lead_s"].clip(upper=STARTED_S),
    )
    mine = since[since["idle_s"] >= MOSTLY * since["watched_s"]]
    if has_requests(seen.tables) or len(loads(seen.tables)):
        why = "the requests are those of a load test, and the time without any is its own"
        return Told(not_told=(NotTold((CAUSE,), why, LONGER),) if len(mine) else ())
    if not len(mine):
        share = fmt.whole_share(float(each["idle_s"].sum() / each["dt_s"].sum()))
        why = f"by its own samples the engine had no request for {share} of the time"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    long = mine[mine["watched_s"] >= SHORT_S]
    if not len(long):
        watched = fmt.duration(float(mine["watched_s"].max()))
        return Told(not_told=(NotTold((CAUSE,), f"it was watched for {watched}, which tells little", LONGER),))
    chips = seen.chips / (int(seats(*each[["begin_s", "end_s"]].to_numpy(dtype=float).T).max()) + 1)
    sampled = chips * float(each["idle_s"].sum())
    entered = min(seen.amount("no_requests") / sampled, 1.0)  # the first sample tells of time before what was held
    return Told((_finding(seen, long, len(each), chips * entered),))


def _finding(seen: Seen, mine: pd.DataFrame, of: int, chips: float) -> Finding:
    """`of`: how many replicas there are; `chips`: of each of them."""
    idle_s, watched_s = float(mine["idle_s"].sum()), float(mine["watched_s"].sum())
    fewer = (mine["idle_s"] - (mine["watched_s"] - mine["idle_s"]) * KEPT / (1 - KEPT)).clip(lower=0)
    to_zero = mine[["long_idle_s", "idle_s"]].min(axis=1)
    low, likely = sorted((float(fewer.sum()), float(to_zero.sum())))
    span = float(mine["dt_s"].max())
    who, its = ("The engine", "its") if of == 1 else (f"{len(mine):,} of {of:,} replicas", "their")
    proves = "" if span >= DAY_S else f" {fmt.duration(span)} tell little of its traffic: look at a day of it first."
    return Finding(
        cause=CAUSE,
        title=f"{who} had no request for {fmt.whole_share(idle_s / watched_s)} of the time by {its} own samples: the "
        f"chips served nobody then.{proves}",
        gain=Band(low, likely, max(idle_s, likely)).scaled(chips),
        draws=seen.drawn(likely * chips, "no_requests"),
        question=QUESTION,
        confidence=next(sure for least, sure in SURE if span >= least),
        basis="modelled",
        where=Where(hosts=tuple(mine["replica"]) if len(mine) < of else ()),
        evidence=(
            Evidence("of the time without a request", idle_s / watched_s, "1", QUESTION),
            Evidence("watched", span, "s", QUESTION),
            Evidence("without a request in all", idle_s * chips, "chip-seconds", "ledger"),
            *named(mine["replica"], of),
        ),
    )


RULE = Rule(name="idle", causes=(CAUSE,), find=idle)
