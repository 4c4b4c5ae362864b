"""Real logs of llm.c, torchtitan, DeepSpeed, verl and NeMo 2, and numbers computed from them independently."""

import json
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.training import deepspeed, llm_c, megatron, nanogpt, torchtitan, verl
from errors import InputError
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLES = SHARED / "data" / "more", SHARED / "oracles" / "more"

pytestmark = pytest.mark.skipif(not (ORACLES / "llm_c.json").exists(), reason="no step logs beside the project")


def oracle(name):
    return json.loads((ORACLES / f"{name}.json").read_text())


def test_llm_c():
    for name, told in oracle("llm_c").items():
        source = Source(MORE / name, name)
        assert llm_c.sniff(source) >= 0.8
        got = read(llm_c, source)
        steps = got.rows.get("steps", [])
        assert len(steps) == told["step_lines"]
        assert sum(row["dur_ns"] for row in steps) / 1e6 == pytest.approx(told.get("sum_ms", 0))
        for row, line in zip((steps[0], steps[-1]), (told["first"], told["last"]), strict=True) if steps else ():
            assert row["step"] == int(line[0]) and row["loss"] == float(line[2])
            assert row["dur_ns"] / 1e6 == pytest.approx(float(line[5]))
        assert got.column("evidence", "cause") == (["time_limit"] if steps else ["software"])


def test_torchtitan():
    name = "torchtitan/aws_llama3_8b_readme_excerpt.log"
    told, source = oracle("torchtitan")[name], Source(MORE / name, name)
    assert torchtitan.sniff(source) == 0.9
    got = read(torchtitan, source)
    for n in range(told["runs"]):
        run = told[f"run_{n}"]
        rows = [row for row in got.rows["steps"] if row["attempt"] == n]
        assert len({row["host"] for row in rows}) == len(rows) == 4  # nodes
        assert {(r["step"], r["loss"], r["tokens_per_s_per_chip"]) for r in rows} == {
            (run["step"], run["loss"], run["tps_per_device"])
        }
    values = {r["name"]: r["value"] for r in got.rows["scalars"]}
    last = told["run_1"]
    assert (values["memory"], values["memory share"], values["mfu"]) == (
        last["memory_GiB"],
        last["memory_pct"],
        last["mfu_pct"],
    )


def test_a_fork_of_torchtitan():
    name = "torchtitan/mmm_aurora_excerpt.log"
    told, source = oracle("torchtitan")[name], Source(MORE / name, name)
    got = read(torchtitan, source)
    lines = [row for row in got.rows["steps"] if row["logged_ns"]]
    assert [row["step"] for row in lines] == told["steps"] and [row["loss"] for row in lines] == told["losses"]
    seconds = [r["value"] for r in got.rows["scalars"] if r["name"] == "end_to_end"]
    assert sum(seconds) == pytest.approx(told["sum_end_to_end_s"]) and {r["attempt"] for r in lines} == {0, 1}
    first = got.rows["steps"][0]
    tokens = {round(r["dur_ns"] / 1e9 * r["tokens_per_s_per_chip"], 1) for r in got.rows["steps"] if r is not first}
    assert tokens == {2048.0, 8192.0}  # of a step and device, in the two runs


def test_deepspeed():
    for name, told in oracle("deepspeed").items():
        source = Source(MORE / name, name)
        assert deepspeed.sniff(source) == 0.7
        got = read(deepspeed, source)
        steps = {row["step"] for row in got.rows["steps"]}
        first, last = told["first"][1], told["last"][1]
        assert steps >= set(range(first, last + 1)) and set(got.column("steps", "attempt")) == {0}
        assert len(steps) == len(got.rows["steps"])  # two engines name the same step
        lines = [row for row in got.rows["scalars"] if row["name"] == "skipped"]
        assert len(lines) == told["timer_lines"] and lines[-1]["step"] == last
        rates = [row["value"] for row in got.rows["scalars"] if row["name"] == "samples per second"]
        assert rates[-1] == pytest.approx(float(told["timer_last"][4])) and len(rates) == told["timer_lines"]
        at = [row["logged_ns"] for row in got.rows["steps"] if row["logged_ns"]]
        took = sum(row["dur_ns"] for row in got.rows["steps"] if row["dur_ns"])
        assert took == pytest.approx(at[-1] - at[0], abs=len(steps))  # neither file tells its batch


def test_verl():
    told = oracle("verl")
    for name, expected in told.items():
        source = Source(MORE / name, name)
        assert verl.sniff(source) >= 0.9
        if "steps" in expected:
            got = read(verl, source)
            assert got.column("steps", "step") == expected["steps"] and set(got.column("steps", "loss")) == {
                -0.005,
                0.0,
            }
            values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
            for phase in ("gen", "update_actor", "update_critic"):
                of_steps = [values[f"timing/{phase}", step] for step in expected["steps"]]
                assert of_steps == [(took, "s") for took in expected[f"timing_{phase}_s"]]
            first = sum(1 for _, step in values if step == expected["steps"][0])
            assert first + 1 == expected["keys_first_line"]  # the loss stands with its step
        elif "evidence" in expected["expect"]:
            got = read(verl, source)
            assert set(got.rows) == {"evidence"} and "NotImplementedError" in str(got.column("evidence", "text"))
        else:
            with pytest.raises(InputError, match="came to no step"):
                read(verl, source)


def test_nemo():
    for name, told in oracle("nemo").items():
        source = Source(MORE / name, name)
        assert megatron.sniff(source) == 0.9
        got = read(megatron, source)
        assert got.column("steps", "step") == told["global_steps"] and set(got.column("steps", "host")) == {None}
        assert [ns / 1e9 for ns in got.column("steps", "dur_ns")] == told["train_step_timing_s"]
        assert got.column("steps", "loss")[-1] == told["last_loss"] and got.facts["global_batch"] == 512


def test_modded_nanogpt():
    for path in sorted((SHARED / "data" / "logs" / "modded_nanogpt").rglob("*.txt")):
        lines = [line.split() for line in path.read_text().splitlines() if line.startswith("step:")]
        trained = [line for line in lines if "val_loss" not in line[1]]
        clock = [int(line[1].removeprefix("train_time:").removesuffix("ms")) for line in trained]
        set_to_zero = [before for before, after in zip(clock, clock[1:], strict=False) if after < before]
        got = read(nanogpt, Source(path, path.name))
        assert got.column("steps", "step") == list(range(1, len(trained) + 1))
        assert sum(got.column("steps", "dur_ns")) / 1e6 == clock[-1] + sum(set_to_zero)
        evals = [r["value"] for r in got.rows["scalars"] if r["name"] == "eval/loss"]
        assert evals == [float(line[1].removeprefix("val_loss:")) for line in lines if "val_loss" in line[1]]
