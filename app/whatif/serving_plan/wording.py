"""The serving plan in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table, Verdict, headline, short
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.serving.known import BreakEven
    from app.whatif.serving_plan.answers import ServingPlan
    from simulators.serving.disaggregated import Comparison
    from simulators.serving.planner import Choice, Wanted

SHOWN = 20
ABSURD_S = 10.0  # to the first token: nobody waits so long without having been asked
ALIKE = 0.05  # rates nearer than this are not told apart


def verdict(result: "ServingPlan") -> Verdict:
    """The setup that wins, at what cost and by how much; or that none does it."""
    best, wanted = result.plan.best, result.plan.wanted
    if best is None:
        first = result.plan.choices[0]
        return headline(
            f"No setup that was tried serves {short(wanted.model.name)} within these objectives.",
            f"The nearest, {first.name}: {first.why}.",
        )
    text = f"{best.name} serves it: {fmt.count(best.chips, 'chip')}"
    if best.usd_per_hour is not None:
        text += f", {fmt.usd(best.usd_per_hour)} an hour, {fmt.usd(best.usd_per_million)} per million tokens generated"
    if best.chips_low is not None and best.chips_high is not None:
        text += f" (from {best.chips_low:,} to {best.chips_high:,} over the efficiencies assumed)"
    said = [f"{text}."]
    if best.chips_low is not None and best.chips_high is None:
        said.append(f"At the fastest efficiencies assumed it takes {best.chips_low:,}, at the slowest no number tried.")
    said += lateness(best, wanted)
    other = next((c for c in result.plan.choices if c.feasible and c.setup.chip.name != best.setup.chip.name), None)
    if other is not None and not result.ranked:
        said.append(unranked(result))
    elif other is not None:
        said.append(f"Next, on another chip: {other.name}, {other.why.partition(':')[0]}.")
    if result.break_evens:
        said.append(tipping(result.break_evens[0]))
    said += sorted({s for c in result.plan.choices[:1] for s in c.setup.machine.stand_ins})
    if result.pools is not None:
        said.append(pools_verdict(result.pools))
    return headline(*said)


def lateness(best: "Choice", wanted: "Wanted") -> tuple[str, ...]:
    """What answers at the most that a replica bears would be like, where nothing was asked of it and it is absurd."""
    free = [name for name in ("ttft_s", "e2e_s") if getattr(wanted.objectives, name) is None]
    first = best.seen.get("ttft_s", float("nan"))
    if len(free) < 2 or not first > ABSURD_S:
        return ()
    share = wanted.rate_per_s / best.replicas / best.rate_per_replica
    return (
        "But no objective holds the wait: give one with --ttft-s.",
        f"It keeps up with the rate, yet at the {fmt.number(best.rate_per_replica)} requests a second that a replica "
        f"bears the {wanted.objectives.percentile:g}th percentile of the time to first token is "
        f"{fmt.duration(first)} (here {fmt.share(share)} of that rate is asked of it).",
    )


def unranked(result: "ServingPlan") -> str:
    """What each kind of chip takes, where no prices compare them."""
    first: dict[str, str] = {}
    for c in result.plan.choices:
        if c.feasible:
            first.setdefault(c.setup.chip.name, f"{c.chips:,} {c.setup.chip.name}")
    *some, last = first.values()
    return (
        f"Which is the cheapest takes prices (none for {', '.join(result.unpriced)}): {', '.join(some)} or {last} "
        "serve it."
    )


def tipping(found: "BreakEven") -> str:
    """Below which price the next chip would be the cheaper one at the rate asked for, and where all chips are full."""
    text = f"{found.chip} is the cheaper below {found.times:.2f} times the price of the {found.against}"
    if found.usd is not None:
        text += f", {fmt.usd(found.usd)} an hour"
    text += f" ({_over_the_bands(found)})"
    if not found.measured and abs(found.full_load_times / found.times - 1) < ALIKE:
        return f"{text}."
    basis = "as measured of both" if found.measured else "as modelled"
    return f"{text}; at rates that use every chip to the full below {found.full_load_times:.2f} times, {basis}."


def _over_the_bands(found: "BreakEven") -> str:
    """How far the price may lie from what is modelled, by the shares of the peaks that are assumed."""
    if found.low and found.high:
        return f"modelled: {found.low:.2g} to {found.high:.2g} times over the bands"
    fails = [name for name, ends in ((found.chip, found.low), (found.against, found.high)) if not ends]
    return (
        f"modelled; at the slowest efficiencies assumed {' and '.join(fails)} cannot serve it, so this may be far off"
    )


def pools_verdict(found: "Comparison") -> str:
    """Whether two pools would pay, honestly."""
    gain = found.gain
    if gain is None:
        return "Two pools keep these objectives in no split that was tried: don't."
    split = found.best.name
    if gain > 1 + ALIKE:
        return f"Prefill and decode apart ({split}) would bear {fmt.change(gain - 1)} more: worth a trial."
    if gain >= 1 - ALIKE:
        return f"Prefill and decode apart ({split}) would bear as much: don't, it is one more thing to run."
    return f"Prefill and decode apart: don't. The best split ({split}) bears {fmt.share(1 - gain)} less."


def row(c: "Choice") -> tuple[str, ...]:
    """One setup as text: name, chips, their range, dollars, latencies, what is said of it."""
    spread = "" if c.chips_low is None else f"{c.chips_low:,} to {'?' if c.chips_high is None else f'{c.chips_high:,}'}"
    return (
        c.name,
        f"{c.chips:,}" if c.feasible else fmt.NO_VALUE,
        spread,
        fmt.usd(c.usd_per_hour),
        fmt.usd(c.usd_per_million),
        fmt.duration(c.seen.get("ttft_s")),
        fmt.duration(c.seen.get("tpot_s")),
        c.basis,
        c.why,
    )


def words(result: "ServingPlan") -> Words:
    head = ("setup", "chips", "range", "$/h", "$/M tokens", "TTFT", "TPOT", "basis", "why")
    rows = tuple(row(c) for c in result.plan.choices[:SHOWN])
    more = len(result.plan.choices) - SHOWN
    left = (f"{more:,} further setups are in --json.",) if more > 0 else ()
    return Words(verdict(result), Table(head, rows, right=(1, 2, 3, 4, 5, 6)), (*left, *result.notes))
