"""What an engine's own samples tell of requests that wait, where no single requests are recorded: its log, or scrapes
of its /metrics, and nothing else, which is what most runs of servers have."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from analyzers.base import fact
from analyzers.findings.base import Evidence, Finding, NotTold, RuledOut, Seen, Told, Where
from analyzers.serving.accounts import UNSEEN
from analyzers.serving.counters import EXPOSED, PRINTED, of_logs
from analyzers.serving.engine import EngineResult
from analyzers.serving.engine.bounds import HELD
from errors import format as fmt
from runs.tables import frame

QUESTION = "engine"
FEWEST = 10  # samples: of fewer nothing is said of shares of the time
WAITED = 0.2  # of the time of a replica, in which some request waits
LITTLE = 0.02  # of the time that requests are there, in which they wait: less is the pass under way
SELDOM = 0.01  # of the time: less is hardly ever
MUCH_QUEUE = 0.3  # the same: so much is a queue, however seldom there is one
MOSTLY = 0.5  # of the time in which requests wait: what holds them back then is why
PUT_BACK = 0.2  # of the time, in which requests are put back for want of cache
SURE = 0.8
NAMED = 5  # replicas
PASSES = "a record of the engine's passes (vLLM: --enable-logging-iteration-details)"
LONGER = "its log or scrapes of an hour with traffic"
COUNTS_DRAFTS = ("vllm", "sglang")  # engines of which a log and /metrics tell of drafts wherever there are some


@dataclass(frozen=True)
class There:
    """Which samples of an engine a run has: lines of its log, scrapes of its /metrics."""

    log: bool
    scrapes: bool

    def counts(self) -> str:
        """What to add of counters that neither tells."""
        if self.scrapes:
            return PASSES
        return "scrapes of its /metrics" if self.log else "the engine's log or its /metrics"


def there(seen: Seen) -> There:
    rows = frame(seen.tables, "engine", ["source", *PRINTED, *EXPOSED])
    logs = of_logs(rows) if len(rows) else []
    return There(log=any(logs), scrapes=not all(logs))


def queued(seen: Seen, engine: EngineResult) -> Told:
    """Requests that wait for the engine, by its samples: for much of the time, or for much of their own."""
    if engine.figures["waiting_share"] is None:
        why = "how many requests waited is not recorded"
        return Told(not_told=(NotTold(("queueing",), why, "a result with single requests"),))
    if engine.samples < FEWEST:
        why = f"the engine was read {fmt.count(engine.samples, 'time')}, which tells little of how long requests wait"
        return Told(not_told=(NotTold(("queueing",), why, LONGER),))
    each = engine.each[engine.each["known_s"] > 0]
    share, queue = each["waited_s"] / each["known_s"], each["queue"]
    long = (share >= WAITED) & ~(queue < LITTLE)
    waits = long | ((share >= seen.floor) & (queue >= MUCH_QUEUE))
    if not waits.any():
        waited = _share(each)
        seldom = f"some request waited in {fmt.whole_share(waited)} of the time"
        why = f"by the engine's own samples {seldom if waited >= SELDOM else 'requests hardly ever waited'}"
        return Told(ruled_out=(RuledOut("queueing", why, QUESTION),))
    return Told((_queue(engine, each[waits], each[~waits]),))


def _queue(engine: EngineResult, mine: pd.DataFrame, others: pd.DataFrame) -> Finding:
    """Replicas at which requests wait, and those beside them."""
    share = _share(mine)
    waiting, running, usage = (_mean(mine, name) for name in ("waiting", "running", "kv_usage"))
    count, of = len(mine), len(mine) + len(others)
    at, their = _at(count, of)
    beside = "" if running is None else f" beside {_requests(running)} that run"
    each = "" if count == 1 else " at each"
    peak = f"{mine['waiting_max'].max():,.0f} at the most"
    elsewhere = f" At the others some wait in {fmt.whole_share(_share(others))}." if len(others) else ""
    queue = _mean(mine, "queue")
    return Finding(
        cause="queueing",
        title=f"Requests queue{at}: in {fmt.whole_share(share)} of {their} time some wait{_for(engine, mine, usage)}, "
        f"{_requests(waiting)}{each} in the mean and {peak}{beside}.{elsewhere}",
        gain=None,
        draws={},
        question=QUESTION,
        confidence=SURE,
        where=Where(hosts=tuple(mine["replica"]) if len(others) else ()),
        evidence=(
            Evidence("of the time a request waited", share, "1", QUESTION),
            *([] if queue is None else [Evidence("of the requests' own time they waited", queue, "1", QUESTION)]),
            *([] if usage is None else [Evidence("KV cache in use while they waited", usage, "1", QUESTION)]),
            *named(mine["replica"], of),
        ),
    )


def _for(engine: EngineResult, mine: pd.DataFrame, usage: float | None) -> str:
    """What requests mostly wait for, where that is told."""
    held = mine[[f"{bound}_s" for bound in HELD]].sum()
    largest = max(HELD, key=lambda bound: float(held[f"{bound}_s"]))
    if held[f"{largest}_s"] < MOSTLY * mine["waited_s"].sum():
        return ""
    full = "" if usage is None else f" ({fmt.share(usage)} full then)"
    seats = "" if engine.seats is None else f" (at most {engine.seats:,g} run)"
    return {
        "kv": f" for KV cache{full}",
        "seats": f" for a seat{seats}",
        "tokens": " for the token budget or the scheduler",
        "unknown": "",
    }[largest]


def _requests(count: float | None) -> str:
    """A mean of requests: of few with its digits."""
    return fmt.number(count) if count is None or count < 10 and count != round(count) else f"{count:,.0f}"


def _share(each: pd.DataFrame) -> float:
    return float(each["waited_s"].sum() / each["known_s"].sum())


def _mean(each: pd.DataFrame, name: str) -> float | None:
    """Mean over the replicas, by how long requests waited there; None where none tells."""
    known = each[each[name].notna() & (each["waited_s"] > 0)]
    return float((known[name] * known["waited_s"]).sum() / known["waited_s"].sum()) if len(known) else None


def lacking(seen: Seen) -> str:
    """What would tell of the chip time of a server of which nothing does, by what is there already."""
    found, dark, engine = there(seen), seen.ledger.find("unattributed"), seen.answer(QUESTION, EngineResult)
    if not (found.log or found.scrapes):
        return "the engine's log or its counters (/metrics)"
    if engine is not None and engine.samples < FEWEST:
        return LONGER
    if dark is not None and dark.source == UNSEEN:
        return "samples of the whole time, without gaps"
    return PASSES


def put_back(seen: Seen) -> Finding | None:
    """Requests that are put back for want of cache again and again, of which nothing tells what was computed again."""
    engine = seen.answer(QUESTION, EngineResult)
    if engine is None or engine.source != "engine" or engine.samples < FEWEST or not engine.figures["preemptions"]:
        return None
    each = engine.each
    mine = each[(each["told_s"] > 0) & (each["put_back_s"] >= PUT_BACK * each["told_s"])]
    if not len(mine):
        return None
    often, count = float(mine["put_back_s"].sum() / mine["told_s"].sum()), round(float(mine["preempted"].sum()))
    at, their = _at(len(mine), len(each))
    return Finding(
        cause="kv_preemption",
        title=f"Requests are put back for want of cache{at} in {fmt.whole_share(often)} of {their} time, "
        f"{fmt.count(count, 'time')} in all, and what they had computed is computed again.",
        gain=None,
        draws={},
        question=QUESTION,
        confidence=SURE,
        where=Where(hosts=tuple(mine["replica"]) if len(mine) < len(each) else ()),
        evidence=(
            Evidence("times put back", float(count), "", QUESTION),
            Evidence("of the time some were put back", often, "1", QUESTION),
            *named(mine["replica"], len(each)),
        ),
    )


def named(replicas: Iterable[str], of: int) -> tuple[Evidence, ...]:
    """Which of the replicas a finding is about; nothing where it is about all that there are."""
    names = list(replicas)
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    what = "the replica" if len(names) == 1 else "the replicas"
    return () if len(names) >= of else (Evidence(what, f"{', '.join(names[:NAMED])}{more}", "", QUESTION),)


def _at(count: int, of: int) -> tuple[str, str]:
    """(at how many of the replicas, whose time), as parts of a sentence; of one server neither is said."""
    if of == 1:
        return "", "the"
    return (f" at all {of:,} replicas" if count == of else f" at {count:,} of {of:,} replicas"), (
        "its" if count == 1 else "their"
    )


def no_drafts(seen: Seen) -> Told:
    """What is said of drafts where no input counts any: an engine that tells of them wherever it drafts has none."""
    found = there(seen)
    counts = (found.log or found.scrapes) and fact(seen.facts, "engine") in COUNTS_DRAFTS
    if counts and fact(seen.facts, "num_speculative_tokens") is None:
        why = "the engine's own samples count no draft tokens"
        return Told(ruled_out=(RuledOut("speculation_waste", why, QUESTION),))
    why = seen.answers.why("speculation")
    if found.scrapes:
        add = "counters of drafts, where the engine has any"
    else:
        add = "scrapes of its /metrics" if found.log else "the engine's counters of drafts"
    return Told(not_told=(NotTold(("speculation_waste",), why, add),))
