"""Real files of metrics that a job kept, and numbers that were computed from them independently."""

import json
from collections import Counter
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.training import dllogger, trainer_state
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


def test_dllogger():
    [(name, told)] = json.loads((ORACLES / "dllogger.json").read_text()).items()
    source = Source(MORE / name, name)
    assert dllogger.sniff(source) == 0.85
    got = read(dllogger, source)
    keys = Counter(got.column("scalars", "name"))
    assert all(keys[n] == count for n, count in told["data_keys"].items() if n not in ("Config", "train_start"))
    assert (
        told["last"][0] == []
        and {r["name"]: r["value"] for r in got.rows["scalars"]}.items() >= told["last"][1].items()
    )
    # each entry but the first of a step is one of those that were tried again
    steps = got.rows["steps"]
    again = next(lost.what for lost in got.lost if lost.reason == dllogger.TRIED)
    assert again == f"steps ({told['step_shapes']['list2'] - 1 - len(steps)})"
    assert [row["step"] for row in steps] == list(range(1563)) and got.facts["planned_steps"] == 1563
    # from the start of training to the last step; what comes after it took as long as one more
    took = sum(row["dur_ns"] for row in steps) / 1e9
    assert told["last"][1]["raw_train_time"] - took == pytest.approx(79.5, abs=0.5)
    [job] = [row for row in got.rows["lifecycle"] if row["kind"] == "job"]
    assert (job["end_ns"] - job["start_ns"]) / 1e9 == pytest.approx(told["last"][1]["e2e_train_time"], abs=0.1)


def test_output_of_that_job_is_no_log_of_its_steps():
    name = "dllogger/eventbert_nohup.out"
    assert dllogger.sniff(Source(MORE / name, name)) == 0


def test_dllogger_of_nemo_and_of_resnet():
    logs = SHARED / "data" / "logs"
    nemo = read(dllogger, Source(logs / "gpu_recipes_nemo_dllogger" / "dllogger.json", "dllogger.json"))
    assert nemo.column("steps", "step") == list(range(50))
    assert 25e9 < sorted(nemo.column("steps", "dur_ns"))[25] < 26e9  # a profile was taken from step 45 to 47
    assert [row["step"] for row in nemo.rows["steps"] if row["dur_ns"] > 30e9] == [0, 46, 47]
    assert nemo.facts["global_batch"] == nemo.facts["sequence_length"] == 2048
    resnet = read(dllogger, Source(logs / "nvidia_dllogger" / "examples" / "example_resnet_log.json", "log.json"))
    assert set(resnet.column("steps", "attempt")) == {0} and len(resnet.rows["lifecycle"]) == 1
    assert 0.18e9 < sorted(resnet.column("steps", "dur_ns"))[len(resnet.rows["steps"]) // 2] < 0.2e9
    assert dllogger.NUMBERED_ON in resnet.reasons() and dllogger.TRIED not in resnet.reasons()
    name = "example_stdout_log.txt"
    printed = read(dllogger, Source(logs / "nvidia_dllogger" / "examples" / name, name))
    lines = [x for x in (logs / "nvidia_dllogger" / "examples" / name).read_text().splitlines() if "Iteration: " in x]
    losses = [float(line.split(" : ")[1].split()[0]) for line in lines if "Validation" not in line]
    assert printed.column("steps", "loss") == losses and "nat" in printed.column("scalars", "unit")
