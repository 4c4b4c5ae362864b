"""Slowdown: how much faster would a pipeline-parallel job be if all its ranks, stages and micro-batches were even?

The what-if analysis of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025):

    S = T / T_ideal            T: replayed step time without launch delays, T_ideal: with all durations ideal
    waste = 1 - 1 / S
    time over ideal time = measured step time / T_ideal = S x launch slowdown
    S_x                        with all durations ideal but those of x (a stage, a data-parallel rank, a type)
    S_worker ~ min(S of its data-parallel rank, S of its stage)
    M_W, M_S = (T - T without x) / (T - T_ideal)    x: the slowest 3 % of workers; the last stage

Sums over all steps are compared. How steps are replayed is told in `graph`, what is ideal in `times`.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.held import Held, held
from analyzers.ranks.slowdown.causes import CAUSES, Shares, cause, causes, microbatches, stage_ratio
from analyzers.ranks.slowdown.one_step import timeline
from analyzers.ranks.slowdown.ops import PipelineOps, load
from analyzers.ranks.slowdown.times import NAMES, PART_OPS, Replays, ideal_durations
from errors import QuestionError
from errors import format as fmt
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.tables import Tables

OPTIONS = (
    Option("step", FROM_ZERO, None, "the step whose timeline is kept; default: the slowest"),
    Option(
        "dp_rank",
        FROM_ZERO,
        None,
        "the data-parallel rank whose timeline is kept; default: the one that costs most",
        label="Data-parallel rank",
    ),
)
WORST = 0.03  # of the workers count for M_W, at least one
TRUSTED = 0.05  # replay and trace may differ by this much
_THREADS = 4
_SMALL = 1e-6  # a slowdown this small cannot be divided among causes


@dataclass(frozen=True, kw_only=True)
class SlowdownResult:
    """`per_step`: step, measured_s, replayed_s, t_s, t_ideal_s, s. `workers`: dp_rank, stage, s.

    `types`: of each type of operation op_type, count, ideal_s, mean_s, longest_s, s. `timeline`: see `one_step`.
    `t_s`, `t_ideal_s`: means over steps. `over_ideal`: measured step time over the ideal. `causes`: the cause, and
    micro-batches of different length where they hold beside it. `launch_slowdown`: measured step time over `t_s`: what
    delays between operations cost. `worst`: (dp_rank, stage) of the workers that M_W is about. `validity`: how far to
    trust it.
    """

    s: float
    waste: float
    t_s: float
    t_ideal_s: float
    launch_slowdown: float
    over_ideal: float
    per_step: pd.DataFrame
    workers: pd.DataFrame
    types: pd.DataFrame
    by_dp_rank: dict[int, float]
    by_stage: dict[int, float]
    by_op_type: dict[str, float]
    worst: tuple[tuple[int, int], ...]
    shares: Shares
    cause: str
    causes: tuple[str, ...]
    chips: int
    cost_chip_seconds: float
    validity: dict[str, Any]
    timeline: pd.DataFrame
    step: int
    dp_rank: int
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        return {
            "over_ideal": self.over_ideal,
            "s": self.s,
            "waste": self.waste,
            "cause": self.cause,
            "causes": list(self.causes),
            "m_w": self.shares.worker,
            "m_s": self.shares.last_stage,
            "by_worker": self.workers.to_dict("records"),
            "by_dp_rank": {str(k): v for k, v in self.by_dp_rank.items()},
            "by_stage": {str(k): v for k, v in self.by_stage.items()},
            "by_op_type": self.by_op_type,
            "worst_workers": [{"dp_rank": d, "stage": p} for d, p in self.worst],
            "share_of_slowest_stage": self.shares.stage,
            "stage_ratio": self.shares.stage_ratio,
            "share_of_gc": self.shares.gc,
            "microbatch_correlation": self.shares.correlation,
            "microbatch_variation": self.shares.variation,
            "t_s": self.t_s,
            "t_ideal_s": self.t_ideal_s,
            "launch_slowdown": self.launch_slowdown,
            "chips": self.chips,
            "cost_chip_seconds": self.cost_chip_seconds,
            "validity": self.validity,
            "ideal_s": {t: float(v) for t, v in zip(self.types["op_type"], self.types["ideal_s"], strict=True)},
            "per_step": self.per_step.to_dict("records"),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> SlowdownResult:
    """Raises QuestionError where the run has no pipeline operations, none whose waits can be followed, or no such
    step or data-parallel rank."""
    ops = load(tables)
    ideals = ideal_durations(ops)
    parts = [Replays(part, ideals) for part in ops.parts(PART_OPS)]
    trace = _Trace(ops, parts)
    s = trace.slowdown(trace.whole)
    by_stage = trace.slowdowns(trace.stages.tolist(), trace.of_stages)
    by_dp = trace.slowdowns(ops.dps.tolist(), trace.of_replicas)
    by_type = trace.slowdowns([NAMES[n] for n in trace.types], trace.of_types)
    workers = _workers(ops, by_dp, by_stage)
    shares, worst = _shares(trace, workers, by_stage)
    validity = trace.validity()
    chips, chips_known = _chips(ops, held(tables, facts))
    lost = float(np.nansum(trace.whole - trace.even))
    step, dp_rank = _shown(trace, by_dp, options)
    named = cause(s, shares, _whole_stage(workers, worst), validity["trusted"])
    return SlowdownResult(
        s=s,
        waste=max(1 - 1 / s, 0.0),
        t_s=float(np.nanmean(trace.whole)),
        t_ideal_s=float(np.nanmean(trace.even)),
        launch_slowdown=float(np.nansum(trace.measured) / np.nansum(trace.whole)),
        over_ideal=trace.slowdown(trace.measured),
        per_step=trace.per_step(),
        workers=workers,
        types=_types(ideals, by_type),
        by_dp_rank=by_dp,
        by_stage=by_stage,
        by_op_type=by_type,
        worst=worst,
        shares=shares,
        chips=chips,
        cause=named,
        causes=causes(named, shares) if validity["trusted"] else (named,),
        cost_chip_seconds=max(lost, 0.0) * chips,
        validity=validity,
        step=int(ops.steps[step]),
        dp_rank=int(ops.dps[dp_rank]),
        timeline=timeline(parts, step, dp_rank),
        notes=_notes(trace, shares, validity, chips_known),
    )


class _Trace:
    """Step times of the whole trace under each choice: arrays over its steps, NaN for a step left out."""

    def __init__(self, ops: PipelineOps, parts: list[Replays]):
        self.ops, self.parts = ops, parts
        self.stages = np.unique(ops.stage)
        self.types = np.unique(np.concatenate([part.type for part in parts]))
        recorded, kept, of_replicas = zip(*self._each(self._replays), strict=True)
        self.measured, self.replayed = np.concatenate(recorded).T
        self.of_replicas = np.concatenate(of_replicas)
        times = np.concatenate(kept)
        self.whole, self.even = times[:, 0], times[:, 1]
        self.measured = np.where(np.isnan(self.whole), np.nan, self.measured)  # a step left out is in no sum
        self.of_stages, self.of_types = times[:, 2 : 2 + len(self.stages)], times[:, 2 + len(self.stages) :]
        if np.isnan(self.whole).all():
            raise QuestionError(
                "no step of this trace can be replayed: its operations wait for each other in a circle",
                expected="start times of all ranks on one clock, and `seq` counted from 0 in each step",
            )
        if not np.nansum(self.even):
            raise QuestionError("no operation of this trace takes any time", expected="durations above 0")

    def _each(self, replays: Callable[[Replays], Any]) -> list[Any]:
        """Of each part in turn; some at a time, since NumPy lets go of the interpreter while it works."""
        with ThreadPoolExecutor(max_workers=min(_THREADS, len(self.parts))) as pool:
            return list(pool.map(replays, self.parts))

    def _replays(self, part: Replays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        every = np.ones(len(part.ops), bool)
        stages = [part.ops.stage == p for p in self.stages]
        choices = [every, ~every, *stages, *(part.type == t for t in self.types)]
        return part.recorded(), part.keeping(choices), part.keeping_each_replica(len(self.ops.dps))

    def slowdown(self, times: np.ndarray) -> float:
        """Summed times over ideal ones, in the steps that have both; NaN without any."""
        both = ~np.isnan(times)
        ideal = float(self.even[both].sum())
        return float(times[both].sum()) / ideal if ideal else math.nan

    def slowdowns(self, names: list[Any], times: np.ndarray) -> dict[Any, float]:
        """By name of the columns of `times`, less those that took part in no step."""
        found = {name: self.slowdown(column) for name, column in zip(names, times.T, strict=True)}
        return {name: s for name, s in found.items() if not math.isnan(s)}

    def shares_without(self, chosen: dict[str, Callable[[Replays], np.ndarray]]) -> dict[str, float]:
        """The share of the slowdown that is gone where the operations that `chosen[name](part)` names are ideal."""
        lost = float(np.nansum(self.whole - self.even))
        if lost <= _SMALL * float(np.nansum(self.even)) or not chosen:
            return {}
        times = np.concatenate(self._each(lambda p: p.keeping([~choose(p) for choose in chosen.values()])))
        return {name: float(np.nansum(self.whole - t)) / lost for name, t in zip(chosen, times.T, strict=True)}

    def per_step(self) -> pd.DataFrame:
        rows = pd.DataFrame(
            {
                "step": self.ops.steps,
                "measured_s": self.measured,
                "replayed_s": self.replayed,
                "t_s": self.whole,
                "t_ideal_s": self.even,
            }
        )
        rows = rows[rows["t_ideal_s"] > 0].reset_index(drop=True)
        return rows.assign(s=rows["t_s"] / rows["t_ideal_s"])

    def _largest_error(self) -> float:
        timed = self.measured > 0
        return float(np.abs(self.replayed[timed] / self.measured[timed] - 1).max(initial=0.0))

    def validity(self) -> dict[str, Any]:
        """How close the replay of the unmodified trace comes to it, with launch delays and without."""
        measured = float(np.nansum(self.measured))
        replay_error = abs(float(np.nansum(self.replayed)) / measured - 1) if measured else 0.0
        without_delays = abs(float(np.nansum(self.whole)) / measured - 1) if measured else 0.0
        return {
            "trusted": max(replay_error, without_delays) <= TRUSTED,
            "replay_error": replay_error,
            "largest_step_error": self._largest_error(),
            "error_without_launch_delays": without_delays,
            "steps": int((~np.isnan(self.whole)).sum()),
            "steps_left_out": int(np.isnan(self.whole).sum()),
            "lone_sends_and_receives": int(self.ops.lone.sum()),
            "dropped": dict(self.ops.dropped),
        }


def _workers(ops: PipelineOps, by_dp: dict[int, float], by_stage: dict[int, float]) -> pd.DataFrame:
    """Each place of the mesh that the trace has, slowest first."""
    rows = pd.DataFrame({"dp_rank": ops.dps[ops.dp], "stage": ops.stage}).drop_duplicates().astype(np.int64)
    rows["s"] = np.minimum(rows["dp_rank"].map(by_dp), rows["stage"].map(by_stage))
    return rows.dropna().sort_values(["s", "dp_rank", "stage"], ascending=[False, True, True]).reset_index(drop=True)


def _shares(
    trace: _Trace, workers: pd.DataFrame, by_stage: dict[int, float]
) -> tuple[Shares, tuple[tuple[int, int], ...]]:
    """What making parts ideal would give back, and which workers are the worst."""
    worst = workers.head(math.ceil(WORST * len(workers)))
    places = [(int(np.searchsorted(trace.ops.dps, d)), int(p)) for d, p in zip(worst.dp_rank, worst.stage, strict=True)]
    last, slowest, gc = int(trace.stages[-1]), max(by_stage, key=by_stage.__getitem__), NAMES.index("gc")
    staged = len(trace.stages) > 1
    chosen: dict[str, Callable[[Replays], np.ndarray]] = {}
    if len(workers) > 1:
        chosen["worker"] = lambda p: np.any([(p.ops.dp == d) & (p.ops.stage == s) for d, s in places], axis=0)
    if staged:
        chosen |= {"last": lambda p: p.ops.stage == last, "stage": lambda p: p.ops.stage == slowest}
    if gc in trace.types:
        chosen["gc"] = lambda p: p.type == gc
    gone = trace.shares_without(chosen)
    correlation, variation = microbatches(trace.ops)
    return Shares(
        worker=gone.get("worker"),
        last_stage=gone.get("last"),
        stage=gone.get("stage"),
        gc=gone.get("gc"),
        stage_ratio=stage_ratio(trace.ops, slowest) if staged else None,
        correlation=correlation,
        variation=variation,
    ), tuple(zip(worst.dp_rank.tolist(), worst.stage.tolist(), strict=True))


def _whole_stage(workers: pd.DataFrame, worst: tuple[tuple[int, int], ...]) -> bool:
    """Whether the worst workers are all those of a stage."""
    return all(set(workers.loc[workers["stage"] == s, "dp_rank"]) <= {d for d, p in worst if p == s} for _, s in worst)


def _types(ideals: pd.DataFrame, by_type: dict[str, float]) -> pd.DataFrame:
    rows = ideals[["op_type", "count"]].copy()
    for column in ("ideal", "mean", "longest"):
        rows[f"{column}_s"] = ideals[f"{column}_ns"] / 1e9
    rows["s"] = rows["op_type"].map(by_type)
    return rows.sort_values("s", ascending=False).reset_index(drop=True)


def _chips(ops: PipelineOps, found: Held) -> tuple[int, bool]:
    """Chips of the job and whether they are known: where they are not, one for each rank of the trace."""
    return (found.chips, True) if found.chips else (ops.workers, False)


def _shown(trace: _Trace, by_dp: dict[int, float], options: dict[str, Any]) -> tuple[int, int]:
    """Numbers of the step and of the data-parallel rank whose timeline is kept."""
    chosen = []
    worst_dp = int(np.searchsorted(trace.ops.dps, max(by_dp, key=by_dp.__getitem__)))
    with np.errstate(invalid="ignore", divide="ignore"):
        slowest = int(np.nanargmax(np.where(trace.even > 0, trace.whole / trace.even, np.nan)))
    for name, values, default in (("step", trace.ops.steps, slowest), ("dp_rank", trace.ops.dps, worst_dp)):
        wanted = options.get(name)
        at = default if wanted is None else int(np.searchsorted(values, wanted))
        if at >= len(values) or (wanted is not None and values[at] != wanted):
            raise QuestionError(
                f"no {name.replace('_', ' ')} {wanted} in this trace",
                expected=f"one of {len(values):,} from {values[0]} to {values[-1]}",
            )
        chosen.append(at)
    return chosen[0], chosen[1]


def _notes(trace: _Trace, shares: Shares, validity: dict[str, Any], chips_known: bool) -> tuple[str, ...]:
    ops, notes = trace.ops, []
    notes.append(
        f"{fmt.count(validity['steps'], 'step')} of {fmt.count(ops.workers, 'rank')} "
        f"{'was' if validity['steps'] == 1 else 'were'} replayed; with launch delays the replay differs from the trace "
        f"by {validity['replay_error']:.3%}, without by {validity['error_without_launch_delays']:.2%}."
    )
    notes.append("Launch delays (between the end of what an operation waits for and its start) are no part of S.")
    if not validity["trusted"]:
        notes.append("Replay and trace differ by more than 5 %: S cannot be trusted, and no cause is named.")
    if validity["steps_left_out"]:
        notes.append(
            f"{fmt.count(validity['steps_left_out'], 'step was', 'steps were')} left out: operations "
            "there wait for each other in a circle."
        )
    if validity["lone_sends_and_receives"]:
        notes.append(
            f"{validity['lone_sends_and_receives']} sends and receives have no peer in the trace; they keep "
            "their recorded durations."
        )
    said = {
        "unknown": "rows are of no known type of operation",
        "incomplete": "rows lack a place or a time",
        "repeated": "rows repeat another",
        "early": "operations end before the last of their group has started: "
        "clocks of ranks differ, or groups are matched wrongly",
    }
    notes += [f"{n:,} {said[why]}." for why, n in ops.dropped.items()]
    if len(ops.dps) == 1 and len(trace.stages) > 1:
        notes.append("With one data-parallel rank a slow worker cannot be told from a long stage.")
    if shares.correlation is not None:
        notes.append(
            f"Forward and backward durations of micro-batches correlate by {shares.correlation:.2f}; they "
            f"vary by {shares.variation:.1%} of the mean of their rank."
        )
    if not chips_known:
        notes.append("The run does not say how many chips it had; the ranks of the trace are counted.")
    notes.append(f"The worst {WORST:.0%} of workers, at least one, count for M_W.")
    return tuple(notes)


__all__ = ["CAUSES", "OPTIONS", "SlowdownResult", "analyze"]
