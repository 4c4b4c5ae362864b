"""Megatron logs of every era: iterations, what the printed time includes, restarts, arguments."""

import math

import pytest

from catalog.configs import from_config
from catalog.models import parameters
from collectors.training import megatron
from errors import InputError
from tests.collectors.reading import read, source_of

S, MS = 10**9, 10**6
ARGUMENTS = {
    "context_parallel_size": 2,
    "data_parallel_size": 1,
    "ffn_hidden_size": 14336,
    "global_batch_size": 128,
    "group_query_attention": True,
    "hidden_size": 4096,
    "kv_channels": 128,
    "log_interval": 10,
    "micro_batch_size": 1,
    "num_attention_heads": 32,
    "num_experts": None,
    "num_layers": 32,
    "num_query_groups": 8,
    "params_dtype": "torch.bfloat16",
    "pipeline_model_parallel_size": 1,
    "save_interval": 20,
    "seq_length": 8192,
    "swiglu": True,
    "tensor_model_parallel_size": 4,
    "train_iters": 1000,
    "untie_embeddings_and_output_weights": True,
    "vocab_size": 128256,
    "world_size": 8,
}
DUMP = "".join(
    ["------------------------ arguments ------------------------\n"]
    + [f"  {name} {'.' * (48 - len(name))} {value}\n" for name, value in ARGUMENTS.items()]
    + ["-------------------- end of arguments ---------------------\n"]
)
EVERY = DUMP.replace(". 10\n", ". 1\n")  # a line every iteration
START = (
    "using world size: 8, data-parallel size: 1, context-parallel size: 2, tensor-model-parallel size: 4, "
    "pipeline-model-parallel size: 1\n"
)


def old(step, ms, loss="2.5E+00", **more):
    """A step line of 2021, which carries no time of day."""
    extra = "".join(f" {name}: {value} |" for name, value in more.items())
    return (
        f" iteration {step:8d}/    1000 | consumed samples: {step * 4:12d} | elapsed time per iteration (ms): {ms:.1f} "
        f"| learning rate: 1.000E-04 | global batch size:     4 | lm loss: {loss} | loss scale: 16.0 |{extra} number "
        f"of skipped iterations:   1 | number of nan iterations:   0 |\n"
    )


def new(at, step, ms, tflops=400.0):
    """A step line of today."""
    return (
        f" [2026-03-04 05:{5 + at // 60:02d}:{at % 60:02d}.500000] iteration {step:8d}/    1000 | consumed samples: 1 "
        f"| elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): {tflops:.1f} | lm loss: 2"
        " | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def timer(name, ms):
    return f"(min, max) time across ranks (ms):\n    {name} {'.' * 30}: ({ms - 1:.2f}, {ms:.2f})\n"


def log(folder, text, name="train.out"):
    return read(megatron, source_of(folder, text, name))


def at(minute, second, ms=0):
    return 1772600700 * S + (minute - 5) * 60 * S + second * S + ms * MS


def test_a_line_an_iteration(tmp_path):
    got = log(tmp_path, old(1, 1500.5) + old(2, 1000.0, "nan"))
    first, second = got.rows["steps"]
    assert (first["step"], first["dur_ns"], first["loss"], first["attempt"]) == (1, 1_500_500_000, 2.5, 0)
    assert (first["start_ns"], first["logged_ns"], first["host"], first["format"]) == (None, None, None, "megatron")
    assert math.isnan(second["loss"])
    assert [(r["cause"], r["step"]) for r in got.rows["evidence"]] == [("numerics", 1)]
    names = {r["name"]: r["value"] for r in got.rows["scalars"] if r["step"] == 1}
    assert names == {
        "consumed samples": 4,
        "learning rate": 1e-4,
        "global batch size": 4,
        "loss scale": 16,
        "number of skipped iterations": 1,
        "number of nan iterations": 0,
    }
    assert "steps_averaged_over" not in got.facts


def test_a_line_every_ten_iterations_is_a_mean_over_ten(tmp_path):
    got = log(tmp_path, DUMP + new(0, 10, 1000.0) + new(10, 20, 900.0))
    rows = got.rows["steps"]
    assert [r["step"] for r in rows] == list(range(1, 21))
    assert [r["dur_ns"] for r in rows] == [S] * 10 + [9 * S // 10] * 10
    assert [r["loss"] for r in rows] == ([None] * 9 + [2.0]) * 2
    # the rows end when their line was printed
    assert rows[9]["start_ns"] + rows[9]["dur_ns"] == at(5, 0, 500) == rows[9]["logged_ns"]
    assert rows[0]["start_ns"] == at(4, 50, 500) and rows[0]["logged_ns"] is None
    assert rows[0]["model_flops_per_chip"] == pytest.approx(400e12)
    assert got.facts["steps_averaged_over"] == 10
    assert "mean over the log interval" in got.reasons()


def test_without_arguments_the_distance_of_lines_tells_the_interval(tmp_path):
    got = log(tmp_path, old(10, 1000.0) + old(15, 1000.0) + old(20, 1000.0))
    assert got.column("steps", "step") == list(range(6, 21))


def test_parts_of_a_rotated_log_tell_every_iteration_once(tmp_path):
    """The arguments, and with them the log interval, stand in the first part alone."""
    lines = [new(10 * n, 10 * n, 1000.0) for n in range(1, 26)]
    found = [
        n
        for k, part in enumerate((DUMP + "".join(lines[:8]), "".join(lines[8:17]), "".join(lines[17:])))
        for n in log(tmp_path, part, f"train.out.{3 - k}").column("steps", "step")
    ]
    assert found == list(range(1, 251))


def test_the_same_words_much_later_are_a_restart(tmp_path):
    line = new(0, 7, 1000.0)
    assert log(tmp_path, EVERY + line + line).column("steps", "attempt") == [0]
    assert log(tmp_path, EVERY + line + line.replace("05:05:00", "05:09:00")).column("steps", "attempt") == [0, 1]


def test_a_gap_in_the_log_is_not_filled(tmp_path):
    got = log(tmp_path, DUMP + new(0, 10, 1000.0) + new(59, 500, 1000.0))
    assert got.column("steps", "step") == [*range(1, 11), *range(491, 501)]
    got = log(tmp_path, old(1, 1000.0) + old(1_000_000, 1000.0))
    assert got.column("steps", "step") == [1, 1_000_000] and "too long" in got.reasons()


@pytest.mark.parametrize("ran_on", [True, False], ids=["timer ran on", "timer stopped"])
def test_saves_and_evaluations_are_taken_out_of_the_time_that_includes_them(tmp_path, ran_on):
    """Ten iterations of 1 s, a save of 4 s and an evaluation of 2 s between two lines 16 s apart."""
    printed = 1600.0 if ran_on else 1000.0
    text = (
        DUMP
        + new(0, 10, 1000.0)
        + timer("evaluate", 2000)
        + " validation loss at iteration 10 | lm loss value: 2.25E+00 | lm loss PPL: 9.5E+00 | \n"
        + "saving checkpoint at iteration      10 to /ckpt in torch_dist format\n"
        + "  successfully saved checkpoint from iteration      10 to /ckpt\n"
        + timer("save-checkpoint", 4000)
        + new(16, 20, printed)
    )
    got = log(tmp_path, text)
    assert {r["dur_ns"] for r in got.rows["steps"]} == {S}
    assert got.rows["steps"][10]["start_ns"] == at(5, 6, 500)
    evaluated, saved = got.rows["lifecycle"]
    assert (evaluated["kind"], evaluated["start_ns"], evaluated["end_ns"]) == ("eval", at(5, 0, 500), at(5, 2, 500))
    assert (saved["kind"], saved["start_ns"], saved["end_ns"]) == ("checkpoint_save", at(5, 2, 500), at(5, 6, 500))
    assert saved["step"] == evaluated["step"] == 10
    scalars = {r["name"]: r["value"] for r in got.rows["scalars"]}
    assert (scalars["validation/lm loss value"], scalars["validation/lm loss PPL"]) == (2.25, 9.5)


@pytest.mark.parametrize("line", [new, lambda at, step, ms: old(step, ms)], ids=["dated", "not dated"])
@pytest.mark.parametrize("ran_on", [True, False], ids=["timer ran on", "timer stopped"])
def test_a_save_before_the_first_line_of_a_log_that_was_cut_is_judged_by_the_lines_behind_it(tmp_path, line, ran_on):
    text = timer("save-checkpoint", 4000) + line(14, 20, 1400.0 if ran_on else 1000.0)
    text += timer("save-checkpoint", 4000) + line(28, 30, 1400.0 if ran_on else 1000.0) + line(38, 40, 1010.0)
    steps = log(tmp_path, text).rows["steps"]
    assert {r["dur_ns"] for r in steps if r["step"] <= 30} == {S}


def test_old_logs_are_laid_out_from_the_start_of_training(tmp_path):
    text = (
        START + DUMP + "time to initialize megatron (seconds): 20.5\n"
        "[after megatron is initialized] datetime: 2026-03-04 05:05:00 \n"
        " loading checkpoint from /ckpt at iteration 20\n"
        "  successfully loaded checkpoint from /ckpt [ t 0, p 0 ] at iteration 20\n"
        "time (ms) | load-checkpoint: 5000.00\n"
        "[after model, optimizer, and learning rate scheduler are built] datetime: 2026-03-04 05:05:10 \n"
        "[before the start of training step] datetime: 2026-03-04 05:05:12 \n"
        + old(21, 2000.0)
        + "time (ms) | forward-compute: 1500.25 | backward-compute: 400.00\n"
        + old(22, 3000.0)
        + " saving checkpoint at iteration      22 to /ckpt\ntime (ms) | save-checkpoint: 1000.00\n"
        + old(23, 2500.0)
        + "[after training is done] datetime: 2026-03-04 05:05:30 \n"
    ).replace("log_interval ......", "tensorboard_log_interval")
    got = log(tmp_path, text)
    assert [(r["step"], r["start_ns"], r["dur_ns"]) for r in got.rows["steps"]] == [
        (21, at(5, 12), 2 * S),
        (22, at(5, 14), 3 * S),
        (23, at(5, 18), S * 3 // 2),
    ]
    told = [(r["kind"], r["start_ns"], r["end_ns"]) for r in got.rows["lifecycle"]]
    assert told == [
        ("accelerator_initialization", at(4, 39, 500), at(5, 0)),
        ("checkpoint_restore", at(5, 5), at(5, 10)),
        ("training_preparation", at(5, 0), at(5, 12)),
        ("checkpoint_save", at(5, 17), at(5, 18)),
        ("job", at(4, 39, 500), at(5, 30)),
    ]
    assert ("timers/forward-compute", 1500.25, "ms") in {
        (r["name"], r["value"], r["unit"]) for r in got.rows["scalars"]
    }
    assert "laid end to end" in got.reasons()


def test_a_program_that_begins_again_is_an_attempt_and_so_is_a_drop(tmp_path):
    moment = "[after megatron is initialized] datetime: 2026-03-04 05:05:{:02d} \n"
    text = (
        START + moment.format(0) + old(1, 1000.0) + old(2, 1000.0) + "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED "
        "AT 2026-03-04T05:05:20 DUE TO PREEMPTION ***\n"
        + START
        + EVERY
        + moment.format(40)
        + old(2, 1000.0)
        + old(3, 1000.0)
        + old(2, 1000.0)
        + "[exiting program at iteration 3] datetime: 2026-03-04 05:06:00\n"
    )
    got = log(tmp_path, text)
    assert got.column("steps", "attempt") == [0, 0, 1, 1, 2]
    jobs = [(r["attempt"], r["start_ns"], r["end_ns"]) for r in got.rows["lifecycle"] if r["kind"] == "job"]
    assert jobs == [(0, at(5, 0), None), (1, at(5, 40), at(6, 0))]
    assert [(r["cause"], r["attempt"], r["host"]) for r in got.rows["evidence"]][:1] == [("preemption", 0, "n1")]


def test_arguments_become_facts(tmp_path):
    facts = log(tmp_path, START + DUMP + new(0, 10, 1000.0)).facts
    model = facts.pop("model")
    assert facts == {
        "chips": 8,
        "sequence_length": 8192,
        "global_batch": 128,
        "micro_batch": 1,
        "planned_steps": 1000,
        "checkpoint_period_steps": 20,
        "parallelism": {"tensor": 4, "context": 2},
        "precision": "bf16",
        "steps_averaged_over": 10,
    }
    assert parameters(from_config(model)).total == pytest.approx(8.03e9, rel=1e-3)  # it is Llama 3 8B


def test_a_job_that_is_started_again_on_fewer_chips_held_the_most_of_them(tmp_path):
    """As of a log for each start: of one log the last number counted, 4 for 8."""
    fewer = START.replace("size: 8,", "size: 4,") + EVERY.replace(". 8\n", ". 4\n") + old(2, 1000.0)
    got = log(tmp_path, START + EVERY + old(1, 1000.0) + fewer)
    assert got.facts["chips"] == 8
    assert "numbers of chips (2): the job was started with 4 and 8: the largest counts" in got.reasons()
    assert got.column("steps", "tokens_per_s_per_chip") == [4 * 8192 / 8, 4 * 8192 / 4]  # of those that it ran on
    assert "numbers of chips" not in log(tmp_path, START + EVERY + old(1, 1000.0)).reasons()


def test_the_vocabulary_may_be_told_by_the_tokeniser(tmp_path):
    text = DUMP.replace("128256", "None") + " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)\n"
    assert log(tmp_path, text).facts["model"]["vocab"] == 50257
    assert "model" not in log(tmp_path, DUMP.replace("128256", "None")).facts


def test_deepspeed_prints_seconds_and_samples(tmp_path):
    line = (
        " iteration        3/    1000 | consumed samples:  384 | elapsed time per iteration (s): 2.50 | "
        "lm loss: 2.0E+00 | samples per second: 51.200 | TFLOPs: 150.00 |\n"
    )
    [row] = log(tmp_path, EVERY + line).rows["steps"]
    assert row["dur_ns"] == 5 * S // 2
    assert row["tokens_per_s_per_chip"] == pytest.approx(51.2 * 8192 / 8)
    assert row["model_flops_per_chip"] == pytest.approx(150e12 * 2.5)


def test_tokens_per_second_from_the_batch(tmp_path):
    [row] = log(tmp_path, EVERY + old(1, 2000.0)).rows["steps"]
    assert row["tokens_per_s_per_chip"] == pytest.approx(4 * 8192 / 2.0 / 8)
    assert log(tmp_path, old(1, 2000.0)).column("steps", "tokens_per_s_per_chip") == [None]


def test_nemo_lines_and_progress_bars(tmp_path):
    two = (
        "Training epoch 0, iteration 9/99 | lr: 1.5e-06 | global_batch_size: 8 | global_step: 9 | "
        "reduced_train_loss: 11.03 | train_step_timing in s: 30.5 | consumed_samples: 80\n"
    )
    [row] = log(tmp_path, two).rows["steps"]
    assert (row["step"], row["dur_ns"], row["loss"]) == (9, 61 * S // 2, 11.03)
    bar = "Epoch 0: 1%|, reduced_train_loss=7.9, global_step={}.0, train_step_timing in s={:.2f}]"
    bars = "\r".join([bar.format(1, 2.5), bar.format(1, 2.5), bar.format(2, 2.25)]) + "\n"
    assert [(r["step"], r["dur_ns"]) for r in log(tmp_path, bars).rows["steps"]] == [(1, 5 * S // 2), (2, 9 * S // 4)]


def test_ranks_colours_line_ends_and_bytes_that_are_no_text(tmp_path):
    text = ("\x1b[32m63:" + old(1, 1000.0).rstrip() + "\x1b[0m\r\n").encode() + b"\xff\xfe\0\n"
    assert [(r["step"], r["dur_ns"]) for r in log(tmp_path, text).rows["steps"]] == [(1, S)]


def test_a_repeated_line_counts_once(tmp_path):
    got = log(tmp_path, old(1, 1000.0) * 2 + old(2, 1000.0))
    assert got.column("steps", "step") == [1, 2] and "word for word" in got.reasons()


def test_the_end_of_the_file_may_cut_a_line(tmp_path):
    cut = old(2, 1234.5).partition("34.5")[0]
    got = log(tmp_path, old(1, 1000.0) + cut)
    assert got.column("steps", "step") == [1] and "no time for it" in got.reasons()


def test_numbers_that_are_none(tmp_path):
    text = "".join(old(n, 0).replace("0.0 |", f"{value} |", 1) for n, value in enumerate(("nan", "inf", "-5", "9e99")))
    with pytest.raises(InputError, match="no iteration"):
        log(tmp_path, text.replace("learning rate", "x:"))


@pytest.mark.parametrize(
    ("text", "mine"),
    [
        (old(1, 1.0), True),
        (new(0, 1, 1.0), True),
        (START, True),
        ("+ export X=1\n" * 10_000 + old(1, 1.0), True),
        ("+ export X=1\n" * 10_000, False),
        ("step: 2  loss: 8.5\n", False),
        ("", False),
        ('{"a": 1}', False),
        ("iteration 5 of 10\n", False),
    ],
)
def test_sniff(tmp_path, text, mine):
    assert (megatron.sniff(source_of(tmp_path, text)) >= 0.5) == mine


def test_a_restored_program_prints_its_first_line_early(tmp_path):
    text = DUMP + "  successfully loaded checkpoint from /ckpt [ t 0, p 0 ] at iteration 16\n" + new(0, 20, 1000.0)
    assert log(tmp_path, text).column("steps", "step") == [17, 18, 19, 20]


LAUNCHED = """ using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1
------------------------ arguments ------------------------
  ffn_hidden_size ................................. 16384
  global_batch_size ............................... 16
  hidden_size ..................................... 4096
  log_interval .................................... 5
  num_attention_heads ............................. 32
  num_layers ...................................... 24
  params_dtype .................................... torch.bfloat16
  seq_length ...................................... 2048
-------------------- end of arguments ---------------------
 > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)
    forward-backward ...............................: (1000.00, 2000.00)
"""


@pytest.mark.parametrize(
    ("prefix", "host"),
    [
        ("[default0]:", "default0"),
        ("worker-0  | ", "worker-0"),
        ("[pod/w-0/train] ", "w-0"),
        ("[host-1]: ", "host-1"),
        ("[host-1]:", "host-1"),
        ("2026-03-04T05:06:07.123456789Z ", None),
        ("2026-03-04 05:06:07 ", None),
        ("0: ", "0"),
        ("2026-03-04T05:06:07.1Z stdout F ", None),
        ("[rank0]: ", "rank0"),
        ("worker-1: ", "worker-1"),
        ("[pod/w-0/train] 2026-03-04T05:06:07Z ", "w-0"),
        ("Mar  4 05:06:07 n3 python[9]: ", "n3"),
        ("[1,7]<stdout>:", "7"),
        ("[7] ", "7"),
        ("(TrainWorker pid=4711, ip=10.0.0.5) ", None),
    ],
)
def test_model_batch_and_steps_behind_a_launchers_prefix(tmp_path, prefix, host):
    text = LAUNCHED + "".join(old(n, 1000.0) for n in range(5, 30, 5))
    plainly = log(tmp_path, text)
    got = log(tmp_path, "".join(prefix + line for line in text.splitlines(keepends=True)))
    assert got.facts == plainly.facts and got.facts["global_batch"] == 16 and got.facts["model"]["layers"] == 24
    columns = ("step", "attempt", "dur_ns", "tokens_per_s_per_chip")
    assert [got.column("steps", c) for c in columns] == [plainly.column("steps", c) for c in columns]
    assert len(got.rows["steps"]) == 25 and set(got.column("steps", "host")) == {host}
    assert "timers/forward-backward" in got.column("scalars", "name")


def test_ranks_that_all_print_their_steps(tmp_path):
    text = "".join(f"[rank{r}]:{new(10 * n, n, 1000.0 + r)}" for n in range(1, 11) for r in range(4))
    got = log(tmp_path, text)
    assert set(got.column("steps", "attempt")) == {0} and len(got.rows["steps"]) == 40
    assert {h: got.column("steps", "host").count(h) for h in got.column("steps", "host")} == dict.fromkeys(
        ("rank0", "rank1", "rank2", "rank3"), 10
    )


def test_two_hosts_in_one_file_make_no_restart(tmp_path):
    text = "".join(new(10 * n, n, 1000.0 + r) for n in range(1, 11) for r in range(2))
    got = log(tmp_path, text)
    assert set(got.column("steps", "attempt")) == {0}
    assert got.column("steps", "step") == [n for n in range(1, 11) for _ in range(2)]


@pytest.mark.parametrize(("early_ms", "moved"), ((1, 1), (819, 819), (0, 0), (-700, 0), (5_000, 0)))
def test_a_first_step_that_began_as_training_was_told_to_is_of_that_start(tmp_path, early_ms, moved):
    """Megatron says so once its timer runs, and to the whole second: its first step began a little before."""
    begun = "[before the start of training step] datetime: 2026-03-04 05:05:12 \n"
    ended = 12 + 10 - early_ms / 1000
    text = begun + "".join(
        old(n, 10_000.0).replace(" iteration", f" [2026-03-04 05:05:{ended + 10 * (n - 1):06.3f}] iteration", 1)
        for n in (1, 2, 3)
    )
    got = log(tmp_path, text)
    first = got.column("steps", "start_ns")[0]
    assert first == at(5, 12) - early_ms * 1_000_000
    (job,) = got.rows["lifecycle"]
    assert job["start_ns"] == at(5, 12) - moved * 1_000_000


def test_two_hosts_without_times_are_laid_side_by_side(tmp_path):
    begun = "[before the start of training step] datetime: 2026-03-04 05:05:12 \n"
    text = begun + "".join(old(n, 1000.0 + r) for n in range(1, 5) for r in range(2))
    got = log(tmp_path, text)
    ends = [r["start_ns"] + r["dur_ns"] for r in got.rows["steps"]]
    assert max(ends) - min(ends) < 4 * S


def test_restart_cycles_in_the_log_are_evidence(tmp_path):
    line = "[ft] - Cycle: 0 Event: failure_detected Node: n7_1_0 Rank: 5 Time: 2026-03-04 05:06:07.123 UTC\n"
    got = log(tmp_path, START + old(1, 1000.0) + line + old(2, 1000.0))
    assert [(r["cause"], r["step"]) for r in got.rows["evidence"]] == [("process_exit", 1)]


def test_a_negative_iteration_is_refused(tmp_path):
    got = log(tmp_path, old(1, 1000.0) + old(2, 1000.0).replace("       2/", "      -2/"))
    assert got.column("steps", "step") == [1] and "below zero: refused" in got.reasons()


@pytest.mark.parametrize("ahead_ms", [0, 400, 1000])
def test_the_first_step_begins_no_second_before_its_job(tmp_path, ahead_ms):
    """Both are dated to the second: a step that seemed to begin before told of a job before it and of a stop."""
    begun = "[before the start of training step] datetime: 2026-03-04 05:05:00 \n"
    steps = "".join(new(2 * n, n, 2000.0 + ahead_ms * (n == 1)) for n in range(1, 5)).replace(".500000]", "]")
    got = log(tmp_path, EVERY + begun + steps)
    assert got.column("steps", "start_ns")[0] == at(5, 0) - ahead_ms * MS
    assert [(r["kind"], r["start_ns"]) for r in got.rows["lifecycle"]] == [("job", at(5, 0) - ahead_ms * MS)]


def test_what_megatron_bridge_says_before_a_step_line(tmp_path):
    def said(seconds, tflops):
        return f"Step Time : {seconds:.2f}s GPU utilization: {tflops:.1f}MODEL_TFLOP/s/GPU\n"

    def line(n, ms, more=""):
        return (
            f" [2026-03-04 05:05:{2 * n:02}.000000] iteration {n:8}/     100 | consumed samples: 1 | "
            f"elapsed time per iteration (ms): {ms:.1f} |{more} global batch size:    64 | lm loss: 9.0E+00 |\n"
        )

    own = " throughput per GPU (TFLOP/s/GPU): 500.0 |"
    told = said(2.01, 700.0) + line(1, 2007.0) + line(2, 2000) + said(2.0, 600) + line(3, 2000, own)
    got = log(tmp_path, told + said(1.0, 900.0) + line(4, 2000) + said(2.0, 600) + line(5, 2000))
    flops = got.column("steps", "model_flops_per_chip")
    assert flops[0] == pytest.approx(700e12 * 2.007) and flops[1] is None
    assert flops[2:] == [pytest.approx(1000e12), None, pytest.approx(1200e12)]
