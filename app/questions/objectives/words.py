"""Objectives in words: the share that kept them, the rate, and what most of the others missed them for."""

from analyzers.serving.objective_causes import CAUSES
from analyzers.serving.objectives import SloResult
from app.words import Table, Verdict, headline, sentence
from errors import format as fmt

SERVER = "/metrics"  # the tool of a load that a server's own histograms tell
OBJECTIVES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E", "itl_s": "p99 of its gaps"}
HELPS = {
    "failed": "Look at the errors first.",
    "queue": "More capacity, a larger batch or less load would help, a faster prefill would not.",
    "prefill": "A prefix cache, more tensor parallelism or a larger token budget for prefill shortens it.",
    "first_token": "Records of the engine would tell whether they queued or whether their prompts were read slowly.",
    "preempted": "More room for the KV cache, or fewer requests at a time, would keep them running.",
    "stalled_by_prefill": "A smaller token budget for chunked prefill, or prefill on chips of its own, would help.",
    "decode": "A smaller batch, or a faster decode (quantised weights, speculation, more chips), would help.",
    "length": "No capacity helps: the objective does not fit answers of this length.",
    "unknown": "A record with the missing times would tell.",
}


def objectives_text(result: SloResult) -> str:
    """`TTFT within 500 ms and TPOT within 50.0 ms`."""
    parts = [f"{OBJECTIVES[n]} within {fmt.duration(v)}" for n, v in result.objectives.items()]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 2 else parts)


def verdict(result: SloResult) -> Verdict:
    """Attainment, goodput, the commonest miss and what would help."""
    sent = result.judged
    if result.load.tool == SERVER:
        low, high = fmt.whole_share(result.attainment), fmt.whole_share(result.attainment_high)
        share = low if low == high else f"Between {low} and {high}"
        kept = f"{share} of {fmt.count(sent, 'request')} kept {objectives_text(result)}"
        return headline(f"{sentence(kept)}, by the server's own histograms.")
    counted = result.load.requests or 0
    whose = f", a sample of {counted:,}," if result.load.kept is not None and sent < counted else ""
    text = f"{fmt.whole_share(result.attainment)} of {fmt.count(sent, 'request')}{whose} kept {objectives_text(result)}"
    if result.goodput_per_s is not None:
        rate = fmt.number(result.goodput_per_s) if result.goodput_per_s else "none"
        text += f": {rate} good requests a second"
    text += "."
    if not result.misses:
        return headline(sentence(text), "None missed.")
    cause, count = max(result.misses.items(), key=lambda item: item[1])
    missed = sum(result.misses.values())
    most = sentence(f"{fmt.whole_share(count / missed)} of the {fmt.count(missed, 'miss', 'misses')}: {CAUSES[cause]}.")
    at_most = ""
    if result.attainment_high > result.attainment:
        at_most = f"With those whose latency is not known it is at most {fmt.whole_share(result.attainment_high)}."
    return headline(sentence(text), most, HELPS[cause], at_most)


def table(result: SloResult) -> Table:
    """Each objective with its own attainment, then the misses by cause."""
    sent = result.judged
    if result.load.tool == SERVER:
        return _by_server(result)
    rows = [("all objectives", "", fmt.share(result.attainment), f"{round(result.attainment * sent):,}")]
    rows += [
        (OBJECTIVES[n], f"at most {fmt.duration(v)}", fmt.share(result.each[n]), f"{round(result.each[n] * sent):,}")
        for n, v in result.objectives.items()
    ]
    rows += [
        (f"missed: {cause}", CAUSES[cause], fmt.share(n / sent if sent else None), f"{n:,}")
        for cause, n in sorted(result.misses.items(), key=lambda item: -item[1])
    ]
    rows.append(("goodput", "good requests per second", "", fmt.number(result.goodput_per_s)))
    of = "share of sent" if result.load.kept is None else "share of kept"
    return Table(("what", "", of, "requests"), tuple(rows), right=(2, 3))


def _by_server(result: SloResult) -> Table:
    """At least and at most: a bucket does not tell where in it its requests lie."""
    told = [("all objectives", "", result.attainment, result.attainment_high)]
    told += [
        (OBJECTIVES[n], f"at most {fmt.duration(v)}", result.each[n], result.each_high[n])
        for n, v in result.objectives.items()
    ]
    rows = tuple((what, limit, fmt.share(low), fmt.share(high)) for what, limit, low, high in told)
    return Table(("what", "", "share of timed, at least", "at most"), rows, right=(2, 3))
