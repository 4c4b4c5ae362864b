"""Output of Hugging Face's Trainer; every line here was written for these tests."""

from time import perf_counter

import pytest

from collectors.training import hf_trainer
from collectors.training.unprinted import laid_around
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000


def bar(step, seconds, total=360, rate="9.88s/it"):
    shown = f"{seconds // 3600}:" * (seconds >= 3600) + f"{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"\r {100 * step // total:2}%|{'█' * (step % 9)}{' ' * 3}| {step}/{total} [{shown}<51:52,  {rate}]"


def dicts(loss, epoch):
    return f"{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': {epoch}}}"


def logged(step, seconds, loss=2.5, total=360):
    """The bar, what is written over it, and the bar again."""
    drawn = bar(step, seconds, total)
    return f"{drawn}\r{' ' * 40}\r{dicts(loss, step / 120)}\n{drawn}"


EVAL = "\r{'eval_loss': 2.25, 'eval_runtime': 20.0, 'eval_samples_per_second': 8.0, 'epoch': 0.1}\n"
BEGIN = "Map: 100%|████| 900/900 [00:01<00:00, 800.00 examples/s]\n" + bar(0, 0) + bar(1, 30)
RUN = (
    BEGIN
    + logged(10, 120)
    + "".join(bar(n, n, 20) for n in range(20))
    + EVAL
    + logged(20, 240)
    + logged(30, 340, "nan")
    + "\n{'train_runtime': 400.5, 'train_loss': 2.1, 'epoch': 3.0}\n"
)


def log(tmp_path, text, name="train.log"):
    return read(hf_trainer, source_of(tmp_path, text, name))


def test_a_run(tmp_path):
    assert hf_trainer.sniff(source_of(tmp_path, RUN)) == 0.85
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == list(range(2, 31)) and set(got.column("steps", "attempt")) == {0}
    # the evaluation of 20 s between is no time of steps, and the first that the bar showed has none of its own
    assert got.column("steps", "dur_ns") == [10 * S] * 29
    losses = [x for x in got.column("steps", "loss") if x is not None]
    assert losses[:2] == [2.5, 2.5] and losses[2] != losses[2]
    values = {(r["name"], r["step"]): r["value"] for r in got.rows["scalars"]}
    assert values["grad_norm", 20] == 1.5 and values["eval_loss", 10] == 2.25 and values["train_runtime", 30] == 400.5
    assert got.facts == {"planned_steps": 360}


def test_steps_of_seconds_take_the_mean_over_a_minute_and_more(tmp_path):
    """Each dict of a step that takes 9.5 s stands at a whole second: of one alone 9 or 10 s would be told."""
    text = bar(0, 0) + "".join(logged(n, int(9.5 * n), 3 - n / 100) for n in range(1, 50))
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(2, 50))
    took = [ns / S for ns in got.column("steps", "dur_ns")]
    assert took == pytest.approx([9.5] * 48, rel=0.02)
    assert got.column("steps", "loss") == pytest.approx([3 - n / 100 for n in range(2, 50)])


def test_a_resumed_job_did_not_take_the_steps_before_it_in_no_time(tmp_path):
    """The bar goes from 0 to the step behind the one at which it was resumed."""
    text = bar(0, 0) + bar(201, 12) + logged(210, 102) + logged(220, 202)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(202, 221)) and set(got.column("steps", "dur_ns")) == {10 * S}


def test_a_restart(tmp_path):
    got = log(tmp_path, RUN + bar(0, 0) + bar(21, 8) + logged(30, 98) + logged(40, 198))
    assert got.column("steps", "step") == [*range(2, 31), *range(22, 41)]
    assert got.column("steps", "attempt") == [0] * 29 + [1] * 19 and set(got.column("steps", "dur_ns")) == {10 * S}


def test_numbers_as_text_of_later_versions(tmp_path):
    got = log(tmp_path, RUN.replace("'loss': 2.5,", "'loss': '2.5',").replace("'grad_norm': 1.5", "'grad_norm': '1.5'"))
    assert [x for x in got.column("steps", "loss") if x is not None][:2] == [2.5, 2.5]


def test_without_a_bar_nothing_tells_the_steps(tmp_path):
    text = "".join(dicts(2.5, n / 10) + "\n" for n in range(30))
    assert hf_trainer.sniff(source_of(tmp_path, text)) == 0
    with pytest.raises(InputError, match="no training step in it"):
        log(tmp_path, text)
    got = log(tmp_path, text + RUN)
    assert got.column("steps", "step") == list(range(2, 31)) and "lines of numbers (30)" in got.reasons()


def test_a_killed_job_says_why(tmp_path):
    text = RUN + bar(31, 350) + "\rtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert "device_memory" in log(tmp_path, text).column("evidence", "cause")


def test_the_last_seconds_of_a_log_are_no_time_of_a_step(tmp_path):
    got = log(tmp_path, bar(0, 0) + bar(1, 30) + logged(10, 120) + logged(11, 123))
    assert got.column("steps", "dur_ns") == [10 * S] * 9 + [None]


def test_a_line_of_many_dicts_that_is_none_is_read_once(tmp_path):
    """Such as samples of the data set: each of them looked for its end through all that stands behind it."""
    line = "[" + ", ".join("{'role': 'user', 'content': 'hello there'}" for _ in range(12_000)) + "]\n"
    began = perf_counter()
    got = log(tmp_path, RUN + line)
    assert perf_counter() - began < 5 and got.column("steps", "step") == list(range(2, 31))


@pytest.mark.parametrize(
    "prefix, host",
    [
        ("0: ", "0"),  # srun --label
        ("[default0]:", "default0"),
        ("[pod/w-3/train] ", "w-3"),
        ("2026-03-04T05:06:07.1Z ", None),
    ],
)
def test_a_launchers_prefix(tmp_path, prefix, host):
    text = "".join(f"{prefix}{line}\n" for line in RUN.split("\n") if line)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(2, 31)) and set(got.column("steps", "host")) == {host}
    assert got.column("steps", "dur_ns") == [10 * S] * 29
    assert (got.column("steps", "start_ns")[-1] is None) == (host is not None)


def test_evaluations_of_several_sets_are_no_time_of_steps(tmp_path):
    sets = "".join(EVAL.replace("eval_", f"eval_{name}_") for name in ("g0", "held_out"))
    got = log(tmp_path, BEGIN + logged(10, 120) + sets + logged(20, 260) + logged(30, 360))
    assert got.column("steps", "dur_ns") == [10 * S] * 29


@pytest.mark.parametrize(
    "text",
    (
        BEGIN + bar(10, 120) + EVAL + logged(20, 240) + logged(30, 340),  # evaluated more often than logged
        BEGIN + logged(10, 120) + logged(12, 140) + EVAL + "".join(logged(n, 40 + 10 * n) for n in (13, 14)) + EVAL,
        BEGIN + bar(0, 0) + EVAL + bar(1, 50) + logged(11, 150),  # evaluated before the first step
    ),
)
def test_an_evaluation_before_the_first_line_or_after_the_last_is_no_time_of_steps(tmp_path, text):
    assert set(log(tmp_path, text).column("steps", "dur_ns")) == {10 * S}


def test_dicts_that_come_together_are_not_of_the_step_of_the_bar_behind_them(tmp_path):
    """Output that is kept back until there is much of it: the bar, which is not, has gone on meanwhile."""
    text = BEGIN + "".join(bar(n, 12 * n) for n in range(1, 31)) + "\n"
    text += "".join(dicts(5 - n / 10, n / 120) + "\n" for n in (10, 20, 30)) + bar(37, 444) + logged(47, 564, 1.5)
    got = log(tmp_path, text)
    losses = zip(got.column("steps", "step"), got.column("steps", "loss"), strict=True)
    assert [(step, loss) for step, loss in losses if loss is not None] == [(47, 1.5)]
    assert {r["step"] for r in got.rows["scalars"] if r["name"] == "grad_norm"} == {47}
    assert "lines of numbers (3): no progress bar stands behind them" in got.reasons()


def test_an_evaluation_of_as_many_batches_as_training_has_steps_is_no_restart(tmp_path):
    evaluation = "".join(bar(n, n) for n in range(21))
    text = BEGIN + logged(10, 120) + evaluation + EVAL + logged(20, 240) + logged(30, 340)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(2, 31)) and set(got.column("steps", "attempt")) == {0}
    assert got.column("steps", "dur_ns") == [10 * S] * 29


def test_another_training_in_the_same_log_is_an_attempt_of_its_own(tmp_path):
    text = RUN + bar(0, 0, 100) + bar(1, 5, 100) + logged(10, 95, 1.5, 100) + logged(20, 195, 1.0, 100)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == [*range(2, 31), *range(2, 21)]
    assert got.column("steps", "attempt") == [0] * 29 + [1] * 19 and set(got.column("steps", "dur_ns")) == {10 * S}


def test_numbers_whose_names_tell_their_unit(tmp_path):
    """As Axolotl's tell memory; lines are filled up with blanks to cover the bar."""
    told = dicts(2.5, 0.1)[:-1] + ", 'memory/max_active (GiB)': 10.97}" + " " * 60
    got = log(tmp_path, BEGIN + f"{bar(10, 120)}\r{told}\n{bar(10, 120)}")
    values = {r["name"]: r["value"] for r in got.rows["scalars"]}
    assert values["memory/max_active (GiB)"] == 10.97 and values["epoch"] == 0.1


def test_an_evaluation_whose_line_is_dated_is_told_and_steps_are_laid_around_it(tmp_path):
    """Its 20 s were time that nothing explains, and the steps before it stood where it ran."""
    drawn = BEGIN + logged(10, 120) + logged(13, 150) + EVAL + logged(16, 200) + logged(19, 230) + EVAL
    lines = [line for line in drawn.split("\n") if line]
    written = [0, 120, 150, 170, 200, 230, 250]  # in seconds
    at = (f"1970-01-01 00:{s // 60:02}:{s % 60:02} " for s in written)
    got = log(tmp_path, "".join(f"{when}{line}\n" for when, line in zip(at, lines, strict=True)))
    told = [(r["kind"], r["start_ns"] // S, r["end_ns"] // S, r["step"]) for r in got.rows["lifecycle"]]
    assert told == [("eval", 150, 170, 13), ("eval", 230, 250, 19)]
    starts = dict(zip(got.column("steps", "step"), got.column("steps", "start_ns"), strict=True))
    assert [starts[n] // S for n in (12, 13, 14, 16, 19)] == [130, 140, 170, 190, 220]
    assert set(got.column("steps", "dur_ns")) == {10 * S}


def test_a_step_that_takes_far_longer_than_those_around_it_has_that_time_as_its_own(tmp_path):
    """As a step behind a save does: 42 s of it were spread over all steps of a minute."""
    text, at = bar(0, 0), 0
    for n in range(1, 101):
        at += 45 if n % 25 == 0 else 3
        text += logged(n, at, 2.0) if n % 5 == 0 else bar(n, at)
    got = log(tmp_path, text)
    took = dict(zip(got.column("steps", "step"), got.column("steps", "dur_ns"), strict=True))
    assert {n: ns for n, ns in took.items() if n % 25 == 0} == dict.fromkeys((25, 50, 75, 100), 45 * S)
    assert {ns for n, ns in took.items() if n % 25} == {3 * S}
    dated = "".join(f"2026-03-04T05:06:07Z {line}\n" for line in text.split("\n") if line)
    rows = {r["step"]: r["start_ns"] + r["dur_ns"] for r in log(tmp_path, dated).rows["steps"]}
    assert rows[100] - rows[99] == 45 * S


def test_steps_that_all_take_long_are_timed_as_before(tmp_path):
    """Each of 10 s and more is long enough to be timed alone: none of them is far longer than the others."""
    text = bar(0, 0) + "".join(logged(n, int(17.5 * n), 2.0) for n in range(1, 40))
    took = [ns / S for ns in log(tmp_path, text).column("steps", "dur_ns")]
    assert took == pytest.approx([17.5] * 38, rel=0.02)


def test_steps_that_are_far_longer_from_some_step_on_are_read_in_proportion_to_them(tmp_path, monkeypatch):
    """Each dict went through all steps since then: a log of 8,000 steps took 18 s, of 100,000 three quarters of an
    hour."""
    held, count = [], hf_trainer._Log._far_longer

    def counting(self, window, step, took):
        held.append(len(window.alone))
        return count(self, window, step, took)

    monkeypatch.setattr(hf_trainer._Log, "_far_longer", counting)
    text = bar(0, 0) + "".join(logged(n, n if n <= 130 else 130 + 12 * (n - 130), 2.0) for n in range(1, 500))
    got = log(tmp_path, text)
    assert [ns / S for ns in got.column("steps", "dur_ns")] == pytest.approx([1.0] * 129 + [12.0] * 369)
    assert max(held) < 20


def test_steps_behind_an_evaluation_begin_when_it_has_ended():
    """Times in whole seconds have them begin in it."""
    assert laid_around(100 * S, [2 * S] * 4, [(83 * S, 93 * S)]) == [93 * S, 94.75 * S, 96.5 * S, 98.25 * S]
    assert laid_around(100 * S, [2 * S] * 5, [(83 * S, 93 * S)])[:2] == [81 * S, 93 * S]
    assert laid_around(100 * S, [2 * S] * 4, [(80 * S, 90 * S)]) == [92 * S, 94 * S, 96 * S, 98 * S]
