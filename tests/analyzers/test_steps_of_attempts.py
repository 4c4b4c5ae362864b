"""Steps that several attempts took again, where not every host's profile shows each of them: numbers of one time that a
step was taken are never a mean with those of another."""

import pytest

from analyzers.device import overlap
from analyzers.device.activity import profiled_steps
from analyzers.device.critical_path import critical_path
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.analyzers.device_rows import EPOCH

S = 10**9


def tables_of(*captures):
    """`captures`: (host, begins s, step, takes s, computes s) each."""
    n = range(len(captures))
    begun = [EPOCH + at * S for _, at, *_ in captures]
    hosts = [c[0] for c in captures]
    devices = [0] * len(captures)
    return MemoryTables(
        {
            "captures": {"capture": [*n], "host": hosts, "start_ns": begun, "stop_ns": [None] * len(captures)},
            "ops": {
                "capture": [*n],
                "op_id": devices,
                "host": hosts,
                "device": devices,
                "role": ["compute"] * len(captures),
                "category": ["fusion"] * len(captures),
                "op": ["fusion.1"] * len(captures),
                "line": ["stream 7"] * len(captures),
            },
            "op_events": {
                "capture": [*n],
                "device": devices,
                "op_id": devices,
                "event": devices,
                "start_ps": devices,
                "dur_ps": [c[4] * S * 1000 for c in captures],
            },
            "steps": {
                "step": [c[2] for c in captures],
                "host": hosts,
                "start_ns": begun,
                "dur_ns": [c[3] * S for c in captures],
                "capture": [*n],
            },
        }
    )


def ask(tables, module=overlap, **options):
    return module.analyze(tables, {}, parse_options(module.OPTIONS, options))


LATER = (("a", 0, 5, 10, 8), ("a", 1000, 5, 2, 1), ("b", 1000, 5, 2, 1))
EARLIER = (("b", 0, 5, 10, 8), *LATER[:2])


@pytest.mark.parametrize("captures, devices", [(LATER, [1, 2]), (EARLIER, [2, 1])])
def test_a_host_profiled_in_one_attempt_alone_is_of_that_attempt(captures, devices):
    rows = ask(tables_of(*captures)).steps
    assert rows[["step", "taken"]].values.tolist() == [[5, 0], [5, 1]] and rows["devices"].tolist() == devices
    assert rows["window_s"].tolist() == [10, 2] and rows["compute_s"].tolist() == [8, 1]


@pytest.mark.parametrize("captures, hosts", [(LATER, {"a", "b"}), (EARLIER, {"a"})])
def test_the_timeline_is_of_the_last_time_alone(captures, hosts):
    cells = ask(tables_of(*captures)).timeline
    assert set(cells["host"]) == hosts and cells["dur_s"].max() == pytest.approx(1)


@pytest.mark.parametrize("captures, devices", [(LATER, [1, 2]), (EARLIER, [2, 1])])
def test_critical_paths_are_of_one_attempt_too(captures, devices):
    steps = ask(tables_of(*captures), critical_path).steps
    assert steps["taken"].tolist() == [0, 1] and steps["devices"].tolist() == devices
    assert steps["path_s"].tolist() == pytest.approx([10, 2])


def test_every_host_in_both_attempts_and_a_clock_far_off():
    both = [
        (h, at + ahead, 5, takes, 1) for h, ahead in (("a", 0), ("b", 50_000)) for at, takes in ((0, 10), (1000, 2))
    ]
    rows = ask(tables_of(*both)).steps
    assert rows["window_s"].tolist() == [10, 2] and rows["devices"].tolist() == [2, 2]


def test_where_no_host_shows_a_step_twice_it_was_taken_once():
    captures = (("a", 0, 5, 10, 8), ("a", 1000, 9, 2, 1), ("b", 700, 5, 10, 8))
    assert profiled_steps(tables_of(*captures))["taken"].tolist() == [0, 0, 0]
    assert ask(tables_of(*captures)).steps["devices"].tolist() == [2, 1]
