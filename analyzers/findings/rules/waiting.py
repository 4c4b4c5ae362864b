"""Requests that wait though the engine could not go faster: for a seat in it, behind long prompts, or for programs that
are compiled while they wait."""

from typing import TypeGuard

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from analyzers.base import fact
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.findings.rules.sampled import queued
from analyzers.serving.engine import EngineResult
from analyzers.serving.first_tokens import Held, ahead, held_up, queue
from analyzers.serving.loads_told_twice import with_servers_queue, without
from analyzers.serving.standstills import at_the_start
from errors import format as fmt
from runs.tables import Tables, frame

MUCH_QUEUE = 0.3  # of the wait for the first token, by the engine's own times, which hold the pass under way
MUCH_BEYOND = 0.2  # the same without any pass under way
WAITED, SELDOM_WAITED = 0.2, 0.1  # of the time in which some request waited; less is the pass under way, and no queue
MOSTLY_WAITED = 0.5  # the same where requests that find others ahead wait by no more than chance may do
CHANCE, DOUBT = 0.01, 0.2  # so likely may chance alone make a wait that is told, and one that is not ruled out
COLD_S = 0.25  # a first token that waits for a program takes at least that
QUICK = 0.25  # of the requests: those that did not wait, those that read little
MOSTLY = 0.6  # of the first requests: so many wait where programs are compiled for them
EARLY = 0.5  # of the requests: where later ones are late as well, it is load
BESIDE = 0.5  # of the time of each request: others are served beside it
FEW = 20  # requests: of fewer no distribution is told
LONG = 3.0  # times the median prompt, or what a quick one reads where the cache is told
SELDOM, OFTEN = 0.02, 0.45  # of requests with long prompts: fewer hold up few, more are the load itself
MISSED = 0.25  # of requests: where what was found in the cache is told, as many read a prefix for the first time
MUCH_READ = 0.75  # of the tokens read: where the cache is told, those read once hold up to so much
SLOW, SLOWED = 2.0, 0.4  # times a quick first token, and of the requests with nothing ahead those that take so long
READ = (0.4, 0.8)  # of prompt tokens: less is read once, and of more nothing is found for others
ROOM = 2.0  # times the tokens of what is usually in flight, and of one more
FEW_ALONE = 10  # requests with nothing ahead: of fewer it is not told how long they read
COLD = 10.0  # times the usual first token: one that waits for a program to be compiled
FAILED = ("failed", "aborted")  # states of requests without a latency, whatever was written for it
CAUSES = ("queueing", "long_prompts", "cold_start")


def waiting(seen: Seen) -> Told:
    """Requests that wait: for a free engine, behind long prompts, or for a program to be compiled. What they wait for
    is no chip time lost, so these have no gain in it."""
    rows = _requests(seen)
    if len(rows) < FEW:
        engine = seen.answer("engine", EngineResult)
        causes = CAUSES if engine is None else CAUSES[1:]
        dark = NotTold(causes, "few single requests are recorded", "a result with single requests")
        return Told(not_told=(dark,)) + (Told() if engine is None else queued(seen, engine))
    told = [f for f in (_cold(seen, rows), _queued(seen, rows), _long(seen, rows)) if f is not None][:1]
    named = {f.cause for f in told}
    dark = {gap.causes[0]: gap for gap in _untold(seen, rows) if gap.causes[0] not in named}
    out = tuple(RuledOut(n, "first tokens do not show it", "latency") for n in CAUSES if n not in {*named, *dark})
    return Told(tuple(told), out, tuple(dark.values()))


def _untold(seen: Seen, rows: pd.DataFrame) -> list[NotTold]:
    """What these requests cannot tell, one cause each."""
    gaps = []
    if rows["arrival_ns"].isna().any():
        gaps.append(NotTold(("cold_start",), "when requests came is not told", "a result with each request's start"))
    if why := _no_queue_told(seen, rows):
        gaps.append(NotTold(("queueing",), why, "the engine's log or its /metrics, over more requests"))
    if why := _no_reading_told(seen, rows):
        gaps.append(NotTold(("long_prompts",), why, "the engine's trace"))
    return gaps


def _no_queue_told(seen: Seen, rows: pd.DataFrame) -> str:
    """Why it is not told whether requests queue; empty where it is."""
    told, engine = queue(rows), (_queue_share(rows), _waiting_share(seen))
    if told is None and engine == (None, None):
        return "nothing tells what a request takes that finds the engine free beside others that do not"
    if told is not None and CHANCE < told.chance <= DOUBT and max(told.share, *(e or 0.0 for e in engine)) >= WAITED:
        return "requests that find others ahead wait longer, but by no more than chance may do"
    if engine == (None, None) and rows["stage"].nunique() > 1:
        return "a test of several loads goes on until requests queue"
    return ""


def _no_reading_told(seen: Seen, rows: pd.DataFrame) -> str:
    """Why it is not told whether reading prompts is what first tokens take; empty where it is."""
    read = _read_share(seen)
    if not _roomy(seen, rows) and _reading(seen, rows) is not None:
        return "the cache has little room beside what runs: what was kept of prompts may have been dropped"
    if rows["read_tokens"].isna().any() and (read is None or read > READ[0] or _alone(rows).sum() < FEW_ALONE):
        return "nothing tells which tokens of a prompt were found in the cache, and which were read"
    return ""


def _requests(seen: Seen) -> pd.DataFrame:
    """Single requests with a first token, in order of arrival; what is written for those that failed is none. Columns:
    arrival_ns, prompt_tokens, tokens (with those of the answer), e2e_s, ttft_s, pass_s (between pieces of the answer),
    replica, stage, row (its place in the table); read_tokens (those not found in a cache) and queue_s where the engine
    told."""
    names = ["arrival_ns", "scheduled_ns", "first_token_ns", "ttft_ns", "e2e_ns", "last_token_ns", "prompt_tokens"]
    names += ["cached_tokens", "output_tokens"]
    rows = with_servers_queue(seen.tables, frame(seen.tables, "requests", [*names, "stage", "source"]))
    rows = rows[names].astype("Float64")
    status = frame(seen.tables, "requests", ["status"])["status"]
    arrived = rows["first_token_ns"] - rows["arrival_ns"]
    first = rows["ttft_ns"].fillna(arrived).mask(status.isin(FAILED).to_numpy())
    out = pd.DataFrame(
        {
            "arrival_ns": rows["arrival_ns"],
            "read_tokens": (rows["prompt_tokens"] - rows["cached_tokens"]).astype(float),
            "prompt_tokens": rows["prompt_tokens"].astype(float),
            "tokens": (rows["prompt_tokens"] + rows["output_tokens"].fillna(0)).astype(float),
            "e2e_s": (rows["e2e_ns"].fillna(rows["last_token_ns"] - rows["arrival_ns"]) / 1e9).astype(float),
            "ttft_s": (first.where(first > 0) / 1e9).astype(float),  # none comes before it was asked for
            "queue_s": ((rows["scheduled_ns"] - rows["arrival_ns"]) / 1e9).astype(float),
        }
    )
    out["e2e_s"] = out["e2e_s"].fillna(out["ttft_s"])  # of an answer that broke off
    out["row"] = np.arange(len(out))
    out = out.join(frame(seen.tables, "requests", ["replica", "stage"]).astype(object))
    pieces = _pieces(seen.tables).where(lambda n: n > 0, rows["output_tokens"].astype(float) - 1)
    each = ((out["e2e_s"] - out["ttft_s"]) / pieces).where((pieces > 0) & (out["e2e_s"] > out["ttft_s"]))
    out["pass_s"] = each.fillna(each.median())
    out = without(seen.tables, out).dropna(subset=["ttft_s"])
    return out.sort_values("arrival_ns", kind="stable", ignore_index=True)


def _pieces(tables: Tables) -> pd.Series:
    """Of each answer, the pieces after its first; NaN where gaps are not recorded."""
    gaps = tables.arrow("requests", ["gaps_ns"])["gaps_ns"]
    return pd.Series(pc.list_value_length(gaps).to_numpy().astype(float))


def _cold(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """Requests that waited for programs: the very first waited long, though nothing was ahead of it."""
    if rows["arrival_ns"].isna().any() or rows["ttft_s"].iloc[0] < COLD_S:
        return None
    return _stood_still(seen, rows) or _first_late(seen, rows)


def _stood_still(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """An engine that stood still several times from the first request on, and not later."""
    since = (rows["arrival_ns"] - rows["arrival_ns"].min()) / 1e9
    timed = rows.assign(arrival_s=since.astype(float)).set_index("row").reindex(range(seen.tables.rows("requests")))
    start = at_the_start(seen.tables, *(timed[name].to_numpy(dtype=float) for name in ("arrival_s", "ttft_s", "e2e_s")))
    if start is None:
        return None
    lost = start.lost_s * seen.chips
    return Finding(
        cause="cold_start",
        title=f"From the first request on the engine stood still {start.count} times, up to "
        f"{fmt.duration(start.longest_s)}, and not later: {fmt.count(start.requests, 'request')} waited, as where "
        "programs are compiled meanwhile.",
        gain=Band(lost * 0.85, lost, lost * 1.1),
        draws=seen.drawn(lost, "program_startup", "unattributed"),
        question="latency",
        confidence=0.7,
        evidence=(
            Evidence("stood still", start.lost_s, "s", "latency"),
            Evidence("the longest", start.longest_s, "s", "latency"),
        ),
    )


def _first_late(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """The very first request took many times as long as later ones; and so did most of those that came until it was
    done, and no later ones."""
    ttft = rows["ttft_s"].to_numpy(dtype=float)
    usual = float(np.quantile(ttft, QUICK))
    late = ttft > COLD * usual
    if not late[0]:
        return None
    until = int(np.flatnonzero(late)[-1]) + 1
    if until > EARLY * len(late) or late[:until].mean() < MOSTLY:
        return None  # later ones are late: that is load
    open_s, likely_s = _not_done(rows, until)
    return Finding(
        cause="cold_start",
        title=f"The first {fmt.count(until, 'request')} waited up to {fmt.duration(float(ttft[:until].max()))} for a "
        f"first token that usually takes {fmt.duration(usual)}, as where programs are compiled while requests wait.",
        gain=Band(likely_s * 0.5, likely_s, max(open_s, likely_s * 1.2)).scaled(seen.chips),
        draws=seen.drawn(likely_s * seen.chips, "program_startup", "unattributed"),
        question="latency",
        confidence=0.6,
        evidence=(
            Evidence("a usual first token", usual, "s", "latency"),
            Evidence("the longest", float(ttft[:until].max()), "s", "latency"),
        ),
    )


def _not_done(rows: pd.DataFrame, first: int) -> tuple[float, float]:
    """Seconds in which one of the first requests was not done, and these without what as many take later."""
    begin = rows["arrival_ns"].to_numpy(dtype=float)
    whole = (begin + rows["e2e_s"].to_numpy(dtype=float) * 1e9 - begin[0]) / 1e9
    open_s = float(whole[:first].max())
    usual = float(rows["e2e_s"].iloc[first:].median()) if first < len(rows) else 0.0
    return open_s, max(open_s - BESIDE * first * usual, 0.0)


def _queue_share(rows: pd.DataFrame) -> float | None:
    """Of the wait for first tokens, that before the engine takes a request up, by its own times."""
    return float(rows["queue_s"].sum() / rows["ttft_s"].sum()) if rows["queue_s"].notna().all() else None


def _waiting_share(seen: Seen) -> float | None:
    """Of the time, that in which some request waited, by the engine's own samples."""
    engine = seen.answer("engine", EngineResult)
    return None if engine is None else engine.figures.get("waiting_share")


def _read_share(seen: Seen) -> float | None:
    """Of the tokens of prompts, those that were not found in the cache, by what the engine counts or prints."""
    engine = seen.answer("engine", EngineResult)
    found = None if engine is None else engine.figures.get("prefix_hit_rate")
    return None if found is None else 1 - found


def _shown(told: Held | None) -> TypeGuard[Held]:
    return told is not None and told.chance <= CHANCE and told.share >= MUCH_BEYOND


def _queued(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """First tokens that mostly wait for the engine: by its own times, else by its samples, else by what those take that
    find others ahead. Where requests tell that they wait for no more than the passes of others, nothing queues."""
    told = queue(rows)
    if told is not None and told.free and told.chance > CHANCE:
        return None
    queued, waited = _queue_share(rows), _waiting_share(seen)
    if queued is not None and queued >= MUCH_QUEUE and (waited is None or waited >= SELDOM_WAITED):
        title = (
            f"Requests queue: {fmt.whole_share(queued)} of the wait for first tokens passes before the engine takes "
            "them up."
        )
        evidence = (Evidence("of the wait for first tokens", queued, "1", "latency"),)
    elif waited is not None and waited >= (WAITED if told is None or told.chance <= CHANCE else MOSTLY_WAITED):
        title = f"Requests queue: in {fmt.whole_share(waited)} of the time some request waited for the engine."
        evidence = (Evidence("of the time a request waited", waited, "1", "engine"),)
    elif queued is None and _shown(told) and rows["stage"].nunique() < 2:
        title = (
            f"Requests queue: {fmt.whole_share(told.share)} of the wait for first tokens is of those that find others "
            "ahead, beyond what they take with nothing ahead and two passes of the engine."
        )
        evidence = (
            Evidence("of the wait for first tokens", told.share, "1", "latency"),
            Evidence("a first token with nothing ahead", told.usual_s, "s", "latency"),
        )
    else:
        return None
    return Finding(
        cause="queueing",
        title=title,
        gain=None,
        draws={},
        question=evidence[0].question,
        confidence=0.7,
        evidence=evidence,
    )


def _long(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """Long prompts among short ones: others wait while one is read, or reading is what first tokens mostly take. In a
    queue a long prompt waits like the others, and who waits while it does tells nothing."""
    if _shown(queue(rows)):
        return None
    return _behind_long(rows) or (_reading(seen, rows) if _roomy(seen, rows) else None)


def _behind_long(rows: pd.DataFrame) -> Finding | None:
    """A few prompts, much longer than the others, and first tokens that wait while one of them is read."""
    tokens = _tokens(rows)
    long = (tokens > LONG * tokens.median()).to_numpy()
    if not SELDOM < long.mean() < OFTEN:
        return None
    held = held_up(rows, long)
    if held is None or held.chance > CHANCE or held.share < MUCH_QUEUE:
        return None
    title = (
        f"{fmt.count(int(long.sum()), 'prompt')} of {len(rows):,} are more than {LONG:g} times as long as a usual one: "
        f"{fmt.count(held.requests, 'request')} came while one was read, and waited for {fmt.whole_share(held.share)} "
        "of what all others' first tokens take."
    )
    return _of_long(
        title,
        0.7,
        Evidence("of the others' wait for first tokens", held.share, "1", "latency"),
        Evidence("of the prompt tokens", float(tokens[long].sum() / tokens.sum()), "1", "traffic"),
        Evidence("a median prompt", float(tokens.median()), "tokens", "traffic"),
    )


def _reading(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """Much of each of many prompts is read, while others are found in the cache: first tokens that nothing is ahead of
    take many times what quick ones do. Of which prompt it is read the engine tells, or how much in all."""
    free = rows[_alone(rows)]
    if len(free) < FEW_ALONE:
        return None
    slow = float((free["ttft_s"] > SLOW * free["ttft_s"].quantile(QUICK)).mean())
    if slow < SLOWED:
        return None
    if rows["read_tokens"].notna().all():
        return _read_long(rows, slow)
    read = _read_share(seen)
    if read is None or not READ[0] < read < READ[1]:
        return None
    title = (
        f"{fmt.whole_share(slow)} of the first tokens with nothing ahead take more than {SLOW:g} times as long as "
        f"quick ones: {fmt.whole_share(read)} of the prompt tokens are not found in the cache, and whoever arrives "
        "while a prompt is read waits for it."
    )
    return _of_long(
        title,
        0.5,
        Evidence("slow ones of the first tokens with nothing ahead", slow, "1", "latency"),
        Evidence("of the prompt tokens not found in the cache", read, "1", "engine"),
    )


def _read_long(rows: pd.DataFrame, slow: float) -> Finding | None:
    """The same where it is told how much of each prompt was read: few read little, the others hold nearly all."""
    tokens = rows["read_tokens"]
    quick = float(tokens.quantile(QUICK))
    long = tokens > LONG * quick
    held = float(tokens[long].sum() / tokens.sum()) if tokens.sum() else 0.0
    if long.mean() < MISSED or held < MUCH_READ:
        return None
    title = (
        f"{fmt.count(int(long.sum()), 'prompt')} of {len(rows):,} hold {fmt.whole_share(held)} of the prompt tokens "
        "that are read: whoever arrives while one is read waits for it."
    )
    return _of_long(
        title,
        0.6,
        Evidence("of the prompt tokens that are read", held, "1", "traffic"),
        Evidence("read of a short prompt", quick, "tokens", "traffic"),
        Evidence("slow ones of the first tokens with nothing ahead", slow, "1", "latency"),
    )


def _alone(rows: pd.DataFrame) -> np.ndarray:
    """Which requests find nothing ahead of them."""
    before = ahead(rows)
    return np.zeros(len(rows), dtype=bool) if before is None else before == 0


def _roomy(seen: Seen, rows: pd.DataFrame) -> bool:
    """Whether the cache has room for prompts of before beside what is in flight, as far as its size is told."""
    size, before = fact(seen.facts, "kv_cache_tokens"), ahead(rows)
    if not isinstance(size, int | float) or before is None:
        return True
    return size >= ROOM * float(rows["tokens"].mean()) * (2 + float(np.median(before)))


def _tokens(rows: pd.DataFrame) -> pd.Series:
    """What is read of each prompt, as far as that is told; else how long it is."""
    return rows["read_tokens"] if rows["read_tokens"].notna().all() else rows["prompt_tokens"]


def _of_long(title: str, confidence: float, *evidence: Evidence) -> Finding:
    return Finding(
        cause="long_prompts",
        title=title,
        gain=None,
        draws={},
        question=evidence[0].question,
        confidence=confidence,
        evidence=evidence,
    )


RULE = Rule(name="waiting", causes=CAUSES, find=waiting)
