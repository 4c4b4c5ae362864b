"""How long one iteration of an engine takes: a part that every iteration pays, and a part for each token in it.

    duration = overhead + tokens x time per token

fitted by Theil and Sen: the slope is the median of the slopes of all pairs (of at most 1,200 iterations), the
intercept the median of what remains, so that stalls and first compilations do not bend it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.serving.recorded import recorded
from runs.tables import Tables

FITTED = 1200
DRAWN = 1500
FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class IterationFit:
    """`overhead_s`, `per_token_s`: of the line; `spread`: median of |duration / line - 1|; `iterations`: all counted.

    `overhead_s` is not below 0; `per_token_s` may be, where the tokens of an iteration tell nothing of its duration.
    """

    iterations: int
    overhead_s: float
    per_token_s: float
    spread: float

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def iterations(tables: Tables, replica: str | None) -> tuple[pd.DataFrame, IterationFit | None]:
    """(iterations to draw: tokens, dur_s, prefill_tokens, decode_requests; the line through all of them).

    Tokens: of prompts, of answers, drafted beyond those kept, and padding: all that the pass computed. Every n-th is
    drawn where there are many. Empty and None where the run records no iterations.
    """
    columns = [
        "replica",
        "dur_ns",
        "prefill_tokens",
        "decode_tokens",
        "drafted_tokens",
        "accepted_tokens",
        "padded_tokens",
        "decode_requests",
        "prefill_requests",
    ]
    rows, _ = recorded(tables, columns)
    if replica is not None:
        rows = rows[rows["replica"].astype(str) == replica]
    rows = rows[rows["dur_ns"].notna() & (rows["dur_ns"] > 0)]
    values = {c: rows[c].to_numpy(dtype=float, na_value=0.0) for c in columns[1:]}
    rejected = np.maximum(values["drafted_tokens"] - values["accepted_tokens"], 0)
    tokens = values["prefill_tokens"] + values["decode_tokens"] + rejected + values["padded_tokens"]
    table = pd.DataFrame(
        {
            "tokens": tokens,
            "dur_s": values["dur_ns"] / 1e9,
            "prefill_tokens": values["prefill_tokens"],
            "decode_requests": values["decode_requests"],
        }
    )
    table = table[table["tokens"] > 0].reset_index(drop=True)
    return _every(table, DRAWN), _fit(table)


def _every(table: pd.DataFrame, most: int) -> pd.DataFrame:
    if len(table) <= most:
        return table
    return table.iloc[np.linspace(0, len(table) - 1, most).astype(np.int64)].reset_index(drop=True)


def _fit(table: pd.DataFrame) -> IterationFit | None:
    some = _every(table, FITTED)
    x, y = some["tokens"].to_numpy(), some["dur_s"].to_numpy()
    if len(x) < FEWEST or x.min() == x.max():
        return None
    across = x[None, :] - x[:, None]
    pairs = across > 0
    slope = float(np.median((y[None, :] - y[:, None])[pairs] / across[pairs]))
    overhead = max(float(np.median(y - slope * x)), 0.0)
    line = overhead + slope * x
    good = line > 0
    spread = float(np.median(np.abs(y[good] / line[good] - 1))) if good.any() else 0.0
    return IterationFit(iterations=len(table), overhead_s=overhead, per_token_s=slope, spread=spread)
