"""What a serving engine loses: drafts that are not kept, work done again for want of cache, requests that wait though
the engine could not go faster, and programs compiled while requests wait."""

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.serving.engine import EngineResult
from analyzers.serving.prefix_cache import PrefixResult
from analyzers.serving.speculation import SpeculationResult
from analyzers.serving.speculation.model import accepted_length
from errors import format as fmt
from runs.tables import frame

CAUSES = (
    "speculation_waste", "kv_preemption", "prefix_thrash", "queueing", "long_prompts", "cold_start", "failed_requests"
)  # fmt: skip
FITTING, OPEN = 0.75, 1.3
"""Of the tokens of a draft that fits its model, what is kept as a rule (inferred: no source prints one); times what
such a one gives back, at most."""
PAYS = 1.05  # times as fast as without drafts: less is no gain
MUCH_QUEUE = 0.3  # of the wait for the first token
WAITED = 0.2  # of the time in which some request waited
COLD_S = 0.25  # a first token that waits for a program takes at least that
QUICK = 0.25  # of the requests: those that did not wait
MOSTLY = 0.6  # of the first requests: so many wait where programs are compiled for them
EARLY = 0.5  # of the requests: where later ones are late as well, it is load
BESIDE = 0.5  # of the time of each request: others are served beside it
FEW = 20  # requests: of fewer no distribution is told
LONG = 3.0  # times the median prompt
SELDOM, OFTEN = 0.02, 0.45  # of requests with long prompts: fewer hold up few, more are the load itself
MISSED = 0.2  # of requests: where what was found in the cache is told, as many read a prefix for the first time
COLD = 10.0  # times the usual first token: one that waits for a program to be compiled
LOST = 0.1  # of prompt tokens that a cache without end would find and this one did not


def drafts(seen: Seen) -> Told:
    found = seen.answer("speculation", SpeculationResult)
    if found is None:
        return Told(
            not_told=(
                NotTold(("speculation_waste",), seen.answers.why("speculation"), "the engine's counters of drafts"),
            )
        )
    speed = found.measured_speedup or found.speedup
    if speed >= PAYS:
        why = f"drafts make tokens come {fmt.number(speed)} times as fast"
        return Told(ruled_out=(RuledOut("speculation_waste", why, "speculation"),))
    spent = _drafted(seen)
    off = max(seen.amount("rejected_speculation"), spent * (1 - min(speed, 1.0)))
    fits = accepted_length(FITTING, max(round(found.draft), 1))
    better = max(spent * (1 - found.length / fits), off)
    rate = found.observed.rate or 0.0
    return Told(
        (
            Finding(
                cause="speculation_waste",
                title=f"{fmt.share(rate)} of the draft tokens are kept: tokens come {fmt.number(speed)} times as fast "
                "as without drafts.",
                gain=Band(off, better, max(better * OPEN, off)) if off > 0 and spent >= seen.least else None,
                draws=seen.drawn(better, "rejected_speculation", "decode", "bucket_padding", "unattributed"),
                question="speculation",
                confidence=0.9,
                basis="modelled",
                evidence=(
                    Evidence("drafts kept", rate, "1", "speculation"),
                    Evidence("times as fast as without", speed, "", "speculation"),
                    Evidence("given back without drafts", off, "chip-seconds", "speculation"),
                    Evidence(
                        f"given back by a draft of which {FITTING:.0%} is kept", better, "chip-seconds", "speculation"
                    ),
                ),
            ),
        )
    )


def _drafted(seen: Seen) -> float:
    """Chip-seconds of the passes that draft, where the engine tells of passes; else of decoding, or, where only the
    client tells, all in which it had requests."""
    rows = frame(seen.tables, "iterations", ["dur_ns", "device_ns", "prefill_tokens", "drafted_tokens"])
    rows = rows[rows["drafted_tokens"].gt(0).fillna(False) & rows["prefill_tokens"].fillna(0).eq(0)]
    if len(rows):
        return float(rows["device_ns"].fillna(rows["dur_ns"]).astype(float).sum()) / 1e9 * seen.chips
    known = seen.amount("decode", "rejected_speculation")
    return known if known >= seen.least else seen.amount("unattributed")  # seen from outside: requests were open


def cache(seen: Seen) -> Told:
    """Work done again for want of cache: of requests put back, and of prefixes that were dropped."""
    told, out = [], []
    again = seen.amount("preemption_recompute")
    if again >= seen.least:
        told.append(
            Finding(
                cause="kv_preemption",
                title=f"Requests are put back for want of cache, and {fmt.share(again / seen.whole)} of the chip time "
                "goes into computing again what they gave up.",
                gain=Band(again * 0.8, again, again * 1.3),
                draws={"preemption_recompute": again},
                question="engine",
                confidence=0.9,
                evidence=(Evidence("computed again", again, "chip-seconds", "ledger"),),
            )
        )
    else:
        out.append(RuledOut("kv_preemption", "little was computed again after preemptions", "engine"))
    found = seen.answer("prefix_cache", PrefixResult)
    best, now = (found.attainable, found.found) if found is not None else (None, None)
    if best is None or now is None:
        return Told(
            tuple(told),
            tuple(out),
            (
                NotTold(
                    ("prefix_thrash",), "nothing tells the prefixes of prompts", "a request trace with block identities"
                ),
            ),
        )
    prefill = seen.amount("prefill")
    likely = prefill * (best - now) / max(1 - now, 1e-9)
    if best - now < LOST or likely < seen.least:
        why = f"it found {fmt.share(now)} of the prompt tokens, a cache without end would find {fmt.share(best)}"
        return Told(tuple(told), (*out, RuledOut("prefix_thrash", why, "prefix_cache")))
    told.append(
        Finding(
            cause="prefix_thrash",
            title=f"The prefix cache finds {fmt.share(now)} of the prompt tokens; one without end would find "
            f"{fmt.share(best)}.",
            gain=Band(likely * 0.5, likely, likely * 1.3),
            draws={"prefill": likely},
            question="prefix_cache",
            confidence=0.85,
            evidence=(
                Evidence("found", now, "1", "prefix_cache"),
                Evidence("could be found", best, "1", "prefix_cache"),
            ),
        )
    )
    return Told(tuple(told), tuple(out))


def waiting(seen: Seen) -> Told:
    """Requests that wait: for a free engine, behind long prompts, or for a program to be compiled. What they wait for
    is no chip time lost, so these have no gain in it."""
    rows = _requests(seen)
    names = ("queueing", "long_prompts", "cold_start")
    if len(rows) < FEW:
        return Told(not_told=(NotTold(names, "few single requests are recorded", "a result with single requests"),))
    told = [f for f in (_cold(seen, rows), _queued(seen, rows), _long(rows)) if f is not None][:1]
    named = {f.cause for f in told}
    out = tuple(RuledOut(n, "first tokens do not show it", "latency") for n in names if n not in named)
    if "long_prompts" in named or rows["read_tokens"].notna().all():
        return Told(tuple(told), out)
    why, add = (
        "nothing tells which tokens of a prompt were found in the cache, and which were read",
        "the engine's trace",
    )
    return Told(
        tuple(told), tuple(r for r in out if r.cause != "long_prompts"), (NotTold(("long_prompts",), why, add),)
    )


def _requests(seen: Seen) -> pd.DataFrame:
    """Single requests in order of arrival: arrival_ns, prompt_tokens, e2e_s, ttft_s; read_tokens (those not found in a
    cache) and queue_s where the engine told."""
    names = ["arrival_ns", "scheduled_ns", "first_token_ns", "ttft_ns", "e2e_ns", "last_token_ns", "prompt_tokens"]
    names.append("cached_tokens")
    rows = frame(seen.tables, "requests", names).astype("Float64")
    arrived = rows["first_token_ns"] - rows["arrival_ns"]
    out = pd.DataFrame(
        {
            "arrival_ns": rows["arrival_ns"],
            "read_tokens": (rows["prompt_tokens"] - rows["cached_tokens"]).astype(float),
            "prompt_tokens": rows["prompt_tokens"].astype(float),
            "e2e_s": (rows["e2e_ns"].fillna(rows["last_token_ns"] - rows["arrival_ns"]) / 1e9).astype(float),
            "ttft_s": (rows["ttft_ns"].fillna(arrived) / 1e9).astype(float),
            "queue_s": ((rows["scheduled_ns"] - rows["arrival_ns"]) / 1e9).astype(float),
        }
    )
    return out.dropna(subset=["ttft_s"]).sort_values("arrival_ns", kind="stable", ignore_index=True)


def _cold(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """Requests that waited for programs: the very first, which nothing was ahead of, took many times as long as later
    ones; and so did most of those that came until they were done, and no later ones."""
    if rows["arrival_ns"].isna().any():
        return None
    ttft = rows["ttft_s"].to_numpy(dtype=float)
    usual = float(np.quantile(ttft, QUICK))
    late = ttft > COLD * usual
    if not late[0] or ttft[0] < COLD_S:
        return None
    until = int(np.flatnonzero(late)[-1]) + 1
    if until > EARLY * len(late) or late[:until].mean() < MOSTLY:
        return None  # later ones are late: that is load
    open_s, likely_s = _held_up(rows, until)
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


def _held_up(rows: pd.DataFrame, first: int) -> tuple[float, float]:
    """Seconds in which one of the first requests was not done, and these without what as many take later."""
    begin = rows["arrival_ns"].to_numpy(dtype=float)
    whole = (begin + rows["e2e_s"].fillna(rows["ttft_s"]).to_numpy(dtype=float) * 1e9 - begin[0]) / 1e9
    open_s = float(whole[:first].max())
    usual = float((rows["e2e_s"].fillna(rows["ttft_s"]).iloc[first:]).median()) if first < len(rows) else 0.0
    return open_s, max(open_s - BESIDE * first * usual, 0.0)


def _queued(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """First tokens that mostly wait for the engine: by its own times, else by what requests share of their wait."""
    engine = seen.answer("engine", EngineResult)
    waited = None if engine is None else engine.figures.get("waiting_share")
    queued = rows["queue_s"].sum() / rows["ttft_s"].sum() if rows["queue_s"].notna().all() else None
    if queued is not None and queued >= MUCH_QUEUE:
        title = (
            f"Requests queue: {fmt.whole_share(queued)} of the wait for first tokens passes before the engine takes "
            "them up."
        )
        told = Evidence("of the wait for first tokens", float(queued), "1", "latency")
    elif waited is not None and waited >= WAITED:
        title = f"Requests queue: in {fmt.whole_share(waited)} of the time some request waited for the engine."
        told = Evidence("of the time a request waited", float(waited), "1", "engine")
    else:
        return None
    return Finding(
        cause="queueing",
        title=title,
        gain=None,
        draws={},
        question=told.question,
        confidence=0.7,
        evidence=(told,),
    )


def _long(rows: pd.DataFrame) -> Finding | None:
    """A few prompts that hold much of what is read."""
    tokens = rows["read_tokens"] if rows["read_tokens"].notna().all() else rows["prompt_tokens"]
    if tokens.isna().all():
        return None
    median = float(tokens.median())
    long = (tokens > LONG * median).to_numpy()
    if not (MISSED if rows["read_tokens"].notna().all() else SELDOM) < long.mean() < OFTEN:
        return None
    held = float(np.nansum(tokens[long])) / float(np.nansum(tokens))
    if held < MUCH_QUEUE:
        return None
    return Finding(
        cause="long_prompts",
        title=f"{fmt.count(int(long.sum()), 'prompt')} of {len(rows):,} hold {fmt.whole_share(held)} of the prompt "
        "tokens: whoever arrives while one is read waits for it.",
        gain=None,
        draws={},
        question="traffic",
        confidence=0.6,
        evidence=(
            Evidence("of the prompt tokens", held, "1", "traffic"),
            Evidence("a median prompt", median, "tokens", "traffic"),
        ),
    )


RULES = (
    Rule(name="drafts", causes=("speculation_waste",), find=drafts),
    Rule(name="cache", causes=("kv_preemption", "prefix_thrash"), find=cache),
    Rule(name="waiting", causes=("queueing", "long_prompts", "cold_start"), find=waiting),
)
