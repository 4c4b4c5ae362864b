"""A real timeline of Ray, and numbers that were computed from it independently."""

import gzip
import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.device import ray_timeline
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
NAME = "ray_timeline/d4pg_ray_timeline.json.gz"
ORACLE = SHARED / "oracles" / "more" / "ray_timeline.json"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no timeline of Ray beside the project")


def test_a_timeline_of_2019():
    """863 s of events lie in 112 s, within one another: what is each one's own adds up to when workers had any."""
    truth = json.loads(ORACLE.read_text())[NAME]
    path = SHARED / "data" / "more" / NAME
    source = Source(path, NAME)
    assert ray_timeline.sniff(source) == 0.95
    got = read(ray_timeline, source)
    ops, events = got.rows["ops"], got.rows["op_events"]
    assert not got.lost and len(events) == truth["events"]
    assert sum(op["total_ns"] for op in ops) / 1000 == pytest.approx(truth["sum_dur_us"], abs=5)
    assert len({op["line"] for op in ops}) == truth["workers"]
    counts = Counter()
    for op in ops:
        counts[op["op"]] += op["count"]
    kinds = {kind: count for kind, count in truth["by_cat"].items() if kind != "task"}  # a task is called by its name
    assert {kind: counts.pop(kind) for kind in kinds} == kinds
    assert counts.total() == truth["by_cat"]["task"]
    [capture] = got.rows["captures"]
    assert capture["start_ns"] / 1000 == pytest.approx(truth["ts_min"], abs=1)
    assert max(e["start_ps"] for e in events) / 1e6 == pytest.approx(truth["ts_max"] - truth["ts_min"], abs=1)

    spans = defaultdict(list)
    with gzip.open(path) as file:
        for event in json.load(file):
            start, dur = (round(Fraction(event[key]) * 1000) for key in ("ts", "dur"))
            spans[event["tid"]].append((start, start + dur))
    own = Counter()
    for op in ops:
        own[op["line"]] += op["self_ns"]
    for line, some in spans.items():
        busy, until = 0, 0
        for start, end in sorted(some):
            busy += max(0, end - max(start, until))
            until = max(until, end)
        assert own[line] == busy
