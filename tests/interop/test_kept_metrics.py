"""Real files of metrics that a job kept, and numbers that were computed from them independently."""

import json
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.training import trainer_state
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLES = SHARED / "data" / "more", SHARED / "oracles" / "more"

pytestmark = pytest.mark.skipif(not (ORACLES / "hf_trainer.json").exists(), reason="no kept metrics beside the project")


def test_trainer_state():
    [(name, told)] = json.loads((ORACLES / "hf_trainer.json").read_text()).items()
    source = Source(MORE / name, name)
    assert trainer_state.sniff(source) == 0.95
    got = read(trainer_state, source)
    assert len(got.rows["steps"]) == told["train_entries"] and set(got.column("steps", "dur_ns")) == {None}
    for row, entry in ((got.rows["steps"][0], told["first_train"]), (got.rows["steps"][-1], told["last_train"])):
        assert (row["step"], row["loss"]) == (entry["step"], entry["loss"])
    values = {(row["step"], row["name"]): row["value"] for row in got.rows["scalars"]}
    for entry in (told["first_train"], told["last_train"], told["last_entry"]):
        assert all(values[entry["step"], n] == value for n, value in entry.items() if n not in ("step", "loss"))
    assert {name for _, name in values} | {"loss", "step"} == {*told["keys"], "total_flos"}
    numbers = sum(len(entry) - 1 for entry in json.loads((MORE / name).read_text())["log_history"])
    assert len(got.rows["scalars"]) == numbers - told["train_entries"] + 1
    assert got.facts == {"planned_steps": told["max_steps"]}
