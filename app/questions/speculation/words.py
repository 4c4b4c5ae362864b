"""Speculation in words: what is accepted, what it is worth, and up to how many sequences it pays."""

import math
from collections.abc import Sequence

from analyzers.serving.speculation import SpeculationResult
from analyzers.serving.speculation.model import Draft, at_any
from app.words import Table, Verdict, headline
from errors import format as fmt

WORSE = 0.9  # of what independence would give at the last position: acceptance falls with position


def verdict(result: SpeculationResult) -> Verdict:
    """The mean length, its worth, the break-even batch, and whether another draft length would be better."""
    k = whole(result.draft)
    seen = result.observed
    if seen.source == "asked":
        text = f"With a chance of {fmt.share(result.acceptance)} for each token, a draft of {k} gives"
    elif seen.rate is None:
        text = f"With drafts of {k}, as assumed, steps give"
    else:
        text = f"{fmt.share(seen.rate)} of the draft tokens are accepted: a draft of {k} gives"
    text += f" {fmt.number(result.length)} tokens a step"
    modelled = f"{times(result.speedup)} as fast as without by arithmetic"
    routed = result.machine is not None and result.machine.routed
    bound = "verifying reads no further experts" if routed else "steps are bound by memory"
    where = f"The arithmetic: {bound}, and a draft step costs {fmt.share(result.cost, 2)} of one."
    return headline(f"{text}, {modelled}.", _measured(result), *_batch(result), _better(result), where)


def whole(draft: float) -> str:
    return f"{draft:.0f}" if abs(draft - round(draft)) < 0.005 else fmt.number(draft)


def times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _measured(result: SpeculationResult) -> str:
    if result.measured_speedup is None:
        return ""
    return f"Measured at equal batch, tokens come {times(result.measured_speedup)} as fast with drafts as without."


def batches(pays: Sequence[tuple[float, float]], caches_bound: bool) -> str:
    """At which numbers of sequences drafting pays: `pays up to about 70 sequences at a time`; `caches_bound`: reading
    them outlasts all maths."""
    if not pays:
        return "does not pay at any batch"
    if at_any(tuple(pays)):
        return "pays at any batch" + ": reading the caches stays the bound" * caches_bound
    return f"pays {' and '.join(_between(*one) for one in pays)} at a time"


def limit(pays: Sequence[tuple[float, float]]) -> str:
    """The last range of them in short: `70` (and fewer), `18 to 1,910`, `from 15`."""
    if not pays or at_any(tuple(pays)):
        return "any" if pays else "none"
    low, high = pays[-1]
    if math.isinf(high):
        return f"from {math.ceil(low):,}"
    return fmt.number(high) if low <= 1 else f"{math.ceil(low):,} to {round(high):,}"


def _between(low: float, high: float) -> str:
    if math.isinf(high):
        return f"from about {fmt.count(math.ceil(low), 'sequence')}"
    if low <= 1:
        return f"up to about {fmt.count(round(high), 'sequence')}"
    return f"from about {math.ceil(low):,} to about {fmt.count(round(high), 'sequence')}"


def _batch(result: SpeculationResult) -> tuple[str, ...]:
    if result.machine is None:
        return ()
    text = f"On this chip it {batches(result.pays, result.machine.caches_bound(result.draft))}"
    if result.batch is None or result.batch_speedup is None:
        return (f"{text}.",)
    return f"{text}.", f"At the {fmt.number(result.batch)} that run it is worth {times(result.batch_speedup)}."


def _better(result: SpeculationResult) -> str:
    best = result.best
    now = result.speedup
    if best.speedup < 1.02 and now < 1:
        return "No draft length would pay at this cost."
    if best.tokens != round(result.draft) and best.speedup > 1.03 * now:
        beyond = best.tokens > len(result.observed.positions) > 0
        held = " if later tokens were guessed as well as the last" if beyond else ""
        return best_told(best, result.still_rising, held)
    return ""


def best_told(best: Draft, rising: bool, held: str = "") -> str:
    """Which length would be best; `rising`: of those tried, as each further token gains."""
    told = f"{fmt.count(best.tokens, 'draft token')} would be best"
    if rising:
        return f"{told} of those tried{held}: {times(best.speedup)}; more would gain yet."
    return f"{told}{held}: {times(best.speedup)}."


def decay(result: SpeculationResult) -> str:
    """Whether acceptance falls with position faster than independence would have it; empty where it is not measured."""
    rows = result.positions.dropna(subset=["acceptance"])
    if len(rows) < 2:
        return ""
    first, last = rows.iloc[0], rows.iloc[-1]
    alone = first["acceptance"] ** last["position"]
    text = (
        f"Position 1 is accepted in {fmt.share(first['acceptance'])} of drafts, position "
        f"{int(last['position'])} in {fmt.share(last['acceptance'])}"
    )
    held = f"if the first chance held throughout it would be {fmt.share(alone)}"
    if last["acceptance"] < WORSE * alone:
        return f"{text}; {held}: later tokens are guessed worse."
    if last["acceptance"] * WORSE > alone:
        return f"{text}; {held}: once a draft is right it tends to stay so."
    return f"{text}, as equal and independent chances would have it ({fmt.share(alone)})."


def table(result: SpeculationResult) -> Table:
    """Positions where they are measured, else draft lengths."""
    if result.positions["acceptance"].notna().any():
        rows = tuple(
            (
                str(int(r.position)),
                fmt.share(r.acceptance),
                fmt.NO_VALUE if math.isnan(r.low) else f"{fmt.share(r.low)} to {fmt.share(r.high)}",
                fmt.share(r.conditional),
                fmt.share(r.theory),
            )
            for r in result.positions.itertuples()
        )
        head = ("position", "accepted", "95 % interval", "where all before were", "if alike (a^i)")
        return Table(head, rows, right=(0, 1, 2, 3, 4))
    rows = tuple((str(d.tokens), fmt.number(d.length), times(d.speedup)) for d in result.drafts)
    return Table(("draft tokens", "tokens of a step", "speed"), rows, right=(0, 1, 2))
