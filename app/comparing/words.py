"""A or B in words: which differences are more than chance, and what would tell the others."""

from collections.abc import Sequence

from analyzers.difference.causes import Because, because, others_may, settings, unknown
from analyzers.difference.differs import Differs
from analyzers.serving.ab import RATE, AbResult, Difference
from analyzers.serving.ab_parts import PARTS
from app.comparing.cause_words import called, reason, unknown_called
from app.comparing.job_words import range_of, signed
from app.words import Table, Verdict, headline, listed, short
from errors import format as fmt

NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E", RATE: "output tokens/s"}
LEAST_PART = 0.05  # of a change: what is not worth a word
ORDER = (("ttft_s", "p50"), ("tpot_s", "p50"), (RATE, "mean"), ("ttft_s", "p99"), ("e2e_s", "mean"))


def value(metric: str, amount: float | None) -> str:
    return fmt.number(amount) if metric == RATE else fmt.duration(amount)


def name(d: Difference) -> str:
    """`p99 TTFT`, `output tokens/s`."""
    return NAMES[d.metric] if d.metric == RATE else f"{d.statistic} {NAMES[d.metric]}"


def how_much(d: Difference) -> str:
    """`31 % lower (12 to 44 %)`, `3.0 % lower (7.0 % lower to 1.0 % higher)` where the interval holds no change, or
    `2.50 times (1.71 to 3.24)` where it is more than double or less than half."""
    if d.difference == 0:
        return "the same" + ("" if d.ratio_low is None or d.ratio_low == d.ratio_high else f" ({_range(d)})")
    if d.ratio is None or d.ratio_low is None or d.ratio_high is None:
        return f"{value(d.metric, abs(d.difference))} {'higher' if d.difference > 0 else 'lower'}"
    if not 0.5 <= d.ratio <= 2:
        return f"{fmt.number(d.ratio)} times ({fmt.number(d.ratio_low)} to {fmt.number(d.ratio_high)})"
    return f"{_change(d.ratio)} ({_range(d)})"


def _change(ratio: float) -> str:
    """A ratio as a change: `3.0 % lower`."""
    return f"{fmt.change(ratio - 1, 2)} {'lower' if ratio < 1 else 'higher'}" if ratio != 1 else "no change"


def _range(d: Difference) -> str:
    """The interval of the ratio as changes, each end with its direction where they are not the same."""
    ends = [r for r in (d.ratio_low, d.ratio_high) if r is not None]
    if min(ends) < 1 < max(ends) or 1 in ends:
        return f"{_change(ends[0])} to {_change(ends[1])}"
    low, high = (fmt.change(r - 1, 2) for r in sorted(ends, key=lambda r: abs(r - 1)))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def verdict(result: AbResult, a: str, b: str, differing: Sequence[Differs] = ()) -> Verdict:
    """What is clear, the time of a request first; else what would tell. `a`, `b`: names of the runs; `differing`: what
    is known to differ between them."""
    clear = [d for d in result.differences if d.clear]
    a, b = short(a), short(b)
    warned = _other_traffic(result)
    if not clear and not result.request.told:
        head = f"No difference between {a} (A) and {b} (B) can be told from chance."
        return headline(head, _more(result), warned, _differing(differing, ()))
    if result.request.whole is not None and not result.request.told:
        return headline(_same(result, a, b), _single(result, clear), _dark(result), warned, _differing(differing, ()))
    sides = {d.better for d in clear} or {"A" if _way(result) > 0 else "B"}
    head = (
        f"B ({b}) is better where it can be told."
        if sides == {"B"}
        else f"A ({a}) is better where it can be told."
        if sides == {"A"}
        else "Each is better at something."
    )
    told = sorted(clear, key=lambda d: ORDER.index((d.metric, d.statistic)) if (d.metric, d.statistic) in ORDER else 99)
    text = "; ".join(f"B's {name(d)} is {how_much(d)}" for d in told[:3]) + ("." if told else "")
    open_ = [d for d in result.differences if not d.clear and not d.why]
    figures = fmt.count(len(open_), "other figure" if clear else "single figure")
    chance = f"{figures} cannot be told from chance." if open_ else ""
    cause = _cause(result, differing)
    given = [s.kind.name for s in ((cause.only,) if cause.only else cause.among)]
    return headline(head, _request(result, cause), text, chance, _dark(result), warned, _differing(differing, given))


def _other_traffic(result: AbResult) -> str:
    """That the traffic differs, with what differs most of it."""
    if not result.traffic.warnings:
        return ""
    return f"{result.traffic.warnings[0]} So not the engines alone are compared."


def _cause(result: AbResult, differing: Sequence[Differs]) -> Because:
    """Other traffic moves every part of a request: no setting is its reason then."""
    if result.traffic.warnings:
        return Because()
    makers = [p.account for p in result.request.parts if p.clear and p.change * _way(result) > 0]
    return because(settings(differing), makers[:1], others_may(differing))


def _way(result: AbResult) -> float:
    """By how much longer a request to B takes; 0 where it is not known."""
    whole = result.request.whole
    return 0.0 if whole is None else whole.b - whole.a


def _request(result: AbResult, cause: Because) -> str:
    """`A request to B takes 2.1 times as long (1.8 to 2.4): waiting in the queue +410 ms (92 % of it), because ...`"""
    whole = result.request.whole
    if whole is None or not result.request.told:
        return ""
    way = whole.b - whole.a
    made = [p for p in result.request.parts if p.clear and p.change / way >= LEAST_PART][:2]
    parts = listed(
        [f"{PARTS[p.account]} {_signed(p.change)} ({fmt.share(p.change / way, 2)} of it)" for p in made] or [""]
    )
    if whole.change >= 1:
        between = (
            f" ({fmt.number(1 + whole.low)} to {fmt.number(1 + whole.high)})"
            if whole.low is not None and whole.high is not None
            else ""
        )
        took = f"takes {fmt.number(1 + whole.change)} times{between} as long as one to A"
    else:
        between = f" ({range_of(whole.low, whole.high)})" if whole.low is not None and whole.high is not None else ""
        took = f"takes {fmt.change(whole.change, 2)} {'longer' if way > 0 else 'less'} than one to A{between}"
    why = reason(cause)
    return f"A request to B {took}{': ' if made else ''}{parts}{', ' if why else ''}{why}."


def _signed(seconds: float) -> str:
    return f"{'−' if seconds < 0 else '+'}{fmt.duration(abs(seconds))}"


def _same(result: AbResult, a: str, b: str) -> str:
    whole = result.request.whole
    assert whole is not None
    between = "" if whole.low is None or whole.high is None else f" ({signed(whole.low)} to {signed(whole.high)})"
    return (
        f"No difference of the time of a request between {a} (A) and {b} (B) can be told from chance: "
        f"{signed(whole.change)}{between}."
    )


def _single(result: AbResult, clear: Sequence[Difference]) -> str:
    """Single figures beyond their own intervals, which is no verdict."""
    told = [d for d in result.differences if not d.why]
    return (
        f"Of {fmt.count(len(told), 'single figure')} {len(clear)} {'is' if len(clear) == 1 else 'are'} beyond "
        "intervals of 95 %, where one in twenty is by chance."
    )


def _differing(differing: Sequence[Differs], given: Sequence[str]) -> str:
    """What is known to differ besides what was given as the reason."""
    others = [called(s) for s in settings(differing) if s.kind.name not in given]
    others = [*others, *map(unknown_called, unknown(differing))][:3]
    return f"They differ{' too' if given else ''} in {listed(others)}." if others else ""


def _dark(result: AbResult) -> str:
    """Which latencies have no interval at all, and why."""
    dark = [d for d in result.differences if d.why]
    if not dark:
        return ""
    first = dark[0]
    of = fmt.count(len(dark), "figure")
    return (
        f"Of {of} there is no interval; {name(first)}, {value(first.metric, first.a)} against "
        f"{value(first.metric, first.b)}: {first.why}."
    )


def _more(result: AbResult) -> str:
    """How many more requests would tell, of the statistic nearest to being clear; or why nothing can be told."""
    near = [d for d in result.differences if d.times_more]
    if near:
        d = min(near, key=lambda d: d.times_more)
        return (
            f"Nearest is {name(d)}, {value(d.metric, d.a)} against {value(d.metric, d.b)}: about "
            f"{fmt.number(d.times_more, 2)} times as many requests would tell."
        )
    return _dark(result)


def telling(d: Difference) -> str:
    """What is to be said of one difference in a table."""
    if d.why:
        return f"cannot be told: {d.why}"
    if d.clear:
        return f"{d.better} is better"
    if d.times_more:
        return f"no difference can be told; about {fmt.number(d.times_more, 2)} times the requests would"
    return "no difference can be told"


def interval(d: Difference) -> str:
    if d.low is None or d.high is None:
        return fmt.NO_VALUE
    return f"{value(d.metric, d.low)} to {value(d.metric, d.high)}"


def table(result: AbResult) -> Table:
    """Every statistic of both, the difference, its interval and what it tells."""
    rows = [
        (
            name(d),
            value(d.metric, d.a),
            value(d.metric, d.b),
            value(d.metric, d.difference),
            interval(d),
            fmt.number(d.ratio),
            fmt.share(d.slower_share, 2),
            telling(d),
        )
        for d in result.differences
    ]
    head = ("figure", "A", "B", "B - A", "95 % interval", "B / A", "B took longer", "tells")
    return Table(head, tuple(rows), right=(1, 2, 3, 4, 5, 6))
