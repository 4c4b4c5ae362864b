"""Latency in words: how long requests waited, for what, and what stands out."""

from analyzers.serving.histograms import Quantile
from analyzers.serving.latency import ServingResult
from analyzers.serving.latency.log_lines import said
from analyzers.serving.latency.summary import Load
from analyzers.serving.triton import Triton
from app.words import Table, Verdict, headline, sentence, short
from errors import format as fmt

NAMES = {
    "ttft_s": "TTFT",
    "queue_s": "queue",
    "prefill_s": "prefill",
    "tpot_s": "TPOT",
    "itl_s": "ITL",
    "e2e_s": "E2E",
}  # as people say them
CAUSES = {
    "preempted": "its request was preempted",
    "prefill": "prompts of others were read beside it",
    "slow pass": "a pass that only generates was slow",
    "between": "no pass ran",
    "unknown": "the cause is not told",
}  # of a stall
LINE = 120  # characters of a log line within a sentence
MANY = 0.05  # of the requests: where so many failed, that comes first
MUCH = 0.5  # share of TTFT in the queue from which waiting is what there is to say


def verdict(result: ServingResult) -> Verdict:
    """The time to the first token and of those after it, what took the larger part, and what was lost."""
    load = result.load
    if result.exposed is not None and load.tool == "/metrics":
        return _of_metrics(result)
    if load.requests and load.failed == load.requests:
        text = f"None of {fmt.count(load.requests, 'request')} was answered: there is no latency."
        return headline(text, _errors(result), _log(result))
    first, tokens = _main(load)
    queue = _queue(result)
    waiting = (queue, tokens) if (result.queue_share or 0) >= MUCH else (tokens, queue)
    said, lost = (first, *waiting, _stalls(result)), _lost(result)
    if (load.failed or 0) >= MANY * (load.requests or 1):
        return headline(result.invalid or "", *lost[:1], *said, *lost[1:])
    return headline(result.invalid or "", *said, *lost)


def _log(result: ServingResult) -> str:
    """The line of a log that tells most, where there is one."""
    if not len(result.log_lines):
        return ""
    text = sentence(short(said(result.log_lines), LINE))
    return text if text.endswith((".", "!", "?")) else f"{text}."


def between(found: Quantile | None) -> str:
    """`250 ms to 500 ms`, `under 10.0 ms`, `over 30.0 s`: where a quantile lies by its bucket."""
    if found is None or (found.low is None and found.high is None):
        return fmt.NO_VALUE
    if found.high is None:
        return f"over {fmt.duration(found.low)}"
    high = fmt.duration(found.high)
    return f"{fmt.duration(found.low)} to {high}" if found.low else f"under {high}"


def _of_metrics(result: ServingResult) -> Verdict:
    exposed = result.exposed
    assert exposed is not None  # what says of it what it tells is asked where it is there
    names = [n for n in ("ttft_s", "itl_s", "tpot_s", "e2e_s") if n in exposed.latencies]
    parts = [
        f"{NAMES[n]} p50 {between(exposed.quantile(n, 'p50'))}, p99 {between(exposed.quantile(n, 'p99'))}"
        for n in names
    ]
    if not exposed.latencies and exposed.triton is not None:
        return _of_triton(exposed.triton)
    if not parts:
        return headline(f"The server's own histograms tell its {', '.join(NAMES[n] for n in exposed.latencies)} alone.")
    whose = f"By the server's own histograms of {fmt.count(exposed.requests or 0, 'request')}"
    first = f"{whose}: {'; '.join(parts[:2])}."
    return headline(first, _queue(result), f"{'; '.join(parts[2:])}." if parts[2:] else "")


def _of_triton(counted: Triton) -> Verdict:
    one = counted.models[0]
    text = f"By Triton's counters {fmt.count(one.requests, 'request')} to {short(one.name)}"
    text += f" took {fmt.duration(one.e2e_s)} on average" if one.e2e_s is not None else " were answered"
    parts = [
        f"{fmt.duration(v)} {where}"
        for v, where in ((one.queue_s, "in the queue"), (one.infer_s, "in the model"))
        if v is not None
    ]
    text += f": {', '.join(parts)}." if parts else "."
    failed = f"{fmt.count(one.failed, 'request')} failed." if one.failed else ""
    return headline(text, failed, "Triton counts no tokens, and tells means alone.")


def _by_model(counted: Triton) -> list[tuple[str, str, str]]:
    """(what, value, basis) of each model, and of the GPUs."""
    rows = []
    for m in counted.models:
        queue, compute = fmt.duration(m.queue_s), fmt.duration(m.compute_s)
        rows.append(
            (
                f"{m.name}: {fmt.count(m.requests, 'request')}, {m.failed or 0:,} failed",
                fmt.duration(m.e2e_s),
                f"queue {queue}, computing {compute}, batch {fmt.number(m.batch)}, waiting {fmt.number(m.waiting)}",
            )
        )
    return rows + ([("GPUs busy", fmt.share(counted.gpu_busy), "measured")] if counted.gpu_busy is not None else [])


def _main(load: Load) -> tuple[str, str]:
    """About the first token, and about those after it."""
    first, high = load.statistic("ttft_s", "p50"), load.statistic("ttft_s", "p99")
    each = load.statistic("tpot_s", "p50")
    if load.kept is not None and load.basis.get("tpot_s") == "derived":  # of some requests; the tool's gaps are of all
        each = load.statistic("itl_s", "p50") or each
    if first is None:
        whole = load.statistic("e2e_s", "p50") or load.statistic("e2e_s", "mean")
        text = "The time to the first token is not told"
        return text + (f"; a usual answer took {fmt.duration(whole)}." if whole is not None else "."), ""
    whose = "requests that completed" if load.failed else "requests"
    text = f"Half of the {whose} had their first token within {fmt.duration(first)}"
    if load.requests is not None and load.requests - (load.failed or 0) == 1:
        which = "request that completed" if load.failed else "request"
        text, high = f"The one {which} had its first token within {fmt.duration(first)}", None
    text += f", one in a hundred waited longer than {fmt.duration(high)}." if high is not None else "."
    rate = f"Tokens then came every {fmt.duration(each)}, {fmt.number(1 / each)} a second to one user." if each else ""
    return text, rate


def _queue(result: ServingResult) -> str:
    share = result.queue_share
    if share is None:
        return ""
    part = sentence(fmt.whole_share(share))
    if share >= MUCH:
        cure = "more capacity or less load shortens it, a faster prefill hardly does"
        return f"{part} of that wait was queueing: {cure}."
    return f"{part} of the wait for the first token was queueing, the rest reading the prompt."


def _stalls(result: ServingResult) -> str:
    found = result.gaps
    if not found or not found.p99_prefill_share or found.p99_without_prefill_s is None:
        return ""
    if (result.queue_share or 0) >= MUCH or found.p99_prefill_share < MUCH:
        return ""  # there is something larger to say
    return (
        f"The slowest hundredth of gaps between tokens took {fmt.duration(found.p99_s)} or more; "
        f"{fmt.whole_share(found.p99_prefill_share)} of those waited for prompts of others, and the p99 of gaps "
        f"that did not is {fmt.duration(found.p99_without_prefill_s)}."
    )


def _lost(result: ServingResult) -> tuple[str, ...]:
    failed = result.load.failed
    if not failed or not result.load.requests:
        return ()
    text = f"{fmt.count(failed, 'request')} of {result.load.requests:,} did not complete"
    if result.lost_tokens:
        text += f", with {fmt.share(result.lost_token_share)} of all tokens"
    return f"{text}.", _errors(result), _log(result)


def _errors(result: ServingResult) -> str:
    if not len(result.failures):
        return ""
    most = result.failures.iloc[0]
    return f"Most often: {short(most['error'])} ({int(most['requests']):,})."


def table(result: ServingResult) -> Table:
    """Each latency with mean, p50, p90, p99 and its basis, then counts and rates."""
    load = result.load
    tails = any("p99.9" in known for known in load.latency.values())
    which = ("mean", "p50", "p90", "p99", *(("p99.9",) if tails else ()))
    rows = [
        (NAMES[m], *(fmt.duration(load.statistic(m, s)) for s in which), load.basis.get(m, ""))
        for m in NAMES
        if m in load.latency and load.tool != "/metrics"
    ]
    if (exposed := result.exposed) is not None:
        rows += [
            (
                f"{NAMES[m]} at the server",
                fmt.duration(h.mean),
                *(between(exposed.quantile(m, w)) for w in which[1:]),
                "measured, in ranges",
            )
            for m, h in exposed.latencies.items()
        ]
        if exposed.triton is not None:
            rows += [(what, value, *[""] * (len(which) - 1), basis) for what, value, basis in _by_model(exposed.triton)]
    counts = (
        ("requests", f"{load.requests:,}" if load.requests is not None else fmt.NO_VALUE, ""),
        ("failed", f"{load.failed:,}" if load.failed is not None else fmt.NO_VALUE, ""),
        ("duration", fmt.duration(load.duration_s), load.basis.get("duration_s", "")),
        ("requests per second", fmt.number(load.request_rate_per_s), load.basis.get("request_rate_per_s", "")),
        *(
            (("requests per second within the tool's own objectives", fmt.number(load.goodput_per_s), "measured"),)
            if load.goodput_per_s is not None
            else ()
        ),
        ("output tokens per second", fmt.number(load.output_tokens_per_s), load.basis.get("output_tokens_per_s", "")),
        ("total tokens per second", fmt.number(load.total_tokens_per_s), load.basis.get("total_tokens_per_s", "")),
    )
    rows += [(name, value, *[""] * (len(which) - 1), basis) for name, value, basis in counts]
    rows += (
        [
            ("what the log says", line["text"], *[""] * (len(which) - 1), f"{line['lines']:,} such lines")
            for line in result.log_lines.to_dict("records")
        ]
        if load.failed
        else []
    )
    rows += [
        (
            f"load {x.stage or 'without a name'}",
            fmt.duration(x.statistic("ttft_s", "p50")),
            fmt.duration(x.statistic("tpot_s", "p50")),
            *[""] * (len(which) - 3),
            f"{fmt.number(x.output_tokens_per_s)} tokens/s",
            "TTFT p50, TPOT p50, output",
        )
        for x in result.loads
        if len(result.loads) > 1
    ]
    return Table(("latency", *which, "basis"), tuple(rows), right=tuple(range(1, 1 + len(which))))
