"""Overlap, idle and computing time against Holistic Trace Analysis on real PyTorch traces, where they lie beside us.

The Kineto JSON is read here, in the way HTA reads it: which kernels it counts (those launched before the last profiler
step ended), what it calls them, and how it rounds fractions of a microsecond. What is compared is the arithmetic.
"""

import csv
import functools
import gzip
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from analyzers.device import overlap
from benchmarks import kineto_answers
from errors.options import parse_options
from runs.tables import MemoryTables

SHARED = Path(__file__).parents[2].parent / "shared"
TRACES, ORACLES = SHARED / "data" / "kineto", SHARED / "oracles" / "hta"
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
BROKEN_DOWN = sorted(p.parent.name for p in ORACLES.glob("*/temporal_breakdown.csv"))
EVENT_WAITS = "hta_cp_event_sync_multi"  # its streams also show waits for events
TYPED = [*BROKEN_DOWN, "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_"]
STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")

pytestmark = pytest.mark.skipif(not BROKEN_DOWN, reason="no traces and oracles of HTA beside the project")


def events_of(path: Path) -> tuple[list[dict], int]:
    """Complete events with whole microseconds, and the rank."""
    trace = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False)
    rank = (trace.get("distributedInfo") or {}).get("rank", 0)
    events = [e for e in trace["traceEvents"] if e.get("dur") is not None and e.get("cat") not in (None, "Trace")]
    for e in events:
        start, end = math.ceil(e["ts"]), math.floor(e["ts"] + e["dur"])  # on whole numbers this changes nothing
        e["ts"], e["dur"] = start, end - start
    return events, rank


def counted(events: list[dict], waits: bool = False) -> list[dict]:
    """The device's events that HTA counts: with several profiler steps, those launched before the last one ended.

    `waits`: also the rows of its streams that wait for an event of another stream.
    """
    on_device = [e for e in events if e["cat"].lower() in ON_DEVICE or (waits and e["name"] == "Stream Wait Event")]
    steps = [e for e in events if STEP.match(e["name"]) and "stream" not in e.get("args", {})]
    if len({e["name"] for e in steps}) < 2:
        return on_device
    last = max(e["ts"] + e["dur"] for e in steps)
    host = (e for e in events if e["cat"].lower() not in ON_DEVICE and e["ts"] <= last)
    launched = {e["args"]["correlation"] for e in host if "correlation" in e.get("args", {})}
    return [e for e in on_device if e["args"].get("correlation") in launched]


def tables_of(ranks: dict[int, list[dict]]) -> MemoryTables:
    """What a collector would bring: one capture and device per rank, one operation per kernel name and stream."""
    captures: dict = {"capture": [], "host": [], "start_ns": [], "stop_ns": []}
    ops: dict = {n: [] for n in ("capture", "op_id", "host", "device", "line", "role", "category", "op")}
    rows: dict = {n: [] for n in ("capture", "event", "device", "op_id", "start_ps", "dur_ps")}
    for rank, events in ranks.items():
        begun = min(e["ts"] for e in events)
        host, number = f"rank {rank}", {}
        for column, value in zip(captures, (rank, host, begun * 1000, None), strict=True):
            captures[column].append(value)
        for e in events:
            key = e["name"], e["args"]["stream"]
            if key not in number:
                number[key] = len(number)
                role, category = kind_of(e)
                entry = (rank, number[key], host, e["args"]["device"], f"stream {key[1]}", role, category, e["name"])
                for column, value in zip(ops, entry, strict=True):
                    ops[column].append(value)
            which, where = len(rows["event"]), e["args"]["device"]
            entry = (rank, which, where, number[key], (e["ts"] - begun) * 10**6, e["dur"] * 10**6)
            for column, value in zip(rows, entry, strict=True):
                rows[column].append(value)
    return MemoryTables({"captures": captures, "ops": ops, "op_events": rows})


def kind_of(event: dict) -> tuple[str, str]:
    if event["cat"].lower() != "kernel":
        return "async", "copy"
    return ("async", "collective") if "ncclKernel" in event["name"] else ("compute", "other")


def read(name: str, waits: bool = False) -> MemoryTables:
    ranks = {}
    for path in sorted((TRACES / name).glob("*.json.gz")):
        events, rank = events_of(path)
        ranks[rank] = counted(events, waits)
    return tables_of(ranks)


def devices_of(tables: MemoryTables) -> dict[int, pd.Series]:
    """Rows of `devices` by rank."""
    options = parse_options(overlap.OPTIONS, {"window": "operations"})
    rows = overlap.analyze(tables, {}, options).devices
    return {int(r.host.split()[1]): r for r in rows.itertuples()}


@pytest.fixture(scope="module")
def traces():
    """The tables of every trace, each read once."""
    return functools.cache(read)


@pytest.fixture(scope="module")
def answers(traces):
    """`devices_of` every trace, each worked out once."""
    return functools.cache(lambda name, **waits: devices_of(traces(name, **waits)))


def oracle(name: str, file: str) -> list[dict[str, str]]:
    with (ORACLES / name / file).open() as f:
        return list(csv.DictReader(f))


def microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


@pytest.mark.parametrize("name", BROKEN_DOWN)
def test_temporal_breakdown(answers, name):
    rows = oracle(name, "temporal_breakdown.csv")
    found = answers(name, waits=True) if name == EVENT_WAITS else answers(name)
    assert len(rows) == len(found)
    for row in rows:
        mine = found[int(row["rank"])]
        assert microseconds(mine.compute_s) == float(row["compute_time(us)"])
        assert microseconds(mine.window_s) == float(row["kernel_time(us)"])
        assert microseconds(mine.idle_s) == float(row["idle_time(us)"])
        assert microseconds(mine.exposed_s + mine.copies_s) == float(row["non_compute_time(us)"])
        assert round(100 * mine.idle_s / mine.window_s, 2) == float(row["idle_time_pctg"])


def test_a_stream_that_waits_for_an_event_is_idle_here(answers):
    (row,) = oracle(EVENT_WAITS, "temporal_breakdown.csv")
    (mine,) = answers(EVENT_WAITS).values()
    assert microseconds(mine.idle_s) - float(row["idle_time(us)"]) == 2  # us of waiting that HTA counts as busy
    assert microseconds(mine.copies_s) == 3  # the three fills of memory


@pytest.mark.parametrize("name", TYPED)
def test_time_by_kinds_that_run_at_once(answers, name):
    rows = {r["kernel_type"]: float(r["sum"]) for r in oracle(name, "kernel_type.csv")}

    def summed(*kinds: str) -> float:
        wanted = set(kinds)
        return sum(v for k, v in rows.items() if wanted <= set(k.split(" overlapping ")))

    total = {
        c: sum(microseconds(getattr(r, c)) for r in answers(name).values())
        for c in ("compute_s", "communication_s", "overlapped_s", "memory_s", "copies_s")
    }
    assert total["compute_s"] == summed("COMPUTATION")
    assert total["communication_s"] == summed("COMMUNICATION")
    assert total["overlapped_s"] == summed("COMPUTATION", "COMMUNICATION")
    assert total["memory_s"] == summed("MEMORY")
    assert total["copies_s"] == rows.get("MEMORY", 0)


@pytest.mark.parametrize("name", TYPED)
def test_kernels_as_the_benchmark_tells_them(traces, name):
    """`benchmarks.kineto_answers` is timed beside HTA, so it has to tell the same."""
    kinds, kernels = kineto_answers.gpu_kernel_breakdown(traces(name))
    told = {row["kernel_type"]: float(row["sum"]) for row in oracle(name, "kernel_type.csv") if float(row["sum"])}
    assert kinds.set_index("kernel_type")["sum"].round(3).to_dict() == told
    mine, rows = kernels.set_index(["rank", "name"]), oracle(name, "kernel_breakdown.csv")
    summed = {(row["rank"], row["kernel_type"]) for row in rows if row["name"] == "others"}
    for row in [row for row in rows if row["name"] != "others"]:
        found = mine.loc[f"rank {row['rank']}", row["name"]]
        assert found["sum"] == float(row["sum (us)"])
        if (row["rank"], row["kernel_type"]) not in summed:  # else HTA tells the extremes and the mean of sums
            told = [float(row[column]) for column in ("max (us)", "min (us)", "mean (us)", "stddev")]
            assert found[["max", "min", "mean", "std"]].tolist() == pytest.approx(told, rel=1e-9)


@pytest.mark.parametrize("name", BROKEN_DOWN)
def test_share_of_communication_under_computation(answers, name):
    for row in oracle(name, "comm_comp_overlap.csv"):
        mine = answers(name)[int(row["rank"])]
        if row["comp_comm_overlap_pctg"]:
            assert round(100 * mine.overlap_share, 2) == float(row["comp_comm_overlap_pctg"])
        else:
            assert mine.communication_s == 0 and pd.isna(mine.overlap_share)
