"""Which rows of `collectives` count: of two sources that may tell of the same collectives, the one that tells more.

NCCL's Inspector times what a profile of the same ranks shows too, with neither device nor capture. Which of its rows
are the profile's nothing tells, as its processes are no ranks: where profiles show collectives, these alone count.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from errors import format as fmt
from runs.tables import Tables

NEEDED = ["capture", "op", "start_ns", "end_ns"]
_INSPECTED = "nccl:"  # what operations of the Inspector begin with


def counted(rows: pa.Table) -> np.ndarray:
    """Of rows of `collectives` with at least NEEDED, which have both times, and are none that profiles may show too."""
    timed = pc.and_(rows["start_ns"].is_valid(), rows["end_ns"].is_valid()).to_numpy(zero_copy_only=False)
    profiled = rows["capture"].is_valid().to_numpy(zero_copy_only=False)
    if profiled.all() or not (timed & profiled).any():
        return timed
    alone = np.flatnonzero(~profiled)
    names = rows["op"].take(pa.array(alone, pa.int64())).cast(pa.string())
    timed[alone[pc.starts_with(names, _INSPECTED).fill_null(False).to_numpy(zero_copy_only=False)]] = False
    return timed


def told_twice(tables: Tables) -> tuple[str, ...]:
    """What is said of operations that the Inspector timed and that do not count, as profiles show collectives."""
    rows = tables.arrow("collectives", NEEDED)
    profiled = rows["capture"].is_valid().to_numpy(zero_copy_only=False)
    count = tables.rows("collective_times")
    if not count or not (counted(rows) & profiled).any():
        return ()
    return (
        f"Without {fmt.count(count, 'operation')} that NCCL's Inspector timed: profiles show collectives of this run "
        "too, and nothing tells which of them are the same.",
    )
