"""Why a request missed its objectives: each that did has exactly one cause, found in this order.

    failed       it did not complete
    unknown      a latency that an objective is about is not known, or cannot be true
    queue        TTFT late: the queue alone took longer than allowed, or took the larger part
                 E2E late, the rest in time: without the queue it would have been in time, or the queue alone took
                 longer than allowed
    prefill      TTFT late, and prefill took the larger part; or without it E2E would have been in time
    first_token  TTFT late (or the cause of a late E2E), and nothing tells queue from prefill
    preempted    tokens late (TPOT or ITL): it was preempted, and its longest gaps, one for each preemption, are at
                 least half of what it was late; where no gaps are recorded its being preempted is enough
    stalled_by_prefill   tokens late, at least half of it because passes in its decode also read other prompts
    decode       tokens late for neither reason: passes were slow throughout. E2E late, the rest in time: it would have
                 been in time at the TPOT objective (without one, at the run's median TPOT)
    length       E2E late for none of these: it would have been in time only with fewer tokens

Where there is more than one reason the first token counts before the tokens after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.serving.latency.passes import engine
from analyzers.serving.latency.summary import since
from analyzers.serving.served import Served

HALF = 0.5  # of the lateness: what explains that much is the cause
CAUSES: dict[str, str] = {
    "failed": "did not complete",
    "queue": "waited too long in the queue",
    "prefill": "its prompt was read too slowly",
    "first_token": "first token late, queue or prefill is not told",
    "preempted": "was preempted",
    "stalled_by_prefill": "its tokens waited for the prompts of others",
    "decode": "tokens came too slowly throughout",
    "length": "in time only with fewer tokens",
    "unknown": "its latency is not known",
}


@dataclass(frozen=True)
class Judged:
    """Of each row of `Served.rows`: `good` (completed within all objectives) and `cause` ("" where it is good).

    `known` {objective: whether its latency is known or, with one token or none, needs none}, `met` {objective: whether
    it completed within that one alone}.
    """

    good: np.ndarray
    cause: np.ndarray
    known: dict[str, np.ndarray]
    met: dict[str, np.ndarray]


def judge(of: Served, values: Mapping[str, np.ndarray], objectives: Mapping[str, float]) -> Judged:
    """Every request against the objectives. `values`: {objective: its latency of each row in s, NaN unknown}."""
    rows = of.rows
    done = rows["completed"].to_numpy()
    few = (rows["output_tokens"] <= 1).fillna(False).to_numpy(dtype=bool) & (rows["out_of"] == "").to_numpy()
    known, met = {}, {}
    for name in objectives:
        needless = few & done if name in ("tpot_s", "itl_s") else np.zeros(len(rows), dtype=bool)
        known[name] = ~np.isnan(values[name]) | needless
        met[name] = done & known[name] & ~(values[name] > objectives[name])
    good = np.logical_and.reduce([done, *met.values()])
    cause = np.full(len(rows), "", dtype=object)
    cause[~done] = "failed"
    open_ = done & ~good
    cause[open_ & ~np.logical_and.reduce(list(known.values()))] = "unknown"
    missed = {n: (cause == "") & open_ & ~met[n] for n in objectives}
    if "ttft_s" in objectives:
        _first(cause, missed["ttft_s"], rows, objectives["ttft_s"])
    slow = np.zeros(len(rows), dtype=bool)
    for name in ("tpot_s", "itl_s"):
        slow |= missed.get(name, slow) & (cause == "")
    if slow.any():
        _tokens(cause, np.flatnonzero(slow), of, objectives)
    if "e2e_s" in objectives:
        _whole(cause, missed["e2e_s"] & (cause == ""), rows, objectives)
    return Judged(good, cause, known, met)


def _first(cause: np.ndarray, late: np.ndarray, rows: pd.DataFrame, most: float) -> None:
    queue, prefill = rows["queue_s"].to_numpy(dtype=float), rows["prefill_s"].to_numpy(dtype=float)
    told = ~np.isnan(queue) & ~np.isnan(prefill)
    waited = (queue > most) | (queue >= prefill)
    cause[late] = np.select([~told[late], waited[late]], ["first_token", "queue"], "prefill")


def _tokens(cause: np.ndarray, at: np.ndarray, of: Served, objectives: Mapping[str, float]) -> None:
    """TPOT or ITL late. What is judged is the decode time beyond what the objective allows for so many tokens; of an
    ITL objective alone, beyond what the median TPOT would have taken."""
    rows = of.rows.iloc[at]
    tokens = rows["output_tokens"].to_numpy(dtype=float, na_value=np.nan)
    decode = rows["decode_s"].to_numpy(dtype=float)
    allowed = objectives.get("tpot_s", float(np.nanmedian(of.rows["tpot_s"])))
    excess = np.maximum(decode - allowed * (tokens - 1), 0.0)
    preempted = rows["preemptions"].to_numpy(dtype=float, na_value=0.0)
    longest = _longest_gaps(of, at, preempted)
    back = (preempted > 0) & (np.isnan(longest) | (longest >= HALF * excess))
    added = _added_by_prefill(of, rows)
    stalled = ~back & (added >= HALF * excess) & (added > 0)
    cause[at] = np.select([back, stalled], ["preempted", "stalled_by_prefill"], "decode")


def _longest_gaps(of: Served, at: np.ndarray, preempted: np.ndarray) -> np.ndarray:
    """Sum of the longest gaps of each request, as many as it was preempted; NaN where no gaps of it are recorded."""
    found = np.full(len(at), np.nan)
    if not (preempted > 0).any():
        return found
    seconds, owner = of.gaps
    for i in np.flatnonzero(preempted > 0):
        own = seconds[np.searchsorted(owner, at[i], "left") : np.searchsorted(owner, at[i], "right")]
        if len(own):
            found[i] = np.sort(own)[-int(preempted[i]) :].sum()
    return found


def _added_by_prefill(of: Served, rows: pd.DataFrame) -> np.ndarray:
    """Seconds that reading prompts added to passes between first and last token; NaN where not recorded."""
    nothing = np.full(len(rows), np.nan)
    if of.origin_ns is None:
        return nothing
    begin = since(rows["arrival_ns"], of.origin_ns) + rows["ttft_s"].to_numpy(dtype=float)
    share = engine(of.tables, of.origin_ns).share(
        rows["replica"].reset_index(drop=True), begin, begin + rows["decode_s"].to_numpy(dtype=float)
    )
    return nothing if share is None else share.added


def _whole(cause: np.ndarray, late: np.ndarray, rows: pd.DataFrame, objectives: Mapping[str, float]) -> None:
    most = objectives["e2e_s"]
    some = rows[late]
    e2e, ttft, queue, prefill, tpot = (
        some[n].to_numpy(dtype=float) for n in ("e2e_s", "ttft_s", "queue_s", "prefill_s", "tpot_s")
    )
    usual = objectives.get("tpot_s", float(np.nanmedian(rows["tpot_s"].to_numpy(dtype=float))) if len(rows) else np.nan)
    after = np.maximum(some["output_tokens"].to_numpy(dtype=float, na_value=np.nan) - 1, 0.0)
    told = ~np.isnan(queue) & ~np.isnan(prefill)
    choices = (
        ((e2e - queue <= most) | (queue > most), "queue"),
        (ttft + after * np.minimum(tpot, usual) <= most, "decode"),
        (told & (e2e - prefill <= most), "prefill"),
        (~told & ((e2e - ttft <= most) | (ttft > most)), "first_token"),
        (told & ((e2e - ttft <= most) | (ttft > most)) & (queue >= prefill), "queue"),
        (told & ((e2e - ttft <= most) | (ttft > most)), "prefill"),
    )
    cause[late] = np.select([c for c, _ in choices], [name for _, name in choices], "length")
