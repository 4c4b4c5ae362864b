"""What each cure for the cost of checkpoints and failures would give back, one at a time, for a job as it was measured.

Every cure is the exact model of `checkpointing` (or of `two_tier`, `recovery`) asked twice: as the job is, and with
the one thing changed; the difference in goodput times the time that the model speaks of is what it gives back. A range
covers the interval of the mean time to failure and the range of the assumption, whichever is worse or better. Gains
overlap: two cures save the same second only once, so they must not be added up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from errors import format as fmt
from simulators.checkpointing import Job, goodput, optimal_s, with_mttf
from simulators.recovery import elastic_goodput, spare_is_free, spares_needed
from simulators.two_tier import Local, best_two_tier, two_tier_goodput

BLOCKED = (0.3, 0.1, 0.02)  # of a save, if it is written in the background: worst, usual, best
SHORTER = (0.25, 0.5, 0.75)  # of restart parts other than compilation
CACHED = (0.5, 0.8, 0.95)  # of compilation that a cache saves
FOUND = (0.5, 0.8, 0.95)  # of the wait for machines that a spare at hand saves
RESUMED = (1.0, 0.5, 0.25)  # of a restart, for each of the two pauses of elastic training
LOCAL = ((0.3, 0.6), (0.1, 0.8), (0.05, 0.95))  # (of a save that a local one blocks, failures that it survives)
REPAIR_DAYS = 1.0
CHIPS_PER_NODE = 8
CHANGED = 1.0005  # relative: a save interval closer to the best one is the best one
COMPILATION = "program_startup"
SHORTENED = ("accelerator_initialization", "training_preparation", "checkpoint_restore", "data_loading")

Variant = Callable[[Job], float]  # the job, at one mean time to failure -> its goodput with the cure


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A job as it ran. `interval_s`: as it saved; None: taken as the best one.

    mttf_low_s, mttf_high_s  bounds of the mean time to failure; None: taken as exact
    parts                    mean seconds of a restart by part; empty: not told apart
    fastest_startup_s        what compilation took in the fastest tenth of several restarts; None: not known
    resume_s                 one pause of elastic training; None: assumed, as a part of a restart
    span_s, chips, usd_per_chip_hour, slices, nodes  None where not known
    """

    job: Job
    interval_s: float | None = None
    mttf_low_s: float | None = None
    mttf_high_s: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    fastest_startup_s: float | None = None
    resume_s: float | None = None
    span_s: float | None = None
    chips: int | None = None
    usd_per_chip_hour: float | None = None
    slices: int | None = None
    nodes: float | None = None

    @property
    def interval(self) -> float:
        return max(self.interval_s or optimal_s(self.job), self.job.shortest_s)


@dataclass(frozen=True, kw_only=True)
class Cure:
    """One cure: goodput gained (a share of all time; may be below 0) with its range, and what was assumed for it.

    `seconds`, `chip_hours`, `usd`: the same over the run; None where span, chips or price are not known.
    `account`: the account of the ledger that it shrinks.
    """

    name: str
    account: str
    gain: float
    low: float
    high: float
    assumption: str
    seconds: float | None = None
    chip_hours: float | None = None
    usd: float | None = None


@dataclass(frozen=True)
class Cures:
    """`offered`: the most helpful first. `left_out`: (name, why) of those that cannot be told for this job."""

    offered: tuple[Cure, ...]
    left_out: tuple[tuple[str, str], ...]


def cures(measured: Measured) -> Cures:
    """All of them, each on its own. Pure; about 50 ms."""
    offered, left_out = [], []
    for name, ask in ALL.items():
        found = ask(measured)
        if isinstance(found, str):
            left_out.append((name, found))
        else:
            offered.append(_cure(name, measured, *found))
    offered.sort(key=lambda cure: -cure.gain)
    return Cures(tuple(offered), tuple(left_out))


def _cure(name: str, m: Measured, account: str, assumption: str, variants: Sequence[Variant]) -> Cure:
    middle = len(variants) // 2
    rates = [m.mttf_low_s or m.job.mttf_s, m.job.mttf_s, m.mttf_high_s or m.job.mttf_s]
    jobs = [with_mttf(m.job, rate) for rate in rates]
    gains = [[variant(job) - float(goodput(job, m.interval)) for variant in variants] for job in jobs]
    gain = gains[1][middle]
    seconds = None if m.span_s is None else gain * m.span_s
    hours = None if seconds is None or m.chips is None else seconds * m.chips / 3600
    return Cure(
        name=name,
        account=account,
        gain=gain,
        low=min(map(min, gains)),
        high=max(map(max, gains)),
        assumption=assumption,
        seconds=seconds,
        chip_hours=hours,
        usd=None if hours is None or m.usd_per_chip_hour is None else hours * m.usd_per_chip_hour,
    )


Found = tuple[str, str, Sequence[Variant]] | str


def _said(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def _pc(share: float) -> str:
    return f"{share * 100:.3g} %"


def _of(worst_usual_best: tuple[float, float, float]) -> str:
    """`10 % (2 % to 30 %)`."""
    low, high = sorted((worst_usual_best[0], worst_usual_best[2]))
    return f"{_pc(worst_usual_best[1])} ({_pc(low)} to {_pc(high)})"


def _interval(m: Measured) -> Found:
    best = optimal_s(m.job)
    if m.interval_s is None:
        return "how often the job saves is not known"
    if 1 / CHANGED < m.interval / best < CHANGED:
        return "the job saves at its best interval"
    return (
        "checkpoint_save",
        f"A save every {_said(best)} of work instead of every {_said(m.interval_s)}: the best "
        "for this mean time to failure.",
        [lambda job: float(goodput(job, best))],
    )


def _asynchronous(m: Measured) -> Found:
    if m.job.asynchronous:
        return "saves are written in the background already"

    def variant(part: float) -> Variant:
        def changed(job: Job) -> float:
            background = replace(job, blocked_s=part * job.save_s)
            return float(goodput(background, max(m.interval, background.shortest_s)))

        return changed

    return (
        "checkpoint_save",
        f"Saves block for {_of(BLOCKED)} of their time and take as long to be "
        "safe; training runs at full speed meanwhile; the interval stays.",
        [variant(part) for part in BLOCKED],
    )


def _restart(m: Measured) -> Found:
    seconds = sum(m.parts.get(p, 0.0) for p in SHORTENED) if m.parts else m.job.restart_s
    if seconds <= 0:
        return "a failure cost no initialisation, preparation, restore or loading"
    what = "Initialisation, preparation, restore and loading" if m.parts else "A restart"
    verb = "take" if m.parts else "takes"
    return (
        "accelerator_initialization",
        f"{what} ({_said(seconds)}) {verb} {_of(SHORTER)} less.",
        [_shorter(m, part * seconds) for part in SHORTER],
    )


def _shorter(m: Measured, seconds: float) -> Variant:
    """Restarts that take so many seconds less."""
    return lambda job: float(goodput(replace(job, restart_s=max(job.restart_s - seconds, 0.0)), m.interval))


def _cache(m: Measured) -> Found:
    seconds = m.parts.get(COMPILATION, 0.0)
    if seconds <= 0:
        return "what compilation took after a failure is not known"
    fastest = m.fastest_startup_s
    if fastest is not None and fastest < seconds / 2:
        said = f"Every first step starts up in {_said(fastest)}, as the fastest tenth here did, not in {_said(seconds)}"
        saved = [(seconds - fastest) / 2, seconds - fastest, seconds]
        text = f"{said} (half of that gain to no start-up at all)."
    else:
        saved = [part * seconds for part in CACHED]
        text = (
            f"A compile cache that outlives the job saves {_of(CACHED)} of the {_said(seconds)} by which a "
            "first step is longer."
        )
    return COMPILATION, text, [_shorter(m, s) for s in saved]


def _spares(m: Measured) -> Found:
    if m.job.wait_s <= 0:
        return "the job never waited for machines"
    nodes = m.nodes or (m.chips / CHIPS_PER_NODE if m.chips else None)
    if nodes is None:
        return "the number of nodes is not known"
    daily = 86_400 / m.job.mttf_s
    spares = spares_needed(daily, REPAIR_DAYS)
    free = spare_is_free(spares, daily, REPAIR_DAYS)
    if spares >= nodes:
        return f"it would take {spares:,} spare nodes for a job of {fmt.at_most(nodes)}"

    def variant(part: float) -> Variant:
        return lambda job: float(goodput(replace(job, wait_s=job.wait_s * (1 - part * free)), m.interval)) - cost

    cost = spares / nodes
    said = "" if m.nodes else f" ({CHIPS_PER_NODE} chips a node assumed)"
    return (
        "infrastructure_recovery",
        f"{spares:,} spare nodes{said} cost {_pc(cost)} more machines, taken off here. "
        f"One is free at {_pc(free)} of failures if a repair takes {REPAIR_DAYS:g} day; {_of(FOUND)} of the "
        f"{_said(m.job.wait_s)} of waiting go then.",
        [variant(part) for part in FOUND],
    )


def _elastic(m: Measured) -> Found:
    if m.job.wait_s <= 0:
        return "the job never waited for machines"
    if m.slices is None:
        return "how many slices or data-parallel replicas the job has is not known"
    if m.slices < 2:
        return "the job has one slice: there is nothing to go on with"
    restart = m.job.restart_s
    if m.resume_s is not None:
        pauses, paused = _said(m.resume_s), [m.resume_s]
    else:
        pauses = f"{_of(RESUMED)} of a restart of {_said(restart)}"
        paused = [part * restart for part in RESUMED]
    return (
        "elastic_slice_down",
        f"{m.slices:,} slices or replicas; the job goes on without those that failed, down "
        f"to one, for the {_said(m.job.wait_s)} that a replacement takes, and pauses twice for {pauses}.",
        [_resumed(m, m.slices, pause) for pause in paused],
    )


def _resumed(m: Measured, slices: int, resume_s: float) -> Variant:
    return lambda job: elastic_goodput(job, m.interval, slices, resume_s)


def _two_tier(m: Measured) -> Found:
    tiers = [Local(save_s=part * m.job.save_s, restart_s=m.job.restart_s, share=share) for part, share in LOCAL]
    bests = [best_two_tier(m.job, local) for local in tiers]
    if bests[1][1] == 1:  # the usual one
        return "local saves would be no better than remote ones alone"

    def variant(local: Local, interval: float, n: int) -> Variant:
        return lambda job: two_tier_goodput(job, local, interval, n)

    blocks, survives = zip(*LOCAL, strict=True)
    return (
        "wasted_progress",
        f"Local checkpoints besides remote ones: one blocks for {_of(blocks)} of a save and "
        f"survives {_of(survives)} of failures; restarts take as long; both intervals at their best.",
        [variant(local, interval, n) for local, (interval, n, _) in zip(tiers, bests, strict=True)],
    )


ALL: dict[str, Callable[[Measured], Found]] = {
    "best_interval": _interval,
    "asynchronous_saves": _asynchronous,
    "faster_restart": _restart,
    "compile_cache": _cache,
    "hot_spares": _spares,
    "elastic_training": _elastic,
    "two_tier": _two_tier,
}
