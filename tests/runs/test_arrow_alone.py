"""Arrow without pandas: until something asks for pandas."""

import subprocess
import sys

from tests.app.serving import PROJECT, environment

CODE = """
import sys
from runs.arrow_alone import arrow_alone
before = list(sys.meta_path)
arrow_alone()
import pyarrow as pa
table = pa.table({"a": pa.array([1, None, 3]), "b": pa.array(["x", "y", None], pa.dictionary(pa.int32(), pa.string()))})
assert "pandas" not in sys.modules and sys.meta_path == before
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
