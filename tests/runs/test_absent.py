"""Modules that are not there for who looks: Arrow without pandas, until something asks for that."""

import importlib
import subprocess
import sys
import threading

import pytest

from runs.absent import absent
from tests.app.serving import PROJECT, environment

CODE = """
import sys
from runs.absent import arrow_alone
arrow_alone()
import pyarrow as pa
table = pa.table({"a": pa.array([1, None, 3]), "b": pa.array(["x", "y", None], pa.dictionary(pa.int32(), pa.string()))})
assert "pandas" not in sys.modules
assert not [f for f in sys.meta_path if type(f).__module__ == "runs.absent"]  # others' stay: that of dates brings one
frame = table.to_pandas()
assert "pandas" in sys.modules and frame["a"].tolist()[0] == 1 and frame["b"].tolist()[:2] == ["x", "y"]
import pandas as pd
assert pa.array(pd.Series([1.5, None])).null_count == 1
arrow_alone()
assert pa.array(pd.Series([1.5, None])).null_count == 1
"""


def test_arrays_bring_no_pandas_along_and_frames_do():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, cwd=PROJECT, env=environment())
    assert done.returncode == 0, done.stderr


def test_a_module_is_absent_for_this_thread_and_within_it_alone(tmp_path, monkeypatch):
    (tmp_path / "wanted_by_nobody.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    before = list(sys.meta_path)
    with absent("wanted_by_nobody"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("wanted_by_nobody")
        other = threading.Thread(target=lambda: found.append(importlib.import_module("wanted_by_nobody").x))
        other.start()
        other.join()
        assert found == [1] and importlib.import_module("wanted_by_nobody").x == 1, "what is there already stays"
    assert sys.meta_path == before
    del sys.modules["wanted_by_nobody"]
    assert importlib.import_module("wanted_by_nobody").x == 1
