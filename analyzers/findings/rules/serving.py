"""What a serving engine loses: drafts that are not kept, and work done again for want of cache."""

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.findings.rules import failures, idle, sampled, server_stops, slow_start, waiting
from analyzers.serving.engine import EngineResult
from analyzers.serving.prefix_cache import PrefixResult
from analyzers.serving.recorded import recorded
from analyzers.serving.speculation import SpeculationResult
from analyzers.serving.speculation.model import accepted_length
from errors import format as fmt
from runs.tables import frame

FITTING, OPEN = 0.75, 1.3
"""Of the tokens of a draft that fits its model, what is kept as a rule (inferred: no source prints one); times what
such a one gives back, at most."""
PAYS = 1.05  # times as fast as without drafts: less is no gain
LOST = 0.1  # of prompt tokens that a cache without end would find and this one did not


def drafts(seen: Seen) -> Told:
    found = seen.answer("speculation", SpeculationResult)
    if found is None:
        return sampled.no_drafts(seen)
    speed = _speed(found)
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


def _speed(found: SpeculationResult) -> float:
    """Times as fast as without drafts: as measured, where it is no more than the tokens of a step, which drafts make no
    quicker; of few passes without drafts chance may say more."""
    measured = found.measured_speedup
    return measured if measured and measured <= found.length else found.speedup


def _drafted(seen: Seen) -> float:
    """Chip-seconds of the passes that draft, where the engine tells of passes; else of decoding, or, where only the
    client tells, all in which it had requests."""
    rows, _ = recorded(seen.tables, ["dur_ns", "device_ns", "prefill_tokens", "drafted_tokens"])
    rows = rows[rows["drafted_tokens"].gt(0).fillna(False) & rows["prefill_tokens"].fillna(0).eq(0)]
    if len(rows):
        return float(rows["device_ns"].fillna(rows["dur_ns"]).astype(float).sum()) / 1e9 * seen.chips
    known = seen.amount("decode", "rejected_speculation")
    return known if known >= seen.least else seen.amount("unattributed")  # seen from outside: requests were open


def cache(seen: Seen) -> Told:
    """Work done again for want of cache: of requests put back, and of prefixes that were dropped."""
    told, out, gaps = [], [], []
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
    elif (often := sampled.put_back(seen)) is not None:
        told.append(often)
    elif (gap := _preemptions_untold(seen)) is not None:
        gaps.append(gap)
    else:
        out.append(RuledOut("kv_preemption", "little was computed again after preemptions", "engine"))
    found = seen.answer("prefix_cache", PrefixResult)
    best, now = (found.attainable, found.found) if found is not None else (None, None)
    if best is None or now is None:
        why, add = "nothing tells the prefixes of prompts", "a request trace with block identities"
        return Told(tuple(told), tuple(out), (*gaps, NotTold(("prefix_thrash",), why, add)))
    prefill = seen.amount("prefill")
    likely = prefill * (best - now) / max(1 - now, 1e-9)
    if best - now < LOST or likely < seen.least:
        why = f"it found {fmt.share(now)} of the prompt tokens, a cache without end would find {fmt.share(best)}"
        return Told(tuple(told), (*out, RuledOut("prefix_thrash", why, "prefix_cache")), tuple(gaps))
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
    return Told(tuple(told), tuple(out), tuple(gaps))


def _preemptions_untold(seen: Seen) -> NotTold | None:
    """Why it is not told what preemptions cost; None where it is, or where there was none."""
    rows, _ = recorded(seen.tables, ["recomputed_tokens"])
    if rows["recomputed_tokens"].notna().any():
        return None
    engine, each = seen.answer("engine", EngineResult), frame(seen.tables, "requests", ["preemptions"])["preemptions"]
    count = None if engine is None else engine.figures["preemptions"]
    if count is None and each.notna().any():
        count = float(each.sum())
    if count is None:
        why, add = "nothing tells whether requests were put back for want of cache", sampled.there(seen).counts()
    elif count > 0:
        put_back = fmt.count(round(count), "request was", "requests were")
        why = f"{put_back} put back for want of cache, and nothing tells what was computed again"
        add = sampled.PASSES
    else:
        return None
    return NotTold(("kv_preemption",), why, add)


RULES = (
    server_stops.RULE,
    failures.RULE,
    slow_start.RULE,
    Rule(name="drafts", causes=("speculation_waste",), find=drafts),
    Rule(name="cache", causes=("kv_preemption", "prefix_thrash"), find=cache),
    waiting.RULE,
    idle.RULE,
)
