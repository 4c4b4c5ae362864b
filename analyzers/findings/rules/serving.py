"""What a serving engine loses: drafts that are not kept, work done again for want of cache, requests that wait though
the engine could not go faster, and programs compiled while requests wait."""

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.serving.engine import EngineResult
from analyzers.serving.prefix_cache import PrefixResult
from analyzers.serving.speculation import SpeculationResult
from errors import format as fmt
from runs.tables import frame

CAUSES = (
    "speculation_waste", "kv_preemption", "prefix_thrash", "queueing", "long_prompts", "cold_start", "failed_requests"
)  # fmt: skip
PAYS = 1.05  # times as fast as without drafts: less is no gain
MUCH_QUEUE = 0.3  # of the wait for the first token
WAITED = 0.2  # of the time in which some request waited
COLD_S = 0.25  # a first token that waits for a program takes at least that
QUICK = 0.25  # of the requests: those that did not wait
MOSTLY = 0.7  # of the requests: where more are late, it is load
EARLY = 0.8  # of those that are late: programs are compiled for the first that come
FEW = 20  # requests: of fewer no distribution is told
LONG = 3.0  # times the median prompt
OFTEN = 0.3  # of requests with long prompts: more of them are the load itself
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
    rejected = seen.amount("rejected_speculation")
    decode = seen.amount("decode", "rejected_speculation") or seen.amount("served")
    known = decode >= seen.least  # of an engine that was seen from outside alone, what it did is not
    likely = max(rejected, decode * (1 - min(speed, 1.0)))
    rate = found.observed.rate or 0.0
    return Told(
        (
            Finding(
                cause="speculation_waste",
                title=f"{fmt.share(rate)} of the draft tokens are kept: tokens come {fmt.number(speed)} times as fast "
                "as without drafts.",
                gain=Band(rejected, likely, max(decode, likely)) if likely > 0 and known else None,
                draws={"rejected_speculation": rejected, "": likely - rejected},
                question="speculation",
                confidence=0.9,
                evidence=(
                    Evidence("drafts kept", rate, "1", "speculation"),
                    Evidence("times as fast as without", speed, "", "speculation"),
                ),
            ),
        )
    )


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
    return Told(
        tuple(told), tuple(RuledOut(n, "first tokens do not show it", "latency") for n in names if n not in named)
    )


def _requests(seen: Seen) -> pd.DataFrame:
    """Single requests in order of arrival: arrival_ns, prompt_tokens, ttft_s, queue_s (where the engine told)."""
    names = ["arrival_ns", "scheduled_ns", "first_token_ns", "ttft_ns", "prompt_tokens"]
    rows = frame(seen.tables, "requests", names).astype("Float64")
    arrived = rows["first_token_ns"] - rows["arrival_ns"]
    out = pd.DataFrame(
        {
            "arrival_ns": rows["arrival_ns"],
            "prompt_tokens": rows["prompt_tokens"].astype(float),
            "ttft_s": (rows["ttft_ns"].fillna(arrived) / 1e9).astype(float),
            "queue_s": ((rows["scheduled_ns"] - rows["arrival_ns"]) / 1e9).astype(float),
        }
    )
    return out.dropna(subset=["ttft_s"]).sort_values("arrival_ns", kind="stable", ignore_index=True)


def _cold(seen: Seen, rows: pd.DataFrame) -> Finding | None:
    """First tokens that waited for a program: those of the first requests took many times as long as later ones."""
    if rows["arrival_ns"].isna().any():
        return None
    usual = float(rows["ttft_s"].quantile(QUICK))
    late = (rows["ttft_s"] > max(COLD * usual, COLD_S)).to_numpy()
    first = int(np.argmin(late)) if not late.all() else len(late)
    if not first or late.mean() > MOSTLY or first < EARLY * late.sum():
        return None  # none of the first is late, or later ones are: that is load
    likely = float(rows["ttft_s"].iloc[:first].max()) * seen.chips
    longest = fmt.duration(float(rows["ttft_s"].max()))
    return Finding(
        cause="cold_start",
        title=f"The first {fmt.count(first, 'request')} waited up to {longest} for a first token that usually takes "
        f"{fmt.duration(usual)}, as where programs are compiled while requests wait.",
        gain=Band(likely * 0.5, likely, likely * 1.5),
        draws={"unattributed": min(likely, seen.amount("unattributed")), "": 0.0},
        question="latency",
        confidence=0.6,
        evidence=(
            Evidence("a usual first token", usual, "s", "latency"),
            Evidence("the longest", float(rows["ttft_s"].max()), "s", "latency"),
        ),
    )


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
    tokens = rows["prompt_tokens"]
    if tokens.isna().all():
        return None
    median = float(tokens.median())
    long = (tokens > LONG * median).to_numpy()
    if not 0 < long.mean() < OFTEN:
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
