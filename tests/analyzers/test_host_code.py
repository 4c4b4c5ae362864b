"""In which function hosts were while devices stood idle, against profiles whose every call is made by hand."""

import pytest

from analyzers.device.host_code import hot_code
from tests.analyzers.test_host_work import STEP_MS, STEPS, profile

LOOP = ("$train.py:10 main", 0, STEPS * STEP_MS)


def of_each_step(*calls):
    """Calls (name, from, to) that come in every step."""
    return [(name, n * STEP_MS + a, n * STEP_MS + b) for n in range(STEPS) for name, a, b in calls]


@pytest.mark.parametrize(
    ("calls", "text", "places"),
    [
        ([("$prepare.py:7 flatten", 10, 90)], "flatten (prepare.py:7)", ["prepare.py:7"]),
        (
            [("$train.py:30 step", 5, 95), ("$prepare.py:7 digest", 10, 90), ("$_hashlib sha256", 12, 88)],
            "sha256, called by digest (prepare.py:7)",
            ["prepare.py:7"],
        ),
        ([("job/prepare.py(7): flatten", 10, 90)], "flatten (prepare.py:7)", ["prepare.py:7"]),
        ([("$_hashlib sha256", 10, 90)], "sha256", []),
        ([("$<frozen os>:674 getenv", 10, 90)], "getenv (<frozen os>:674)", ["<frozen os>:674"]),
    ],
)
def test_the_innermost_function_with_half_of_the_time_is_told_with_its_caller(calls, text, places):
    found = hot_code(profile([LOOP, *of_each_step(*calls)]))
    assert found is not None and (found.text, found.places) == (text, places)


def test_of_many_functions_none_is_told_nor_of_a_profile_without_calls():
    many = of_each_step(*[(f"$train.py:{n} part_{n}", n * 10, n * 10 + 10) for n in range(10)])
    assert hot_code(profile([LOOP, *many])) is None
    assert hot_code(profile([("data_loading", 10, 20)])) is None


def test_what_passed_while_the_device_worked_or_in_what_an_event_names_does_not_count():
    calls = of_each_step(("$train.py:30 busy", 0, 50), ("$train.py:40 idle", 55, 75), ("$train.py:50 logs", 80, 100))
    marked = of_each_step(("log_metrics", 80, 100))
    found = hot_code(profile([*calls, *marked], busy=[(n * STEP_MS, n * STEP_MS + 50) for n in range(STEPS)]))
    assert found is not None and found.function == "idle" and found.share == pytest.approx(20 / 30)
