"""The answer about checkpoints in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.whatif.goodput.wording import remote
from app.words import Table, Verdict, headline
from errors import format as fmt
from simulators.checkpointing import optimal_s

if TYPE_CHECKING:
    from app.whatif.checkpoint.plan import Plan
    from simulators.cures import Cure

TITLES: dict[str, str] = {
    "best_interval": "Save at the best interval",
    "asynchronous_saves": "Save in the background",
    "faster_restart": "Restart faster",
    "compile_cache": "Keep a compile cache",
    "hot_spares": "Keep hot spares",
    "elastic_training": "Go on with fewer slices (elastic)",
    "two_tier": "Save locally as well (two tiers)",
}
INTERVALS = {"yours": "as it is", "optimal": "the best", "daly": "Daly", "young": "Young"}
NOTHING = 0.001  # of all time: a gain below it is none


def verdict(plan: "Plan") -> Verdict:
    """How often it saves, how often it should, what that gives back, and which cure gives back most."""
    best = fmt.duration(optimal_s(plan.job))
    mine = plan.measured.interval_s
    if plan.bound:
        text = f"No failure was seen: the best interval is at least {best}."
        return headline(text, "" if mine is None else f"You save every {fmt.duration(mine)}.")
    if mine is None:
        share = plan.to_dict()["goodput"]["optimal"]
        return headline(f"Save after every {best} of work: {fmt.share(share)} of the time then becomes kept work.")
    gain = next((c for c in plan.cures.offered if c.name == "best_interval"), None)
    if gain is None or gain.gain < NOTHING:
        text = f"You save every {fmt.duration(mine)}: as good as the best interval, {best}."
    else:
        text = f"You save every {fmt.duration(mine)}; every {best} would give back {worth(gain, plan.measured.span_s)}."
    top = plan.cures.offered[0] if plan.cures.offered else None
    if top is None or top.name == "best_interval" or top.gain <= NOTHING:
        return headline(text, _range(plan))
    return headline(text, f"Most would come from “{TITLES[top.name]}”: {worth(top)}.", _range(plan))


def worth(cure: "Cure", span_s: float | None = None) -> str:
    """`1.8 % (about 3,100 chip-hours, $6,000 over 54 d)`."""
    size = "" if cure.chip_hours is None else f"about {fmt.chip_time(cure.chip_hours * 3600)}"
    dollars = "" if cure.usd is None else f", {fmt.usd(cure.usd)}"
    over = "" if span_s is None else f" over {fmt.duration(span_s)}"
    return fmt.share(cure.gain) + (f" ({size}{dollars}{over})" if size else "")


def _range(plan: "Plan") -> str:
    """Between what the best interval lies, where failures were too few to say more."""
    low, high = plan.optimal_range_s
    if high is None or high < 1.25 * low:
        return ""
    return f"With so few failures the best lies anywhere from {fmt.duration(low)} to {fmt.duration(high)}."


def words(plan: "Plan") -> Words:
    """The intervals with their goodput, then the cures with what they give back."""
    shares = plan.to_dict()["goodput"]
    rows = [
        (f"interval: {INTERVALS[n]}", fmt.duration(s), fmt.share(shares[n], 4), "", "", "", "")
        for n, s in sorted(plan.intervals.items(), key=lambda item: list(INTERVALS).index(item[0]))
    ]
    if plan.two_tier:
        every = f"{fmt.duration(plan.two_tier[0])}, {remote(plan.two_tier[1], 'saves ')}"
        rows.append(("two tiers at their best", every, fmt.share(plan.two_tier[2], 4), "", "", "", ""))
    if plan.elastic:
        rows.append(("elastic, at the best interval", "", fmt.share(plan.elastic[1], 4), "", "", "", ""))
    rows += [
        (TITLES[c.name], "", "", points(c.gain), band(c.low, c.high), fmt.number(c.chip_hours), fmt.usd(c.usd))
        for c in plan.cures.offered
    ]
    check = plan.check
    simulated = (
        f"A simulation of {check.failures:,} failures gives {fmt.share(check.goodput, 4)} "
        f"± {200 * check.standard_error:.2g} points "
        f"{'as it is' if plan.measured.interval_s else 'at the best interval'}."
    )
    assumed = tuple(f"{TITLES[c.name]}: {c.assumption}" for c in plan.cures.offered)
    left_out = tuple(f"{TITLES[name]}: not told, {why}." for name, why in plan.cures.left_out)
    head = ("", "interval", "goodput", "gives back", "range", "chip-hours", "dollars")
    return Words(
        verdict(plan), Table(head, tuple(rows), right=(1, 2, 3, 4, 5, 6)), (simulated, *plan.notes, *assumed, *left_out)
    )


def band(low: float, high: float) -> str:
    """`2.30 % to 3.26 %`, one of them where both print alike."""
    first, last = points(low), points(high)
    return first if first == last else f"{first} to {last}"


def points(gain: float) -> str:
    """A gain of goodput, with a sign where it is none: `1.83 %`, `−0.4 %`."""
    if abs(gain) < 1e-9:
        return "0 %"
    return fmt.share(gain) if gain > 0 else "−" + fmt.share(-gain)
