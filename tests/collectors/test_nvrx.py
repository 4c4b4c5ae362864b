"""Restart cycles of ft_launcher: one attempt a cycle, failures to the attempt whose workers were running."""

import json

import pytest

from collectors.training import nvrx
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
T0 = 1772600400 * S  # 2026-03-04 05:00:00 UTC


def line(cycle, event, second, node="n7_1234_0", rank=0, prefix="7: 2026-03-04 05:00:00,000 [INFO] [profiling] "):
    time = f"2026-03-04 05:{second // 60:02d}:{second % 60:02d}.250"
    return f"{prefix}- Cycle: {cycle} Event: {event} Node: {node} Rank: {rank} Time: {time} UTC\n"


def started(cycle, second, node="n7_1234_0"):
    return "".join(
        line(cycle, event, second + i, node)
        for i, event in enumerate(
            ("rendezvous_started", "rendezvous_completed", "worker_start_started", "worker_start_completed")
        )
    )


def failed(cycle, second, node="n7_1234_0"):
    return line(cycle, "failure_detected", second, node) + line(cycle, "worker_terminated", second + 5, node)


TWO = started(0, 0) + started(0, 1, "n8_99_1") + failed(1, 100, "n8_99_1") + started(1, 120) + failed(2, 300)


def log(folder, text):
    return read(nvrx, source_of(folder, text, "launcher.log"))


def seconds(ns):
    return (ns - T0 - S // 4) // S


def test_one_attempt_a_cycle_that_started_workers(tmp_path):
    got = log(tmp_path, TWO)
    rows = [(r["kind"], r["attempt"], seconds(r["start_ns"]), r["end_ns"]) for r in got.rows["lifecycle"]]
    assert rows == [("job", 0, 2, None), ("job", 1, 122, None)]
    first, second = (json.loads(r["detail"]) for r in got.rows["lifecycle"])
    assert first["cycle"] == 0 and first["worker_start_completed"]["count"] == 2
    assert seconds(first["rendezvous_completed"]["last_ns"]) == 2
    assert seconds(second["failure_detected"]["first_ns"]) == 100
    assert "never started" in got.reasons()  # cycle 2


def test_a_failure_belongs_to_the_workers_that_were_running(tmp_path):
    rows = log(tmp_path, TWO).rows["evidence"]
    told = [(r["cause"], r["attempt"], seconds(r["ts_ns"]), r["host"], r["severity"]) for r in rows]
    assert told == [("process_exit", 0, 100, "n8", "error"), ("process_exit", 1, 300, "n7", "error")]


def test_other_lines_tell_why(tmp_path):
    why = "7: [rank7]: torch.OutOfMemoryError: CUDA out of memory\n"
    rows = log(tmp_path, started(0, 0) + why + failed(1, 100) + started(1, 120) + why).rows["evidence"]
    assert [(r["cause"], r["attempt"]) for r in rows if r["cause"] != "process_exit"] == [
        ("device_memory", 0),
        ("device_memory", 1),
    ]


def test_workers_whose_start_was_only_completed(tmp_path):
    [row] = log(tmp_path, line(0, "worker_start_completed", 7)).rows["lifecycle"]
    assert seconds(row["start_ns"]) == 7


def test_unknown_events_bad_times_and_half_a_line(tmp_path):
    bad = line(1, "lunch", 5) + line(1, "worker_start_started", 5).replace("2026-03-04 05:00:05", "2026-13-44 05:00:05")
    got = log(tmp_path, started(0, 0) + bad + line(1, "worker_start_started", 9)[:-9])
    assert len(got.rows["lifecycle"]) == 1 and "not known, or without a time" in got.reasons()


def test_colours_and_line_ends(tmp_path):
    text = started(0, 0).replace("- Cycle", "\x1b[1m- Cycle").replace("\n", "\r\n")
    assert len(log(tmp_path, text).rows["lifecycle"]) == 1


@pytest.mark.parametrize("again", ["n7_5678_0", "n9_5678_0"])
@pytest.mark.parametrize("cycles", [1, 2])
def test_cycles_that_are_counted_anew_are_of_a_job_that_was_put_back_into_its_queue(tmp_path, cycles, again):
    first = started(0, 0) + (failed(1, 100) + started(1, 120) if cycles == 2 else "") + failed(cycles, 200)
    then = started(0, 400, again) + failed(1, 500, again) + started(1, 520, again)
    got = log(tmp_path, first + then)
    rows = [(r["attempt"], seconds(r["start_ns"]), json.loads(r["detail"])["cycle"]) for r in got.rows["lifecycle"]]
    begun = [(2, 0), (122, 1)][:cycles] + [(402, 0), (522, 1)]
    assert rows == [(n, at, cycle) for n, (at, cycle) in enumerate(begun)]
    assert [r["attempt"] for r in got.rows["evidence"]] == list(range(cycles + 1))


def test_nodes_that_sum_up_their_cycles_one_after_the_other_are_of_one_launch(tmp_path):
    def node(name, late):
        return started(0, late, name) + failed(1, 100, name) + started(1, 120 + late, name)

    got = log(tmp_path, node("n7_1_0", 0) + node("n8_2_0", 3) + node("n7_9_1", 5))  # two launchers on one host
    assert [seconds(r["start_ns"]) for r in got.rows["lifecycle"]] == [2, 122]


def test_a_node_that_comes_late_to_a_cycle_is_of_its_launch(tmp_path):
    """Its image was pulled for minutes: the workers of all wait for it. Lines of both in any order."""
    first = line(0, "rendezvous_started", 0) + "".join(
        line(0, event, 184 + i) for i, event in enumerate(("worker_start_started", "worker_start_completed"))
    )
    late = started(0, 180, "n8_2_0")
    for text in (first + late, late + first):
        assert [seconds(r["start_ns"]) for r in log(tmp_path, text + failed(0, 400)).rows["lifecycle"]] == [182]


def test_a_file_without_cycles(tmp_path):
    with pytest.raises(InputError, match="no restart cycle"):
        log(tmp_path, "Event: none\n")


def test_sniff(tmp_path):
    assert nvrx.sniff(source_of(tmp_path, TWO)) >= 0.9
    assert nvrx.sniff(source_of(tmp_path, "Cycle: 1 of 5\n")) == 0
