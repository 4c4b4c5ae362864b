"""One step of a pipeline-parallel trace, as it was and as it would have been with ideal durations."""

import numpy as np
import pandas as pd

from analyzers.ranks.slowdown.graph import replay
from analyzers.ranks.slowdown.ops import KINDS
from analyzers.ranks.slowdown.times import Replays


def timeline(parts: list[Replays], step: int, dp: int) -> pd.DataFrame:
    """Operations of the step with number `step` on the data-parallel rank with number `dp`, by stage and start.

    Columns: stage, rank_of_stage, op_type, microbatch (-1: none), start_s, dur_s, wait_s (what of `dur_s` was spent
    waiting for peers), ideal_start_s, ideal_dur_s. Seconds since the first start of the step. An ideal transfer starts
    when the last of its peers is there: ideal waiting is not drawn. Raises IndexError for a step that no part holds.
    """
    part, step = _part_with(parts, step)
    ops = part.ops
    ends = replay(part.graph, part.ideal_ns[:, None])[:, 0] / 1e9
    at = np.flatnonzero((ops.step == step) & (ops.dp == dp))
    ideal = part.ideal_ns[at] / 1e9
    rows = pd.DataFrame(
        {
            "stage": ops.stage[at],
            "rank_of_stage": ops.lane[at],
            "op_type": np.array(KINDS)[ops.kind[at]],
            "microbatch": ops.microbatch[at],
            "start_s": ops.start_ns[at] / 1e9,
            "dur_s": ops.dur_ns[at] / 1e9,
            "wait_s": np.maximum(ops.dur_ns[at] - ops.spent_ns[at], 0) / 1e9,
            "ideal_start_s": ends[at] - ideal,
            "ideal_dur_s": ideal,
        }
    )
    return rows.sort_values(["stage", "rank_of_stage", "start_s"], kind="stable").reset_index(drop=True)


def _part_with(parts: list[Replays], step: int) -> tuple[Replays, int]:
    """The part that holds the step with this number of all, and its number there."""
    for part in parts:
        if step < len(part.ops.steps):
            return part, step
        step -= len(part.ops.steps)
    raise IndexError("no part holds this step")
