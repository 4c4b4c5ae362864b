"""Storage and input: the walk against one in plain Python, closed forms, what the parts allow, fits, and bad input."""

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.storage import series
from errors import QuestionError
from simulators.storage import waiting
from simulators.storage.epoch import LARGE_BYTES, epoch, in_large_files
from simulators.storage.fit import Row, fit, told
from simulators.storage.kernel import walk
from simulators.storage.limits import limit
from simulators.storage.needed import needed
from simulators.storage.pipe import MOST_SPREAD, Pipe
from simulators.storage.waiting import NOBODY, nobody_waits, waits

STEADY = Pipe(batch_bytes=32e6, file_bytes=1e5, readers=32, latency_s=0.05)
SPREAD = replace(STEADY, latency_p99_s=0.2)


def walked_plainly(latency_s, files_of, transfer_s, wire_s, decode_s, readers, depth, step_s):
    """When each step begins: one host after another is walked anew for every step, from the first request on."""
    begins = []
    for k in range(len(files_of)):
        ready = [
            _ready(host, files_of, begins, k, transfer_s, wire_s, decode_s, readers, depth, step_s)
            for host in latency_s
        ]
        begins.append(max([*ready, *([begins[-1] + step_s] if begins else [])]))
    return begins


def _ready(latency_s, files_of, begins, k, transfer_s, wire_s, decode_s, readers, depth, step_s):
    """When batch `k` is whole on a host. What is asked for later than it is known at is left out: it cannot matter."""
    asked, batch = [], []
    for b, files in enumerate(files_of):
        gate = 0.0 if b < max(depth, 1) else None
        if depth == 0 and 0 < b <= len(begins):
            gate = begins[b - 1] + step_s
        if depth and depth <= b < depth + len(begins):
            gate = begins[b - depth]
        if gate is None:
            break
        asked += [gate] * files
        batch += [b] * files
    free, events = [0.0] * readers, []
    wire = decoder = 0.0
    done = [0.0] * len(files_of)
    at, time = 0, 0.0
    while at < len(asked) or events:
        if at < len(asked) and free and (not events or max(heapq.nsmallest(1, free)[0], asked[at]) <= events[0][0]):
            begin = max(heapq.heappop(free), asked[at])
            heapq.heappush(events, (begin + latency_s[at], at, "first byte"))
            at += 1
            continue
        time, file, what = heapq.heappop(events)
        if what == "first byte":
            wire = max(wire, time) + wire_s
            heapq.heappush(events, (max(time + transfer_s, wire), file, "there"))
        else:
            heapq.heappush(free, time)
            decoder = max(decoder, time) + decode_s
            done[batch[file]] = max(done[batch[file]], decoder)
    return max(done[: k + 1])


@settings(deadline=None, max_examples=60)
@given(
    files_of=st.lists(st.integers(0, 5), min_size=1, max_size=9),
    hosts=st.integers(1, 3),
    readers=st.integers(1, 6),
    depth=st.integers(0, 4),
    times=st.tuples(*[st.floats(0, 2) for _ in range(4)]),
    seed=st.integers(0, 1 << 30),
)
def test_the_walk_is_the_one_in_plain_python(files_of, hosts, readers, depth, times, seed):
    transfer_s, wire_s, decode_s, step_s = times
    latency_s = np.random.default_rng(seed).lognormal(-1, 1, (hosts, sum(files_of)))
    need = np.cumsum(files_of)
    of_batch = np.repeat(np.arange(len(files_of)), files_of)
    got = walk(latency_s, need, of_batch, transfer_s, wire_s, decode_s, readers, depth, step_s)
    plain = walked_plainly(latency_s, files_of, transfer_s, wire_s, decode_s, readers, depth, step_s)
    assert got == pytest.approx(plain, rel=1e-12, abs=1e-12)


def test_nothing_fetched_ahead_is_all_waited_for():
    alone = replace(STEADY, prefetch=0)  # 320 files by 32 readers: ten requests in a row
    assert waits(alone, 0.3).wait_s == pytest.approx(10 * 0.05)
    assert waits(alone, 0.3).first_s == pytest.approx(10 * 0.05)
    assert limit(alone, 0.6) == "prefetch" and needed(alone, 0.6).prefetch == 1


@pytest.mark.parametrize("step_s", [0.1, 0.4999, 0.5, 0.6, 3.0])
def test_with_enough_ahead_a_step_waits_for_what_a_batch_takes_longer(step_s):
    assert waits(replace(STEADY, prefetch=8), step_s).wait_s == pytest.approx(max(0.5 - step_s, 0), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "name", "batch_s"),
    [
        ({}, "latency", 320 * 0.05 / 32),
        ({"stream_bytes_per_s": 1e6, "latency_s": 0.01}, "stream", 320 * 0.11 / 32),
        ({"host_bytes_per_s": 2e7}, "host_network", 1.6),
        ({"store_bytes_per_s": 1e9, "hosts": 100}, "store", 3.2),
        ({"store_requests_per_s": 2000.0, "hosts": 10}, "request_rate", 1.6),
        ({"decode_s": 0.9}, "decode", 0.9),
        ({"file_bytes": 16e6, "latency_s": 2.0}, "prefetch", 2 * 2.0 / 4),
    ],
)
def test_the_slowest_part_is_what_a_batch_takes_and_what_binds(change, name, batch_s):
    pipe = replace(STEADY, **change)
    assert pipe.least_batch_s == pytest.approx(batch_s)
    assert waits(pipe, 0.0).wait_s == pytest.approx(batch_s, rel=0.02)
    assert limit(pipe, 0.4) == name and limit(pipe, 10.0) == "nothing"


def test_littles_law_tells_the_readers_that_steady_requests_need():
    deep = replace(STEADY, prefetch=8, stream_bytes_per_s=1e7)
    for step_s in (0.05, 0.2, 0.9):
        n = needed(deep, step_s)
        assert n.in_flight == pytest.approx(320 * (0.05 + 0.01) / step_s)
        assert n.in_flight / (1 + NOBODY) - 1 <= n.readers <= n.in_flight * 1.03 + 1
        assert nobody_waits(replace(deep, readers=n.readers), step_s)


def test_prefetch_evens_out_a_spread_in_part_and_gives_no_more_than_the_mean():
    wild = replace(STEADY, latency_p99_s=0.4, hosts=64)  # a batch takes 0.746 s at the mean latency
    waited = [waits(replace(wild, prefetch=d), 0.8).wait_s for d in (0, 1, 2, 4, 16)]
    assert waited == sorted(waited, reverse=True) and waited[2] > 0.1 > NOBODY * 0.8 > waited[-1]
    assert waits(replace(wild, prefetch=32), 0.3).wait_s >= wild.least_batch_s - 0.3 > 0.44


def test_without_a_spread_the_mean_is_the_median_and_with_one_it_is_the_lognormals():
    assert STEADY.mean_latency_s == 0.05 and replace(STEADY, latency_p99_s=0.05).mean_latency_s == 0.05
    drawn = 0.05 * np.exp(SPREAD.sigma * np.random.default_rng(1).standard_normal(400_000))
    assert np.percentile(drawn, 99) == pytest.approx(0.2, rel=0.02)
    assert SPREAD.mean_latency_s == pytest.approx(drawn.mean(), rel=0.005)


def test_a_spread_binds_where_the_mean_would_do():
    wild = replace(STEADY, latency_p99_s=0.4, hosts=64)
    assert nobody_waits(replace(STEADY, latency_s=wild.mean_latency_s), 0.8)
    assert limit(wild, 0.8) == "spread"


def test_all_wait_for_the_slowest_host():
    few, many = (waits(replace(SPREAD, readers=48, hosts=n), 0.42).wait_s for n in (1, 512))
    assert many > 2 * few


@pytest.mark.parametrize(
    ("change", "step_s"),
    [
        ({"hosts": 64, "batch_bytes": 64e5, "readers": 16}, 0.2),  # hosts
        ({"hosts": 64, "batch_bytes": 8e5, "readers": 8, "prefetch": 1}, 0.3),
        ({"batch_bytes": 2e8}, 3.6),  # requests in a row
        ({"batch_bytes": 2e8, "readers": 512, "latency_p99_s": 0.3}, 0.3),  # readers side by side
    ],
)
def test_one_that_stands_for_several_waits_as_all_of_them_do(change, step_s, monkeypatch):
    pipe = replace(SPREAD, **change)
    lumped = np.mean([waits(pipe, step_s, seed).wait_s for seed in range(8)])
    for name in ("SIDE_BY_SIDE", "IN_A_ROW", "HOSTS", "BUDGET"):
        monkeypatch.setattr(waiting, name, 1_000_000)
    every = waits.__wrapped__(pipe, step_s, 0).wait_s
    assert every > NOBODY * step_s
    assert lumped == pytest.approx(every, rel=0.4)


def pipelined(files, decode_s, wire_s, step_s, depth, batches=12):
    """How long the last steps of one reader without a latency wait: every file on the wire, then decoded."""
    wire = decoder = 0.0
    begins = []
    for b in range(batches):
        if depth == 0 and b:
            wire = max(wire, begins[-1] + step_s)
        if depth and b >= depth:
            wire = max(wire, begins[b - depth])
        for _ in range(files):
            wire += wire_s
            decoder = max(decoder, wire) + decode_s
        begins.append(max(decoder, begins[-1] + step_s) if begins else decoder)
    return np.diff(begins)[-3:] - step_s


@pytest.mark.parametrize(
    ("files", "decode_s", "step_s", "depth"),
    [(1000, 0.0008, 1.1, 1), (1000, 0.0008, 1.1, 0), (1000, 0.0008, 1.0, 1), (8, 0.1, 0.0, 0), (8, 0.05, 0.2, 0)],
)
def test_a_file_is_decoded_while_the_next_is_on_the_wire(files, decode_s, step_s, depth):
    pipe = Pipe(
        batch_bytes=files * 1e6,
        file_bytes=1e6,
        readers=1,
        latency_s=0.0,
        host_bytes_per_s=1e9 if files > 8 else 1e7,
        prefetch=depth,
        decode_s=files * decode_s,
    )
    wire_s = pipe.wire_s
    every = pipelined(files, decode_s, wire_s, step_s, depth)
    assert waits(pipe, step_s).wait_s == pytest.approx(every[-1], abs=1e-6) and not waiting.stands_for_several(pipe)
    assert waits(pipe, step_s).first_s == pytest.approx(files * max(wire_s, decode_s) + min(wire_s, decode_s))


def test_more_files_than_can_be_walked_stand_for_a_few_and_it_is_said():
    many = Pipe(batch_bytes=1e11, file_bytes=1e6, readers=1, latency_s=0.0, host_bytes_per_s=1e9, decode_s=80.0)
    assert waiting.stands_for_several(many) and waits(many, 1.0).first_s == pytest.approx(100, rel=0.001)
    assert not waiting.stands_for_several(replace(STEADY, hosts=64))  # without a spread all hosts are as one


@settings(deadline=None, max_examples=40)
@given(
    batch=st.floats(1e5, 1e9),
    file=st.floats(1e4, 1e9),
    readers=st.integers(1, 300),
    latency=st.floats(0, 1),
    step_s=st.floats(0.01, 5),
    prefetch=st.integers(0, 8),
)
def test_more_of_anything_is_never_worse(batch, file, readers, latency, step_s, prefetch):
    pipe = Pipe(
        batch_bytes=batch,
        file_bytes=min(file, batch * 50),
        readers=readers,
        latency_s=latency,
        prefetch=prefetch,
        stream_bytes_per_s=1e8,
        host_bytes_per_s=1e9,
    )
    now = waits(pipe, step_s).wait_s
    assert now >= 0 and now >= pipe.least_batch_s - step_s
    slack = 1e-9 + 0.02 * (now + step_s)
    for better in ({"prefetch": prefetch + 1}, {"host_bytes_per_s": 2e9}, {"latency_s": latency / 2}):
        assert waits(replace(pipe, **better), step_s).wait_s <= now + slack, better


@pytest.mark.parametrize("hosts", [1, 32])
@pytest.mark.parametrize("step_s", [0.3, 0.5, 0.62, 0.9])
def test_what_is_needed_is_enough_and_less_is_not(hosts, step_s):
    pipe = replace(SPREAD, hosts=hosts, prefetch=4)
    n = needed(pipe, step_s)
    if n.readers is not None:
        assert nobody_waits(replace(pipe, readers=n.readers), step_s)
        assert n.readers == 1 or not nobody_waits(replace(pipe, readers=int(n.readers * 0.9)), step_s)
        assert nobody_waits(pipe, step_s) == (n.readers <= pipe.readers)
    if n.prefetch is not None:
        assert nobody_waits(replace(pipe, prefetch=n.prefetch), step_s)
    if n.together is not None:
        assert nobody_waits(replace(pipe, readers=n.together[0], prefetch=n.together[1]), step_s)
    if n.file_bytes is not None:
        assert nobody_waits(replace(pipe, file_bytes=n.file_bytes), step_s)
    assert n.store_bytes_per_s == pytest.approx(hosts * 32e6 / step_s) == hosts * n.host_bytes_per_s
    assert n.requests_per_s * 1e5 == pytest.approx(n.store_bytes_per_s)


def test_where_bytes_bind_no_number_of_readers_is_enough():
    n = needed(replace(STEADY, host_bytes_per_s=1e7), 0.5)
    assert n.readers is n.prefetch is n.file_bytes is n.together is None


def test_a_file_of_several_batches_is_waited_for_once():
    pipe = Pipe(batch_bytes=1e6, file_bytes=1e8, readers=4, latency_s=1.0, stream_bytes_per_s=1e8, prefetch=0)
    assert waits(pipe, 0.05).wait_s * 100 == pytest.approx(2.0, rel=0.3)  # 2 s for each file of 100 batches
    with pytest.raises(QuestionError, match="files that hold 10,000 batches"):
        replace(pipe, file_bytes=1e10)


def test_an_epoch_is_its_requests_or_its_bytes_and_its_names():
    small = epoch(replace(STEADY, hosts=4, host_bytes_per_s=1e9), 1_000_500)
    assert small.read_s == pytest.approx(1_000_500 * 0.05 / (4 * 32))
    assert small.list_s == pytest.approx(1001 * 0.05) and small.bytes == 1_000_500 * 1e5
    large = in_large_files(replace(STEADY, hosts=4, host_bytes_per_s=1e9), 1_000_500)
    assert large.files == math.ceil(1_000_500 * 1e5 / LARGE_BYTES)
    assert large.read_s == pytest.approx(small.bytes / 4e9, rel=0.01) and large.list_s == 0.05
    assert in_large_files(replace(STEADY, file_bytes=LARGE_BYTES), 10) is None
    assert in_large_files(replace(STEADY, hosts=4), 1000) is None  # less than a large file for each host
    tiny = replace(STEADY, batch_bytes=1e5)  # of which a large file would hold 1,280
    assert epoch(tiny, 1_000_000).bytes == 1e11 and in_large_files(tiny, 1_000_000) is None
    assert in_large_files(replace(tiny, batch_bytes=128e3), 1_000_000).bytes == pytest.approx(1e11)


@pytest.mark.parametrize(("files", "read_s"), [(1, 0.25), (10, 0.25), (128, 0.25), (1280, 1280 * 0.25 / 512)])
def test_a_small_data_set_is_read_no_sooner_than_its_files_are(files, read_s):
    """512 requests in flight at most, and no more than there are files; each takes 0.2 s and 1 MB at 20 MB/s."""
    pipe = replace(STEADY, batch_bytes=1e7, file_bytes=1e6, latency_s=0.2, stream_bytes_per_s=2e7, readers=64, hosts=8)
    assert epoch(pipe, files).read_s == pytest.approx(read_s)


def test_the_same_bytes_are_read_whatever_their_files():
    pipe = replace(STEADY, latency_s=0.0, host_bytes_per_s=1e9, hosts=2)
    for files in (2561, 2600, 5000, 12_801):  # 2.001 to 10.001 large files
        small, large = epoch(pipe, files), in_large_files(pipe, files)
        assert large.bytes == pytest.approx(small.bytes) and large.read_s == pytest.approx(small.read_s)
        assert large.files == math.ceil(files * 1e5 / LARGE_BYTES) and small.files == files


def test_a_fit_finds_the_latency_and_the_bandwidths_that_made_its_rows():
    made = [(size, n) for size in (1e5, 1e6, 1e7, 1e8) for n in (1, 16, 64)]
    rows = [Row(f, max(0.03 + f / 2e8, n * f / 4e9), n) for f, n in made]
    found = fit(rows, capped=True)
    assert found.request_s == pytest.approx(0.03, rel=1e-6)
    assert found.stream_bytes_per_s == pytest.approx(2e8, rel=1e-6)
    assert found.total_bytes_per_s == pytest.approx(4e9, rel=1e-6)
    assert all(abs(t.error) < 1e-6 for t in told(rows, capped=True)[1])
    assert told(rows[:2], capped=False) is None


def test_the_published_table_of_direct_calls_follows_a_line_and_that_of_the_connector_does_not():
    worst = {}
    for one in series()[:2]:
        rows = [Row(r.file_bytes, r.reader_s) for r in one.rows]
        fitted, beside = told(rows, one.capped)
        worst[one.id] = max(abs(t.error) for t in beside), max(abs(t.held_out_error) for t in beside)
        for t, r in zip(beside, one.rows, strict=True):
            assert t.modelled_s == pytest.approx(fitted.request_s + r.file_bytes / fitted.stream_bytes_per_s)
    assert worst["gcs-direct"] == (pytest.approx(0.073, abs=0.005), pytest.approx(0.133, abs=0.005))
    assert min(worst["gcs-connector"]) > 0.3


@pytest.mark.parametrize("p99", [0.049, 0.05 * MOST_SPREAD * 1.001])
def test_a_spread_that_cannot_be(p99):
    with pytest.raises(QuestionError, match="99th percentile"):
        replace(STEADY, latency_p99_s=p99)


def test_ends_of_what_may_be_asked_are_bounded_and_finite():
    ends = [
        {"batch_bytes": 1.0, "file_bytes": 1000.0},
        {"batch_bytes": 1e18, "file_bytes": 1.0, "readers": 65_536},
        {"latency_s": 3600.0, "hosts": 10**6, "latency_p99_s": 3600.0 * 999},
        {"latency_s": 0.0, "prefetch": 64, "decode_s": 1e9},
        {"stream_bytes_per_s": 1.0, "host_bytes_per_s": 1e24, "store_bytes_per_s": 1.0, "hosts": 10**6},
    ]
    for change in ends:
        for step_s in (1e-6, 1e6):
            w = waits(replace(STEADY, **change), step_s)
            assert all(math.isfinite(x) for x in (w.wait_s, w.error_s, w.first_s)), change
            assert math.isfinite(needed(replace(STEADY, **change), step_s).in_flight)
