"""The loads of a load test: what its tool summed up for each, one row a load."""

import pandas as pd

from analyzers.base import Facts, fact
from runs.tables import Tables, frame


def loads(tables: Tables) -> pd.DataFrame:
    """One row a load in the order of the inputs, columns as in the table `stages`; empty where the run has none.

    A load of which several files tell, under one name, is there once: as the first of them has it.
    """
    rows = frame(tables, "stages")
    rows = rows.sort_values(["source", "order"], kind="stable")
    return rows[~rows.duplicated("stage") | rows["stage"].isna()].reset_index(drop=True)


def printed(tables: Tables) -> pd.DataFrame:
    """What tools printed: rows are loads, columns (metric, statistic) as in the table `stage_stats`.

    Where one was printed twice the first counts.
    """
    rows = frame(tables, "stage_stats")
    rows = rows.astype({"stage": str, "metric": str, "statistic": str})
    rows = rows.drop_duplicates(["stage", "metric", "statistic"])
    return rows.pivot(index="stage", columns=["metric", "statistic"], values="value").astype(float)


AGREES = 0.05  # a printed rate that is further from its own count over the duration is of something else


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
    single = frame(tables, "requests", ["stage"])["stage"].dropna().astype(str)
    return tuple(dict.fromkeys([*summed, *single.unique()]))


def invalid_by(facts: Facts) -> str | None:
    """What a tool says against its own result, as a sentence; None where it says nothing."""
    result = fact(facts, "mlperf_result")
    if isinstance(result, str) and result.upper() != "VALID":
        why = fact(facts, "mlperf_invalid_reason")
        return f"LoadGen calls this result {result}{f': {why}' if why else ''}. It is no result of MLPerf."
    if fact(facts, "aiperf_submission_valid") is False:
        return "AIPerf says that this is no valid submission."
    return None
