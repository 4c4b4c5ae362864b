"""Which cases there are, drawn from a seed: kinds, severity, place and steps. The same seed draws the same cases."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.diagnosis.case import Case, Planted
from benchmarks.diagnosis.faults import BY_CAUSE, FAULTS
from errors import InputError

STEPS, SAVE_EVERY = 40, 16
HEALTHY, DOUBLE, EVIDENCE = 0.15, 0.25, 0.2
"""Shares of cases: without a fault, with two of them, with something wrong about the evidence alone."""
MAKERS = {"serving": "serving", "fleet": "fleet"}
"""By family of the fault; what is not named is a training job."""
TWIN_MEASURED = (
    "slow_link",
    "slow_network",
    "excess_collectives",
    "cold_cache",
    "batch_padding",
    "dims_padding",
    "precision",
    "recomputation",
    "wrong_flags",
)
"""What no clock of a worker can tell: its cost is the difference to the twin. No two of these in one case."""
OTHER_PROGRAM = (
    "batch_padding",
    "dims_padding",
    "precision",
    "recomputation",
    "wrong_flags",
    "excess_collectives",
    "tiny_operations",
)
"""Faults that are programs of their own: these are compiled before the run, so that it pays for the fault alone."""
STOPS = ("restart_loop", "nan_rollback", "out_of_memory", "hang", "preemption", "slow_restore")

Drawn = Callable[[np.random.Generator, int], Planted]
"""(generator, processes) -> what is planted"""


def _all(cause: str, low: float, high: float, *, told: bool = False) -> Drawn:
    """On all ranks in nearly all steps, so many seconds each."""
    return lambda rng, n: Planted(cause, (), 2, STEPS - 1, 1, _between(rng, low, high), told=told)


def _one(cause: str, low: float, high: float, every: tuple[int, ...] = (1,)) -> Drawn:
    """On one rank."""

    def draw(rng: np.random.Generator, n: int) -> Planted:
        first = int(rng.integers(2, 8))
        each = int(rng.choice(every))
        return Planted(cause, (int(rng.integers(n)),), first, STEPS - 1, each, _between(rng, low, high) * each)

    return draw


def _each(cause: str, low: float, high: float, every: tuple[int, ...]) -> Drawn:
    """On all ranks in every n-th step; told in every other case."""

    def draw(rng: np.random.Generator, n: int) -> Planted:
        each, told = int(rng.choice(every)), bool(rng.random() < 0.5)
        return Planted(cause, (), int(rng.integers(3, 6)), STEPS - 1, each, _between(rng, low, high), told=told)

    return draw


def _from(cause: str, low: float, high: float, begins: tuple[int, int]) -> Drawn:
    """On all ranks from a drawn step on."""
    return lambda rng, n: Planted(
        cause, (), int(rng.integers(*begins)), STEPS - 1, 1, _between(rng, low, high), told=bool(rng.random() < 0.5)
    )


def _much(cause: str, low: int, high: int) -> Drawn:
    """An amount of something, in all steps."""
    return lambda rng, n: Planted(cause, (), 1, STEPS - 1, 1, 0.0, int(rng.integers(low, high + 1)))


def _stop(cause: str, low: float = 0.0, high: float = 0.0, times: tuple[int, int] = (1, 1)) -> Drawn:
    """At one step, on one rank."""

    def draw(rng: np.random.Generator, n: int) -> Planted:
        step, told = int(rng.integers(26, 32)), bool(rng.random() < 0.5)
        amount = int(rng.integers(times[0], times[1] + 1))
        ranks = (int(rng.integers(n)),) if BY_CAUSE[cause].place == "ranks" else ()
        return Planted(cause, ranks, step, step, 1, _between(rng, low, high), amount, told)

    return draw


def _link(rng: np.random.Generator, n: int) -> Planted:
    pair = tuple(sorted(int(r) for r in rng.choice(n, 2, replace=False)))
    return Planted("slow_link", pair, 0, STEPS - 1, 1, _between(rng, 0.0015, 0.0025))


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 4)


TRAINING: dict[str, Drawn] = {
    "slow_host": _one("slow_host", 0.05, 0.12),
    "garbage_collection": _one("garbage_collection", 0.05, 0.07, (1, 2)),
    "jitter": _all("jitter", 0.05, 0.12),
    "python_overhead": _all("python_overhead", 0.05, 0.1),
    "device_to_host": _all("device_to_host", 0.05, 0.1),
    "leak": _from("leak", 0.2, 0.3, (4, 8)),
    "step_up": _from("step_up", 0.1, 0.2, (14, 22)),
    "slow_link": _link,
    "slow_network": _all("slow_network", 0.0008, 0.0015),
    "excess_collectives": _much("excess_collectives", 12, 24),
    "slow_loader": _all("slow_loader", 0.05, 0.12),
    "uneven_loader": _one("uneven_loader", 0.06, 0.12),
    "loader_spikes": _each("loader_spikes", 0.35, 0.6, (5, 8)),
    "recompile_shape": _each("recompile_shape", 0.0, 0.0, (8, 10)),
    "recompile_constant": _each("recompile_constant", 0.0, 0.0, (8, 10)),
    "cold_cache": _much("cold_cache", 1, 1),
    "batch_padding": _much("batch_padding", 2, 3),
    "dims_padding": _much("dims_padding", 16, 24),
    "precision": _much("precision", 1, 1),
    "tiny_operations": _much("tiny_operations", 2500, 4500),
    "recomputation": _much("recomputation", 1, 1),
    "wrong_flags": _much("wrong_flags", 1, 1),
    "frequent_checkpoints": lambda rng, n: Planted("frequent_checkpoints", (), 0, STEPS - 1, int(rng.choice((2, 3)))),
    "slow_checkpoint": _all("slow_checkpoint", 0.8, 1.4),
    "slow_restore": _stop("slow_restore", 1.5, 2.5),
    "restart_loop": _stop("restart_loop", times=(2, 3)),
    "nan_rollback": _stop("nan_rollback"),
    "out_of_memory": _stop("out_of_memory"),
    "hang": _stop("hang"),
    "preemption": _stop("preemption", 1.0, 2.0),
    "evaluation": _each("evaluation", 0.4, 0.7, (6, 8)),
    "metrics_sync": _each("metrics_sync", 0.35, 0.6, (5, 8)),
    "profiler_inside": _each("profiler_inside", 0.0, 0.0, (1, 2)),
}
FOUR = ("slow_host", "uneven_loader", "jitter", "slow_link", "hang", "out_of_memory")
"""Kinds in which more than two ranks matter: their jobs have two or four processes."""
WIDE = ("batch_padding", "precision", "recomputation", "wrong_flags", "excess_collectives")
"""Kinds that need a program whose computing outweighs its overheads."""
COMPANIONS = ("clock_skew", "missing_profile", "few_profiled_steps")


def kinds_of(names: Sequence[str]) -> tuple[str, ...]:
    """Causes by their names or by those of families; all that can be planted where none is named.

    Raises InputError for a name that is neither.
    """
    known = [f.cause for f in FAULTS if f.family != "evidence"]
    if not names:
        return tuple(known)
    found = [f.cause for n in names for f in FAULTS if n in (f.cause, f.family) and f.cause in known]
    for name in names:
        if name not in {*known, *(f.family for f in FAULTS)} - {"evidence"}:
            raise InputError("no kind of fault", where=name, expected=", ".join(known))
    return tuple(dict.fromkeys(found))


def cases(seed: int, count: int, kinds: Sequence[str] = (), *, healthy: float = HEALTHY) -> tuple[Case, ...]:
    """So many cases. Kinds come in turn, in a drawn order, so that all come equally often."""
    rng = np.random.default_rng((seed, 20261123))
    deck = list(kinds_of(kinds))
    endless = itertools.chain.from_iterable(iter(lambda: list(rng.permutation(deck)), None))
    drawn = []
    for number in range(count):
        sound = bool(rng.random() < healthy)
        drawn.append(_case(rng, number, seed, None if sound else str(next(endless)), deck))
    return tuple(drawn)


def _case(rng: np.random.Generator, number: int, seed: int, cause: str | None, deck: list[str]) -> Case:
    own = int(rng.integers(1 << 31))
    sound = cause is None
    cause = cause or str(rng.choice(deck))  # a sound case is of a maker that the deck has
    maker = MAKERS.get(BY_CAUSE[cause].family, "training")
    name = f"case-{number:03d}"
    if maker != "training":
        planted = () if sound else (Planted(cause, amount=1, seconds=_between(rng, 0.0, 1.0)),)
        return Case(name, own, maker, "one", 1, 0, planted=planted)
    processes = int(rng.choice((2, 4))) if cause in FOUR or sound else 2
    processes = 4 if cause == "slow_link" else processes  # one link of several
    planted = () if sound else (TRAINING[cause](rng, processes),)
    if planted and rng.random() < DOUBLE and (other := _other(rng, cause, deck)):
        planted += (TRAINING[other](rng, processes),)
    kill = (Planted("kill", (int(rng.integers(processes)),), 28, 28),) if cause == "slow_restore" else ()
    return Case(
        name,
        own,
        "training",
        "wide" if cause in WIDE else "small",
        processes,
        STEPS,
        0 if sound else _save_every(cause),
        planted,
        _companions(rng, processes, cause),
        () if sound else kill,
    )


def _save_every(cause: str) -> int:
    """Jobs of these sizes are too short to save for nothing: they save where the fault needs it."""
    if cause in ("slow_checkpoint", "frequent_checkpoints"):
        return SAVE_EVERY // 2
    return SAVE_EVERY if cause in STOPS else 0


def _other(rng: np.random.Generator, cause: str, deck: list[str]) -> str | None:
    """A second fault: of another family, measured by clocks, and no stop beside it that would take its steps again."""
    family = BY_CAUSE[cause].family
    fitting = [
        c
        for c in deck
        if c in TRAINING and BY_CAUSE[c].family not in (family, "compile", "job") and c not in (*TWIN_MEASURED, *STOPS)
    ]
    return str(rng.choice(fitting)) if fitting and cause not in (*STOPS, "profiler_inside") else None


def _companions(rng: np.random.Generator, processes: int, cause: str) -> tuple[Planted, ...]:
    if rng.random() >= EVIDENCE or cause in (*STOPS, "profiler_inside"):
        return ()
    name = str(rng.choice(COMPANIONS))
    rank = int(rng.integers(processes))
    if name == "clock_skew":
        return (Planted(name, (rank,), seconds=_between(rng, 2.0, 8.0)),)
    if name == "missing_profile":
        return (Planted(name, (rank,)),)
    first = int(rng.integers(20, 30))
    return (Planted(name, (), first, first + 2),)
