"""How much load a system bears before its answers come too late: found by serving more and more.

The rate is bracketed by trials of SHORT requests and then settled by trials of LONG ones, each at least LIFETIMES
lifetimes of a request under that very load, and longer where chance would decide. The system falls behind where both
are so, by more than DRIFT:

    answers leave more slowly than requests are meant to come     slope of last tokens over requests > 1 / rate
    the time in the system rises from request to request          slope of last tokens > slope of arrivals

Either alone is chance (arrivals of a trial that came fast or slow); a queue that grows for good shows in both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from errors.numbers import COUNT, FROM_ZERO, PERCENTILE, SECONDS, VARIATION
from simulators.serving.traffic import Traffic, gamma

Serve = Callable[[Traffic], pd.DataFrame]  # -> a row a request: arrival_s, first_token_s, last_token_s, ttft_s, ...
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
SHORT, LONG, MOST = 2_000, 20_000, 100_000  # requests of a trial: to look for a rate, to settle it, in any case
FEWEST, MORE = 200, 5  # requests in any case; by so much lifetimes may ask for more than TOKENS
LIFETIMES = 10  # that the counted part of a trial lasts at least; a lifetime is from first to last token, under load
FILLING = 3  # lifetimes in which the batch fills up: their latencies do not count
DRIFT = 0.01  # of the rate
OTHER_DRAW, JUST = 1, 1e-6  # of the arrivals; below a rate that one draw bears and another does not
SURE, BATCHES = 3, 20  # times as many requests where chance decides; stretches of a trial that tell chance
ROUGH, CLOSE = 1.08, 1.02  # between the rate that is borne and one that is not, by short and by long trials
TOKENS = 1e8  # generated in a trial at most, if its lifetimes do not ask for more: long answers even out by themselves
RISE = 4.0  # latencies near the edge rise about so many times as fast as the rate: how far the next trial goes
LARGEST_PER_S = 1e5


@dataclass(frozen=True)
class Objectives:
    """Latencies in seconds that the given percentile of the requests must keep; None: any will do."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    percentile: float = 99.0

    def __post_init__(self) -> None:
        PERCENTILE.read(self.percentile, "percentile")
        for name in LATENCIES:
            if (value := getattr(self, name)) is not None:
                SECONDS.read(value, name)

    def seen(self, rows: pd.DataFrame) -> dict[str, float]:
        """The percentile of each latency; NaN where no request has one (one token has no time per token)."""
        values = {n: rows[n].to_numpy(dtype=float) for n in LATENCIES}
        return {
            n: float(np.nanpercentile(v, self.percentile)) if np.isfinite(v).any() else float("nan")
            for n, v in values.items()
        }

    def broken(self, seen: dict[str, float]) -> str:
        """The objective that is missed by the most, by name; "" where all are kept."""
        name, share = self.tightest(seen)
        return name if share > 1 else ""

    def tightest(self, seen: dict[str, float]) -> tuple[str, float]:
        """(the objective that is nearest to being missed or missed by the most, the share of it that is taken)."""
        taken = {n: seen[n] / most for n in LATENCIES if (most := getattr(self, n)) is not None and seen[n] == seen[n]}
        name = max(taken, key=taken.__getitem__) if taken else ""
        return name, taken.get(name, 0.0)


@dataclass(frozen=True)
class Shape:
    """Requests of equal lengths in tokens, `cached` of the prompt found in the cache; `cv` of the gaps between them."""

    prompt: int
    output: int
    cached: int = 0
    cv: float = 1.0

    def __post_init__(self) -> None:
        for what, value in (("prompt", self.prompt), ("generated", self.output)):
            COUNT.read(value, f"{what} tokens of a request:")
        FROM_ZERO.read(self.cached, "prompt tokens in the cache:")
        VARIATION.read(self.cv, "a coefficient of variation of")

    def at(self, rate: float, requests: int, seed: int = 0) -> Traffic:
        return gamma(rate, self.cv, requests, self.prompt, self.output, self.cached, seed)


@dataclass(frozen=True)
class Capacity:
    """`rate_per_s`: the most that keeps the objectives, 0 where even one request alone does not. `seen`: latencies at
    that rate (of one alone where it is 0). `limit`: what breaks beyond it: a latency, `rate` (it falls behind), or "".
    `below_per_s`: a rate that is not borne. `settled`: by long trials; otherwise only looked for by short ones.
    """

    rate_per_s: float
    seen: dict[str, float] = field(default_factory=dict)
    limit: str = ""
    below_per_s: float = math.inf
    settled: bool = True


@dataclass(frozen=True)
class Trial:
    """What came of one. `limit`: what broke, as in Capacity. `taken`: share of the tightest objective that was used up
    (of the rate, where it falls behind), 0 where there is none. `leaves_per_s`: answers a second."""

    rate_per_s: float
    seen: dict[str, float]
    limit: str
    taken: float
    leaves_per_s: float
    tightest: str = ""


def capacity(serve: Serve, shape: Shape, objectives: Objectives, guess_per_s: float | None = None) -> Capacity:
    """The highest rate of requests of this shape that `serve` bears, within a few per cent. A good guess saves time."""
    found = looked_for(serve, shape, objectives, guess_per_s)
    return settled(serve, shape, objectives, found) if found.rate_per_s else found


def looked_for(
    serve: Serve,
    shape: Shape,
    objectives: Objectives,
    guess_per_s: float | None = None,
    close: float = ROUGH,
    most: int = MOST,
) -> Capacity:
    """The same by short trials, of at most `most` requests each: within about a tenth."""
    alone = objectives.seen(serve(replace(shape, cv=0.0).at(1e-4, 3)))  # a burst of three is not alone
    if limit := objectives.broken(alone):
        return Capacity(0.0, alone, limit, 0.0)
    found = _bracketed(
        lambda rate: trial(serve, shape, objectives, rate, SHORT, most),
        guess_per_s or 1.0 / alone["e2e_s"],
        1.3 if guess_per_s else 2.0,
        close,
        1e-4 / alone["e2e_s"],
    )
    seen = found.seen or alone
    return Capacity(found.rate_per_s, seen, found.limit, found.below_per_s, settled=False)


def settled(
    serve: Serve, shape: Shape, objectives: Objectives, found: Capacity, asked: tuple[float, ...] = ()
) -> Capacity:
    """The rate that `looked_for` found, settled by long trials. `asked`: rates that matter; one that lies just above
    what is borne is tried itself, and one just below by another draw of the arrivals."""

    def long(rate: float, seed: int = 0) -> Trial:
        return trial(serve, shape, objectives, rate, LONG, sure=SURE, seed=seed)

    least = found.rate_per_s / 16
    sure = _bracketed(long, found.rate_per_s, 1.1, CLOSE, least)
    for rate in sorted(asked):
        if sure.rate_per_s < rate < min(sure.rate_per_s * CLOSE, sure.below_per_s):
            tried = long(rate)
            if tried.limit:
                return Capacity(sure.rate_per_s, sure.seen, tried.limit, rate)
            sure = Capacity(rate, tried.seen, sure.limit, sure.below_per_s)
    for rate in sorted(asked, reverse=True):  # one draw of the arrivals does not decide how many replicas do
        if sure.rate_per_s / CLOSE < rate <= sure.rate_per_s and (tried := long(rate, OTHER_DRAW)).limit:
            sure = Capacity(rate * (1 - JUST), sure.seen, tried.limit, rate)
    return sure


def _bracketed(run: Callable[[float], Trial], rate: float, step: float, close: float, least: float) -> Capacity:
    """Trials from `rate` on, `step` times further each, until what is borne and what is not are `close`. An objective
    that is all but used up is no end: where a prompt takes that long alone, it is so at any load."""
    first: Trial | None = None
    good: Trial | None = None
    bad: Trial | None = None
    while least < rate < LARGEST_PER_S:
        found = run(rate)
        if found.limit:
            bad = found
        else:
            good = found
        first = first or found
        if bad and not good:
            step = min(step**2, 16.0)  # far off: faster
        if good and bad and bad.rate_per_s <= close * good.rate_per_s * (1 + 1e-9):
            break
        rate = _next(good, bad, step, close if good is first else close**2)
    limit = bad.limit if bad else ""
    if good is None:
        return Capacity(0.0, {}, limit, bad.rate_per_s if bad else math.inf)
    return Capacity(good.rate_per_s, good.seen, limit, bad.rate_per_s if bad else math.inf)


def _next(good: Trial | None, bad: Trial | None, step: float, close: float) -> float:
    """The rate to try next. Latencies are taken to rise with the rate's power RISE, where one trial alone is known."""
    if good is None:
        assert bad is not None, "one of the two is known"
        far = min(max(bad.taken ** (1 / RISE), close), step)
        return min(bad.rate_per_s / far, bad.leaves_per_s / (1 + DRIFT))
    if bad is None:
        far = min(max((1 / good.taken) ** (1 / RISE), close), step) if good.taken else step
        return good.rate_per_s * far
    part = 0.5
    if 0 < good.taken < bad.taken:
        part = min(max(math.log(1 / good.taken) / math.log(bad.taken / good.taken), 0.25), 0.75)
    return good.rate_per_s * (bad.rate_per_s / good.rate_per_s) ** part


def trial(
    serve: Serve,
    shape: Shape,
    objectives: Objectives,
    rate: float,
    requests: int,
    most: int = MOST,
    sure: int = 1,
    seed: int = 0,
) -> Trial:
    """Latencies at a rate, and what breaks: of so many requests, or of more where their lifetimes ask for it; of fewer
    where their answers are so long that TOKENS come of fewer; of up to `sure` times as many where chance may decide."""
    long = max(math.ceil(TOKENS / shape.output), FEWEST)
    requests, most = min(requests, long), min(most, MORE * long)
    surely = min(sure * requests, most)
    while True:
        rows = serve(shape.at(rate, requests, seed))
        lifetime = float((rows["last_token_s"] - rows["first_token_s"]).mean())
        flying = min(rate, drift(rows)[0]) * lifetime  # by Little's law; no more leave than come
        late = rows.iloc[int(min(max(FILLING * flying, requests / 10), requests / 3)) :]
        seen = objectives.seen(late)
        tightest, taken = objectives.tightest(seen)
        leaves, grows = drift(late)
        if requests < surely and _chance(late, objectives, tightest):
            requests = surely
            continue
        if taken > 1:
            return Trial(rate, seen, tightest, taken, leaves, tightest)
        enough = math.ceil((LIFETIMES + FILLING) * flying)
        if requests >= min(enough, most):
            behind = rate > (1 + DRIFT) * leaves and grows > DRIFT
            return Trial(rate, seen, "rate" if behind else "", rate / leaves if behind else taken, leaves, tightest)
        requests = min(max(enough, 2 * requests), most)


def _chance(rows: pd.DataFrame, objectives: Objectives, name: str) -> bool:
    """Whether the share of requests that miss an objective is as near to what is allowed as other arrivals would move
    it: by the spread between BATCHES stretches of the trial, since neighbours fare alike."""
    if not name:
        return False
    missed = (rows[name] > getattr(objectives, name)).to_numpy(dtype=float)
    parts = np.array([part.mean() for part in np.array_split(missed, BATCHES)])
    return abs(parts.mean() - (1 - objectives.percentile / 100)) < parts.std() / BATCHES**0.5


def drift(rows: pd.DataFrame) -> tuple[float, float]:
    """(answers that leave a second, by how much more slowly they leave than their requests came, as a share).

    Both by least squares over the requests in order: one that was slow by chance hardly moves the slope.
    """
    came = rows["arrival_s"].to_numpy(dtype=float)
    left = np.sort(rows["last_token_s"].to_numpy(dtype=float))
    left = left[np.isfinite(left)]
    if min(len(left), len(came)) < 3:
        return math.inf, 0.0
    gap_in, gap_out = _slope(came), _slope(left)
    return (1 / gap_out if gap_out > 0 else math.inf), (gap_out / gap_in - 1 if gap_in > 0 else 0.0)


def _slope(values: np.ndarray) -> float:
    """Of a straight line through values one after the other, by least squares."""
    at = np.arange(len(values)) - (len(values) - 1) / 2
    return float((at * values).sum() / (at * at).sum())
