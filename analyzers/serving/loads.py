"""The loads of a load test: what its tool summed up for each, one row a load."""

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.serving.loads_told_twice import told_twice, without
from runs.tables import Tables, frame


def loads(tables: Tables) -> pd.DataFrame:
    """One row a load in the order of the inputs, columns as in the table `stages`; empty where the run has none.

    A load of which several files tell is there once: under one name as the first of them has it, and of a result and
    what was printed of it the result (see `loads_told_twice`).
    """
    rows = frame(tables, "stages")
    rows = rows[~rows["stage"].astype(object).isin(told_twice(tables))].sort_values(["source", "order"], kind="stable")
    return rows[~rows.duplicated("stage") | rows["stage"].isna()].reset_index(drop=True)


def printed(tables: Tables) -> pd.DataFrame:
    """What tools printed: rows are loads, columns (metric, statistic) as in the table `stage_stats`.

    Where one was printed twice the first counts. Where answers of several tokens took no longer than to their first, in
    mean and median, they came in one piece: the time to the first token is that of the whole, and not told.
    """
    rows = frame(tables, "stage_stats")
    rows = rows.astype({"stage": str, "metric": str, "statistic": str})
    twice = told_twice(tables)
    rows = rows.iloc[np.argsort(rows["stage"].isin(twice), kind="stable")]
    rows["stage"] = rows["stage"].replace(twice)
    rows = rows.drop_duplicates(["stage", "metric", "statistic"])
    found = rows.pivot(index="stage", columns=["metric", "statistic"], values="value").astype(float)
    if whole := _in_one_piece(tables, found):
        found.loc[whole, found.columns.get_level_values(0) == "ttft"] = float("nan")
    return found


def _in_one_piece(tables: Tables, found: pd.DataFrame) -> list[str]:
    pairs = [(("ttft", s), ("e2e", s)) for s in ("mean", "p50") if {("ttft", s), ("e2e", s)} <= set(found.columns)]
    if len(pairs) < 2:
        return []
    same = pd.concat([found[a] == found[b] for a, b in pairs], axis=1).all(axis=1)
    if not same.any():
        return []
    tokens = loads(tables).dropna(subset=["stage", "output_tokens", "completed"])
    several = set(tokens["stage"].astype(str)[(tokens["output_tokens"] > tokens["completed"]).to_numpy(dtype=bool)])
    return [stage for stage in found.index[same.to_numpy()] if stage in several]


AGREES = 0.05  # a printed rate that is further from its own count over the duration is of something else
SHORTER = 0.999  # a printed duration below this part of what the requests span cannot be theirs


def duration_of(printed_s: float | None, spans_s: float | None) -> float | None:
    """Seconds that a load took: as its tool printed it, unless its requests span more, or it printed none."""
    if printed_s is None or (spans_s is not None and printed_s < SHORTER * spans_s):
        return spans_s
    return printed_s


def rate_of(amount: float | None, duration_s: float | None, printed: float | None) -> float | None:
    """A rate of a load: its count over its duration where that is what its tool printed, which has more digits; else
    as printed. Means over moments (GuideLLM) and rounded prints agree; None where nothing is known."""
    if amount is None or not duration_s or not duration_s > 0:
        return printed
    computed = amount / duration_s
    if printed is None or abs(computed - printed) <= AGREES * abs(printed):
        return computed
    return printed


def stage_names(tables: Tables) -> tuple[str, ...]:
    """Every load that has a summary or requests, in the order of the inputs."""
    summed = loads(tables)["stage"].dropna().astype(str)
    single = without(tables, frame(tables, "requests", ["stage"]))["stage"].dropna().astype(str)
    return tuple(dict.fromkeys([*summed, *single.unique()]))


def not_answered(stage: str, to_send: float, completed: float) -> str:
    """What must be said of a load of which how many requests failed is not told."""
    return (
        f"{stage}: of {to_send:,.0f} requests that were to be sent {completed:,.0f} were answered. Whether the others "
        "failed is not told."
    )


def invalid_by(facts: Facts) -> str | None:
    """What a tool says against its own result, as a sentence; None where it says nothing."""
    result = fact(facts, "mlperf_result")
    if isinstance(result, str) and result.upper() != "VALID":
        why = fact(facts, "mlperf_invalid_reason")
        return f"LoadGen calls this result {result}{f': {why}' if why else ''}. It is no result of MLPerf."
    if fact(facts, "aiperf_submission_valid") is False:
        return "AIPerf says that this is no valid submission."
    return None
