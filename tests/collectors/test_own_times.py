"""Own times of events of one line that lie within each other or overlap in part: each instant is of the event that
began last, so that own times add up to the time in which anything ran."""

import random

import numpy as np
import pytest

from collectors.device import kineto
from tests.collectors.kineto_traces import kernel, op, trace
from tests.collectors.reading import read, source_of
from tests.collectors.traces import PlaneBuilder, XSpace
from tests.collectors.traces import got as read_xplane
from tests.conftest import seeds

Spans = list[tuple[int, int]]


def of_a_stream(folder, spans: Spans) -> list[float]:
    events = [kernel(f"k{n}", start, took, n + 1) for n, (start, took) in enumerate(spans)]
    return own(read(kineto, source_of(folder, trace(events), "trace.json")), spans, 1000)


def of_a_thread(folder, spans: Spans) -> list[float]:
    events = [op(f"k{n}", start, took) for n, (start, took) in enumerate(spans)]
    return own(read(kineto, source_of(folder, trace(events), "trace.json")), spans, 1000)


def of_a_plane(name: str, line: str):
    def of(folder, spans: Spans) -> list[float]:
        space = XSpace()
        PlaneBuilder(space, name).line(line, [(f"k{n}", *span) for n, span in enumerate(spans)])
        return own(read_xplane(folder, space.SerializeToString()), spans, 1)

    return of


def own(result, spans: Spans, unit: int) -> list[float]:
    told = {row["op"]: row["self_ns"] / unit for row in result.rows["ops"]}
    return [told[f"k{n}"] for n in range(len(spans))]


def by_instants(spans: Spans) -> list[float]:
    out = [0.0] * len(spans)
    for at in range(max(start + took for start, took in spans)):
        running = [(start, -took, n) for n, (start, took) in enumerate(spans) if start <= at < start + took]
        if running:
            out[max(running)[2]] += 1
    return out


READERS = {
    "stream": of_a_stream,
    "thread": of_a_thread,
    "tpu": of_a_plane("/device:TPU:0", "XLA Ops"),
    "host": of_a_plane("/host:CPU", "python"),
}


@pytest.mark.parametrize("of", READERS.values(), ids=READERS)
def test_a_kernel_that_outlasts_the_one_it_began_in_and_the_one_around_that(tmp_path, of):
    assert of(tmp_path, [(0, 100), (90, 5), (92, 58)]) == [90, 2, 58]
    assert of(tmp_path, [(0, 100), (10, 60), (20, 20), (30, 90)]) == [10, 10, 10, 90]


@pytest.mark.parametrize("of", READERS.values(), ids=READERS)
@pytest.mark.parametrize("seed", seeds(12))
def test_any_overlaps(tmp_path, of, seed):
    rng = random.Random(seed)
    spans = sorted({(rng.randrange(60), rng.randint(1, 40)) for _ in range(rng.randint(1, 30))}, key=lambda s: s[0])
    found = of(tmp_path, spans)
    assert found == by_instants(spans)
    covered = np.zeros(100, bool)
    for start, took in spans:
        covered[start : start + took] = True
    assert sum(found) == covered.sum()


@pytest.mark.parametrize("of", [of_a_stream, READERS["tpu"]])
def test_a_long_row_of_kernels_each_of_which_begins_before_the_last_one_ends(tmp_path, of):
    spans = [(10 * n, 15) for n in range(3000)]
    assert of(tmp_path, spans) == [10.0] * 2999 + [15.0]
