"""Output of nanoGPT and modded-nanogpt; every line here was written for these tests."""

import pytest

from collectors.training import nanogpt
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
MS = 1_000_000
RULE = "=" * 100


def iteration(n, ms, loss="3.2500", mfu="14.60"):
    return f"iter {n}: loss {loss}, time {ms:.2f}ms, mfu {mfu}%\n"


def evaluated(n):
    return f"step {n}: train loss 3.1250, val loss 3.5000\n"


PLAIN = "number of parameters: 123.59M\n" + evaluated(0) + iteration(0, 9000, mfu="-100.00")
PLAIN += "".join(iteration(n, 250) for n in range(1, 10)) + evaluated(10) + iteration(10, 2250) + iteration(11, 250)


def shown(n, ms, val=None, mean="250.00"):
    return f"step:{n}/1480 {f'val_loss:{val} ' if val else ''}train_time:{ms}ms step_avg:{mean}ms\n"


PROGRAM = f"{RULE}\nif oom: print('CUDA out of memory. Tried to allocate 2.00 GiB')\n{RULE}\n"
TABLE = "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:00:07.0 Off |                    0 |\n"
MODDED = PROGRAM + TABLE + shown(0, 0, "10.8258", "nan") + shown(1, 30_000, mean="nan") + shown(2, 30_250, mean="nan")
MODDED += shown(3, 260, mean="nan") + shown(4, 510) + shown(4, 620, "4.4223") + shown(5, 770)
MODDED += "peak memory allocated: 31614 MiB reserved: 46900 MiB\n"


def log(tmp_path, text, name="train.log"):
    return read(nanogpt, source_of(tmp_path, text, name))


def test_nanogpt(tmp_path):
    assert nanogpt.sniff(source_of(tmp_path, PLAIN)) == 0.9
    got = log(tmp_path, PLAIN)
    assert got.column("steps", "step") == list(range(12))
    assert got.column("steps", "dur_ns") == [None] + [250 * MS] * 11  # without the evaluations
    assert got.column("steps", "loss") == [3.25] * 12
    [lost] = log(tmp_path, iteration(1, 250, "nan")).column("steps", "loss")
    assert lost != lost
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["eval/loss", 10] == (3.5, None) and values["eval/train loss", 10] == (3.125, None)
    assert values["mfu", 5] == (14.6, "%") and ("mfu", 0) not in values
    assert got.column("steps", "model_flops_per_chip") == [None] * 12 and got.facts == {"parameters": 123_590_000}
    assert "iterations (2): an evaluation lies in their time" in got.reasons()


def test_iterations_without_a_line_and_an_evaluation_of_dated_lines(tmp_path):
    at = "2026-03-04T05:06:{:06.3f}Z "
    text = "".join(at.format(n / 4) + iteration(n, 250) for n in (10, 20, 30))
    text += at.format(10) + evaluated(40) + at.format(12) + iteration(40, 2250)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(1, 41))
    assert set(got.column("steps", "dur_ns")) == {250 * MS}
    [pause] = got.rows["lifecycle"]
    assert (pause["kind"], pause["step"], pause["end_ns"] - pause["start_ns"]) == ("eval", 40, 2 * S)
    assert got.rows["steps"][-1]["start_ns"] == pause["end_ns"]


def test_modded(tmp_path):
    assert nanogpt.sniff(source_of(tmp_path, MODDED)) == 0.9
    got = log(tmp_path, MODDED)
    assert got.column("steps", "step") == [1, 2, 3, 4, 5]
    # its clock is set to zero behind the second, and stands during validations
    assert got.column("steps", "dur_ns") == [30 * S, 250 * MS, 260 * MS, 250 * MS, 260 * MS]
    values = [(r["name"], r["step"], r["value"], r["unit"]) for r in got.rows["scalars"]]
    assert values[:2] == [("eval/loss", 0, 10.8258, None), ("eval/loss", 4, 4.4223, None)]
    assert values[2:] == [("peak memory", 5, 31614, "MiB"), ("peak memory reserved", 5, 46900, "MiB")]
    assert got.facts == {"planned_steps": 1480, "chip": "NVIDIA H100 80GB HBM3"}
    assert "evidence" not in got.rows  # the program itself is no failure


def test_modded_that_shows_its_clock_now_and_then(tmp_path):
    text = shown(0, 0, "10.8", "nan") + "step:200/1480 train_loss:6.1250 train_time:9000ms step_avg:45.00ms\n"
    text += shown(1000, 45_000, "4.5", "45.00") + shown(1200, 4_600, mean="46.00")
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(1, 1201))
    assert got.column("steps", "dur_ns") == [45 * MS] * 1000 + [46 * MS] * 200
    assert got.rows["steps"][199]["loss"] == 6.125


def test_another_run_behind_the_first_and_the_middle_of_one(tmp_path):
    again = log(tmp_path, MODDED + shown(0, 0, "10.8", "nan") + shown(1, 20_000) + shown(2, 20_250))
    assert again.column("steps", "attempt") == [0] * 5 + [1] * 2 and again.column("steps", "dur_ns")[5] == 20 * S
    assert log(tmp_path, shown(700, 90_000)).column("steps", "dur_ns") == [250 * MS]
    assert log(tmp_path, shown(700, 90_000, mean="nan")).column("steps", "dur_ns") == [None]


def test_what_is_cut_and_what_is_none(tmp_path):
    got = log(tmp_path, iteration(1, 250) + "iter 2: loss 3.25, time 25")
    assert got.column("steps", "step") == [1]
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, "iter 5 of 10\nstep:{step}/{n} train_time:{ms}ms\n")
    assert (
        nanogpt.sniff(source_of(tmp_path, "step    1/74 | train loss 4.36 | lr 1e-04 | (80.6 ms | 50788 tok/s)\n")) == 0
    )
