"""Idle causes, queue lengths and launch statistics against Holistic Trace Analysis on real PyTorch traces, where they
lie beside us.

The traces are ingested as a user's are. Where definitions differ, the rows are brought to HTA's here: it rounds times
to whole microseconds, leaves out executions of which it finds no call where steps are marked, and takes a call that
launches a graph for none.
"""

import csv
import functools
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analyzers.device.launches.seen import UNKNOWN, Launched, captures_of, launched
from analyzers.device.launches.streams import streams
from collectors.ingest import ingest
from runs.devices import seen_devices
from runs.store import Store
from runs.tables import frame

SHARED = Path(__file__).parents[2].parent / "shared"
TRACES, ORACLES = SHARED / "data" / "kineto", SHARED / "oracles" / "hta"
NAMES = sorted(p.parent.name for p in ORACLES.glob("*/idle_time_breakdown.csv"))
STATISTICS = sorted(p.parent.name for p in ORACLES.glob("*/queue_length_summary.csv"))
GRAPHS = "hta_trace_diff_test"  # holds CUDA graphs, and executions without a call
H100 = "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_"
FIRST_EVENT_NS = 1_751_410_836_000_000_000 + 1_428_625_731_897_000  # of that trace
ROUNDED = "hta_amd_trace", H100  # times with fractions of a microsecond

pytestmark = pytest.mark.skipif(not NAMES, reason="no traces and oracles of HTA beside the project")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each rank of a trace executed, by rank; each trace is read once."""
    store = Store(tmp_path_factory.mktemp("store"))

    @functools.cache
    def read(name: str) -> dict[int, Launched]:
        run = store.get(ingest([TRACES / name], store).run_id)
        captures = frame(run.tables, "captures", ["capture", "host", "process"])
        host = {int(c): str(h) for c, h in zip(captures["capture"], captures["host"], strict=True)}
        rank = {int(c): int(p) for c, p in zip(captures["capture"], captures["process"].fillna(0), strict=True)}
        devices = seen_devices(run.tables)
        return {
            rank[c]: as_hta(launched(run.tables, c, s, d), name)
            for c, s in captures_of(run.tables)
            for h, d in devices
            if h == host[c]
        }

    return read


def as_hta(ran: Launched, name: str) -> Launched:
    """The same as HTA reads it."""
    if name == GRAPHS:
        keep = np.flatnonzero(ran.known)
        fields = ("start", "end", "op", "stream", "call", "thread", "call_start", "call_end", "graph")
        ran = replace(ran, **{f: getattr(ran, f)[keep] for f in fields})
        return replace(ran, call_start=np.where(ran.graph, UNKNOWN, ran.call_start))
    return rounded(ran) if name in ROUNDED else ran


def rounded(ran: Launched) -> Launched:
    """Begins up, ends down to whole microseconds. They count from where the trace counts them."""
    inward = {f: -(-getattr(ran, f) // 1000) * 1000 for f in ("start", "call_start")}
    inward |= {f: getattr(ran, f) // 1000 * 1000 for f in ("end", "call_end")}
    return replace(ran, **{f: np.where(getattr(ran, f) == UNKNOWN, UNKNOWN, v) for f, v in inward.items()})


def oracle(name: str, file: str) -> list[list[str]]:
    path = ORACLES / name / file
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [row for row in csv.reader(text.splitlines()) if row]


def judged(ran: Launched, name: str) -> dict[str, dict]:
    """Idle times by stream. HTA joins executions of which the trace holds no call with the first row of its table,
    here the mark of the step, and has the host be late for those that came before it."""
    if name == H100:
        ran = replace(ran, call_start=np.where(ran.known, ran.call_start, FIRST_EVENT_NS))
    return by_stream(ran)


def by_stream(ran: Launched) -> dict[str, dict]:
    return {row["line"].removeprefix("stream "): row for row in streams(ran).to_dict("records")}


@pytest.mark.parametrize("name", NAMES)
def test_idle_time_by_cause(ranks, name):
    rows = oracle(name, "idle_time_breakdown.csv")[1:]
    assert rows
    for rank, stream, kind, idle_us, _ in rows:
        mine = judged(ranks(name)[int(rank)], name)[stream]
        assert mine[f"{kind}_s"] * 1e6 == pytest.approx(float(idle_us), rel=1e-3, abs=0.5), (rank, stream, kind)


@pytest.mark.parametrize("name", NAMES)
def test_idle_intervals_by_cause(ranks, name):
    counted: dict[tuple[str, str], list[int]] = {}
    for rank, stream, count, *_ in oracle(name, "idle_interval_stats.csv")[1:]:
        counted.setdefault((rank, stream), []).append(int(float(count)))
    for (rank, stream), counts in counted.items():
        mine = judged(ranks(name)[int(rank)], name)[stream]
        found = [mine[f"{kind}_count"] for kind in ("host_wait", "kernel_wait", "other")]
        assert sorted(c for c in counts if c) == sorted(c for c in found if c), (rank, stream)


@pytest.mark.parametrize("name", STATISTICS)
def test_queue_lengths(ranks, name):
    """What is counted at one instant in which both a call and an execution begin is a matter of order: HTA's lies
    between the two."""
    rows = [row for row in oracle(name, "queue_length_summary.csv") if row[0].isdigit()]
    assert rows
    for rank, stream, count, mean, _, _, _, median, _, most in rows:
        ran = ranks(name)[int(rank)]
        mine = by_stream(ran)[stream]
        chosen = (ran.stream == ran.streams.index(f"stream {stream}")) & ran.known & ~ran.graph
        assert int(float(count)) == 2 * chosen.sum()
        assert mine["queue_mean"] == pytest.approx(float(mean), rel=2e-3, abs=1e-9)
        assert mine["queue_median"] == pytest.approx(float(median), rel=1e-9)
        assert mine["queue_max"] == pytest.approx(float(most), rel=1e-9)


@pytest.mark.parametrize("name", STATISTICS)
def test_launch_statistics(ranks, name):
    """Each launch by itself: duration of its call, of what it launched, and the delay between the two."""
    for path in sorted((ORACLES / name).glob("launch_stats_rank*.csv.gz")):
        rows = np.array([row[1:] for row in oracle(name, path.name)[1:]], dtype=float).reshape(-1, 3)
        if not len(rows):
            continue
        ran = ranks(name)[int(path.name.removeprefix("launch_stats_rank").removesuffix(".csv.gz"))]
        driver = np.array([call == "cuLaunchKernel" for call in ran.calls] + [False])  # HTA counts none of the driver's
        at = np.flatnonzero(ran.known & ~ran.graph & ~driver[ran.call])
        delay = np.maximum(ran.start[at] - ran.call_end[at], 0)
        mine = np.stack([ran.call_end[at] - ran.call_start[at], ran.end[at] - ran.start[at], delay], axis=1) / 1e3
        assert np.array_equal(np.sort(mine, axis=0), np.sort(rows, axis=0))
