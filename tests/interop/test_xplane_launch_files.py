"""Launches in real profiles of GPUs (MI300X, V100), against brute force over the profile's own messages."""

import gzip
import re
from bisect import bisect_left
from collections import Counter
from pathlib import Path

import pytest

from analyzers.device.launches import launches as question
from analyzers.device.overlap import analyze as overlap
from collectors import ingest
from runs.store import Store
from tests.collectors.traces import XSpace

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILES = [
    DATA / "xplane" / "mi300x_8gpu_jax_conv.xplane.pb",
    *sorted((DATA / "more" / "corrections" / "xplane").glob("*.xplane.pb*")),
]
FILES = [path for path in FILES if path.exists()]
NOT_A_LAUNCH = re.compile("StreamWait|HostFunc|Synchronize|EventRecord|Query")

pytestmark = pytest.mark.skipif(not FILES, reason="no sample traces of GPUs beside the project")


def told(path: Path) -> tuple[dict[int, tuple], dict[int, list[tuple]]]:
    """(calls by number: name, begin, end; executions by device: begin, end, number), ps."""
    raw = path.read_bytes()
    space = XSpace.FromString(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    calls: dict[int, tuple] = {}
    runs: dict[int, list[tuple]] = {}
    for plane in space.planes:
        stats = {e.key: e.value.name for e in plane.stat_metadata}
        names = {e.key: e.value.name.decode() for e in plane.event_metadata}
        for line in plane.lines:
            for event in line.events:
                numbers = [
                    s.uint64_value or s.int64_value for s in event.stats if stats[s.metadata_id] == b"correlation_id"
                ]
                begin = line.timestamp_ns * 1000 + event.offset_ps
                if plane.name.startswith(b"/device:GPU:") and line.name.startswith(b"Stream #"):
                    row = (begin, begin + event.duration_ps, numbers[0] if numbers else 0)
                    runs.setdefault(int(plane.name.split(b":")[2]), []).append(row)
                elif plane.name.startswith(b"/host:") and numbers:
                    assert numbers[0] not in calls
                    calls[numbers[0]] = (names[event.metadata_id], begin, begin + event.duration_ps)
    calls = {number: call for number, call in calls.items() if not NOT_A_LAUNCH.search(call[0])}
    return calls, {device: sorted(rows) for device, rows in runs.items()}


def judged(calls: dict[int, tuple], rows: list[tuple]) -> Counter:
    """Idle ps of a device between its executions, by what it waited for."""
    out: Counter = Counter()
    begins = [row[0] for row in rows]
    free: list[tuple[int, int]] = []
    end = rows[0][1]
    for begin, until, _ in rows:
        if begin > end:
            free.append((end, begin))
        end = max(end, until)
    for start, stop in free:
        call = calls.get(rows[bisect_left(begins, stop)][2])
        out["idle_s"] += stop - start
        if call is None:
            out["not_told_s"] += stop - start
            continue
        late = min(max(call[1], start), stop)
        out["late_s"] += late - start
        out["between_kernels_s" if call[2] <= start else "launch_delay_s"] += stop - late
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_launches_of_a_real_profile(tmp_path, path):
    calls, runs = told(path)
    run = (store := Store(tmp_path / "store")).get(ingest.ingest([path], store).run_id)
    assert run is not None
    answer = question.analyze(run.tables, {}, {"window": "operations"})
    assert {int(d) for d in answer.devices["device"]} == set(runs)
    for row in answer.devices.to_dict("records"):
        mine = runs[row["device"]]
        expected = judged(calls, mine)
        assert row["executions"] == len(mine)
        assert row["told_share"] * len(mine) == pytest.approx(sum(r[2] in calls for r in mine))
        assert row["input_wait_s"] == 0
        found = Counter({name: row[name] for name in ("idle_s", "launch_delay_s", "between_kernels_s")})
        # Of a thread that shows nothing yet it is not known what it did while it was late.
        found["late_or_not_told_s"] = row["late_s"] + row["not_told_s"]
        expected["late_or_not_told_s"] = expected.pop("late_s", 0) + expected.pop("not_told_s", 0)
        for name, seconds in found.items():
            # Times are whole ns there: each gap may be one off at either end.
            assert seconds * 1e12 == pytest.approx(expected[name], abs=2_000 * len(mine)), (row["device"], name)
    idle = overlap(run.tables, {}, {"window": "operations"}).devices.set_index("device")["idle_s"]
    assert all(row["idle_s"] == pytest.approx(idle[row["device"]]) for row in answer.devices.to_dict("records"))
