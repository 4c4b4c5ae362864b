"""What `make check` leaves out is there to be left out, and the properties in it are tried less often."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import bounded, seeds
from tests.slow import ALWAYS, ROOT, SLOW_S, chosen, is_slow, listed


@pytest.mark.parametrize("name", sorted(listed()))
def test_what_is_left_out_is_there(name):
    file, _, function = name.partition("::")
    assert (ROOT / file).exists()
    if function:
        assert re.search(rf"\b{function}\b", (ROOT / file).read_text())


def test_a_line_leaves_out_a_function_with_its_parameters_a_file_or_a_folder():
    file = next(name for name in listed() if name.endswith(".py"))
    function = next(name for name in listed() if "::" in name)
    assert is_slow(f"{file}::test_x[1]") and is_slow(function) and is_slow(f"{function}[a::b]")
    assert is_slow(f"{ALWAYS[0]}deeper/test_x.py::test_x")
    assert not is_slow("tests/runs/test_none.py::test_x") and not is_slow(f"{function}_or_another")


def test_what_takes_long_is_listed_by_function_or_by_file():
    costs = [
        ("tests/a.py::test_long[1]", SLOW_S / 2),
        ("tests/a.py::test_long[2]", SLOW_S),
        ("tests/a.py::test_b", SLOW_S / 2),
    ]
    costs += [
        ("tests/a.py::test_c", SLOW_S / 2),
        ("tests/whole.py::test_long", 3 * SLOW_S),
        ("tests/browser/b.py::test_x", 99.0),
    ]
    assert chosen(costs) == [*ALWAYS, "tests/a.py::test_long", "tests/whole.py"]


@pytest.mark.parametrize("asked, most, tried", [(300, 15, 15), (6, 15, 6)])
def test_a_property_is_tried_no_more_often_than_bounded(asked, most, tried):
    seen = []

    @settings(max_examples=asked, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers())
    def holds(number):
        seen.append(number)

    bounded(holds, most)
    holds()
    assert len(seen) == tried


def test_in_ci_a_property_is_tried_as_often_as_it_says():
    assert settings.get_profile("ci").max_examples == settings.get_profile("default").max_examples == 100


@pytest.mark.parametrize("profile, tried", [("ci", [*range(12)]), ("dev", [0, 5, 10])])
def test_of_the_seeds_of_a_test_a_part_is_tried_and_all_in_ci(profile, tried, monkeypatch):
    monkeypatch.setattr(settings, "_current_profile", profile)
    assert [*seeds(12)] == tried
