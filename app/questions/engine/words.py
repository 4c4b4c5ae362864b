"""The engine in words: what held requests back, for which part of the time, and what would help."""

from analyzers.serving.engine import ALL, EngineResult
from analyzers.serving.engine.bounds import HELD
from app.questions.latency.words import NAMES, between
from app.words import Table, Verdict, headline, listed
from errors import format as fmt

TITLES = {
    "kv": "waiting for KV cache",
    "seats": "waiting for a seat",
    "tokens": "waiting for tokens of the budget",
    "unknown": "waiting, cause unknown",
    "none": "running, none waits",
    "idle": "no requests",
    "untold": "not told whether requests wait",
}
HELP = {
    "kv": "more memory for the cache (a smaller format, more chips, shorter contexts) would let them in",
    "seats": "a larger max_num_seqs would let them in, if the cache bears it",
    "tokens": "a larger token budget (max_num_batched_tokens) would let them in, at the price of longer iterations",
}
LITTLE = 0.01


def verdict(result: EngineResult) -> Verdict:
    """What limited the engine, for which share of the time, and what would help."""
    cures: tuple[str, ...] = ()
    held = sorted((b for b in HELD if result.bound[b] >= LITTLE), key=lambda b: -result.bound[b])
    if one_moment(result):
        text = _moment(result, held)
    elif result.figures["waiting_share"] is None:
        text = "How many requests waited is not recorded: what limited the engine cannot be told."
    elif not held:
        text = _hardly(result)
    else:
        parts = [f"{fmt.whole_share(result.bound[b])} {_reason(b, result)}" for b in held]
        parts[0] = parts[0].replace(" % ", f" % of {_time(result)} ", 1)
        text = f"Requests waited {listed(parts)}."
        if held[0] in HELP:
            cures = f"{HELP[held[0]][:1].upper()}{HELP[held[0]][1:]}.", _peak(held[0], result)
    return headline(text, *cures[:1], _preempted(result), *cures[1:])


def one_moment(result: EngineResult) -> bool:
    """Whether all that is known of the engine is how it was once: nothing is then said of shares of the time."""
    return len(result.windows) == 1 and not result.timed


def _moment(result: EngineResult, held: list[str]) -> str:
    """How many ran and waited when the engine was read."""
    running, waiting = (result.figures[name]["max"] for name in ("running", "waiting"))
    if running is None and waiting is None:
        return "The engine was read once, and does not say how many requests ran or waited."
    text = f"When the engine was read, once, {_count(running)} ran and {_count(waiting)} waited"
    return f"{text} {_reason(held[0], result)}." if held else f"{text}."


def _count(requests: float | None) -> str:
    return "an unknown number of requests" if requests is None else whole(requests)


def _reason(bound: str, result: EngineResult) -> str:
    if bound == "seats":
        return "for a seat" if result.seats is None else f"for a seat (at most {whole(result.seats)} run)"
    return {
        "kv": "for KV cache",
        "tokens": "for the token budget or the scheduler",
        "unknown": "for a cause that the input does not tell",
    }[bound]


def _peak(bound: str, result: EngineResult) -> str:
    if bound != "seats":
        return ""
    then = result.seats_kv
    if then is None:
        return "How much of the cache was in use while they waited for a seat is not known."
    return f"While they waited for a seat at most {fmt.whole_share(then)} of the cache was in use."


def whole(count: float | None) -> str:
    """A number of requests: `48`, `1,110`; a mean keeps its digits: `15.5`."""
    return f"{count:,.0f}" if count is not None and count == round(count) else fmt.number(count)


def _hardly(result: EngineResult) -> str:
    """That requests did not wait, as far as that is told."""
    dark = result.bound["untold"]
    if dark < LITTLE:
        return f"Requests hardly ever waited: the engine was not the limit{_idle(result)}."
    told = fmt.whole_share(1 - dark)
    return f"Requests hardly ever waited in the {told} of {_time(result)} of which that is told{_idle(result)}."


def _idle(result: EngineResult) -> str:
    idle = result.bound["idle"]
    return f", and it had nothing to do for {fmt.whole_share(idle)} of {_time(result)}" if idle >= LITTLE else ""


def _time(result: EngineResult) -> str:
    """What shares are of: with several servers of the sum of their times, in which one may wait and another not."""
    several = result.replica == ALL and len(result.replicas) > 1
    return "the servers' time" if several else "the time"


def _preempted(result: EngineResult) -> str:
    count = result.figures["preemptions"]
    if not count:
        return ""
    text = f"{fmt.count(round(count), 'request was', 'requests were')} preempted"
    if result.burst_count > 1:
        text += f" in {result.burst_count:,} bursts"
    return text + "."


def _counts(result: EngineResult) -> list[tuple[str, str]]:
    """How many ran and waited and how full the cache was: mean and most, and of one moment as it was."""
    f = result.figures
    if one_moment(result):
        return [
            ("running", whole(f["running"]["max"])),
            ("waiting", whole(f["waiting"]["max"])),
            ("KV cache in use", fmt.share(f["kv_usage"]["max"])),
        ]
    return [
        ("running, mean (most)", f"{fmt.number(f['running']['mean'])} ({whole(f['running']['max'])})"),
        ("waiting, mean (most)", f"{fmt.number(f['waiting']['mean'])} ({whole(f['waiting']['max'])})"),
        ("KV cache in use, mean (most)", f"{fmt.share(f['kv_usage']['mean'])} ({fmt.share(f['kv_usage']['max'])})"),
    ]


def table(result: EngineResult) -> Table:
    """The engine's figures."""
    f = result.figures
    rows = [
        ("samples", f"{result.samples:,} of {result.source}"),
        ("span", fmt.duration(result.span_s)),
        *_counts(result),
        ("preemptions", whole(f["preemptions"])),
        ("prefix hit rate", fmt.share(f["prefix_hit_rate"])),
        ("prompt tokens read/s", fmt.number(f["prefilled_tokens_per_s"])),
        ("tokens generated/s", fmt.number(f["generated_tokens_per_s"])),
        ("acceptance of drafts", fmt.share(f["acceptance_rate"])),
        ("padding", fmt.share(f["padded_share"])),
    ]
    if result.fit is not None:
        per_token = fmt.duration(result.fit.per_token_s)
        rows.append(("iteration", f"{fmt.duration(result.fit.overhead_s)} and {per_token} per token"))
    if not one_moment(result):
        rows += [(TITLES[b], fmt.share(s)) for b, s in result.bound.items() if s]
    if (told := result.exposed) is not None:
        rows += [
            (f"waiting: {reason}, mean (most)", f"{fmt.number(n['mean'])} ({whole(n['max'])})")
            for reason, n in told.waiting.items()
        ]
        rows += [
            (
                f"{NAMES[m]} p50, p99 at the server",
                f"{between(told.quantile(m, 'p50'))}, {between(told.quantile(m, 'p99'))}",
            )
            for m in told.latencies
        ]
    return Table(("figure", "value"), tuple(rows), right=(1,))
