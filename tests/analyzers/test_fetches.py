"""When hosts fetched data: for one of their devices, or for all of them."""

from time import process_time

import numpy as np

from analyzers.device.waiting import JOB, host_fetches
from analyzers.intervals import spans, union
from runs.tables import MemoryTables


def fetched(hosts: int, each: int = 100, devices: int = 8) -> MemoryTables:
    """So many fetches of each device of each host."""
    k = np.arange(hosts * devices * each)
    start = k % each * 1_000_000
    return MemoryTables(
        {
            "lifecycle": {
                "kind": ["data_loading"] * len(k),
                "host": [f"host {i}" for i in (k // (devices * each)).tolist()],
                "device": (k // each % devices).tolist(),
                "start_ns": start.tolist(),
                "end_ns": (start + 1000).tolist(),
            }
        }
    )


def test_fetches_of_a_device_are_its_own_and_those_of_all():
    rng = np.random.default_rng(0)
    rows = [
        (host, device, int(at), int(at + took))
        for host, device, at, took in zip(
            rng.choice(["a", "b", None], 60).tolist(),
            rng.choice([0, 1, None], 60).tolist(),
            rng.integers(0, 1000, 60),
            rng.integers(1, 30, 60),
            strict=True,
        )
    ]
    names = ("host", "device", "start_ns", "end_ns")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    found = host_fetches(MemoryTables({"lifecycle": {"kind": ["data_loading"] * 60, **columns}}))
    for host in ("a", "b", None):
        for device in (None, 0, 1, 7):
            mine = [(a, b) for h, d, a, b in rows if h == host and (device is None or d in (device, None))]
            wanted = union(spans([a for a, _ in mine], [b for _, b in mine]))
            told = found.of(JOB if host is None else host, device)
            assert told is not None
            if host is not None or device is None:
                assert (told.start.tolist(), told.end.tolist()) == (wanted.start.tolist(), wanted.end.tolist())


def test_so_many_times_as_many_hosts_take_about_so_many_times_as_long():
    took, more = [], 32
    for hosts in (4, 4, 4 * more):  # the first warms up
        tables, begun = fetched(hosts), process_time()
        host_fetches(tables)
        took.append(process_time() - begun)
    assert took[2] < 2 * more * took[1]
