"""The loads of a load test: what its tool summed up for each, one row a load."""

import pandas as pd

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


def stage_names(tables: Tables) -> tuple[str, ...]:
    """Every load that has a summary or requests, in the order of the inputs."""
    summed = loads(tables)["stage"].dropna().astype(str)
    single = frame(tables, "requests", ["stage"])["stage"].dropna().astype(str)
    return tuple(dict.fromkeys([*summed, *single.unique()]))
