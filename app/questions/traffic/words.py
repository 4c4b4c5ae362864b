"""The traffic in words: how it comes, how long it is, and what a Poisson model would get wrong."""

from analyzers.serving.arrivals import Window
from analyzers.serving.traffic import STAGE, WorkloadResult
from app.words import Table, Verdict, headline
from errors import format as fmt

SHAPES = {
    "poisson": "like a Poisson process",
    "bursty": "in bursts",
    "drifting": "at a rate that drifts",
    "even": "more evenly than chance",
    "paced": "at an even pace, though gaps vary",
    "at_once": "all at once",
    "unknown": "not known",
}
MIX = {
    "short_both": "short prompt, short answer",
    "heavy_prompt": "long prompt, short answer: prefill-heavy",
    "heavy_output": "short prompt, long answer: decode-heavy",
    "heavy_both": "long prompt, long answer",
}


def verdict(result: WorkloadResult) -> Verdict:
    """How requests come, what a Poisson model would miss, and which part of the tokens are prompts."""
    peak = _peak(result) if result.shape in ("bursty", "drifting") else ""
    return headline(_arrivals(result), peak, _lengths(result))


def _arrivals(result: WorkloadResult) -> str:
    cv = None if result.gaps is None else fmt.number(result.gaps.cv, 4)
    match result.shape:
        case "at_once":
            return f"All {result.requests:,} requests came at once: this is a test of throughput, and no traffic."
        case "poisson":
            return (
                f"Arrivals look like a Poisson process: their gaps have a CV of {cv}, and counts vary as chance "
                "allows. A Poisson model is fair."
            )
        case "even":
            return (
                f"Requests come more evenly than chance (CV {cv}), as a paced client sends them: a Poisson model "
                "would overstate their queue."
            )
        case "paced":
            return (
                f"Requests come at an even pace: gaps have a CV of {cv}, as chance or more, but {_level(result)}. "
                "A Poisson model would overstate their queue."
            )
        case "bursty":
            return f"Bursts: gaps between requests have a CV of {cv}, where a Poisson process has 1."
        case "drifting":
            less = result.gaps.cv < 1 - result.gaps.slack
            w = result.unlikeliest
            return (
                f"Single gaps {'vary less than chance' if less else 'look like chance'} (CV {cv}), but the rate "
                f"drifts: counts in windows of {span(w.window_s)} vary {fmt.number(w.dispersion)} times as much as "
                "chance has them."
            )
    if result.loads > 1:
        return (
            f"These are {result.loads:,} loads of a test, one after another: how requests come is told of one at a "
            f"time, chosen {STAGE.chosen}."
        )
    known = 0 if result.gaps is None else result.gaps.gaps + 1
    if not known:
        return "When requests came is not known."
    return f"{fmt.count(known, 'arrival is', 'arrivals are')} known: too few to say how traffic comes."


def span(seconds: float) -> str:
    """The length of a window: `10 s`, `1 min`."""
    return f"{seconds:g} s" if 1 <= seconds < 60 else fmt.duration(seconds)


def tokens(value: float | None) -> str:
    """A number of tokens: whole ones are shown whole as far as three digits go."""
    return f"{value:,.0f}" if value is not None and value < 1000 and value == int(value) else fmt.number(value)


def _level(result: WorkloadResult) -> str:
    """How much less counts vary than chance, or that short gaps follow long ones."""
    judged = [w for w in result.windows if w.dispersion is not None]
    if not judged or not judged[-1].below_chance:
        return "short and long ones take turns"
    w = judged[-1]
    return f"counts in windows of {span(w.window_s)} vary {fmt.number(w.dispersion)} times as much as chance has them"


def _peak(result: WorkloadResult) -> str:
    """What the busiest window brought, where a Poisson model would not reach it."""
    window = result.hardest
    if window is None or window.peak_per_s <= window.chance_peak_per_s:
        return ""
    return (
        f"The busiest {span(window.window_s)} brought {fmt.number(window.peak_per_s)} requests/s, "
        f"{fmt.number(window.peak_to_mean)} times the mean; a Poisson model would stay within "
        f"{fmt.number(window.chance_peak_per_s)}."
    )


def _lengths(result: WorkloadResult) -> str:
    prompt, output = result.prompt_tokens, result.output_tokens
    if prompt is None:
        return ""
    if output is None or result.prompt_share is None:
        return f"Half of the prompts have {tokens(prompt['p50'])} tokens or more."
    return (
        f"{fmt.share(result.prompt_share)} of the tokens are prompts: the median request reads "
        f"{tokens(prompt['p50'])} and writes {tokens(output['p50'])}."
    )


def table(result: WorkloadResult) -> Table:
    """Arrivals, windows and lengths."""
    rows = [
        ("requests", f"{result.requests:,}"),
        ("lasts", fmt.duration(result.duration_s)),
        ("requests per second", fmt.number(result.request_rate_per_s)),
        ("they come", SHAPES[result.shape]),
    ]
    if result.gaps:
        rows.append(("CV of the gaps", fmt.number(result.gaps.cv, 4)))
    for w in result.windows:
        long = span(w.window_s)
        rows.append(
            (
                f"busiest {long}, requests per second",
                f"{fmt.number(w.peak_per_s)} ({fmt.number(w.peak_to_mean)} times the mean)",
            )
        )
        rows.append((f"index of dispersion over {long}", _dispersion(w)))
    for what, found in (("prompt", result.prompt_tokens), ("answer", result.output_tokens)):
        if found:
            told = ", ".join(f"{k} {tokens(found[k])}" for k in ("mean", "p50", "p99", "max"))
            rows.append((f"{what} tokens", told))
    rows.append(("prompt tokens of all", fmt.share(result.prompt_share)))
    for kind, share in (result.mix or {}).items():
        rows.append((MIX[kind], fmt.share(share)))
    if result.concurrency:
        rows.append(
            ("in flight, mean and peak", f"{fmt.number(result.concurrency['mean'])}, {result.concurrency['peak']:,}")
        )
    return Table(("figure", "value"), tuple(rows), right=(1,))


def _dispersion(w: Window) -> str:
    if w.dispersion is None:
        return "too few windows"
    return f"{fmt.number(w.dispersion)} (chance {fmt.number(w.chance_low)} to {fmt.number(w.chance_high)})"
