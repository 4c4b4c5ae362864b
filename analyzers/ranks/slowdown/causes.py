"""Why a pipeline-parallel job is slower than it would be with even durations."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.ranks.slowdown.ops import COMPUTE, KINDS, PipelineOps, codes, joined

EVEN = 1.05  # a slowdown below this is none worth naming
MOST = 0.5  # of the slowdown: what explains this share is the cause
LONGER = 1.05  # than the other stages: below it a stage is none that takes longer
NEARLY = 0.8  # of what another part explains: too close to prefer the larger part
CORRELATED = 0.9  # forward and backward durations over micro-batches, above which their lengths differ
VARIED = 0.05  # standard deviation of micro-batches against the mean of their rank, below which they are alike
CAUSES: dict[str, str] = {
    "none": "durations are even enough",
    "worker": "a few ranks are slower than their peers of other data-parallel ranks",
    "last stage": "the last pipeline stage takes longer than the others, on all data-parallel ranks",
    "stage": "one pipeline stage takes longer than the others, on all data-parallel ranks",
    "sequence imbalance": "micro-batches differ in length, so forward and backward passes differ together",
    "garbage collection": "ranks pause at different times to collect garbage",
    "unknown": "no single cause explains most of it",
}


@dataclass(frozen=True)
class Shares:
    """Which share of the slowdown is gone when a part of the trace is made ideal; None where that cannot be said.

    `worker`: the slowest 3 % of the workers (M_W); `last_stage` (M_S); `stage`: the slowest stage; `gc`.
    `stage_ratio`: computing time of the slowest stage over the mean of the other stages.
    `correlation`, `variation`: of forward with backward durations, and of both, over the micro-batches of a rank.
    """

    worker: float | None
    last_stage: float | None
    stage: float | None
    gc: float | None
    stage_ratio: float | None
    correlation: float | None
    variation: float | None


def cause(s: float, shares: Shares, whole_stage: bool, trusted: bool) -> str:
    """A name of CAUSES: what explains most of the slowdown; failing that, micro-batches whose passes differ together.

    Pauses come first: a rank that pauses is a slow one. A stage explains what its slow workers do, so workers come
    before stages, unless they are a whole stage (`whole_stage`: all its data-parallel ranks) or it explains far more.
    """
    if not trusted:
        return "unknown"
    if s < EVEN:
        return "none"
    worker, stage, last = shares.worker or 0.0, shares.stage or 0.0, shares.last_stage or 0.0
    if (shares.gc or 0.0) >= max(MOST, NEARLY * worker, NEARLY * stage):
        return "garbage collection"
    if (shares.stage_ratio or 0.0) < LONGER:
        stage = last = 0.0  # its operations are no longer than those of others: it shares what befalls all
    if not whole_stage and worker >= max(MOST, NEARLY * stage):
        return "worker"
    if last >= MOST and last >= NEARLY * stage:
        return "last stage"
    if stage >= MOST:
        return "stage"
    if worker >= MOST:
        return "worker"
    if differ_in_length(shares):
        return "sequence imbalance"
    return "unknown"


def differ_in_length(shares: Shares) -> bool:
    """Whether the passes of micro-batches differ together, as those of sequences of different length do."""
    return (shares.correlation or 0.0) >= CORRELATED and (shares.variation or 0.0) >= VARIED


def causes(first: str, shares: Shares) -> tuple[str, ...]:
    """The cause and, beside one that does not come of it, micro-batches of different length where they hold too."""
    beside = first not in ("none", "sequence imbalance") and differ_in_length(shares)
    return (first, "sequence imbalance") if beside else (first,)


def stage_ratio(ops: PipelineOps, stage: int) -> float | None:
    """Mean computing time of a rank and step in the stage, over the mean of those in the other stages; None without."""
    at = np.flatnonzero(np.isin(ops.kind, codes(*COMPUTE)))
    place = joined(ops.step[at], ops.worker[at])
    spent = pd.DataFrame({"place": place, "here": ops.stage[at] == stage, "spent": ops.spent_ns[at].astype(float)})
    mean = spent.groupby(["here", "place"])["spent"].sum().groupby("here").mean()
    return float(mean[True] / mean[False]) if {True, False} <= set(mean.index) and mean[False] else None


def microbatches(ops: PipelineOps) -> tuple[float | None, float | None]:
    """(correlation, variation) of the compute of micro-batches, each against the mean of its rank.

    Pearson's correlation of forward and backward durations of the same micro-batch on the same rank in the same step,
    each over the mean of its rank (and model chunk) in the trace, so that a slow rank or a long stage does not count.
    Variation: the standard deviation of their summed duration over that mean. None under three pairs.
    """
    paired = []
    for name in ("forward-compute", "backward-compute"):
        at = np.flatnonzero((ops.kind == KINDS.index(name)) & (ops.microbatch >= 0))
        paired.append(
            pd.DataFrame(
                {
                    "place": joined(ops.worker[at], ops.chunk[at] + 1, ops.step[at], ops.microbatch[at]),
                    "rank": joined(ops.worker[at], ops.chunk[at] + 1),
                    "spent": ops.spent_ns[at],
                }
            ).drop_duplicates("place")
        )
    both = paired[0].merge(paired[1][["place", "spent"]], on="place", suffixes=("_f", "_b"))
    if len(both) < 3:
        return None, None
    relative = [(both[c] / both.groupby("rank")[c].transform("mean")).fillna(1.0) for c in ("spent_f", "spent_b")]
    whole = both["spent_f"] + both["spent_b"]
    even = (whole / whole.groupby(both["rank"]).transform("mean")).fillna(1.0)
    varied = all(float(r.std()) > 1e-9 for r in relative)
    return (float(np.corrcoef(*relative)[0, 1]) if varied else None), float(even.std())
