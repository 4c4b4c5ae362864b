"""Real event files of TensorBoard, and numbers that were computed from them independently."""

import json
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.training import tensorboard
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLE = SHARED / "data" / "more", SHARED / "oracles" / "more" / "tensorboard.json"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no event files beside the project")


def test_every_scalar_of_every_file():
    for name, told in json.loads(ORACLE.read_text()).items():
        source = Source(MORE / name, name)
        assert tensorboard.sniff(source) == 0.97
        got = read(tensorboard, source)
        rows = got.rows["scalars"]
        assert len(rows) == told["kinds"]["simple_value"] and "steps" not in got.rows
        assert {row["name"] for row in rows} == told["tags"].keys()
        for tag, one in told["tags"].items():
            mine = [row for row in rows if row["name"] == tag]
            assert len(mine) == one["n"] and len({row["step"] for row in mine}) == one["distinct_steps"]
            for row, (step, value) in ((mine[0], one["first"]), (mine[-1], one["last"])):
                assert (row["step"], row["value"]) == (step, value)
        assert rows[-1]["ts_ns"] / 1e9 == pytest.approx(told["last_wall"], abs=1e-6)
        graphs = told["records"] - 1 - len(rows)
        assert got.reasons() == (f"graphs ({graphs}): no number of a step" if graphs else "")
