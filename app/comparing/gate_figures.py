"""What a gate can look at: each figure of a comparison with its change, its range, and how its bound is written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.compiled.accounts import TOLD
from analyzers.difference import DifferenceResult
from analyzers.difference.lost_time import goodput_range, held_range
from analyzers.difference.peaks import peak_range
from analyzers.serving.ab import RATE, AbResult
from analyzers.serving.bootstrap import STATISTICS
from app.comparing.job_words import signed
from app.workspace import Workspace
from errors import format as fmt
from runs.accounts import ACCOUNTS
from runs.run import Run

SHARE, POINTS = "%", "points"  # of A's; of what is itself a share of something, such as MFU
FORM = (
    "FIGURE>BOUND or FIGURE<BOUND: step_time>+1%, tokens_per_s<-1%, peak_memory>+5%, held_per_step>+5%, an account of "
    "a kept step such as input_wait>+0.5% (of A's step), mfu<-0.5 or goodput<-2 (points), and of served runs "
    "ttft_p99>+10%, tpot_p50>+5%, e2e_mean>+5% or output_tokens_per_s<-5%"
)
"""How a gate is written: the one place that says so."""
IDLE = tuple(name for name in ACCOUNTS if name.startswith("idle_"))
PARTS = {"device_idle": IDLE}
OF_A_STEP = (
    "useful_maths",
    "padding",
    "recomputation",
    "below_roofline",
    "exposed_communication",
    "exposed_copies",
    "straggler_wait",
    "input_wait",
    "compilation",
    "device_idle",
    *IDLE,
)
"""Accounts that a step can be compared by; what is no kept step is in `held_per_step`."""
BOUND = "one of them is a compiler's bound, not a measured step"  # whatever ran lies above it
UNLIKE = "the peak of one was not sampled, but told by its program"
UNDATED = "no input tells when either lost its time, so that nothing tells its scatter"
BOUND_BYTES = "one of them is a compiler's plan, not what memory held"


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What was found of the two: of jobs, or of served runs. `both`: a number of each run, by what tells it."""

    jobs: DifferenceResult | None = None
    served: AbResult | None = None
    both: Callable[[Callable[[Run, Workspace], Any]], tuple[Any, Any]] = lambda tell: (None, None)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A change from A to B: shares of A's, or points as a share. `low`, `high`: its range, None where it has none, and
    `why` says so. `beside`: what is no part of it and adds to it all the same, such as stalls. `dark`: a sentence on
    what its range is wide for, beside scatter."""

    change: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    beside: float = 0.0
    dark: str = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """`unit`: what a bound is written in; `worse`: the sign of a change for the worse."""

    name: str
    title: str
    change: Callable[[Sides], Found]
    unit: str = SHARE
    worse: str = ">"

    def shown(self, change: float) -> str:
        """`+6.1 %`, `−0.52 points`."""
        if self.unit == SHARE:
            return signed(change)
        return f"{signed(change).removesuffix(' %')} points"


def _step(sides: Sides) -> Found:
    if sides.jobs is None:
        return Found(why="served runs have no steps")
    step = sides.jobs.step
    if sides.jobs.bound:
        return Found(why=BOUND)
    if step is None:
        return Found(why="; ".join(sides.jobs.why) or "no step is told")
    if step.low is None or step.high is None:
        return Found(change=step.change, why=step.why or "too few steps")
    low, high = (step.low, step.high) if step.told else (min(step.low, 0.0), max(step.high, 0.0))
    stalls = sides.jobs.stalls_s  # too few to be told from chance, and no gate passes on them
    return Found(change=step.change, low=low, high=high, beside=(stalls[1] - stalls[0]) / step.a)


def _held(sides: Sides) -> Found:
    whole = () if sides.jobs is None else sides.jobs.whole
    a, b = (sum(getattr(c, side) for c in whole) for side in "ab")
    if not a:
        return Found(why="not both have a ledger, kept steps and a number of chips")
    return _in_its_range(sides, b / a - 1)


def _in_its_range(sides: Sides, change: float) -> Found:
    """Of what was held a step: as far as lost time, the steps themselves and their stalls may be chance."""
    from app.comparing.rates import lost_of

    step, told = _step(sides), sides.both(lost_of)
    if step.change is None or step.low is None or step.high is None:
        return Found(change=change, why=step.why)
    if any(lost is None for lost in told):
        return Found(change=change, why=UNDATED)
    ends = held_range(*told, change, (step.high - step.low) / 2 / (1 + step.change))
    if isinstance(ends, str):
        return Found(change=change, why=ends)
    return Found(change=change, low=ends[0] - max(step.beside, 0.0), high=ends[1] - min(step.beside, 0.0))


def _dark(name: str, jobs: DifferenceResult) -> str:
    """Why an account that is nowhere in the ledger is not known to be none; empty where it is known."""
    if jobs.bound:
        return BOUND
    if "compiled" in jobs.kinds:
        return "" if name in TOLD else "a compiled program does not tell this account of a step"
    told = {c.account for c in jobs.ledger}
    if name in IDLE and "device_idle" in told and told.isdisjoint(IDLE):
        return "no profile tells what hosts did while devices were idle"
    if name in PARTS and name in told and not told.isdisjoint(IDLE):  # it may hold waits for input, and compiling
        return "of one of them alone a profile tells what hosts did while devices were idle"
    return ""


def _account(name: str) -> Callable[[Sides], Found]:
    """Of an account of a step, as shares of A's step."""

    def change(sides: Sides) -> Found:
        ledger = () if sides.jobs is None else sides.jobs.ledger
        whole = sum(c.a for c in ledger)
        if sides.jobs is None or not whole:
            return Found(why="no profile shows the accounts of a step of both")
        if dark := _dark(name, sides.jobs):
            return Found(why=dark)
        mine = [c for c in ledger if c.account == name or c.account in PARTS.get(name, ())]
        found = sum(c.change for c in mine) / whole
        if any(c.low is None or c.high is None for c in ledger):  # so few show no account that comes now and then
            return Found(change=found, why="too few profiled steps")
        low, high = (sum(getattr(c, end) for c in mine) / whole for end in ("low", "high"))
        a, b = (0.0, 0.0) if name in PARTS else sides.jobs.may_be.get(name, (0.0, 0.0))  # of parts all are in it
        return Found(change=found, low=low - a / whole, high=high + b / whole, dark=_may_be(a, b))

    return change


def _may_be(a: float, b: float) -> str:
    """What is entered elsewhere of a step of either, and may belong to an account."""
    if not a and not b:
        return ""
    return f" Nothing tells whether {fmt.duration(a)} of a step of A and {fmt.duration(b)} of one of B are of it."


def _tokens(sides: Sides) -> Found:
    """Tokens of a settled step on a chip over its time: the change of a step, the other way round."""
    jobs, tokens = sides.jobs, None if sides.jobs is None else sides.jobs.tokens
    if jobs is None or tokens is None:
        return Found(why="not both tell the tokens of a step")
    return _inverse(_step(sides), tokens[1] / tokens[0])


def _inverse(step: Found, work: float) -> Found:
    """The change of a rate, where `work` is what a step of B does over what one of A does, which does not scatter."""
    if step.change is None:
        return step
    change = work / (1 + step.change) - 1
    beside = work / max(1 + step.change + step.beside, 1e-9) - 1 - change
    if step.low is None or step.high is None:
        return Found(change=change, why=step.why)
    ends = (work / (1 + step.high) - 1, work / (1 + step.low) - 1) if step.low > -1 else (None, None)
    return Found(change=change, low=ends[0], high=ends[1], why="the range of a step has no end", beside=beside)


def _mfu(sides: Sides) -> Found:
    """In points: MFU of A's settled steps times the change of their rate, the FLOPs of a step as each run counts
    them."""
    from app.comparing.rates import useful_s

    step = _step(sides)
    if step.change is None or sides.jobs is None or sides.jobs.step is None:
        return step
    a, b = sides.both(useful_s)
    if not a or not b:
        return Found(why="not both tell an MFU: the model and the chip must be known")
    rate, mfu = _inverse(step, b / a), a / sides.jobs.step.a
    ends = [None if end is None else mfu * end for end in (rate.change, rate.low, rate.high)]
    return Found(change=ends[0], low=ends[1], high=ends[2], why=rate.why, beside=mfu * rate.beside)


def _goodput(sides: Sides) -> Found:
    from app.comparing.rates import goodput, lost_of

    a, b = sides.both(goodput)
    if a is None or b is None:
        return Found(why="not both tell a goodput")
    told = sides.both(lost_of)
    if sides.jobs is None or any(lost is None for lost in told):
        return Found(change=b - a, why=UNDATED)
    ends = goodput_range(*told, b - a)
    return Found(change=b - a, why=ends) if isinstance(ends, str) else Found(change=b - a, low=ends[0], high=ends[1])


def _memory(sides: Sides) -> Found:
    from app.comparing.rates import peak_bytes, peaks_of

    (a, known_a), (b, known_b) = (told or (None, "") for told in sides.both(peak_bytes))
    if not a or b is None:
        return Found(why="not both tell what memory held at its peak")
    if sides.jobs is not None and sides.jobs.bound:
        return Found(why=BOUND_BYTES)
    change = b / a - 1
    if known_a == known_b == "modelled":
        return Found(change=change, low=change, high=change)
    ends = peak_range(*sides.both(peaks_of)) if known_a == known_b == "measured" else UNLIKE
    return Found(change=change, why=ends) if isinstance(ends, str) else _holding(change, *ends)


def _holding(change: float, low: float, high: float) -> Found:
    """Its range holds it, whatever the parts of a run show."""
    return Found(change=change, low=min(low, change), high=max(high, change))


def _served(metric: str, statistic: str) -> Callable[[Sides], Found]:
    """Of requests: B over A with the interval that the comparison gives it, as shares of A's."""

    def change(sides: Sides) -> Found:
        if sides.served is None:
            return Found(why="the two are not both served runs")
        found = next((d for d in sides.served.differences if (d.metric, d.statistic) == (metric, statistic)), None)
        if found is None or found.ratio is None:
            return Found(why="not both tell it")
        if found.ratio_low is None or found.ratio_high is None:
            return Found(change=found.ratio - 1, why=found.why or "too few requests")
        return Found(change=found.ratio - 1, low=found.ratio_low - 1, high=found.ratio_high - 1)

    return change


def _of_requests() -> Iterator[Figure]:
    for metric, title in (("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "E2E")):
        for statistic in STATISTICS:
            name = f"{metric.removesuffix('_s')}_{statistic}"
            yield Figure(name=name, title=f"{title} ({statistic})", change=_served(metric, statistic))
    yield Figure(name=RATE, title="Output tokens/s", change=_served(RATE, "mean"), worse="<")


def _accounts() -> tuple[Figure, ...]:
    titles = {name: ACCOUNTS[name].title if name in ACCOUNTS else name for name in OF_A_STEP}
    return tuple(Figure(name=n, title=f"{titles[n]} of a step", change=_account(n)) for n in OF_A_STEP)


FIGURES: Mapping[str, Figure] = {
    f.name: f
    for f in (
        Figure(name="step_time", title="Settled step time", change=_step),
        Figure(name="held_per_step", title="Chip time held a kept step", change=_held),
        Figure(name="tokens_per_s", title="Tokens/s of a chip in settled steps", change=_tokens, worse="<"),
        Figure(name="mfu", title="MFU of settled steps", change=_mfu, unit=POINTS, worse="<"),
        Figure(name="goodput", title="Goodput", change=_goodput, unit=POINTS, worse="<"),
        Figure(name="peak_memory", title="Memory at its peak", change=_memory),
        *_accounts(),
        *_of_requests(),
    )
}
