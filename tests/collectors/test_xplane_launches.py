"""Launches of profiles by JAX and TensorFlow on GPUs: which call of which thread launched what devices executed."""

import random

import pytest

from analyzers.device.launches import launches as question
from collectors import ingest
from collectors.device.xplane import launches
from tests.collectors.riegeli_files import continuous
from tests.collectors.test_riegeli import NAME, cut, told
from tests.collectors.traces import PlaneBuilder, XSpace, environment, got

THREADS = ("Host Threads/7", "Host Threads/8")


def space_of(calls: list[tuple], runs: list[tuple]):
    """`calls`: (thread, name, start, duration, number); `runs`: (device, stream, name, start, duration, number), ns."""
    space = XSpace(hostnames=[b"h"])
    environment(space)
    host = PlaneBuilder(space, "/host:CPU")
    for thread in THREADS:
        mine = sorted((c for c in calls if c[0] == thread), key=lambda c: c[2])
        host.line(thread, [(name, a, d, {"correlation_id": n}) for _, name, a, d, n in mine])
    for device in sorted({r[0] for r in runs}):
        plane = PlaneBuilder(space, f"/device:GPU:{device}")
        for stream in sorted({r[1] for r in runs if r[0] == device}):
            mine = sorted((r for r in runs if r[:2] == (device, stream)), key=lambda r: r[3])
            plane.line(f"Stream #{stream}(Compute)", [(k, a, d, {"correlation_id": n}) for *_, k, a, d, n in mine])
    return space


def rows(read) -> list[tuple]:
    """(device, kernel, its start, call, line, start and duration of the call, graph), ns."""
    ops = {o["op_id"]: o["op"] for o in read.rows["ops"]}
    events = {e["event"]: e for e in read.rows["op_events"]}
    out = []
    for row in read.rows["launches"]:
        run, call = events[row["event"]], events[row["call_event"]]
        assert (call["start_ps"], call["dur_ps"]) == (row["call_start_ps"], row["call_dur_ps"])
        assert run["device"] == row["device"] and call["device"] is None
        span = row["call_start_ps"] // 1000, row["call_dur_ps"] // 1000
        out.append(
            (row["device"], ops[run["op_id"]], run["start_ps"] // 1000, row["call"], row["line"], *span, row["graph"])
        )
    return sorted(out)


def test_each_execution_has_the_call_of_its_number(tmp_path):
    calls = [(THREADS[0], "cuLaunchKernel", 0, 5, 1), (THREADS[1], "hipExtModuleLaunchKernel", 3, 4, 2)]
    runs = [(0, 7, "a", 10, 20, 1), (1, 9, "b", 12, 20, 2), (0, 7, "c", 40, 5, 99)]
    assert rows(got(tmp_path, space_of(calls, runs).SerializeToString())) == [
        (0, "a", 10, "cuLaunchKernel", THREADS[0], 0, 5, False),
        (1, "b", 12, "hipExtModuleLaunchKernel", THREADS[1], 3, 4, False),
    ]


@pytest.mark.parametrize("name", ["cuGraphLaunch", "cudaGraphLaunch", "hipGraphLaunch"])
def test_a_graph_is_launched_by_one_call(tmp_path, name):
    runs = [(0, 7, f"k{i}", 10 + 10 * i, 5, 1) for i in range(9)]
    read = rows(got(tmp_path, space_of([(THREADS[0], name, 0, 5, 1)], runs).SerializeToString()))
    assert len(read) == 9 and all(row[3:] == (name, THREADS[0], 0, 5, True) for row in read)


def test_of_calls_within_one_another_the_outermost_counts(tmp_path):
    calls = [(THREADS[0], "hipLaunchKernel", 1, 9, 1), (THREADS[0], "hipModuleLaunchKernel", 3, 4, 1)]
    (row,) = rows(got(tmp_path, space_of(calls, [(0, 7, "a", 20, 5, 1)]).SerializeToString()))
    assert row[3:7] == ("hipLaunchKernel", THREADS[0], 1, 9)


@pytest.mark.parametrize("name", ["hipStreamWaitEvent", "hipLaunchHostFunc", "cuStreamSynchronize", "cuEventRecord"])
def test_what_launches_nothing_is_no_launch(tmp_path, name):
    """ROCm's tracer gives a kernel the number of such a call now and then."""
    assert (
        rows(got(tmp_path, space_of([(THREADS[0], name, 0, 5, 1)], [(0, 7, "a", 10, 5, 1)]).SerializeToString())) == []
    )


def test_a_call_that_is_named_after_its_kernel_is_a_launch_of_one(tmp_path):
    calls = [(THREADS[0], "sgemm", 0, 5, 1), (THREADS[0], "MemcpyH2D", 6, 2, 2)]
    runs = [(0, 7, "sgemm", 10, 5, 1), (0, 8, "MemcpyH2D", 20, 5, 2)]
    read = rows(got(tmp_path, space_of(calls, runs).SerializeToString()))
    assert [row[3] for row in read] == ["MemcpyH2D", launches.UNNAMED]


def test_a_profile_without_numbers_has_no_launches(tmp_path):
    space = XSpace()
    environment(space)
    PlaneBuilder(space, "/host:CPU").line(THREADS[0], [("cuLaunchKernel", 0, 5)])
    PlaneBuilder(space, "/device:GPU:0").line("Stream #7", [("a", 10, 5)])
    assert "launches" not in got(tmp_path, space.SerializeToString()).rows


def world(seed: int, count: int = 400) -> tuple[list[tuple], list[tuple]]:
    """Calls and executions at random: gaps, calls that lack, executions before their calls return, graphs."""
    rng = random.Random(seed)
    calls, runs, clock = [], [], dict.fromkeys(THREADS, 0)
    free: dict[tuple[int, int], int] = {}
    for number in range(1, count):
        thread = rng.choice(THREADS)
        begin, took = clock[thread] + rng.randrange(1, 400), rng.randrange(1, 60)
        clock[thread] = begin + took
        graph = rng.random() < 0.05
        if rng.random() < 0.9:
            calls.append((thread, "cuGraphLaunch" if graph else "cuLaunchKernel", begin, took, number))
        at = (rng.randrange(3), rng.randrange(2))
        for _ in range(rng.randrange(2, 6) if graph else 1):
            start = max(free.get(at, 0), begin + rng.randrange(1, 100))
            free[at] = start + rng.randrange(1, 300)
            runs.append((*at, f"k{rng.randrange(9)}", start, free[at] - start, number))
    return calls, runs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("joined", [1 << 21, 50])
def test_whatever_the_world(tmp_path, monkeypatch, seed, joined):
    """Brute force over pairs; with small limits, too, where rows go to a file and are joined share by share."""
    if joined < 1000:
        monkeypatch.setattr(launches, "_HELD", 40)
        monkeypatch.setattr(launches, "_JOINED", joined)
    calls, runs = world(seed)
    expected = sorted(
        (device, name, start, call, thread, begin, took, call == "cuGraphLaunch")
        for device, _, name, start, _, number in runs
        for thread, call, begin, took, told_number in calls
        if told_number == number
    )
    space = space_of(calls, runs)
    assert rows(got(tmp_path, space.SerializeToString())) == expected
    assert rows(got(tmp_path, continuous(cut(space, 5)), NAME)) == expected


def judged(calls: list[tuple], runs: list[tuple], device: int) -> dict[str, int]:
    """What a device waited for, instant by instant of 1 ns: the host, the launch, nothing, or what is not known."""
    by_number = {number: (begin, begin + took) for _, _, begin, took, number in calls}
    mine = sorted((start, start + took, number) for d, _, _, start, took, number in runs if d == device)
    out = {"late_s": 0, "launch_delay_s": 0, "between_kernels_s": 0, "not_told_s": 0}
    now = mine[0][0]
    for start, end, number in mine:
        for instant in range(now, start):
            begin, done = by_number.get(number, (None, None))
            if begin is None or done is None:
                kind = "not_told_s"
            elif instant < begin:
                kind = "late_s"
            else:
                kind = "between_kernels_s" if done <= now else "launch_delay_s"
            out[kind] += 1
        now = max(now, end)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_the_question_answers_as_brute_force_does(tmp_path, store, seed):
    calls, runs = world(seed)
    (path := tmp_path / "h.xplane.pb").write_bytes(space_of(calls, runs).SerializeToString())
    run = store.get(ingest.ingest([path], store).run_id)
    devices = question.analyze(run.tables, {}, {}).devices
    assert devices["device"].tolist() == [0, 1, 2]
    for row in devices.to_dict("records"):
        expected = judged(calls, runs, row["device"])
        assert {name: round(row[name] * 1e9) for name in expected} == expected
        assert row["idle_s"] * 1e9 == pytest.approx(sum(expected.values()))


def test_pieces_tell_the_same_launches(tmp_path):
    space = space_of(*world(7))
    assert told(got(tmp_path, continuous(cut(space, 4)), NAME)) == told(got(tmp_path, space.SerializeToString(), NAME))
