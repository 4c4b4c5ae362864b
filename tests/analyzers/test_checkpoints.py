"""What saves and failures cost, against jobs made to measure and against the truth of the bundled run."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from analyzers.lost import checkpoints
from analyzers.lost.mttf import mttf
from analyzers.lost.saves import checkpoints as found_checkpoints
from app.questions.checkpoints.words import lost
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests import bundled as bundled_runs

S = 1_000_000_000
EPOCH = 1_767_571_200 * S
FOLDER = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"


class Job:
    """A calendar in seconds from EPOCH: steps of 10 s, the first of an attempt 30 s longer."""

    def __init__(self):
        self.steps, self.life, self.now = [], [], 0.0

    def phase(self, kind, seconds, **more):
        self.life.append({"kind": kind, "start": self.now, "end": self.now + seconds, **more})
        self.now += seconds

    def attempt(self, number, steps, every=0, save_s=4.0, end=False, **save):
        begun = self.now
        self.phase("accelerator_initialization", 20)
        if number:
            self.phase("checkpoint_restore", 5)
        for i, step in enumerate(steps):
            self.steps.append((number, step, self.now))
            self.now += 40 if i == 0 else 10
            if every and step % every == 0 and step and i:
                self.phase("checkpoint_save", save_s, attempt=number, step=step, **save)
        self.life.append({"kind": "job", "start": begun, "end": self.now if end else None, "attempt": number})

    def tables(self):
        ns = lambda s: None if s is None else EPOCH + round(s * S)  # noqa: E731
        life = self.life
        return MemoryTables(
            {
                "steps": {
                    "attempt": [a for a, _, _ in self.steps],
                    "step": [n for _, n, _ in self.steps],
                    "start_ns": [ns(t) for _, _, t in self.steps],
                    "order": list(range(len(self.steps))),
                },
                "lifecycle": {
                    "kind": [x["kind"] for x in life],
                    "start_ns": [ns(x["start"]) for x in life],
                    "end_ns": [ns(x["end"]) for x in life],
                    "attempt": [x.get("attempt") for x in life],
                    "step": [x.get("step") for x in life],
                    "host": [x.get("host") for x in life],
                    "detail": [x.get("detail") for x in life],
                    "order": list(range(len(life))),
                },
            }
        )

    def ask(self, **facts):
        return checkpoints.analyze(self.tables(), facts_of({"chips": 8, **facts}), {})


def interrupted():
    """Steps 0 to 25, saves at 10 and 20, killed; 100 s without machines; 21 to 60, saves at 30 to 60; it ends."""
    job = Job()
    job.attempt(0, range(26), every=10)
    job.now += 100 - 10  # the last step was begun: its 10 s are the last that is known of it
    job.attempt(1, range(21, 61), every=10, end=True)
    return job


def test_saves_restores_and_the_interval_of_a_made_job():
    result = interrupted().ask()
    assert result.save.count == 6 and result.save.median_s == 4 and result.save.total_s == 24
    assert result.saves["step"].tolist() == [10, 20, 30, 40, 50, 60]
    assert result.interval_steps == 10 and result.interval_s == 100
    assert result.interval_source == "saves"
    assert result.restore.count == 1 and result.restore.median_s == 5
    assert result.saves_s == 24


def test_a_failure_by_its_parts():
    result = interrupted().ask(usd_per_chip_hour=3.0)
    row = result.stops.iloc[0]
    assert len(result.stops) == 1 and row["complete"]
    assert result.wait.mean_s + 10 == pytest.approx(100, abs=10.01)  # how long the last step lived is not known
    assert result.restart.mean_s == pytest.approx(20 + 5 + 30)
    assert result.parts["checkpoint_restore"] == pytest.approx(5)
    assert result.parts["program_startup"] == pytest.approx(30)
    assert math.fsum(result.parts.values()) == pytest.approx(result.restart.mean_s)
    assert result.redone_s == pytest.approx(50, abs=10.01)  # steps 21 to 25
    told = result.to_dict()
    assert told["lost"]["saves"] == {
        "seconds": 24.0,
        "share": 24 / result.held_s,
        "chip_seconds": 192.0,
        "usd": pytest.approx(192 / 3600 * 3),
    }
    assert result.modelled_s + result.other_s == pytest.approx(result.held_s)
    assert 0 < result.other_s < 60  # the first start


def test_time_at_risk_leaves_out_waiting():
    result = interrupted().ask()
    assert result.mttf.count == 1
    assert result.mttf.exposure_s == pytest.approx(result.held_s - result.wait.total_s)
    assert result.mttf.mean_s == result.mttf.exposure_s
    assert result.mttf.low_s < result.mttf.mean_s < result.mttf.high_s


def test_the_interval_of_the_mean_time_to_failure_is_garwoods():
    """Known limits of a Poisson count: 0 -> 3.689, 1 -> 0.0253 to 5.572, 10 -> 4.795 to 18.390 (95 %)."""
    for count, low, high in ((0, 0.0, 3.6889), (1, 0.02532, 5.5716), (10, 4.7954, 18.3904)):
        found = mttf(count, 1000.0)
        assert 1000 / found.low_s == pytest.approx(high, rel=1e-4)
        assert (found.high_s is None) if not count else (1000 / found.high_s == pytest.approx(low, rel=1e-3))


def test_times_between_the_interruptions_of_a_published_training():
    """466 and 419 in 54 days; with 90 % of the time effective at least, each cost 16.7 minutes at most."""
    days = 54 * 86400
    assert mttf(466, days).mean_s / 3600 == pytest.approx(2.781115879828326, rel=1e-12)
    assert mttf(419, days).mean_s / 3600 == pytest.approx(3.0930787589498805, rel=1e-12)
    assert 0.1 * days / 3600 == pytest.approx(129.6)
    assert 0.1 * mttf(466, days).mean_s / 60 == pytest.approx(16.68669527896996, rel=1e-12)


def test_without_a_failure_only_a_bound_is_said():
    job = Job()
    job.attempt(0, range(100), every=10, end=True)
    result = job.ask()
    assert result.mttf.count == 0 and result.mttf.mean_s is None and result.mttf.high_s is None
    assert result.mttf.low_s == pytest.approx(result.held_s / 3.6889, rel=1e-4)
    told = result.to_dict()
    assert told["mttf_s"] is None and told["failures"] == 0 and told["restart"]["median_s"] is None
    json.dumps(told, allow_nan=False)


def test_a_failure_before_the_first_step_counts_but_is_no_usual_restart():
    job = Job()
    job.attempt(0, range(12), every=5)
    job.now += 50
    job.attempt(1, ())
    job.now += 70
    job.attempt(2, range(11, 40), every=5, end=True)
    result = job.ask()
    assert result.mttf.count == 2 and result.restart.count == 1 and result.wait.count == 2
    assert result.stops["complete"].tolist() == [False, True]
    assert any("1 of 2 failures struck before training went on" in n for n in result.notes)


def test_one_save_told_by_several_hosts_is_one():
    job = Job()
    job.attempt(0, range(21), every=10, end=True)
    told = [x for x in job.life if x["kind"] == "checkpoint_save"]
    job.life = [x for x in job.life if x["kind"] != "checkpoint_save"]
    for save in told:
        job.life += [{**save, "host": f"h{k}", "start": save["start"] + k, "end": save["end"] + k} for k in range(3)]
    saved = found_checkpoints(job.tables(), "checkpoint_save")
    assert saved.rows["step"].tolist() == [10, 20]
    assert saved.rows["blocked_s"].tolist() == [6.0, 6.0]  # 4 s, the last host 2 s later


def test_saves_without_a_step_are_told_apart_by_time():
    job = Job()
    job.attempt(0, range(31), every=10, end=True)
    for x in job.life:
        x.pop("step", None)
    saved = found_checkpoints(job.tables(), "checkpoint_save")
    assert len(saved.rows) == 3 and saved.rows["blocked_s"].tolist() == [4.0] * 3
    assert job.ask().interval_s == 100 and job.ask().interval_steps is None


def test_the_same_step_saved_again_after_a_restart_is_another_save():
    job = Job()
    job.attempt(0, range(26), every=10)
    job.now += 60
    job.attempt(1, range(11, 41), every=10, end=True)
    result = job.ask()
    assert result.saves["step"].tolist() == [10, 20, 20, 30, 40]
    assert result.interval_s == 100


def rolled_back(hosts=()):
    """Three times 100 steps in one attempt, each time from 60 before where it was, saved every 50; each of `hosts` in
    turn tells for two seconds, the next a second later."""
    job = Job()
    job.phase("accelerator_initialization", 20)
    step = 0
    for _ in range(3):
        for _ in range(100):
            job.steps.append((0, step, job.now))
            job.now, step = job.now + 10, step + 1
            if step % 50 == 0:
                begun = job.now
                for k, host in enumerate(hosts or (None,)):
                    told = {"start": begun + 3 * k, "end": begun + 3 * k + 2 if hosts else begun + 30}
                    job.life.append({"kind": "checkpoint_save", **told, "attempt": 0, "step": step, "host": host})
                job.now = begun + 30
        step -= 60
    job.life.append({"kind": "job", "start": 0, "end": job.now, "attempt": 0})
    return job


def test_the_same_step_saved_again_after_a_return_to_an_earlier_one_is_another_save():
    result = rolled_back().ask()
    assert result.saves["step"].tolist() == [50, 100, 50, 100, 100, 150]
    assert result.saves["blocked_s"].tolist() == [30.0] * 6
    assert (result.save.count, result.save.median_s, result.save.total_s) == (6, 30.0, 180.0)
    assert result.interval_s == 500 and result.interval_steps == 50


def test_a_step_that_hosts_tell_one_after_the_other_is_one_save_all_the_same():
    result = rolled_back(hosts=("h0", "h1", "h2")).ask()
    assert result.saves["step"].tolist() == [50, 100, 50, 100, 100, 150]
    assert result.saves["blocked_s"].tolist() == [6.0] * 6


def test_a_save_before_steps_are_taken_again_is_no_downtime_as_well():
    result = rolled_back().ask()
    assert result.saves_s == 180 and result.restarts_s == 0
    assert result.modelled_s <= result.held_s and result.other_s >= 0


def test_two_tiers_are_told_apart_and_the_remote_one_counts():
    job = Job()
    near = json.dumps({"directory": "/local/ckpt", "synchronous": True})
    far = json.dumps({"directory": "gs://bucket/ckpt", "synchronous": False})
    job.attempt(0, range(10))
    for step in range(10, 50):
        job.steps.append((0, step, job.now))
        job.now += 10
        if step % 2 == 0:
            job.phase("checkpoint_save", 1, attempt=0, step=step, detail=near)
        if step % 20 == 0:
            job.phase("checkpoint_save", 7, attempt=0, step=step, detail=far)
    result = job.ask()
    assert set(result.saves["tier"]) == {"local", "remote"}
    assert result.save.count == 2 and result.save.median_s == 7
    assert result.interval_steps == 20 and result.synchronous is False
    assert any("went to local storage" in n for n in result.notes)
    assert any("written in the background" in n for n in result.notes)


def test_saves_without_an_end_are_counted_and_named():
    job = interrupted()
    save = next(x for x in job.life if x["kind"] == "checkpoint_save")
    save["end"] = None
    result = job.ask()
    assert result.save.count == 5
    assert any("without a recorded end, in no figure: 1" in n for n in result.notes)


def test_saves_of_which_the_end_alone_is_recorded_tell_how_far_apart_they_are():
    """Resiliency events tell when a save was done: of three it was said that none was recorded, and of a job of whose
    steps nothing was read, that they were taken from a profile and that its failure struck before training went on."""
    job = Job()
    job.attempt(0, range(31), every=10, end=True)
    for x in job.life:
        if x["kind"] == "checkpoint_save":
            x["start"] = None
    result = job.ask()
    assert (result.save.count, result.save.median_s) == (0, None)
    assert (result.interval_s, result.interval_steps, result.interval_source) == (104, 10, "ends of saves")
    assert any(n.startswith("Of 3 saves the end alone was recorded") for n in result.notes)
    assert "Of no save was recorded when it began" in str(lost(result))
    job.steps, job.life = [], [*job.life[:-1], {"kind": "job", "start": 0.0, "end": None}]
    job.life.append({"kind": "job", "start": 1000.0, "end": 1100.0})
    notes = job.ask().notes
    assert not any("from profile" in n or "No save" in n or "struck before" in n for n in notes)
    assert any(n.startswith("No step was read. A failure is") for n in notes)


@pytest.mark.parametrize("stepped", [True, False])
def test_ends_that_several_processes_tell_are_of_one_save(stepped):
    """Of three saves whose ends four processes told, without a step, an interval of 0.01 s was told."""
    job = Job()
    job.attempt(0, range(31), every=10, end=True)
    saves = [{**x, "start": None} for x in job.life if x["kind"] == "checkpoint_save"]
    told = [{**x, "end": x["end"] + 0.01 * n, "step": x["step"] if stepped else None} for x in saves for n in range(4)]
    whole, job.life = job.life, [x for x in job.life if x["kind"] != "checkpoint_save"] + told
    alone = job.ask()
    assert (alone.ends, alone.interval_s, alone.interval_source) == (3, 104, "ends of saves")
    job.life = whole + told  # a log tells of the same saves whole: they were told as further ones
    both = job.ask()
    assert (both.save.count, both.ends, both.interval_s, both.interval_source) == (3, 0, 100, "saves")


def test_the_period_that_the_job_printed_stands_in_for_an_interval():
    job = Job()
    job.attempt(0, range(30), end=True)
    result = job.ask(checkpoint_period_steps=25)
    assert result.interval_s == 250 and result.interval_source == "period and usual step"
    assert result.save.count == 0
    assert any("No save was recorded" in n for n in result.notes)


def test_slices_or_replicas_from_what_the_run_says():
    assert interrupted().ask(num_slices=4).slices == 4
    assert interrupted().ask(num_slices=1, parallelism={"data": 16, "model": 8}).slices == 16
    assert interrupted().ask(parallelism={"fsdp": 16}).slices is None


def test_what_cannot_be_asked():
    with pytest.raises(QuestionError, match="nothing tells when this job started"):
        checkpoints.analyze(MemoryTables({}), {}, {})
    with pytest.raises(QuestionError, match="price"):
        checkpoints.analyze(interrupted().tables(), {}, {"usd_per_chip_hour": -1.0})


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    run = bundled_runs.bundled(tmp_path_factory, "training")
    return checkpoints.analyze(run.tables, run.manifest.facts, {})


@pytest.fixture(scope="module")
def truth():
    return json.loads((FOLDER.parent / "training.truth.json").read_text())


def test_the_bundled_run_saves_as_it_was_made_to(bundled, truth):
    saved = [step for attempt in truth["attempts"] for step in attempt["checkpoint_steps"]]
    assert bundled.saves["step"].tolist() == saved
    assert bundled.synchronous is True
    assert bundled.interval_steps == truth["plan"]["checkpoint_every"]
    restored = [a["restored_step"] for a in truth["attempts"] if a["restored_step"] is not None]
    assert bundled.restore.count == len(restored)


def test_the_bundled_run_fails_as_it_was_made_to(bundled, truth):
    kills = [i for i in truth["injections"] if i["what"] == "kill"]
    assert bundled.mttf.count == len(kills) == 2
    assert bundled.stops["down_s"].to_numpy(dtype=float) == pytest.approx([k["downtime_s"] for k in kills], abs=0.1)
    assert bundled.redone_s == pytest.approx(sum(k["wasted_span_s"] for k in kills), rel=0.1)
    cold = bundled.stops["program_startup_s"].to_numpy(dtype=float)
    assert cold[1] > 4 * cold[0]  # the second restart had lost its compile cache
    first, last = truth["attempts"][0]["job_start_ns"], truth["attempts"][-1]["job_end_ns"]
    assert bundled.held_s == pytest.approx((last - first) / 1e9, rel=1e-3)
    assert bundled.goodput == pytest.approx(bundled.kept_s / bundled.modelled_s)


def test_the_bundled_run_as_json(bundled):
    told = bundled.to_dict()
    json.dumps(told, allow_nan=False)
    assert told["save"]["count"] == 6 and told["mttf_low_s"] < told["mttf_s"] < told["mttf_high_s"]
    parts = told["restart"]["mean_s_by_part"]
    assert np.isclose(sum(parts.values()), told["restart"]["mean_s"])
