"""verl's console and its file logger; every line here was written for these tests."""

import json
from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest

from collectors.training import maxtext_metrics, verl
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
BEGIN = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
RAY = "\x1b[36m(TaskRunner pid=38606)\x1b[0m "
PHASES = {"gen": 20.5, "reward": 0.5, "old_log_prob": 4.0, "adv": 0.25, "update_actor": 14.75}
STARTED = f"{RAY}{{'actor_rollout_ref': {{'actor': {{'clip_ratio': 0.2}}}}}}\n{RAY} 'experiment_name': 'grpo_7b',\n"
GPUS, TOKENS = 4, 80_000


def numbers(step: int, save: float = 0, test: float = 0, within: bool = False, loss: float = -0.25) -> dict:
    """Of one iteration, with its timers in the order in which they end; a step of 40 s without save and validation."""
    pauses = {"timing_s/testing": test, "timing_s/save_checkpoint": save} if save or test else {}
    took = 40.0 + (save + test if within else 0)
    told = {"actor/pg_loss": loss, "actor/lr": 1e-06, "perf/mfu/actor": 0.375, "training/global_step": step}
    told |= {f"timing_s/{name}": value for name, value in PHASES.items()}
    told |= (pauses if within else {}) | {"timing_s/step": took} | ({} if within else pauses)
    told |= {"timing_per_token_ms/gen": 0.5, "perf/max_memory_allocated_gb": 60.5, "perf/total_num_tokens": TOKENS}
    return told | {"perf/time_per_step": took, "perf/throughput": TOKENS / took / GPUS}


def line(step: int, told: dict) -> str:
    def shown(name: str, value: float) -> str:
        return f"np.float64({value!r})" if name.startswith("actor/") else repr(value)

    return f"step:{step} - " + " - ".join(f"{name}:{shown(name, value)}" for name, value in told.items())


def dated(second: float, text: str) -> str:
    at = BEGIN + timedelta(seconds=second)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {RAY}{text}\n"


VALIDATED = line(0, {"val-core/gsm8k/acc/mean@1": 0.5})
RUN = (
    STARTED
    + dated(0, "Total training steps: 435")
    + dated(30, VALIDATED)
    + dated(70, line(1, numbers(1)))
    + dated(140, line(2, numbers(2, save=10, test=20)))
    + dated(180, line(3, numbers(3)))
)
RECORDS = "".join(
    json.dumps({"step": n, "data": told}, separators=(",", ":")) + "\n"
    for n, told in ((0, {"val-core/gsm8k/acc/mean@1": 0.5}), (1, numbers(1)), (2, numbers(2, save=10, test=20)))
)
EARLY = "".join(
    f"step:{n} - timing/gen:20.500 - timing/ref:4.000 - timing/testing:9.000 - critic/lr(1e-4):0.100 - "
    f"timing/update_actor:15.500 - actor/pg_loss:-0.005 - actor/kl:0.000 - actor/kl:0.001\n"
    for n in (0, 1)
)


def log(tmp_path, text, name="train.log"):
    return read(verl, source_of(tmp_path, text, name))


def seconds(got, table, name):
    return [None if ns is None else ns / S - BEGIN.timestamp() for ns in got.column(table, name)]


def test_a_run(tmp_path):
    assert verl.sniff(source_of(tmp_path, RUN)) == 0.95
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == [1, 2, 3] and got.column("steps", "dur_ns") == [40 * S] * 3
    assert seconds(got, "steps", "start_ns") == [30, 70, 140]  # validation and save lie between the second and its line
    assert seconds(got, "steps", "logged_ns") == [70, 140, 180]
    assert got.column("steps", "tokens_per_s_per_chip") == [500.0] * 3
    assert got.column("steps", "loss") == [-0.25] * 3 and set(got.column("steps", "host")) == {None}
    assert got.column("steps", "model_flops_per_chip") == [None] * 3
    assert got.column("lifecycle", "kind") == ["eval", "checkpoint_save"]
    assert (seconds(got, "lifecycle", "start_ns"), seconds(got, "lifecycle", "end_ns")) == ([110, 130], [130, 140])
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["timing_s/gen", 1] == (20.5, "s") and values["timing_per_token_ms/gen", 1] == (0.5, "ms")
    assert values["perf/mfu/actor", 3] == (0.375, None) and values["actor/lr", 3] == (1e-06, None)
    assert values["perf/max_memory_allocated_gb", 2] == (60.5, "GiB")
    assert values["val-core/gsm8k/acc/mean@1", 0] == (0.5, None)
    assert got.facts == {"job_name": "grpo_7b", "planned_steps": 435, "chips": GPUS, "steps_generate": True}


def test_a_validation_and_a_save_within_the_step_are_taken_off(tmp_path):
    got = log(tmp_path, dated(40, line(1, numbers(1))) + dated(110, line(2, numbers(2, 10, 20, within=True))))
    assert got.column("steps", "dur_ns") == [40 * S] * 2 and seconds(got, "steps", "start_ns") == [0, 40]
    assert got.column("steps", "tokens_per_s_per_chip") == pytest.approx([500.0] * 2)
    assert seconds(got, "lifecycle", "start_ns") == [80, 100] and got.facts["chips"] == GPUS


def test_the_records_of_the_file_logger(tmp_path):
    source = source_of(tmp_path, "\ufeff" + RECORDS, "grpo_7b.jsonl")
    assert verl.sniff(source) == 0.95 > maxtext_metrics.sniff(source)
    got = read(verl, source)
    assert got.column("steps", "step") == [1, 2] and got.column("steps", "dur_ns") == [40 * S] * 2
    assert got.column("steps", "start_ns") == [None, None] and "lifecycle" not in got.rows
    assert "no place in the lifecycle" in got.reasons() and got.facts == {"chips": GPUS, "steps_generate": True}
    same = log(tmp_path, line(1, numbers(1)) + "\n" + line(2, numbers(2, 10, 20)) + "\n")
    assert [r["value"] for r in got.rows["scalars"]][1:] == [r["value"] for r in same.rows["scalars"]]


def test_records_that_are_none(tmp_path):
    odd = (
        '{"step":3,"data":{"timing_s/step":2.5,"actor/pg_loss":null,"a":"text","b":true,"c":1' + "0" * 400 + "}}\n"
        '{"step":-1,"data":{}}\n{"step":4.5,"data":{}}\n{"step":4,"data":[]}\n[]\n{"step":4,"data":{"a":1'
    )
    got = log(tmp_path, '{"step":2,"data":{"timing_s/step":1.5}}\n' + odd)
    assert got.column("steps", "dur_ns") == [1_500_000_000, 2_500_000_000] and got.column("steps", "loss") == [None] * 2
    assert [(r["name"], r["value"]) for r in got.rows["scalars"]] == [("b", 1.0)]
    assert "lines (5)" in got.reasons() and "values (2)" in got.reasons()


def test_lines_of_early_versions(tmp_path):
    assert verl.sniff(source_of(tmp_path, EARLY)) == 0.95
    got = log(tmp_path, EARLY)
    assert got.column("steps", "step") == [0, 1] and got.column("steps", "dur_ns") == [40 * S] * 2
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["critic/lr(1e-4)", 0] == (0.1, None) and values["actor/kl", 1] == (0.001, None)
    assert "steps (2): no line tells how long they took" in got.reasons() and "chips" not in got.facts


def test_fine_tuning(tmp_path):
    text = "".join(f"step:{n} - train/loss:0.5 - train/lr(1e-3):0.01 - train/time(s):6.25\n" for n in (1, 2))
    got = log(tmp_path, text + "step:2 - val/loss:0.75\n")
    assert got.column("steps", "dur_ns") == [6_250_000_000] * 2 and got.column("steps", "loss") == [0.5] * 2
    assert got.facts == {} and got.rows["scalars"][-1]["name"] == "val/loss"


def test_a_restart(tmp_path):
    again = (
        dated(1000, "Setting global step to 3") + dated(1040, line(4, numbers(4))) + dated(1080, line(5, numbers(5)))
    )
    got = log(tmp_path, RUN + again)
    assert got.column("steps", "attempt") == [0, 0, 0, 1, 1]
    lost = log(tmp_path, RUN + dated(1000, line(3, numbers(3))) + dated(1040, line(4, numbers(4))))
    assert lost.column("steps", "attempt") == [0, 0, 0, 1, 1] and lost.column("steps", "step") == [1, 2, 3, 3, 4]


def test_numbers_into_which_other_processes_wrote(tmp_path):
    glued = "step:6 - timing_s/step:1668.5 - a/b:np.int64(0)\x1b[36m(WorkerDict pid=1)\x1b[0m INFO:2026-09-11 22:29\n"
    broken = (
        "step:7 - timing_s/step:12.5 - a/b:1.2.3 - a/c:inf - a/d:-nan - a/e:87.4s - a/f:True - :1 - a/g - a@1:2/h:3\n"
    )
    got = log(tmp_path, glued + broken + "step:8 - timing_s/step:3.5 - a/b:12")
    assert got.column("steps", "dur_ns") == [1668 * S + S // 2, 12 * S + S // 2, 3 * S + S // 2]
    values = {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}
    assert values["a/b", 6] == 0 and values["a/c", 7] == float("inf") and values["a/f", 7] == 1
    assert values["a@1:2/h", 7] == 3
    assert ("a/b", 7) not in values and ("a/b", 8) not in values  # the file may end in the middle of it
    assert "values of step lines (4)" in got.reasons()


def test_a_step_of_which_no_line_tells_how_long_it_took(tmp_path):
    got = log(tmp_path, "step:1 - actor/pg_loss:0.5 - timing_s/update_actor:5.0\nstep:2 - timing_s/step:-1 - a/b:2\n")
    assert got.column("steps", "dur_ns") == [None, None] and "steps (2): they tell a step" in got.reasons()


def test_what_ended_a_job_before_its_first_step(tmp_path):
    failed = STARTED + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert verl.sniff(source_of(tmp_path, failed)) == 0.93
    got = log(tmp_path, failed)
    assert set(got.rows) == {"evidence"} and got.column("evidence", "step") == [None]
    with pytest.raises(InputError, match="came to no step, and no line tells what ended it"):
        log(tmp_path, STARTED)


def test_chips_of_the_command_line(tmp_path):
    overrides = "Error executing job with overrides: ['actor_rollout_ref.model.path=x', 'trainer.n_gpus_per_node=8', "
    died = (
        f"{overrides}'trainer.nnodes=2', 'trainer.experiment_name=a-b']\nRuntimeError: CUDA error: misaligned address\n"
    )
    assert log(tmp_path, died).facts == {"chips": 16, "job_name": "a-b"}
    apart = died.replace("'trainer.nnodes", "'rollout.n_gpus_per_node=8', 'trainer.nnodes")
    assert "chips" not in log(tmp_path, apart).facts


@pytest.mark.parametrize(
    "text",
    [
        "python3 -m verl.trainer.main_ppo \\\n  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \\\n",
        "step:10/1390 train_time:2000ms step_avg:200.00ms\n",
        "step: 10  loss: 3.25  memory: 9.46GiB(64.99%)  tps: 7,282\n",
        '{"step":1,"perf/step_time_seconds":1.5}\n',
        '{"step":1,"loss":2.5,"data":"x"}\n',
    ],
)
def test_others_files(tmp_path, text):
    assert verl.sniff(source_of(tmp_path, text)) == 0


def test_long_lines_take_their_length(tmp_path):
    begun = perf_counter()
    verl.sniff(source_of(tmp_path, "step:1 - a" * 100_000))
    got = log(tmp_path, "step:1 - timing_s/step:1.5" + " - a:b" * 200_000 + " - " + "x" * 1_000_000 + ":1\n")
    assert len(got.rows["steps"]) == 1 and perf_counter() - begun < 2
