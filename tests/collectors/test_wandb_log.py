"""Run files of W&B; every byte here was written for these tests."""

from time import perf_counter

import pytest

from collectors.training import wandb_log
from collectors.training.wandb_records import BLOCK
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.wandb_runs import (
    STDERR,
    STDOUT,
    config,
    ended,
    framed,
    history,
    message,
    metric,
    number,
    output,
    started,
    stats,
    summary,
)

S = 1_000_000_000
T = 1_700_000_000
TRAINER = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "bf16": True, "fp16": False}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 32001,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
}


def bar(step, seconds, total=100):
    rate = "35:36,  4.44s/it" if step else "?, ?it/s"
    return f"\r  {step * 100 // total}%|█▏    | {step}/{total} [{seconds // 60:02}:{seconds % 60:02}<{rate}]"


def trained(*steps, loss="1.5"):
    """What Hugging Face's Trainer writes at the end of steps of ten seconds, and what it logs."""
    for n in steps:
        end = T + 10 * n
        yield output(STDERR, end, bar(n, 10 * n))
        yield history(n - 1, end, train__loss=1.5, train__learning_rate=1e-5, train__global_step=n)
        yield output(STDERR, end + 0.1, f"\r{' ' * 40}\r")
        yield output(STDOUT, end + 0.1, f"{{'loss': {loss}, 'learning_rate': 1e-05, 'epoch': 0.1}}")
        yield output(STDOUT, end + 0.1, "\n")
        yield output(STDERR, end + 0.2, bar(n, 10 * n))


GPUS = {"gpu.0.gpu": 0.5, "gpu.4.gpu": 97.0, "gpu.process.4.gpu": 97.0, "gpu.4.memoryAllocatedBytes": 8e10, "cpu": 5}
RUN = (
    started(T - 20, name="alpaca"),
    config({**TRAINER, **LLAMA, "_wandb": {"e": {"w": {"gpu": "NVIDIA A100-SXM4-80GB", "gpu_count": 8}}}}),
    output(STDERR, T, bar(0, 0)),
    *trained(*range(1, 9)),
    stats(T + 15, GPUS),
    *trained(*range(9, 31)),
    history(
        30,
        T + 301,
        train__train_samples_per_second=12.81,
        train__train_runtime=300.0,
        train__global_step=30,
        sample={"_type": "image-file"},
    ),
    summary(best=0.25),
    ended(1, 330),
)


def run(tmp_path, *records, name="run-abc.wandb"):
    return read(wandb_log, source_of(tmp_path, framed(*records), name))


def values(got):
    return {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}


def test_a_run_of_the_trainer(tmp_path):
    assert wandb_log.sniff(source_of(tmp_path, framed(*RUN))) == 1.0
    got = run(tmp_path, *RUN)
    assert got.column("steps", "step") == list(range(2, 31)) and set(got.column("steps", "format")) == {"hf_trainer"}
    assert set(got.column("steps", "dur_ns")) == {10 * S}
    assert got.facts == {
        "per_device_batch_size": 4,
        "gradient_accumulation_steps": 8,
        "precision": "bf16",
        "model": LLAMA,
        "chip": "NVIDIA A100-SXM4-80GB",
        "chips_of_host": 8,
        "job_name": "alpaca",
        "chips": 4,  # 3,843 samples in 30 steps of 32 each, of a process on one GPU
        "planned_steps": 100,
    }
    (job,) = got.rows["lifecycle"]
    assert (job["kind"], job["start_ns"], job["end_ns"], job["host"]) == ("job", (T - 20) * S, None, "n7")
    (end,) = got.rows["evidence"]
    assert (end["cause"], end["ts_ns"], end["step"]) == ("process_exit", (T + 310) * S, 30)
    assert "exit code 1" in end["text"] and "values (1): no numbers" in got.reasons()


def test_numbers_are_told_once_each_by_their_own_name_and_step(tmp_path):
    got = run(tmp_path, *RUN)
    told = values(got)
    assert told["train/loss", 3] == 1.5 and told["best", None] == 0.25
    assert {name for name, _ in told} & {"loss", "learning_rate", "_step", "_timestamp", "train/global_step"} == set()
    assert len([1 for name, _ in told if name == "train/loss"]) == 30
    row = next(r for r in got.rows["scalars"] if r["name"] == "train/loss" and r["step"] == 3)
    assert row["ts_ns"] == (T + 30) * S


def test_shares_and_memory_are_those_of_the_gpus_that_the_process_is_on(tmp_path):
    got = run(tmp_path, *RUN)
    told = {name: value for (name, _), value in values(got).items()}
    assert told["GPU 4 some kernel ran (NVML utilization)"] == 97.0 and told["gpu.0.gpu"] == 0.5 and told["cpu"] == 5
    assert "gpu.4.gpu" not in told and "gpu.process.4.gpu" not in told
    assert [(r["host"], r["device"], r["bytes"]) for r in got.rows["memory"]] == [("n7", 4, 80_000_000_000)]


def test_of_a_container_that_shows_no_process_all_gpus_are_the_jobs(tmp_path):
    shown = {"gpu.0.gpu": 50.0, "gpu.1.gpu": 60.0, "gpu.1.powerWatts": 300.0, "gpu.1.temp": 40}
    got = run(tmp_path, started(T), *(stats(T + n, shown) for n in range(3)))
    assert {(r["name"], r["unit"]) for r in got.rows["scalars"]} == {
        ("GPU 0 some kernel ran (NVML utilization)", "%"),
        ("GPU 1 some kernel ran (NVML utilization)", "%"),
        ("gpu.1.powerWatts", "W"),
        ("gpu.1.temp", "°C"),
    }


@pytest.mark.parametrize(
    ("rate", "devices", "chips"),
    [
        (12.8, {0, 1, 2, 3}, 4),  # the process has the others as its children
        (3.2, {0, 1}, 2),  # one process on two GPUs
        (12.8, {0, 1}, None),  # four processes on two GPUs each, or two on this host
        (12.8, set(), None),
        (14.4, {0}, None),  # no whole number of processes
    ],
)
def test_chips_are_told_where_samples_and_processes_agree(tmp_path, rate, devices, chips):
    seen = {f"gpu.process.{n}.gpu": 50.0 for n in devices}
    end = history(9, T, train__train_samples_per_second=rate, train__train_runtime=100.0, train__global_step=10)
    got = run(tmp_path, started(T), config(TRAINER), stats(T, seen), end)
    assert got.facts.get("chips") == chips


def titan(*steps):
    for n in steps:
        told = f"step: {n:2}  loss: 2.5  memory: 9.5GiB(12.00%)  tps: 9"
        yield output(STDERR, T + n, f"[titan] 2023-11-14 22:14:{n:02},000 - root - INFO - {told}\n")


def test_steps_are_those_of_the_history_or_of_the_console_and_not_of_both(tmp_path):
    """A line of a log goes before what was kept of it, which goes before a progress bar, that tells no more."""

    def formats(*records):
        got = run(tmp_path, started(T), *records)
        assert len({r["step"] for r in got.rows["steps"]}) == len(got.rows["steps"])
        assert len([lost for lost in got.lost if lost.what.startswith("steps (")]) <= 1
        return {r["format"] for r in got.rows["steps"]}

    logged = [history(n, T + n, **{"perf/step_time_seconds": 1.0}) for n in range(1, 30)]
    assert formats(*logged, *titan(1, 2, 3)) == {"wandb"}
    assert formats(*logged[:20], *titan(*range(1, 21))) == formats(*titan(1, 2, 3)) == {"torchtitan"}
    means = [history(n, T + n, **{"time_metrics/end_to_end(s)": 1.0}) for n in range(2, 50, 2)]
    assert formats(*means, *titan(*range(2, 50, 2))) == {"torchtitan"}
    assert formats(*logged, output(STDERR, T, bar(0, 0)), *trained(*range(1, 31))) == {"wandb"}
    assert formats(*logged[:3], output(STDERR, T, bar(0, 0)), *trained(*range(1, 31))) == {"hf_trainer"}


def test_the_first_step_of_the_trainer_began_when_its_bar_was_drawn_first(tmp_path):
    """Not with the run, which may have been started long before training; the steps are those of its losses."""
    rows = [
        history(n, T + 5 * n, train__loss=2.0, train__epoch=0.1, train__learning_rate=1, train__global_step=n)
        for n in range(1, 20)
    ]
    got = run(
        tmp_path, started(T - 900), output(STDERR, T - 800, bar(0, 0, 9)), output(STDERR, T - 7, bar(0, 0)), *rows
    )
    assert [(r["start_ns"] / S - T, r["dur_ns"] / S) for r in got.rows["steps"][:2]] == [(-7, 12), (5, 5)]


def test_lines_come_in_parts_of_two_streams(tmp_path):
    parts = [
        output(STDOUT, T, "RuntimeError: CUDA error: mis"),
        output(STDERR, T + 1, "\r 10%|#| 1/9\r 20%|#| 2/9"),
        output(STDOUT, T + 2, "aligned address\r\nlast"),
    ]
    got = run(tmp_path, started(T), *parts)
    (row,) = got.rows["evidence"]
    assert row["text"].endswith("RuntimeError: CUDA error: misaligned address") and row["ts_ns"] == T * S
    assert run(tmp_path, started(T), output(STDERR, T, "fine\n", field=4)).rows.keys() == {"lifecycle"}


def test_the_steps_of_a_run_are_those_that_its_axis_counts(tmp_path):
    def steps(*records):
        return {r["step"] for r in run(tmp_path, started(T), *records).rows["scalars"] if r["name"] == "x"}

    assert steps(history(7, T, x=1)) == {7}
    assert steps(history(7, T, x=1, trainer__global_step=70)) == {70}
    assert steps(metric("my/step"), history(7, T, x=1, **{"my__step": 5})) == {5}
    assert steps(metric("epoch"), history(7, T, x=1, epoch=5)) == {7}
    assert steps(history(7, T, x=1, trainer__global_step=0.5)) == {7}
    assert steps(history(7, T, y=1, trainer__global_step=70), history(8, T, x=1)) == {None}


def test_numbers_that_json_has_no_word_for_and_objects_of_numbers(tmp_path):
    row = history(1, T, a="NaN", b="Infinity", c=b"NaN", d={"x": 1, "y": {"z": 2}}, e=True, f=b"9" * 400, g=b"{")
    got = run(tmp_path, started(T), row)
    told = {name: value for (name, _), value in values(got).items()}
    assert told["a"] != told["a"] and told["c"] != told["c"] and told["b"] == told["f"] == float("inf")
    assert told["d.x"] == 1 and told["d.y.z"] == 2 and "values (2): no numbers" in got.reasons()


def test_a_run_that_was_killed_keeps_what_came_before(tmp_path):
    whole = framed(*RUN)
    got = read(wandb_log, source_of(tmp_path, whole[: len(whole) // 2]))
    assert got.rows["lifecycle"][0]["end_ns"] is None and len(got.rows["steps"]) > 5
    assert "the last record (1): the file ends in the middle of it" in got.reasons()


def test_damage_costs_its_block_alone(tmp_path):
    data = bytearray(framed(started(T), *(history(n, T + n, x=n, note="." * 500) for n in range(500))))
    data[3 * BLOCK + 100] ^= 1
    got = read(wandb_log, source_of(tmp_path, bytes(data)))
    steps = {r["step"] for r in got.rows["scalars"]}
    assert 400 < len(steps) < 500 and {0, 499} <= steps
    assert "records (1): their sum or length is wrong" in got.reasons()
    assert "their end is missing" in got.reasons() and "the beginning of their record is missing" in got.reasons()
    assert "no message" not in got.reasons()
    room = read(wandb_log, source_of(tmp_path, framed(*RUN) + bytes(5 * BLOCK)))
    assert room.rows.keys() == run(tmp_path, *RUN).rows.keys() and "wrong" not in room.reasons()


def test_when_a_run_ended(tmp_path):
    def end(*records):
        return run(tmp_path, *records).rows["lifecycle"][0]["end_ns"]

    assert end(started(T), history(1, T + 5, x=1), ended(0, 60)) == (T + 60) * S
    assert end(started(T), history(1, T + 90, x=1), ended(0, 60)) == (T + 90) * S
    # the runtime of one that was resumed counts what was before; old clients leave it at 0
    assert end(started(T, resumed=True), history(1, T + 5, x=1), ended(0, 4000)) == (T + 5) * S
    assert end(started(T), ended(0, 0), stats(T + 7, {"cpu": 1})) == (T + 7) * S
    # one that failed did not come to its own end
    assert end(started(T), history(1, T + 5, x=1)) is end(started(T), ended(1, 60)) is None


def test_a_preemption_is_evidence_and_an_exit_of_0_is_none(tmp_path):
    got = run(tmp_path, started(T), history(3, T + 5, x=1), message(23), ended(0, 9))
    assert got.column("evidence", "cause") == ["preemption"] and got.column("evidence", "ts_ns") == [(T + 5) * S]


def test_hardware_of_an_environment(tmp_path):
    got = run(tmp_path, started(T), message(26, message(18, "NVIDIA H100 80GB HBM3"), number(19, 2)))
    assert got.facts == {"chip": "NVIDIA H100 80GB HBM3", "chips_of_host": 2}
    got = run(
        tmp_path, started(T), message(26, message(24, message(1, "NVIDIA L4")), message(24, message(1, "NVIDIA L4")))
    )
    assert got.facts == {"chip": "NVIDIA L4", "chips_of_host": 2}
    used = stats(T, {"tpu.1.hbmCapacityUsage": 5e9, "tpu.1.hbmCapacityTotal": 16e9, "tpu.1.dutyCycle": 90.0})
    got = run(tmp_path, started(T), message(26, message(29, message(1, "v5e"), number(4, 4))), used)
    assert got.facts == {"chip": "v5e", "chips_of_host": 4}
    assert [(r["device"], r["kind"], r["bytes"]) for r in got.rows["memory"]] == [
        (1, "bytes_in_use", 5 * 10**9),
        (1, "bytes_limit", 16 * 10**9),
    ]
    assert {r["name"]: r["unit"] for r in got.rows["scalars"]}["tpu.1.dutyCycle"] == "%"


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ({"world_size": 64, "tensor_model_parallel_size": 8, "micro_batch_size": 2, "seq_length": 4096, "fp8": None},
         {"chips": 64, "micro_batch": 2, "sequence_length": 4096}),
        ({"world_size": 64}, {}),
        ({"training": {"seq_len": 8192, "steps": 1000, "local_batch_size": 2, "global_batch_size": -1}},
         {"sequence_length": 8192, "planned_steps": 1000, "per_device_batch_size": 2}),
        ({"trainer": {"nnodes": 2, "n_gpus_per_node": 8}}, {"chips": 16}),
        ({**TRAINER, "max_steps": -1, "fp16": True, "hidden_size": 9},
         {"per_device_batch_size": 4, "gradient_accumulation_steps": 8}),
    ],
)  # fmt: skip
def test_a_configuration_says_what_is_certain(tmp_path, said, facts):
    assert run(tmp_path, started(T), config(said)).facts == facts


def test_what_is_no_run_is_refused(tmp_path):
    for data, why in (
        (b":W&B\xe1\xbe\x07", "another version"),
        (framed(), "neither metrics nor a console"),
        (framed(message(21)), "neither metrics nor a console"),
        (b"nothing", "no log of W&B"),
    ):
        with pytest.raises(InputError, match=why):
            run_of(tmp_path, data)
    got = run_of(tmp_path, framed(started(T), b"\x12\xff\xff\xff\xff\x0f", history(1, T, x=1)))
    assert values(got) == {("x", 1): 1.0} and "they are no message of W&B's" in got.reasons()


def run_of(tmp_path, data):
    return read(wandb_log, source_of(tmp_path, data))


def test_names_and_lines_of_any_length_and_depth(tmp_path):
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    row = history(1, T, **{"n" * (1 << 20): 1, "é\x00\x1b": 2}, deep=deep, long=b'"' + b"x" * (1 << 21) + b'"')
    got = run(tmp_path, started(T), row, output(STDOUT, T, "y" * (3 << 20)), config({"deep": deep, "": 1}))
    assert max(len(r["name"]) for r in got.rows["scalars"]) == 200
    assert "a line has more than 1,048,576" in got.reasons()


def test_a_long_run_is_read_in_a_moment(tmp_path):
    rows = [history(n, T + n, x=n, y=0.5) for n in range(3_000)]
    data = framed(started(T), *rows)
    begun = perf_counter()
    got = run_of(tmp_path, data)
    assert len(got.rows["scalars"]) == 6_000 and perf_counter() - begun < 2
