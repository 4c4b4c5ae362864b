"""States of Hugging Face's Trainer; all of them were made for these tests."""

import gzip
import json

import pytest

from analyzers.time.steps import ONE_MEAN, analyze
from app.questions.steps.words import verdict
from collectors.ingest import ingest
from collectors.training import trainer_state
from errors import InputError
from tests.collectors import test_hf_trainer
from tests.collectors.reading import read, source_of
from tests.fuzz.damage import survive

S = 1_000_000_000


def loss_of(step):
    return 3 - step / 1000


def trained(last, first=1, every=10, **more):
    """Entries of training from a step to the last one, each with the mean of its steps."""
    ends = range((first + every - 1) // every * every, last + 1, every)
    means = {end: sum(map(loss_of, range(end - every + 1, end + 1))) / every for end in ends}
    return [{"loss": round(mean, 4), "grad_norm": 1.5, "epoch": s / 100, "step": s} | more for s, mean in means.items()]


def evaluated(step, seconds, name="eval"):
    return {f"{name}_loss": 2.25, f"{name}_runtime": seconds, f"{name}_samples_per_second": 8.0, "step": step}


def ended(step, seconds, since=0):
    """What is logged when training has ended that began, or was resumed, behind a step."""
    total = sum(map(loss_of, range(since + 1, step + 1)))
    return {"train_runtime": seconds, "train_loss": total / step, "total_flos": 5e15, "epoch": 1.0, "step": step}


def state(entries, step=100, **more):
    whole = {"epoch": 1.0, "global_step": step, "log_history": entries, "max_steps": 200, "total_flos": 5e15} | more
    return json.dumps(whole, indent=2, sort_keys=True)


RUN = state([*trained(50), evaluated(50, 20.0), *trained(100, 51), evaluated(100, 30.0, "eval_b"), ended(100, 250.0)])


def told(tmp_path, text):
    return read(trainer_state, source_of(tmp_path, text, "trainer_state.json"))


def test_a_training_that_came_to_its_end(tmp_path):
    assert trainer_state.sniff(source_of(tmp_path, RUN)) == 0.95
    got = told(tmp_path, RUN)
    assert got.column("steps", "step") == list(range(1, 101))
    # 250 s less 50 of evaluations
    assert set(got.column("steps", "dur_ns")) == {2 * S} and set(got.column("steps", "start_ns")) == {None}
    losses = {row["step"]: row["loss"] for row in got.rows["steps"]}
    assert losses[10] == pytest.approx(2.9945, abs=1e-4) and losses[11] is None
    values = {(r["name"], r["step"]): (r["value"], r["unit"]) for r in got.rows["scalars"]}
    assert values["eval_runtime", 50] == (20.0, "s") and values["eval_b_loss", 100] == (2.25, None)
    assert values["grad_norm", 30] == (1.5, None) and values["total_flos", 100] == (5e15, "FLOP")
    assert not any(name in ("loss", "step") for name, _ in values)
    assert got.column("scalars", "name").count("total_flos") == 1
    assert got.facts == {"planned_steps": 200, "steps_averaged_over": 100} and not got.lost


def test_a_checkpoint_tells_no_time(tmp_path):
    got = told(tmp_path, state(trained(50), 50))
    assert got.column("steps", "step") == [10, 20, 30, 40, 50] and set(got.column("steps", "dur_ns")) == {None}
    assert got.facts == {"planned_steps": 200} and "when training has ended" in got.reasons()


@pytest.mark.parametrize("since", [10, 50, 90])
def test_the_time_since_a_job_was_resumed_is_not_that_of_all_steps(tmp_path, since):
    got = told(tmp_path, state([*trained(100), ended(100, 2.0 * (100 - since), since)]))
    assert set(got.column("steps", "dur_ns")) == {None} and "as of a job that was resumed" in got.reasons()
    assert "steps_averaged_over" not in got.facts


def test_a_training_of_which_no_loss_was_logged(tmp_path):
    got = told(tmp_path, state([ended(100, 200.0)]))
    assert set(got.column("steps", "dur_ns")) == {2 * S} and "no loss was logged" in got.reasons()


@pytest.mark.parametrize(
    "entries",
    [
        trained(60, every=60),  # the rest may be of more than one start
        trained(100, loss=float("nan")),
        trained(100, loss=0.0),
        [entry | {"loss": (-1) ** n * 0.01} for n, entry in enumerate(trained(100))],  # of reinforcement learning
    ],
)
def test_losses_that_cannot_show_whether_the_job_was_resumed(tmp_path, entries):
    total = sum(10 * entry["loss"] for entry in entries)
    got = told(tmp_path, state([*entries, ended(100, 200.0) | {"train_loss": total / 100}]))
    assert set(got.column("steps", "dur_ns")) == {None} and trainer_state.UNCLEAR in got.reasons()


def test_losses_that_are_no_numbers(tmp_path):
    got = told(tmp_path, state(trained(20, loss=float("nan"))))
    assert [loss != loss for loss in got.column("steps", "loss")] == [True, True]


def test_an_evaluation_after_training_is_no_time_of_it(tmp_path):
    got = told(tmp_path, state([*trained(100), ended(100, 200.0), evaluated(100, 150.0)]))
    assert set(got.column("steps", "dur_ns")) == {2 * S}


def test_times_that_cannot_be(tmp_path):
    for seconds in (0, -5, 25.5, 1e300, float("inf"), 10**400):
        got = told(tmp_path, state([*trained(100), evaluated(100, 30.0), ended(100, seconds)]))
        assert set(got.column("steps", "dur_ns")) == {None}
    assert told(tmp_path, state([{"loss": 1.0, "step": 10**18}, ended(10**18 % 97, 5.0)])).rows["steps"]


def test_two_trainings_in_one_history(tmp_path):
    """The number drops: what one took tells nothing of the other."""
    got = told(tmp_path, state([*trained(50), evaluated(50, 90.0), *trained(40), ended(40, 80.0)], 40))
    assert got.column("steps", "attempt") == [0] * 5 + [1] * 40
    assert got.column("steps", "dur_ns") == [None] * 5 + [2 * S] * 40


def test_trained_on_behind_what_had_ended(tmp_path):
    """The history goes on: train_loss, over all steps, is of the losses since."""
    got = told(tmp_path, state([*trained(50), ended(50, 100.0), *trained(100, 51), ended(100, 150.0, 50)]))
    assert got.column("steps", "dur_ns") == [2 * S] * 50 + [3 * S] * 50


def test_steps_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer_state, "_MOST_STEPS", 1_000)
    got = told(tmp_path, state([{"step": 500 * n, "train_runtime": 5.0} for n in range(1, 100)]))
    assert len(got.rows["steps"]) == 1_000


def test_what_is_no_state(tmp_path):
    with pytest.raises(InputError, match="nothing was logged"):
        told(tmp_path, state([]))
    with pytest.raises(InputError, match="no state of Hugging Face"):
        told(tmp_path, '{"log_history": 5}')
    with pytest.raises(InputError, match="in the middle"):
        told(tmp_path, RUN[:-200])
    got = told(tmp_path, state([5, None, {"loss": 1.0}, {"step": 5, "loss": "high", "a": True}, *trained(10)]))
    assert got.column("steps", "step") == [10] and "no JSON object" in got.reasons() and "no numbers" in got.reasons()


def test_odd_files(tmp_path):
    for text in (
        state([{"step": 1, "x" * 1_000_000: 1.0, "\x00\ud800": 2.0, "deep": [[1]]}]),
        state([{"step": 5, "loss": 1e999}] * 3),
        state([{"step": 0, "loss": 1.0, "train_runtime": 1.0, "train_loss": 1.0}]),
        state([*trained(30), ended(30, 60.0)] * 50, 30),
    ):
        for data in (text, "\ufeff" + text, text.replace("\n", "\r\n")):
            survive(trainer_state, tmp_path, data.encode("utf-8", "surrogatepass"), "trainer_state.json")
    packed = source_of(tmp_path, gzip.compress(RUN.encode()), "trainer_state.json.gz")
    assert trainer_state.sniff(packed) == 0.95 and len(read(trainer_state, packed).rows["steps"]) == 100


def folder_of(tmp_path, **states):
    for name, text in states.items():
        path = tmp_path / "job" / name / "trainer_state.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path / "job"


def test_checkpoints_of_one_job_are_one_history(tmp_path, store):
    job = folder_of(tmp_path, c50=state(trained(50), 50), c100=state([*trained(50), *trained(100, 51)]), end=RUN)
    got = ingest([job], store)
    assert got.tables["steps"] == 110  # the history of c100 has no evaluation: it is not the beginning of the last one
    assert sum("c50/trainer_state.json: the state of an earlier" in note for note in got.warnings) == 1


def test_the_same_job_by_what_it_printed_counts_once(tmp_path, store):
    took = [7 + n % 7 for n in range(1, 101)]
    drawn = test_hf_trainer.bar(0, 0) + "".join(
        test_hf_trainer.logged(n, sum(took[:n]), loss_of(n)) for n in range(1, 101)
    )
    job = folder_of(tmp_path, end=state([*trained(100), ended(100, float(sum(took)))]))
    (job / "out.log").write_text(drawn)
    run = store.get(ingest([job], store).run_id)
    result = analyze(run.tables, run.manifest.facts, {})
    assert result.steps == 99 and result.best_step_s is not None  # the log tells each minute's mean
    assert any("nothing but their mean" in note for note in result.notes)


def test_a_mean_tells_of_no_best_step(tmp_path, store):
    run = store.get(ingest([folder_of(tmp_path, end=RUN)], store).run_id)
    result = analyze(run.tables, run.manifest.facts, {})
    assert (result.median_step_s, result.best_step_s) == (2.0, None) and ONE_MEAN in result.notes
    assert "A step takes 2.00 s on average." in str(verdict(result))
