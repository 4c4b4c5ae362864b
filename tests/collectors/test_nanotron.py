"""nanotron's standard output; every line here was written for these tests."""

import pytest

from collectors.training import megatron, nanotron
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
BANNER = (
    "[INFO|DP=0|PP=0|TP=0]: mbs: 16 | grad_accum: 8 | cp: 1 | sequence_length: 2048 | global_batch_size: 1024 | x\n"
)
MODEL = "[INFO|DP=0|PP=0|TP=0]: Total number of parameters: 1.24G (2364.26MiB)\n"


def step(n, ms="2.5K", at="", loss="2.04", rates="182K | tokens_per_sec_per_gpu: 22.8K", time="time_per_iteration_ms"):
    begin = f"{at}[default0]:{at}[INFO|DP=0|TP=0|node7]: iteration: {n} / 1000 | consumed_tokens: 4.5B"
    begin += f" | {time}: {ms} | tokens_per_sec: {rates} | global_batch_size: 1.6M | grad_norm: 0.112"
    return f"{begin} | lm_loss: {loss} | lr: 0.0001 | model_tflops_per_gpu: 400 | eta: 131 days, 1:45:39\n"


RUN = BANNER + MODEL + step(1, "12.5K") + step(2) + step(3, "980", loss="nan")


def log(tmp_path, text, name="train.log"):
    return read(nanotron, source_of(tmp_path, text, name))


def test_a_run(tmp_path):
    assert nanotron.sniff(source_of(tmp_path, RUN)) == 0.9 and megatron.sniff(source_of(tmp_path, RUN)) == 0
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == [1, 2, 3]
    assert got.column("steps", "dur_ns") == [25 * S // 2, 5 * S // 2, 98 * S // 100]
    assert got.column("steps", "tokens_per_s_per_chip") == [22_800] * 3
    assert got.column("steps", "model_flops_per_chip") == pytest.approx([400e12 * s for s in (12.5, 2.5, 0.98)])
    losses = got.column("steps", "loss")
    assert losses[:2] == [2.04, 2.04] and losses[2] != losses[2]
    values = {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}
    assert values["consumed_tokens", 2] == 4.5e9 and values["grad_norm", 3] == 0.112 and values["lr", 1] == 0.0001
    assert got.facts == {
        "micro_batch": 16,
        "gradient_accumulation_steps": 8,
        "sequence_length": 2048,
        "global_batch": 1024,
        "parameters": 1.24e9,
        "planned_steps": 1000,
        "chips": 8,
    }
    assert "printed to three figures" in got.reasons()


def test_chips_are_told_where_the_figures_leave_one_number(tmp_path):
    assert log(tmp_path, step(1, rates="12.9K | tokens_per_sec_per_gpu: 12.9K")).facts["chips"] == 1
    wide = [
        step(n, rates=rates)
        for n, rates in ((1, "182K | tokens_per_sec_per_gpu: 699"), (2, "183K | tokens_per_sec_per_gpu: 703"))
    ]
    assert "chips" not in log(tmp_path, "".join(wide)).facts  # 260 or 261
    narrow = step(3, rates="259K | tokens_per_sec_per_gpu: 997")
    assert log(tmp_path, "".join(wide) + narrow).facts["chips"] == 260


def test_iterations_between_two_dated_lines(tmp_path):
    at = "08/31/2024 14:{:02}:{:02} "
    text = "".join(step(n, "1K", at.format(n // 60, n % 60)) for n in (10, 20, 30))
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(1, 31)) and set(got.column("steps", "dur_ns")) == {S}
    starts = got.column("steps", "start_ns")
    assert {b - a for a, b in zip(starts, starts[1:], strict=False)} == {S}


def test_lines_until_2025_and_a_restart(tmp_path):
    old = "elapsed_time_per_iteration_ms"
    got = log(tmp_path, step(5, time=old) + step(6, time=old) + step(5, time=old) + step(6, time=old))
    assert got.column("steps", "attempt") == [0, 0, 1, 1] and set(got.column("steps", "dur_ns")) == {5 * S // 2}


def test_lines_without_a_time_and_the_end_of_a_file(tmp_path):
    got = log(tmp_path, step(1) + step(2, "nan") + step(3, "-5") + step(4).partition("lm_loss")[0] + "lm_loss: 2.0")
    assert got.column("steps", "step") == [1, 4] and got.column("steps", "loss") == [2.04, None]
    assert "step lines (2): they name an iteration" in got.reasons()
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, "iteration: 5 of 10\n")


def test_rates_that_are_none(tmp_path):
    got = log(
        tmp_path,
        step(1, rates="nan | tokens_per_sec_per_gpu: inf") + step(2, rates="9e999 | tokens_per_sec_per_gpu: 0"),
    )
    assert got.column("steps", "tokens_per_s_per_chip") == [None, 0] and "chips" not in got.facts
