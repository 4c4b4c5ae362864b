"""The hit rate of a whole log from the rates of a prefix cache that it prints, each of the newest requests alone.

vLLM prints the rate of its newest 1,000 requests, so that until then each rate is of all requests so far, and the last
such rate that of all. As long as the printed rates can be of all tokens so far (the tokens found that they mean never
fall, nor grow by more than the prompts that came) they are taken to be. From there on each rate counts for the prompt
tokens that came since the line before.
"""

import numpy as np
import pandas as pd

SLACK = 0.02  # of the tokens so far: rates are rounded, and a prompt is looked up before it is read


def overall(rows: pd.DataFrame) -> float | None:
    """The rate over all samples; None where none is printed. Columns: replica, t_s, hit_rate, prompt (tokens)."""
    rows = rows[rows["hit_rate"].between(0, 1)]
    if not len(rows):
        return None
    parts = [_of_one(mine.sort_values("t_s", kind="stable")) for _, mine in rows.groupby("replica", sort=False)]
    found, tokens = np.array(parts).T
    known = tokens[~np.isnan(tokens)]
    usual = float(known.mean()) if len(known) else 1.0  # a server whose prompts are not told counts like the others
    weights = np.where(np.isnan(tokens), usual, tokens)
    weights = weights if weights.sum() > 0 else np.ones(len(parts))
    return float((found * weights).sum() / weights.sum())


def _of_one(rows: pd.DataFrame) -> tuple[float, float]:
    """(rate, prompt tokens) of one server; the second NaN where not all are told."""
    rate = rows["hit_rate"].to_numpy(dtype=float)
    if rows["prompt"].isna().any():
        return float(rate.mean()), float("nan")
    came = rows["prompt"].to_numpy(dtype=float)
    so_far = came.cumsum()
    if not so_far[-1] > 0:
        return float(rate[-1]), 0.0
    grew = np.diff(rate * so_far, prepend=0.0)
    slack = SLACK * so_far
    fits = (grew >= -slack) & (grew <= came + np.concatenate(([0.0], came[:-1])) + slack)
    first = len(rate) if fits.all() else max(int(np.argmin(fits)), 1)  # lines up to there tell of all so far
    hits = rate[first - 1] * so_far[first - 1] + float((rate[first:] * came[first:]).sum())
    return hits / so_far[-1], float(so_far[-1])
