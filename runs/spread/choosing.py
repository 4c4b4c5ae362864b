"""Which engine does it, by what a person says."""

import os

from runs.spread.engine import Engine

LOCAL = "local"
CLUSTER_VARIABLE = "CHIPLEDGER_CLUSTER"


def configured() -> str:
    """What the machine's settings say of it; empty where they say nothing."""
    return os.environ.get(CLUSTER_VARIABLE, "")


def engine_of(cluster: str, priority: int = 0) -> Engine:
    """The engine at `cluster`: the address of a Dask scheduler, or `local` for processes of this machine. Raises
    InputError, in one sentence, where there is none."""
    if cluster == LOCAL:
        from runs.spread.processes import Processes

        return Processes()
    from runs.spread.cluster import Cluster  # late: without it nothing needs Dask

    return Cluster(cluster, priority)
