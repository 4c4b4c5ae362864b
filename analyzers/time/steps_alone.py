"""Steps without the pauses in them that the job recorded: saves, evaluations, custom events."""

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.time.history import History
from analyzers.time.job_past import job_past
from analyzers.time.pauses import paused_ns
from runs.tables import Tables


def alone_ns(tables: Tables, facts: Facts, past: History) -> pd.Series:
    """The time of each step less recorded pauses: marks of a job tell a step from its beginning to that of the next, a
    save between them included. A pause that holds a whole step held nothing up in it. `facts`: those of `past`."""
    rows = past.rows
    days = job_past(tables, facts)[1] if past.origin != "profile" and tables.rows("lifecycle") else None
    if days is None:
        return rows["dur_ns"]
    timed = (rows["start_ns"].notna() & rows["dur_ns"].notna()).to_numpy(dtype=bool)
    begin, took = (rows.loc[timed, c].to_numpy(dtype=np.int64) for c in ("start_ns", "dur_ns"))
    alone = rows["dur_ns"].copy()
    less = took - paused_ns(days.painting, begin, begin + took, past.origin == "step lines")
    alone[timed] = np.where(less > 0, less, took)
    return alone
