"""Fits the shares of the peaks to a measured run, and says how far off the model is on what it was not fitted to.

All requests are simulated, since they share the engine, each replica with its own where they say which; the fit sees
the times to first token and times per token of one half only, least squares of (simulated - measured): times per token
request by request, by its own; times to first token in order of size, by their mean, since which step a request just
missed is a matter of microseconds. The other half then tells the error of the mean and of the 99th percentile. The
shares together give the times; one by one they are not settled (a slow link looks like slow matrices, slow memory like
a long own time of each step).

Neighbours in a queue are alike, so every other request is no fair test of the rest. The run is split in time as well
(the first half fits, the second is held back), and by replica where there are several; the worst split counts.

A model whose answers begin with a header (`Model.silent_tokens`) is fitted both ways: its client saw the first token
generated, as of `/v1/completions`, or only the one after the header, as of a chat endpoint. What fits better is so.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from errors import QuestionError
from errors import format as fmt
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.engine import Outcome, simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

METRICS = ("ttft_mean", "ttft_p99", "tpot_mean", "tpot_p99")
BOUNDS: dict[str, tuple[float, float, float]] = {  # lowest, highest, where the search begins
    "bandwidth": (0.05, 1.0, 0.8),
    "compute": (0.05, 1.0, 0.55),
    "step_s": (1e-5, 0.05, 1.5e-3),
    "sequence_s": (1e-8, 1e-3, 8e-6),
    "communication": (0.01, 1.0, 0.4),
}
FEWEST = 20  # requests with both times: fewer say nothing of a 99th percentile, and little of a mean
AT_ONCE = 0.02  # of the median time per token: less is no engine's, but of pieces that reached a client together
MOST = 3000  # requests that a fit simulates
RESAMPLES = 400
EVALUATIONS = 25
DIFFERENCES = (0.1, 0.03)  # of the logarithms, for the slopes
ANOTHER_CHIP = 0.3  # by how much such models miss on a card that they were not calibrated on
BEYOND = 1.25  # how far the batch may go beyond the calibrated one before the band is widened
ANOTHER_MODEL = {"ttft": 0.45, "tpot": 0.3}
"""By how much vLLM measured otherwise than simulated, where the fit was to another model on the same card: Llama 3.1 8B
on one, Qwen3 32B on two, both ways, under overload (times to first token then add up all that steps miss)."""
FARTHER = {"ttft": 0.15, "tpot": 0.1}
"""By how much the band is wider for each doubling away from the run's own load: a third of ANOTHER_MODEL, assumed."""
FEWER = 2.0  # by so much fewer requests at a time than the run had are away from its load
SELDOM = 0.1  # of the busy time fewer ran than are called the run's fewest
ALTERNATE, IN_TIME, BY_REPLICA = "every other request", "the first half of the time", "some of the replicas"
PRIOR = 0.05  # of a residual, for each factor of e from where the search begins: settles what the times do not


@dataclass(frozen=True)
class Measured:
    """A run to calibrate on: what it was asked (`traffic`), and what came of it, seconds, NaN where not known.
    `replica`: the number of the one that served each request, None where that is not known of all."""

    traffic: Traffic
    ttft_s: np.ndarray
    tpot_s: np.ndarray
    name: str = "the run"
    replica: np.ndarray | None = None

    def first(self, count: int) -> "Measured":
        by = None if self.replica is None else self.replica[:count]
        return Measured(self.traffic.first(count), self.ttft_s[:count], self.tpot_s[:count], self.name, by)


@dataclass(frozen=True)
class Calibration:
    """`errors`: simulated by measured - 1 of METRICS on what was held back in the worst split, `worst` its name;
    `splits`: the same of each; `fitted`: on the half that the shares were fitted to. `intervals`: between what measured
    by simulated - 1 lies, over all splits, when the requests held back are drawn anew (95 %).
    `batch`, `prompt`: the largest seen, beyond which nothing was calibrated; `fewest`: requests at a time, fewer ran in
    a tenth of the time. `simulations`: how many the fits took.
    """

    setup: Setup
    efficiency: Efficiency
    errors: dict[str, float]
    fitted: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    requests: int
    batch: int
    prompt: int
    name: str
    simulations: int
    notes: tuple[str, ...] = field(default=())
    splits: dict[str, dict[str, float]] = field(default_factory=dict)
    worst: str = ALTERNATE
    fewest: float = 0.0

    def for_setup(self, setup: Setup) -> tuple[Efficiency, list[str]]:
        """The shares for another setup, with what of it was not calibrated."""
        given, notes = dict(vars(self.efficiency)), []
        if self.setup.silent_tokens > setup.silent_tokens and self.setup.model == setup.model:
            notes.append(
                f"Times to first token are of the first token generated, and the run's of token "
                f"{self.setup.silent_tokens + 1}, the first that its client saw."
            )
        if setup.replica_chips > 1 and self.setup.replica_chips == 1:
            given["communication"] = TYPICAL.communication
            notes.append(
                "The run had no exchange between chips: the share of their links is assumed "
                f"({TYPICAL.communication:.0%})."
            )
        return Efficiency(**given), notes

    def band(self, outcome: Outcome) -> tuple[dict[str, tuple[float, float]], list[str]]:
        """(by how much each of METRICS may be off, as shares below and above; why the band was widened).

        As on what was held back; wider on another chip, for another model, and the farther the load is from the run's:
        larger batches, longer prompts, fewer requests at a time.
        """
        setup, notes, wider = outcome.setup, [], dict.fromkeys(ANOTHER_MODEL, 0.0)
        if setup.chip.name != self.setup.chip.name:
            wider = {k: v + ANOTHER_CHIP for k, v in wider.items()}
            notes.append(
                f"Calibrated on {self.setup.chip.name}, asked of {setup.chip.name}: such models miss by up "
                f"to {ANOTHER_CHIP:.0%} on a card that they have not seen, so the band is wider."
            )
        ttft, tpot = (f"{v:.0%}" for v in ANOTHER_MODEL.values())
        if setup.model.name != self.setup.model.name or setup.replica_chips != self.setup.replica_chips:
            wider = {k: v + ANOTHER_MODEL[k] for k, v in wider.items()}
            notes.append(
                f"Calibrated on {self.setup.model.name} on {self.setup.replica_chips} × "
                f"{self.setup.chip.name}, and not on this model and split: the band is {tpot} wider for times "
                f"per token and {ttft} for times to first token, as fits missed elsewhere."
            )
        batch = int(outcome.steps["running"].max()) if len(outcome.steps) else 0
        if batch > BEYOND * self.batch:
            wider = {k: v + ANOTHER_MODEL[k] for k, v in wider.items()}
            notes.append(
                f"Up to {batch:,} requests run at a time, and at most {self.batch:,} did in the run: beyond "
                f"what was calibrated the band is {tpot} and {ttft} wider."
            )
        for doublings, why in self._away(outcome):
            wider = {k: v + doublings * FARTHER[k] for k, v in wider.items()}
            ttft, tpot = (f"{doublings * v:.0%}" for v in FARTHER.values())
            notes.append(
                f"{why}: the band is {tpot} wider for times per token and {ttft} for times to first token, "
                f"{FARTHER['tpot']:.0%} and {FARTHER['ttft']:.0%} for each doubling."
            )
        by = {m: wider[m.partition("_")[0]] for m in METRICS}
        return {m: (min(lo, 0.0) - by[m], max(hi, 0.0) + by[m]) for m, (lo, hi) in self.intervals.items()}, notes

    def _away(self, outcome: Outcome) -> list[tuple[float, str]]:
        """(doublings by which the load is away from the run's, in words), of prompts and of requests at a time."""
        found, longest = [], int(outcome.traffic.prompt.max())
        if longest > BEYOND * self.prompt:
            found.append(
                (
                    math.log2(longest / self.prompt),
                    f"Prompts have up to {longest:,} tokens, and at most {self.prompt:,} in the run",
                )
            )
        usual = at_a_time(outcome.steps, 0.5)
        if 0 < FEWER * usual < self.fewest:
            found.append(
                (
                    math.log2(self.fewest / usual),
                    f"{fmt.at_most(usual)} requests run at a time, and seldom fewer than "
                    f"{fmt.at_most(self.fewest)} did in the run",
                )
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.name,
            "model": self.setup.model.name,
            "chip": self.setup.chip.name,
            "chips": self.setup.chips,
            "requests": self.requests,
            "errors_held_out": self.errors,
            "errors_fitted": self.fitted,
            "worst_split": self.worst,
            "errors_by_split": self.splits,
            "measured_by_simulated": {m: list(v) for m, v in self.intervals.items()},
            "batch_max": self.batch,
            "prompt_tokens_max": self.prompt,
            "batch_low": self.fewest,
            "simulations": self.simulations,
            "efficiency": self.efficiency.to_dict(),
            "notes": list(self.notes),
        }


def calibrate(setup: Setup, measured: Measured, fitted_half: np.ndarray | None = None) -> Calibration:
    """Fit `setup`'s shares to `measured`. `fitted_half`: which requests the fit sees; None: every other, and the error
    is that of the worst way to split the run.

    Raises QuestionError where too few requests have times, or the setup cannot be what ran.
    """
    whole, notes = len(measured.traffic), []
    if whole > MOST:
        measured = measured.first(MOST)
        notes.append(f"Fitted to the first {MOST:,} of {whole:,} requests.")
    if measured.replica is not None and len(np.unique(measured.replica)) != setup.replicas:
        measured = replace(measured, replica=None)
    known = np.isfinite(measured.ttft_s) & np.isfinite(measured.tpot_s)
    timed = known & (measured.ttft_s > 0) & (measured.tpot_s > 0)
    if timed.any():
        timed &= measured.tpot_s > AT_ONCE * np.median(measured.tpot_s[timed])
    if left := int(known.sum() - timed.sum()):
        notes.append(
            f"{left:,} of {known.sum():,} requests are left out of the fit: their answers came all at once by "
            "the client's clock, which tells no time of the engine."
        )
    known = timed
    ways = _ways(measured, known) if fitted_half is None else {"as asked": np.asarray(fitted_half, dtype=bool)}
    ways = {name: half[: len(known)] for name, half in ways.items()}
    able = {n: half for n, half in ways.items() if min((known & half).sum(), (known & ~half).sum()) >= FEWEST}
    if next(iter(ways)) not in able:
        raise QuestionError(
            f"{measured.name} has {known.sum():,} requests with a time to first token and per token",
            expected=f"at least {FEWEST} in each half, to calibrate on one and test on the other",
            advice="Give a run with per-request times, of more requests.",
        )
    names = [n for n in BOUNDS if n != "communication" or setup.replica_chips > 1]
    main, *others = able
    seen = sorted({setup.silent_tokens, setup.silent_tokens or setup.model.silent_tokens})
    tried = [_Fit.of(replace(setup, silent_tokens=n), measured, known, able[main], names) for n in seen]
    first = min(tried, key=lambda f: f.cost)
    setup = first.setup
    fits = {main: first} | {n: _Fit.of(setup, measured, known, able[n], names) for n in others}
    if setup.silent_tokens:
        notes.append(
            f"The run's times to first token are those of token {setup.silent_tokens + 1}: answers of "
            f"{setup.model.name} begin with a header of {setup.silent_tokens} tokens that its client did not "
            "see."
        )
    worst = max(fits, key=lambda n: max(map(abs, fits[n].errors.values())))
    if refused := int(first.rows["last_token_s"].isna().sum()):
        notes.append(f"{refused:,} requests of the run do not fit into this setup, though they were served.")
    intervals = {
        m: (min(f.intervals[m][0] for f in fits.values()), max(f.intervals[m][1] for f in fits.values()))
        for m in METRICS
    }
    return Calibration(
        setup,
        first.efficiency,
        fits[worst].errors,
        first.fitted,
        intervals,
        len(measured.traffic),
        int(first.steps["running"].max()),
        int(measured.traffic.prompt.max()),
        measured.name,
        sum(f.simulations for f in (*tried, *(fits[n] for n in others))),
        tuple(notes),
        {n: f.errors for n, f in fits.items()},
        worst,
        at_a_time(first.steps, SELDOM),
    )


def _ways(measured: Measured, known: np.ndarray) -> dict[str, np.ndarray]:
    """Which requests are fitted to, by the name of the split. The shares of the first are those that are used."""
    ways = {ALTERNATE: np.arange(len(known)) % 2 == 0, IN_TIME: np.cumsum(known) <= known.sum() / 2}
    if measured.replica is not None:
        replicas = np.unique(measured.replica)
        ways[BY_REPLICA] = np.isin(measured.replica, replicas[: len(replicas) // 2])
    return ways


@dataclass(frozen=True)
class _Fit:
    """Of one split. `cost`: the sum of squares that was left on what was fitted to."""

    setup: Setup
    cost: float
    efficiency: Efficiency
    rows: pd.DataFrame
    steps: pd.DataFrame
    errors: dict[str, float]
    fitted: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    simulations: int

    @classmethod
    def of(cls, setup: Setup, measured: Measured, known: np.ndarray, half: np.ndarray, names: list[str]) -> "_Fit":
        logs, simulations, cost = _fit(setup, measured, known & half, names)
        efficiency, held = _efficiency(names, logs, measured.name), known & ~half
        rows, steps = served(setup, measured, efficiency, record=True)
        return cls(
            setup,
            cost,
            efficiency,
            rows,
            steps,
            errors(rows, measured, held),
            errors(rows, measured, known & half),
            _intervals(rows, measured, held),
            simulations,
        )


def served(
    setup: Setup, measured: Measured, efficiency: Efficiency, record: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(requests, steps) of the run simulated: each replica with the requests that it had, where they say which."""
    if measured.replica is None:
        outcome = simulate(setup, measured.traffic, efficiency, record=record)
        return outcome.requests, outcome.steps
    one, rows, steps = replace(setup, replicas=1, chips=setup.replica_chips), [], []
    for number in np.unique(measured.replica):
        at = np.flatnonzero(measured.replica == number)
        outcome = simulate(one, measured.traffic.only(at), efficiency, record=record)
        rows.append(outcome.requests.set_index(at))
        steps.append(outcome.steps)
    return pd.concat(rows).sort_index(), pd.concat(steps, ignore_index=True)


def at_a_time(steps: pd.DataFrame, share: float) -> float:
    """Requests that ran at a time: in `share` of the steps' time it was as many or fewer. 0 where no step is known."""
    if not len(steps):
        return 0.0
    ordered = steps.sort_values("running", kind="stable")
    upto = ordered["dur_s"].cumsum().to_numpy()
    return float(ordered["running"].to_numpy()[np.searchsorted(upto, share * upto[-1])])


def errors(rows: pd.DataFrame, measured: Measured, which: np.ndarray) -> dict[str, float]:
    """Simulated by measured - 1 of the mean and the 99th percentile of both times, over the requests `which`."""
    simulated = _statistics(rows["ttft_s"].to_numpy()[which], rows["tpot_s"].to_numpy()[which])
    real = _statistics(measured.ttft_s[which], measured.tpot_s[which])
    return dict(zip(METRICS, (simulated / real - 1).tolist(), strict=True))


def _statistics(ttft: np.ndarray, tpot: np.ndarray) -> np.ndarray:
    """By METRICS; times may have further axes in front of the one of requests."""
    return np.stack([f for t in (ttft, tpot) for f in (np.nanmean(t, -1), np.nanpercentile(t, 99, axis=-1))], -1)


def _efficiency(names: list[str], logs: np.ndarray, run: str) -> Efficiency:
    values = dict(zip(names, np.exp(logs).tolist(), strict=True))
    return Efficiency(**values, basis=f"calibrated on {run}")


def _fit(setup: Setup, measured: Measured, which: np.ndarray, names: list[str]) -> tuple[np.ndarray, int, float]:
    """(logarithms of the shares, simulations, the sum of squares left). Drawn a little to where such engines usually
    are, so that what the times do not settle stays there; with wide differences first, since the times jump a little
    with every share."""
    ttft, tpot = np.sort(measured.ttft_s[which]), measured.tpot_s[which]
    scale, count = ttft.mean(), [0]
    low, high, start = np.log(np.array([BOUNDS[n] for n in names]).T)

    def residuals(logs: np.ndarray) -> np.ndarray:
        count[0] += 1
        rows = served(setup, measured, _efficiency(names, logs, ""))[0][which]
        first, per = np.sort(rows["ttft_s"].to_numpy()), rows["tpot_s"].to_numpy()
        off = np.concatenate([(per - tpot) / tpot, (first - ttft) / scale, PRIOR * (logs - start)])
        return np.nan_to_num(off, nan=10.0)

    from scipy.optimize import least_squares  # late: a fifth of a second, that other pages do not wait for

    def nearer(begin: np.ndarray, difference: float) -> "OptimizeResult":
        return least_squares(
            residuals, begin, bounds=(low, high), diff_step=difference, ftol=1e-4, xtol=1e-4, max_nfev=EVALUATIONS
        )

    made = nearer(start, DIFFERENCES[0])
    for difference in DIFFERENCES[1:]:
        made = nearer(made.x, difference)
    return made.x, count[0], float(made.cost)


def _intervals(rows: pd.DataFrame, measured: Measured, held: np.ndarray) -> dict[str, tuple[float, float]]:
    """95 % of measured by simulated - 1 when the requests held back are drawn again and again."""
    at = np.flatnonzero(held)
    drawn = at[np.random.default_rng(0).integers(0, len(at), (RESAMPLES, len(at)))]
    simulated = _statistics(rows["ttft_s"].to_numpy()[drawn], rows["tpot_s"].to_numpy()[drawn])
    ratio = _statistics(measured.ttft_s[drawn], measured.tpot_s[drawn]) / simulated - 1
    low, high = np.percentile(ratio, [2.5, 97.5], axis=0)
    return {m: (float(a), float(b)) for m, a, b in zip(METRICS, low, high, strict=True)}
