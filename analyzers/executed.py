"""What the executed programs say of their FLOPs: how many a profile saw, and which part of them was done again."""

from dataclasses import dataclass

import pandas as pd

from analyzers.device_time import NOT_COMPUTE
from runs.tables import Tables, frame


@dataclass(frozen=True)
class Executed:
    """FLOPs of all operations that profiled devices executed, and the part spent on rematerialised operations.

    `flops` = sum over operations of count x FLOPs of one execution; `recomputed` = the same, each program's
    operations taken by that program's own share of rematerialised FLOPs. 0 where no program was kept.
    """

    flops: float
    recomputed: float

    @property
    def recomputed_share(self) -> float:
        return self.recomputed / self.flops if self.flops else 0.0


def executed(tables: Tables) -> Executed:
    """Summed over all captures, hosts and devices."""
    ops = frame(tables, "ops", ["capture", "program", "role", "category", "count", "flops"])
    ops = ops[(ops["role"] == "compute") & (ops["flops"] > 0) & ~ops["category"].isin(NOT_COMPUTE)]
    if not len(ops):
        return Executed(0.0, 0.0)
    each = ops["count"].astype(float) * ops["flops"].astype(float)
    done = each.groupby([ops["capture"], ops["program"]]).sum()
    programs = frame(tables, "modules", ["capture", "program", "flops", "remat_flops"])
    programs = programs[(programs["flops"] > 0) & programs["program"].notna()]
    share = (programs["remat_flops"].astype(float) / programs["flops"].astype(float)).fillna(0.0)
    share = share.set_axis(pd.MultiIndex.from_frame(programs[["capture", "program"]]))
    share = share[~share.index.duplicated()].reindex(done.index).fillna(0.0)
    return Executed(float(each.sum()), float((done * share).sum()))
