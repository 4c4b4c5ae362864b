"""Served runs for the pages: engines of tests/analyzers/served_worlds.py in a store, and load tests as printed."""

from runs.run import Run
from runs.store import Store
from tests.analyzers.served_worlds import World, world
from tests.app import made_runs

ODD = "<b>odd</b> *name* $5"


def busy(store: Store, name: str = "busy", **more) -> Run:
    """240 requests of two tenants, six of which failed, some preempted."""
    made = world(**{"n": 240, "rate": 9, "seed": 3, "fail_every": 40, "preempt_every": 60, **more})
    return write(store, name, made)


def write(store: Store, name: str, made: World, passes: bool = True) -> Run:
    tables = {"requests": made.requests} | ({"iterations": made.iterations} if passes else {})
    return made_runs.write(store, name, tables, {}, kind="serving")


def printed(store: Store, name: str = "printed") -> Run:
    """Two loads of a load test without single requests."""
    stages = {
        "stage": ["rate 1", ODD],
        "tool": ["vllm_bench"] * 2,
        "order": [0, 1],
        "duration_s": [100.0, 50.0],
        "completed": [100, 200],
        "failed": [0, 0],
        "output_tokens_per_s": [40.0, 180.0],
        "outcome": ["measured"] * 2,
        "source": ["a.txt"] * 2,
    }
    stats = [("rate 1", "p50", 0.4), ("rate 1", "p99", 2.0), (ODD, "p50", 0.7), (ODD, "p99", 3.0)]
    stage_stats = {
        "stage": [s for s, *_ in stats],
        "metric": ["ttft"] * 4,
        "statistic": [w for _, w, _ in stats],
        "value": [v for *_, v in stats],
    }
    return made_runs.write(store, name, {"stages": stages, "stage_stats": stage_stats}, {}, kind="serving")
