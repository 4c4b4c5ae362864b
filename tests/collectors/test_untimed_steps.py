"""Steps of metrics of which none tells a step's time: by the times of entries that are sure to be steps."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import pytest

from analyzers.time.step_takes import lines_taken
from collectors.ingest import ingest
from collectors.reading.attempts import STEP_COLUMNS
from collectors.training import mlflow, untimed_steps, wandb_history
from runs.store import Store
from runs.tables import frame
from tests.collectors import test_mlflow, test_wandb_log
from tests.collectors.event_files import logged
from tests.collectors.mlflow_files import T0, run
from tests.collectors.reading import read, source_of
from tests.collectors.test_megatron import DUMP, new
from tests.collectors.test_tracked import S, seconds
from tests.collectors.test_tracked import read as tracked
from tests.collectors.wandb_runs import history, started

T = 1_700_000_000
MEGATRON = datetime(2026, 3, 4, 5, 5, tzinfo=UTC).timestamp() + 0.5  # from when on the lines of its log are dated
FORMS = test_mlflow.FORMS
Entry = tuple[int, float, Mapping[str, float]]


def lightning(step: int, at: float, epoch: int = 0, **others: float) -> Entry:
    return step, at, {"train_loss": 2.0, "epoch": epoch, **others}


def stored(entries: Iterable[Entry]):
    """A run of MLflow with these."""
    return run(
        "a" * 32,
        [(name, value, T0 + round(at * 1000), step) for step, at, told in entries for name, value in told.items()],
    )


def table(names: str, *rows: Iterable[object]) -> str:
    return f"{names}\n" + "".join(",".join("" if v is None else str(v) for v in row) + "\n" for row in rows)


def test_a_table_of_the_trainer_with_no_more_than_its_loss(tmp_path):
    rows = [(n, T + 20.5 * n, 10 * n, 2 - n / 10) for n in range(1, 5)]
    data = table("_step,_timestamp,train/global_step,train/loss", *rows)
    got = read(wandb_history, source_of(tmp_path, data, "history.csv"))
    assert seconds(got) == [(10, None)] + [(n, 2.05) for n in range(11, 41)]
    assert (
        got.column("steps", "loss")[0::10] == [1.9, 1.8, 1.7, 1.6]
        and got.rows["steps"][-1]["format"] == "wandb_entries"
    )
    assert (got.rows["steps"][-1]["start_ns"], got.rows["steps"][-1]["dur_ns"]) == (
        *(T * S + round(79.95 * S), round(2.05 * S)),
    )
    assert got.facts == {"steps_averaged_over": 10}
    assert got.reasons().count("none tells its time: they took the mean between two entries") == 1
    assert "steps (30)" in got.reasons()


def test_steps_of_a_run_are_told_by_the_axis_of_its_job_alone(tmp_path):
    def steps(**axis):
        records = (history(n, T + 2 * n, loss=1.5, **{k: v * n for k, v in axis.items()}) for n in range(1, 5))
        return seconds(test_wandb_log.run(tmp_path, started(T), *records))

    assert steps(trainer__global_step=1) == [(1, None), (2, 2), (3, 2), (4, 2)]
    assert steps(global_step=2) == [(2, None)] + [(n, 1) for n in range(3, 9)]
    assert steps() == [] == steps(epoch=0.1)  # W&B's count of calls


def test_a_step_that_some_rows_alone_have_is_not_the_axis_of_all(tmp_path):
    """As where evaluations log it: rows that are counted by W&B lost their steps, and their losses with them."""
    names = ["_step", "_timestamp", "perf/step_time_seconds", "learning/loss", "eval/loss", "global_step"]
    rows = [[n, T + 2 * n, 2.0, 1.5, *((2.0, n) if n % 3 == 0 else (None, None))] for n in range(1, 10)]
    told = [{name: v for name, v in zip(names, row, strict=True) if v is not None} for row in rows]
    logged = (
        history(n, T + 2 * n, **{k.replace("/", "__"): v for k, v in one.items()}) for n, one in enumerate(told, 1)
    )
    for got in (
        read(wandb_history, source_of(tmp_path, table(",".join(names), *rows), "history.csv")),
        read(wandb_history, source_of(tmp_path, "".join(f"{json.dumps(one)}\n" for one in told), "history.jsonl")),
        test_wandb_log.run(tmp_path, started(T), *logged),
    ):
        assert seconds(got) == [(n, 2) for n in range(1, 10)]
        assert got.column("steps", "loss") == [1.5] * 9 and None not in got.column("scalars", "step")


def test_what_an_evaluation_took_is_no_time_of_steps(tmp_path):
    told = [
        lightning(49, 110),
        lightning(99, 210),
        (107, 291, {"val_loss": 2.0, "epoch": 0}),
        lightning(149, 376, 1),
        lightning(199, 476, 1),
        lightning(249, 579, 2),  # an epoch ended that was followed by nothing
    ]
    got = read(mlflow, test_mlflow.source_of(tmp_path, "folder", stored(told)))
    assert seconds(got)[:52] == [(49, None)] + [(n, 2) for n in range(50, 101)]
    assert set(seconds(got)[52:151]) == {(n, 2) for n in range(101, 200)}
    assert {took for _, took in seconds(got)[151:]} == {2.06}
    last = got.rows["steps"][-1]
    assert last["start_ns"] + last["dur_ns"] == (T0 + 579_000) * 1_000_000
    assert "steps (50): an evaluation or the end of an epoch lies before them" in got.reasons()


def test_where_each_entry_lies_behind_an_evaluation_nothing_is_told(tmp_path):
    told = [entry for n in range(1, 5) for entry in ((n * 50, n * 99.0, {"val/loss": 1.0}), lightning(n * 50, n * 100))]
    assert "steps" not in tracked(tmp_path, told).rows
    at_once = [lightning(n * 50, n * 100.0, **{"val/loss": 1.0}) for n in range(1, 5)]
    assert "steps" not in tracked(tmp_path, at_once).rows


@pytest.mark.parametrize(
    "told",
    [
        {"loss": 1.0},
        {"loss": 1.0, "epoch": None},  # the number of the entry
        {"train_loss": 1.0, "val_loss": 1.0},
        {"train/loss": 1.0, "epoch": 0.5},  # never moves
        {"train_loss_epoch": 1.0, "epoch": 0.0},
        {"val_loss": 1.0, "epoch": 0.0},
    ],
)
def test_what_may_be_epochs_is_no_step(tmp_path, told):
    entries = [(n, 10.0 * n, {name: n if v is None else v for name, v in told.items()}) for n in range(6)]
    assert "steps" not in tracked(tmp_path, entries).rows


def test_a_job_that_was_started_again(tmp_path):
    told = [lightning(10, 20), lightning(20, 40), lightning(30, 60), lightning(20, 500), lightning(30, 520)]
    got = tracked(tmp_path, told)
    assert [(row["step"], row["attempt"]) for row in got.rows["steps"]] == (
        [(n, 0) for n in range(10, 31)] + [(n, 1) for n in range(20, 31)]
    )
    assert seconds(got) == [(10, None)] + [(n, 2) for n in range(11, 31)] + [(20, None)] + [
        (n, 2) for n in range(21, 31)
    ]


def test_megatron_that_logs_no_timers(tmp_path):
    def entries(n):
        at = 2.5 * n + 100 * (n > 6)
        yield n, at, {"lm loss": 9.0, "learning-rate": 1e-4}
        yield 64 * n, at, {"lm loss vs samples": 9.0}
        if n == 6:
            yield n, at + 100, {"lm loss validation": 9.0}

    got = tracked(tmp_path, [entry for n in range(1, 11) for entry in entries(n)])
    assert seconds(got) == [(1, None)] + [(n, 2.5) for n in range(2, 11)]


def test_a_name_that_tells_the_time_goes_before(tmp_path):
    told = [(n, 3.0 * n, {"lm loss": 9.0}) for n in range(1, 9)]
    got = tracked(tmp_path, [*told, (8, 24, {"iteration-time": 2.0})])
    assert set(seconds(got)) == {(8, 2)} and "entries of their loss" not in got.reasons()


@pytest.mark.parametrize("dated", [True, False])
def test_what_a_log_says_of_its_steps_goes_before_the_times_of_entries(tmp_path, dated):
    """Megatron's log, which tells 2 s and FLOPs of each step, beside event files of more steps, which hold its saves:
    of 60 steps 10 were told to take 5 s each."""
    log, entries = DUMP, []
    for step in range(10, 70, 10):
        at = 2 * step + 30 * (step > 30)
        line = new(at, step, 2000.0)
        log += line if dated else line[line.index(" iteration") :]
        entries.append((MEGATRON + at, step, {"lm loss": 2.0}))
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "train.out").write_text(log)
    (folder / "events.out.tfevents.1.host.1.0").write_bytes(
        logged([*entries, (MEGATRON + 170, 70, {"lm loss": 2.0})], MEGATRON)
    )
    run = ingest([folder], store := Store(tmp_path / "store")).run_id
    found = lines_taken(frame(store.find(run).tables, "steps", [*STEP_COLUMNS, "attempt"]))
    told = store.find(run).tables.arrow("steps", ["dur_ns", "model_flops_per_chip"]).take(found.row[:60])
    assert found.step.tolist()[:60] == [*range(1, 61)]
    assert told["dur_ns"].to_pylist() == [2 * S] * 60
    assert told["model_flops_per_chip"].to_pylist() == [pytest.approx(800e12)] * 60


def test_torchtune(tmp_path):
    told = [(n, 1.5 * n, {"loss": 1.0, "lr": 1e-5, "tokens_per_second_per_gpu": 7e3}) for n in range(1, 5)]
    assert seconds(tracked(tmp_path, told)) == [(1, None), (2, 1.5), (3, 1.5), (4, 1.5)]


@FORMS
def test_the_trainer_in_a_store_of_mlflow(tmp_path, form):
    def logged(step, at):
        return step, at, {"loss": 2.0, "grad_norm": 1.0, "learning_rate": 1e-4, "epoch": step / 100}

    told = [
        *(logged(10, 25), logged(20, 45), (20, 145, {"eval_loss": 2.0, "eval_runtime": 100.0, "epoch": 0.2})),
        *(logged(30, 165), logged(40, 185), (40, 186, {"train_runtime": 186.0, "train_loss": 2.0, "epoch": 0.4})),
    ]
    got = read(mlflow, test_mlflow.source_of(tmp_path, form, stored(told)))
    assert seconds(got) == [(10, None)] + [(n, 2) for n in range(11, 41)]
    life = [(r["kind"], r["step"], r["end_ns"] - r["start_ns"]) for r in got.rows["lifecycle"]]
    assert ("eval", 20, 100 * S) in life
    assert "less evaluations" in got.reasons()


@pytest.mark.parametrize("behind", [0, 1], ids=["from-0", "from-1-the-first-being-0"])
def test_an_epoch_of_keras_is_no_step(tmp_path, behind):
    told = [(n + behind, 60.0 * n, {"loss": 1.0, "learning_rate": 1e-3, "epoch": n}) for n in range(5)]
    assert "steps" not in tracked(tmp_path, told).rows


def test_times_that_go_backwards_and_steps_far_apart(tmp_path, monkeypatch):
    got = tracked(tmp_path, [lightning(1, 10), lightning(2, 9), lightning(3, 12), lightning(1 << 60, 13)])
    assert seconds(got) == [(1, None), (2, None), (3, 3), (1 << 60, None)]
    monkeypatch.setattr(untimed_steps, "MOST_FILLED", 500)
    got = tracked(tmp_path, [lightning(n * 100, 10.0 * n) for n in range(1, 20)])
    assert len(got.rows["steps"]) < 530 and "left out" in got.reasons()


def test_the_console_of_a_run_goes_before_times_of_entries(tmp_path):
    got = test_wandb_log.run(tmp_path, *test_wandb_log.RUN)
    assert set(got.column("steps", "format")) == {"hf_trainer"}
