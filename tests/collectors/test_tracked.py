"""Steps of metrics that a job logged by name: what each name tells of the time of a step."""

from collections.abc import Iterable, Mapping

import pytest

from collectors.base import Fact, Rows, Source
from collectors.reading.textlog import Tally
from collectors.training import tracked_steps
from collectors.training.tracked import Tracked
from tests.collectors.reading import Read

S = 1_000_000_000
T0 = 1_772_600_000 * S
Entry = tuple[int, float | None, Mapping[str, float]]


def read(tmp_path, entries: Iterable[Entry]) -> Read:
    """What becomes of entries: (step, seconds since the beginning, numbers by name)."""
    tally, got = Tally(), Read()
    one = Tracked(Source(tmp_path / "x", "run"), "kept", tally)
    items = []
    for step, at, told in entries:
        for name, value in told.items():
            one.add(step, None if at is None else T0 + round(at * S), name, value)
        items += one.full()
    for item in (*items, *one.rest(), *one.facts()):
        if isinstance(item, Rows):
            got.rows.setdefault(item.table, []).extend(item.batch.to_pylist())
        else:
            assert isinstance(item, Fact)
            got.facts[item.name] = item.value
    got.lost = list(tally.lost())
    return got


def seconds(got: Read) -> list[tuple[int, float | None]]:
    return [(row["step"], row["dur_ns"] and row["dur_ns"] / S) for row in got.rows.get("steps", [])]


def ends(got: Read) -> list[float]:
    return [(row["start_ns"] + row["dur_ns"] - T0) / S for row in got.rows["steps"]]


def titan(step: int, at: float | None, since: float, every: int, loss: float = 1.0) -> tuple[int, float | None, dict]:
    told = {"loss_metrics/global_avg_loss": loss, "throughput(tps)": 7000.0, "tflops": 300.0}
    return step, at, told | {"time_metrics/end_to_end(s)": since / every}


def test_torchtitan_divides_by_its_interval_however_many_steps_there_were(tmp_path):
    got = read(tmp_path, [titan(1, 30, 30, 10), titan(10, 48, 18, 10), titan(20, 68, 20, 10), titan(30, 88, 20, 10)])
    assert seconds(got) == [(1, 30)] + [(n, 2) for n in range(2, 31)]
    assert ends(got) == pytest.approx([30, *range(32, 90, 2)])
    assert {row["tokens_per_s_per_chip"] for row in got.rows["steps"]} == {7000}
    assert {row["model_flops_per_chip"] for row in got.rows["steps"][1:]} == {600e12}


@pytest.mark.parametrize("timed", [True, False])
def test_torchtitan_that_logs_every_step(tmp_path, timed):
    got = read(tmp_path, [titan(n, 2.0 * n if timed else None, 2, 1) for n in range(1, 5)])
    assert seconds(got) == [(n, 2) for n in range(1, 5)]


def test_torchtitan_that_logs_every_second_step(tmp_path):
    got = read(tmp_path, [titan(1, 5, 5, 2), titan(2, 7, 2, 2), titan(4, 11, 4, 2), titan(6, 15, 4, 2)])
    assert seconds(got) == [(1, 5)] + [(n, 2) for n in range(2, 7)]


def test_torchtitan_that_goes_on_from_a_checkpoint(tmp_path):
    got = read(tmp_path, [titan(110, 25, 25, 10), titan(120, 45, 20, 10), titan(130, 65, 20, 10)])
    assert seconds(got) == [(n, 2.5) for n in range(101, 111)] + [(n, 2) for n in range(111, 131)]


def test_torchtitan_that_logs_every_third_step_begins_with_the_first(tmp_path):
    got = read(tmp_path, [titan(1, 5, 5, 3), titan(3, 9, 4, 3), titan(6, 15, 6, 3)])
    assert seconds(got) == [(1, 5)] + [(n, 2) for n in range(2, 7)]


def test_torchtitan_tells_by_its_tokens_of_how_many_steps_its_first_entry_is(tmp_path):
    """It went on from step 55, behind which it took 12 s to begin."""
    first, then = titan(60, 22, 22, 10), titan(70, 42, 20, 10)
    first[2]["throughput(tps)"] = 7000 * 5 * 2 / 22
    got = read(tmp_path, [first, then])
    assert seconds(got) == [(n, pytest.approx(4.4)) for n in range(56, 61)] + [(n, 2) for n in range(61, 71)]


def test_torchtitan_that_validates_before_its_first_entry(tmp_path):
    """It went on from step 20 and validated at step 24."""
    told = [(24, 60, {"validation_metrics/loss": 2.0}), titan(30, 72, 12, 10), titan(40, 92, 20, 10)]
    assert set(seconds(read(tmp_path, told))) == {(n, 2) for n in range(25, 41)}


def test_torchtitan_counts_anew_behind_a_validation(tmp_path):
    told = [titan(10, 20, 20, 10), titan(20, 40, 20, 10), (24, 148, {"validation_metrics/loss": 2.0})]
    got = read(tmp_path, [*told, titan(30, 160, 12, 10), titan(40, 180, 20, 10)])
    assert set(seconds(got)) == {(n, 2) for n in range(1, 41)}


def test_torchtitan_whose_only_entry_tells_no_time(tmp_path):
    got = read(tmp_path, [titan(1, 30, 30, 10)])
    assert seconds(got) == [(1, None)] and got.rows["steps"][0]["start_ns"] is None
    assert "how long they took is not known" in got.reasons()


def test_torchtitan_that_is_started_again(tmp_path):
    first = [titan(1, 30, 30, 10), titan(10, 48, 18, 10), titan(20, 68, 20, 10)]
    got = read(tmp_path, [*first, titan(20, 500, 25, 10), titan(30, 520, 20, 10)])
    assert [(row["step"], row["attempt"]) for row in got.rows["steps"]] == (
        [(n, 0) for n in range(1, 21)] + [(n, 1) for n in range(11, 31)]
    )
    assert seconds(got)[20:] == [(n, 2.5) for n in range(11, 21)] + [(n, 2) for n in range(21, 31)]


def megatron(step: int, at: float, each: float) -> Iterable[Entry]:
    """As Megatron-LM logs every step by steps and by samples, and its time every ten of them."""
    yield step, at, {"learning-rate": 1e-4}
    yield step * 64, at, {"learning-rate vs samples": 1e-4}
    yield step, at, {"lm loss": 10 - step / 10}
    yield step * 64, at, {"lm loss vs samples": 10 - step / 10}
    yield step, at, {"grad-norm": 1.0}
    if step % 10 == 0:
        yield step, at, {"iteration-time": each, "throughput": 400.0}


def test_means_of_megatron_are_of_each_step_since(tmp_path):
    got = read(tmp_path, [e for n in range(1, 31) for e in megatron(n, 2.0 * n, 2)])
    assert seconds(got) == [(n, 2) for n in range(1, 31)]
    assert got.column("steps", "loss") == pytest.approx([10 - n / 10 for n in range(1, 31)])
    assert {row["model_flops_per_chip"] for row in got.rows["steps"]} == {800e12}
    assert got.facts == {"steps_averaged_over": 10}
    assert len(got.rows["scalars"]) == 30 * 5 + 3 * 2


def test_megatron_that_goes_on_from_a_checkpoint(tmp_path):
    got = read(tmp_path, [e for n in range(5001, 5031) for e in megatron(n, 2.0 * (n - 5000), 2)])
    assert seconds(got) == [(n, 2) for n in range(5001, 5031)]


def test_megatron_bridge(tmp_path):
    names = {"throughput/tflops/device": 600.0, "iteration-time": 2.0, "lm loss": 9.0}
    got = read(tmp_path, [(n, 2.0 * n, names | {"memory/mem-reserved-gigabytes": 75.0}) for n in (1, 2)])
    assert seconds(got) == [(1, 2), (2, 2)] and got.column("steps", "model_flops_per_chip") == [1200e12] * 2
    assert {row["name"]: row["unit"] for row in got.rows["scalars"]} == {
        "throughput/tflops/device": "TFLOP/s",
        "iteration-time": None,
        "lm loss": None,
        "memory/mem-reserved-gigabytes": "GB",
    }


def test_megatron_deepspeed(tmp_path):
    names = {"iteration-time/iteration-time": 3.0, "lm-loss-training/lm loss": 5.0}
    assert seconds(read(tmp_path, [(n, 3.0 * n, names) for n in (1, 2, 3)])) == [(1, 3), (2, 3), (3, 3)]


def test_mindformers_uses_the_names_of_megatron_for_milliseconds(tmp_path):
    told = {"loss": 2.0, "iteration-time": 2500, "throughput": 0.4, "B-samples-per-day": 1e-3}
    got = read(tmp_path, [(n, 2.5 * n, told) for n in (1, 2, 3)])
    assert seconds(got) == [(1, 2.5), (2, 2.5), (3, 2.5)] and got.column("steps", "loss") == [2, 2, 2]
    assert got.column("steps", "model_flops_per_chip") == [None] * 3


def test_megatron_tells_tokens_by_its_batch_where_the_size_of_the_job_is_known(tmp_path):
    one = Tracked(Source(tmp_path / "x", "run"), "kept", Tally())
    one.trains(4096, 16)
    for step in (10, 20):
        for name, value in {"batch-size": 128.0, "iteration-time": 4.0}.items():
            one.add(step, T0 + step * 4 * S, name, value)
    rows = [row for item in one.rest() if item.table == "steps" for row in item.batch.to_pylist()]
    assert len(rows) == 20 and {row["tokens_per_s_per_chip"] for row in rows} == {128 * 4096 / 4 / 16}


def test_rates_of_steps(tmp_path):
    keras = read(tmp_path, [(n, 0.25 * n, {"batch_loss": 2.0, "batch_steps_per_second": 4.0}) for n in (1, 2, 3)])
    assert seconds(keras) == [(n, 0.25) for n in (1, 2, 3)] and keras.column("steps", "loss") == [2, 2, 2]
    t5x = {"loss": 3.0, "timing/steps_per_second": 0.5, "timing/seqs_per_second": 64.0}
    assert seconds(read(tmp_path, [(n, 2.0 * n, t5x) for n in (100, 200)])) == [(n, 2) for n in range(1, 201)]
    levanter = {"train/loss": 3.0, "throughput/duration": 1.5, "throughput/loading_time": 0.01}
    got = read(tmp_path, [(n, 1.5 * n, levanter) for n in (0, 1)])
    assert seconds(got) == [(0, 1.5), (1, 1.5)] and got.column("steps", "loss") == [3, 3]


def test_the_first_mean_is_of_no_more_steps_than_fit_in_since_training_began(tmp_path):
    one = Tracked(Source(tmp_path / "x", "run"), "kept", Tally())
    one.begun(T0)
    for step, at in ((5100, 110), (5200, 310)):
        one.add(step, T0 + at * S, "iteration-time", 2.0)
    rows = [row for item in one.rest() if item.table == "steps" for row in item.batch.to_pylist()]
    assert [row["step"] for row in rows] == list(range(5046, 5201))


def test_a_first_mean_that_fills_the_time_since_training_began_is_of_all_its_steps(tmp_path):
    one = Tracked(Source(tmp_path / "x", "run"), "kept", Tally())
    one.begun(T0)
    for step, at in ((10, 3), (20, 6)):
        one.add(step, T0 + at * S, "iteration-time", 0.300000001)
    rows = [row for item in one.rest() if item.table == "steps" for row in item.batch.to_pylist()]
    assert [row["step"] for row in rows] == list(range(1, 21))


def test_estimators_tell_the_mean_of_steps_that_are_no_multiples(tmp_path):
    got = read(tmp_path, [(n, 0.5 * n, {"loss": 2.0, "global_step/sec": 2.0}) for n in (101, 201, 301)])
    assert seconds(got) == [(n, 0.5) for n in range(2, 302)]


def test_nemo_times_the_step_that_it_logs(tmp_path):
    told = {"reduced_train_loss": 2.0, "train_step_timing in s": 2.0, "global_step": 1.0}
    got = read(tmp_path, [(n, 2.0 * n, told) for n in (9, 19, 29)])
    assert seconds(got) == [(n, 2) for n in range(30)]
    paused = read(tmp_path, [(9, 18, told), (19, 38, told), (29, 200, told)])
    assert seconds(paused) == [(n, 2) for n in range(30)]  # a save lies between
    assert "between" in paused.reasons()


def test_verl(tmp_path):
    told = {"actor/pg_loss": 0.1, "timing_s/gen": 30.0, "timing_s/step": 50.0, "perf/throughput": 900.0}
    got = read(tmp_path, [(n, 50.0 * n, told) for n in (1, 2)])
    assert seconds(got) == [(1, 50), (2, 50)] and got.column("steps", "tokens_per_s_per_chip") == [900, 900]


@pytest.mark.parametrize("outside", [(), ("testing",), ("testing", "save_checkpoint"), ("save_checkpoint",)])
def test_what_follows_a_step_of_verl_is_no_part_of_it_whether_its_time_holds_that_or_not(tmp_path, outside):
    pauses = {"testing": 40.0, "save_checkpoint": 25.0}
    held = sum(took for name, took in pauses.items() if name not in outside)
    told = {"timing_s/step": 50.0, "perf/throughput": 900.0}
    more = {f"timing_s/{name}": took for name, took in pauses.items()}
    long = {"timing_s/step": 50.0 + held, "perf/throughput": 900.0 * 50 / (50 + held), **more}
    got = read(tmp_path, [(1, 50, told), (2, 101, told), (3, 217, long), (4, 268, told)])
    assert seconds(got) == [(n, 50) for n in (1, 2, 3, 4)]
    assert ends(got) == [50, 101, 152, 268]
    assert got.column("steps", "tokens_per_s_per_chip") == pytest.approx([900] * 4)
    assert [
        (r["kind"], r["step"], (r["start_ns"] - T0) / S, (r["end_ns"] - T0) / S) for r in got.rows["lifecycle"]
    ] == [
        ("eval", 3, 152, 192),
        ("checkpoint_save", 3, 192, 217),
    ]


def test_a_step_that_is_logged_again_at_once_is_another_process_and_later_a_start(tmp_path):
    told = {"perf/step_time_seconds": 2.0, "learning/loss": 1.0}
    at_once = read(tmp_path, [(n, 2.0 * n, told) for n in (1, 2, 3, 3)])
    assert at_once.column("steps", "attempt") == [0, 0, 0, 0]
    later = read(tmp_path, [(1, 2, told), (2, 4, told), (2, 300, told), (3, 302, told)])
    assert later.column("steps", "attempt") == [0, 0, 1, 1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, 1e300, -1e300])
def test_times_that_no_step_takes(tmp_path, value):
    for name in tracked_steps.TIMES:
        got = read(tmp_path, [(n, 10.0 * n, {name: value, "lm loss": value}) for n in (10, 20, 30)])
        assert all(row["dur_ns"] is None and row["start_ns"] is None for row in got.rows.get("steps", []))


def test_steps_far_apart_stand_for_themselves(tmp_path, monkeypatch):
    told = {"iteration-time": 1e9, "throughput": 1e300}
    far = [(n, 1.0, told) for n in (0, (1 << 62), (1 << 63) - 1, 1 << 63, 5, -5)]
    assert len(read(tmp_path, far).rows["steps"]) == 5
    monkeypatch.setattr(tracked_steps, "MOST_FILLED", 500)
    got = read(tmp_path, [(n * 100, float(n), told) for n in range(1, 20)])
    assert len(got.rows["steps"]) < 530 and "left out" in got.reasons()


def trainer(step: int, at: float, loss: float = 2.0) -> Entry:
    told = {"train/loss": loss, "train/grad_norm": 1.0, "train/learning_rate": 1e-4, "train/epoch": step / 100}
    return step, at, told


def test_steps_of_the_trainer_took_the_time_between_entries_less_evaluations(tmp_path):
    told = [
        trainer(10, 25),
        trainer(20, 45),
        (20, 145, {"eval/loss": 2.0, "eval/runtime": 100.0, "train/epoch": 0.2}),
        trainer(30, 165),
        (35, 195, {"eval/g0_loss": 2.0, "eval/g0_runtime": 15.0, "train/epoch": 0.35}),
        (35, 200, {"eval/g1_loss": 2.0, "eval/g1_runtime": 5.0, "train/epoch": 0.35}),
        trainer(40, 205),
        (40, 206, {"train/train_runtime": 206.0, "train/train_loss": 2.0, "train/epoch": 0.4}),
    ]
    got = read(tmp_path, told)
    assert seconds(got) == [(10, None)] + [(n, 2) for n in range(11, 41)]
    assert got.facts == {"steps_averaged_over": 10} and "less evaluations" in got.reasons()
    assert [row["loss"] for row in got.rows["steps"] if row["loss"]] == [2.0] * 4
    told = [(row["kind"], row["step"], row["start_ns"], row["end_ns"]) for row in got.rows["lifecycle"]]
    assert told == [
        ("eval", 20, T0 + 45 * S, T0 + 145 * S),
        ("eval", 35, T0 + 180 * S, T0 + 195 * S),
        ("eval", 35, T0 + 195 * S, T0 + 200 * S),
    ]


def test_steps_of_the_trainer_since_it_began(tmp_path):
    one = Tracked(Source(tmp_path / "x", "run"), "kept", Tally())
    one.begun(T0)
    for step, at, told in (trainer(10, 40), trainer(20, 60)):
        for name, value in told.items():
            one.add(step, T0 + round(at or 0) * S, name, value)
    rows = [row for item in one.rest() if item.table == "steps" for row in item.batch.to_pylist()]
    assert [(row["step"], row["dur_ns"] / S) for row in rows] == [(n, 4) for n in range(1, 11)] + [
        (n, 2) for n in range(11, 21)
    ]
    assert rows[0]["start_ns"] == T0


def test_a_loss_of_training_without_what_the_trainer_logs_tells_no_time(tmp_path):
    got = read(tmp_path, [(n, 2.0 * n, {"train/loss": 1.0, "train/epoch": 0.5}) for n in range(5)])
    assert "steps" not in got.rows
