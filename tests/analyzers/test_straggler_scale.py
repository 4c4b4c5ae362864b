"""16,384 ranks x 200 steps: the right verdict, from memory and from Parquet through the store."""

import numpy as np
import pytest

from analyzers.ranks import stragglers
from runs.run import facts_of
from runs.schema import SCHEMAS
from runs.store import Store
from runs.tables import MemoryTables
from tests.analyzers.rank_worlds import EPOCH, texts

RANKS, STEPS, PER_HOST, SLOW = 16_384, 200, 8, 777
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def columns():
    """One all-reduce a step of a second; rank 777 is 5 % late in steps 60 to 159."""
    rng = np.random.default_rng(0)
    work = rng.normal(0.8, 0.01, (STEPS, RANKS))
    work[60:160, SLOW] += 0.05
    end = np.cumsum(work.max(axis=1) + rng.normal(0.2, 0.004, STEPS))
    begin = np.concatenate([[0], end[:-1]])
    clock_ns = EPOCH + np.round(rng.normal(0, 5e6, RANKS)).astype(np.int64)
    start_ns = np.round((begin[:, None] + work) * 1e9).astype(np.int64) + clock_ns
    end_ns = np.round(end[:, None] * 1e9).astype(np.int64) + rng.integers(0, 2000, (STEPS, RANKS)) + clock_ns
    rank = np.repeat(np.arange(RANKS), STEPS)
    step = np.tile(np.arange(STEPS), RANKS)
    hosts = [f"host-{h:05d}" for h in range(RANKS // PER_HOST)]
    return {
        "capture": rank // PER_HOST,
        "host": texts(rank // PER_HOST, hosts),
        "rank": rank,
        "device": rank % PER_HOST,
        "group": texts(rank * 0, [",".join(map(str, range(RANKS)))]),
        "kind": texts(rank * 0, ["all-reduce"]),
        "bytes": np.full(len(rank), 1e9),
        "dtype": texts(rank * 0, ["bf16"]),
        "op": texts(rank * 0, ["all-reduce.1"]),
        "module": texts(rank * 0, ["jit_step"]),
        "seq": step,
        "step": step,
        "start_ns": start_ns.T.ravel(),
        "end_ns": end_ns.T.ravel(),
    }


def check(tables):
    result = stragglers.analyze(tables, facts_of({"chips": RANKS}), {})
    row = result.ranks.iloc[0]
    assert result.verdict == "persistent" and list(result.ranks["rank"]) == [str(SLOW)]
    assert (row["first_step"], row["last_step"]) == (60, 159)
    assert row["lag_s"] == pytest.approx(0.05, rel=0.05)


def test_in_memory(columns):
    check(MemoryTables({"collectives": columns}))


def test_through_the_store(columns, tmp_path):
    store = Store(tmp_path)
    whole = SCHEMAS["collectives"].batch(columns)
    with store.writer() as writer:
        for at in range(0, whole.num_rows, 1 << 18):
            writer.rows("collectives", whole.slice(at, 1 << 18))
        run = writer.commit(
            run_id="a" * 64,
            name="large",
            kind="training",
            facts={},
            tags=None,
            warnings=(),
            sources=[{"name": "made", "sha256": "0" * 64, "bytes": 0, "collector": "test"}],
        )
    check(run.tables)


def test_whatever_the_order_of_the_rows(columns):
    """Step by step instead of rank by rank, as a collector of many small files may write them."""
    order = np.arange(RANKS * STEPS).reshape(RANKS, STEPS).T.ravel()
    by_step = {n: c.take(order) if hasattr(c, "type") else c[order] for n, c in columns.items()}
    check(MemoryTables({"collectives": by_step}))
