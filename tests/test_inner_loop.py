"""What `make check` leaves out is there to be left out, and the properties in it are tried less often."""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import loading
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


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_each_worker_begins_with_another_part_of_the_files_and_loads_all(workers):
    files = [Path(f"test_{n:02}.py") for n in range(40)]
    turned = [loading.turned(files, number, workers) for number in range(workers)]
    assert all(sorted(mine) == files for mine in turned)
    begun = {file for mine in turned for file in mine[: -(-len(files) // workers)]}
    assert begun == set(files), "each is compiled by one of them first"


def test_what_is_left_out_is_not_loaded_and_what_cannot_be_loaded_is_left_to_collecting(tmp_path, monkeypatch):
    for name, code in (("test_a", "FOUND = 1"), ("test_b", "import no_such_module"), ("test_c", "")):
        (tmp_path / f"{name}_loaded.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    files = loading.found([tmp_path], lambda file: file.stem == "test_c_loaded")
    assert [file.stem for file in files] == ["test_a_loaded", "test_b_loaded"]
    loading.load(files, tmp_path)
    assert sys.modules.pop("test_a_loaded").FOUND == 1 and "test_b_loaded" not in sys.modules
