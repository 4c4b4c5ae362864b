"""Real memory snapshots of PyTorch from beside the project, against what the standard library's pickle finds there."""

import gzip
import json
import pickle
from collections import Counter
from pathlib import Path

import pytest

from analyzers.device.snapshot.answer import snapshot
from collectors.base import Lost, Rows, Source
from collectors.device import memory_snapshot
from collectors.ingest import ingest
from runs.store import Store

SHARED = Path(__file__).parents[2].parent / "shared"
FILES = sorted((SHARED / "data" / "more" / "torch_memory_snapshot").glob("*.gz"))
ORACLE = SHARED / "oracles" / "more" / "torch_memory_snapshot.json"

pytestmark = pytest.mark.skipif(not (FILES and ORACLE.exists()), reason="no memory snapshots beside the project")
each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.removesuffix(".pickle.gz"))


def known(path):
    return json.loads(ORACLE.read_text())[f"torch_memory_snapshot/{path.name}"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The run of each file, by its name."""
    store = Store(tmp_path_factory.mktemp("store"))
    return {path.name: store.get(ingest([path], store).run_id) for path in FILES}


@each_file
def test_segments_and_history_are_those_of_the_oracle(path, stored):
    tables, told = stored[path.name].tables, known(path)
    rows = tables.arrow("memory_segments").to_pandas()
    assert len(rows) == told["segments"] and rows["bytes"].sum() == told["reserved"]
    assert rows["held_bytes"].sum() == told["allocated"]
    assert rows["held_blocks"].sum() == told["block_states"]["active_allocated"]
    assert rows["free_blocks"].sum() == told["block_states"]["inactive"]
    lives = tables.arrow("allocations").to_pandas()
    assert lives["alloc_event"].notna().sum() == told["actions"]["alloc"]
    assert lives["free_event"].notna().sum() == told["actions"]["free_completed"]
    before, after = (lives.loc[lives[c].isna(), "bytes"].sum() for c in ("alloc_event", "free_event"))
    assert after - before == told["net_bytes_of_trace"]
    samples = tables.arrow("memory", where=[("kind", "==", "bytes_in_use")]).to_pandas()
    assert samples["bytes"].max() - before == told["peak_over_trace_start"]
    assert [samples["ts_ns"].min() // 1000, samples["ts_ns"].max() // 1000] == told["time_us"]


@each_file
def test_nothing_is_lost_and_every_stack_is_as_it_was_written(path):
    rows = {}
    for item in memory_snapshot.read(Source(path, path.name)):
        assert not isinstance(item, Lost)
        if isinstance(item, Rows):
            rows.setdefault(item.table, []).extend(item.batch.to_pylist())
    stacks = {}
    for row in rows["stacks"]:
        stacks.setdefault(row["stack"], []).append((row["function"] or "", row["file"] or "", row["line"] or 0))
    history = pickle.loads(gzip.decompress(path.read_bytes()))["device_traces"][0]
    made = [row for row in rows["allocations"] if row["alloc_event"] is not None]
    for row in made:
        frames = history[row["alloc_event"]]["frames"]
        written = [(f["name"][:900], f["filename"], f["line"]) for f in frames]
        assert [(name[:900], file, line) for name, file, line in stacks[row["stack"]]] == written
        assert row["alloc_ns"] == history[row["alloc_event"]]["time_us"] * 1000


@each_file
def test_who_held_the_peak_by_walking_the_history(path, stored):
    raw = pickle.loads(gzip.decompress(path.read_bytes()))
    history = raw["device_traces"][0]
    held = {b["address"]: b for s in raw["segments"] for b in s["blocks"] if b["state"] != "inactive"}
    level = {a: b["requested_size"] for a, b in held.items()}
    best, at = sum(level.values()), dict(level)
    for event in reversed(history):  # backwards from what is held at the end
        if event["action"] == "alloc":
            del level[event["addr"]]
        elif event["action"] == "free_completed":
            level[event["addr"]] = event["size"]
        if (total := sum(level.values())) >= best:
            best, at = total, dict(level)
    told = snapshot(stored[path.name].tables)
    assert told.peak_bytes == best
    assert told.holders["blocks"].sum() == len(at)
    sizes = Counter(at.values())
    assert sum(size * n for size, n in sizes.items()) == told.holders["bytes"].sum()
