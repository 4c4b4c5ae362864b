"""A job whose log says nothing of its chips, and what Cloud Monitoring told of these meanwhile."""

import json

import pytest

from analyzers.device import memory, roofline
from analyzers.flops import mfu
from app.facts.guesses import guesses
from app.questions.roofline import words
from collectors.ingest import ingest
from collectors.reading.exposition import time_ns
from errors import QuestionError
from errors.options import parse_options
from runs.store import Store
from tests.collectors.test_cloud_monitoring import GIB, START, moment, two_hosts

STEPS = "".join(
    f"{moment(START + 90 + n * 10)} completed step: {n}, seconds: 10.000, TFLOP/s/device: 98.500, loss: 2.000\n"
    for n in range(20)
)


def stored(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / "job").mkdir(exist_ok=True)
        (tmp_path / "job" / name).write_text(text)
    store = Store(tmp_path / "store")
    return store.get(ingest([tmp_path / "job"], store).run_id)


def asked(question, run):
    return question.analyze(run.tables, run.manifest.facts, parse_options(question.OPTIONS, {}))


def test_what_chips_did_while_the_job_took_its_steps(tmp_path):
    """Steps end from 90 s to 280 s: of a sample a minute those of 120, 180 and 240 s are theirs."""
    made = two_hosts(minutes=6)
    listed = {f"metrics{n}": json.dumps({"timeSeries": part}) for n, part in enumerate((made[:20], made[10:]))}
    run = stored(tmp_path, train=STEPS, **listed)
    told = asked(mfu, run)
    assert told.mfu == 0.5  # of the v5e that the series name
    [said] = [note for note in told.notes if note.startswith("By their own counters")]
    assert "8 TPUs were in use, in the mean of 3 samples each: " in said
    assert said.endswith("TensorCore utilization 44.8 % (44 to 45.5 %), duty cycle 89.5 % (88 to 91 %).")
    held = asked(memory, run)
    assert (held.peak_bytes, held.limit_bytes) == (4 * GIB + 5, 16 * GIB)
    assert "The peak is the most of 48 samples of bytes in use, taken beside any profile, 1 min apart." in held.notes[0]
    [guess] = [g for g in guesses(run, "chips") if "a monitor" in g.reason]
    assert guess.value == 8 and not guess.certain and run.manifest.fact("chips") is None


def test_chips_stand_still_between_two_attempts_and_others_have_chips_too(tmp_path):
    """Steps end from 130 s to 180 s, and from 430 s to 480 s, on 4 of the 8 chips that are listed."""
    again = "".join(
        f"{moment(START + begin + 10 * n)} completed step: {n}, seconds: 10.000, TFLOP/s/device: 98.5, loss: 2.000\n"
        for begin in (130, 430)
        for n in range(6)
    )
    made = two_hosts(minutes=9)
    for one in made:
        for point in one["points"]:
            stands = START + 200 < time_ns(point["interval"]["endTime"]) / 1e9 < START + 400
            point["value"] = {"doubleValue": 1.0 if stands else 81.0}
    run = stored(tmp_path, train=f"Num_devices: 4, shape (1, 4)\n{again}", metrics=json.dumps(made))
    [said] = [note for note in asked(mfu, run).notes if note.startswith("By their own counters")]
    assert said.startswith("By their own counters 8 TPUs were in use, more than the 4 of this run: those of others are")
    assert "in the mean of 2 samples each: " in said and said.endswith("duty cycle 81 %.")


def test_what_chips_did_is_told_without_any_step_or_operation(tmp_path):
    run = stored(tmp_path, metrics=json.dumps(two_hosts(("node-a",), 2)))
    told = asked(roofline, run)
    assert [(c["device"], c["counter"], c["mean_share"]) for c in told.counters] == [
        (0, "TensorCore utilization", pytest.approx(0.445)),
        (0, "duty cycle", pytest.approx(0.89)),
        (1, "TensorCore utilization", pytest.approx(0.45)),
        (1, "duty cycle", pytest.approx(0.9)),
    ]
    assert told.to_dict()["points"] == [] and told.to_dict()["time_basis"] == "unattributed"
    assert words.verdict(told) == (
        "By their own counters 2 TPUs were in use, in the mean of 3 samples each: TensorCore utilization 44.8 %, "
        "duty cycle 89.5 % (89 to 90 %). Which operations ran no input tells: add a profile."
    )
    with pytest.raises(QuestionError, match="no operation of a device"):
        roofline.analyze(run.tables, run.manifest.facts, parse_options(roofline.OPTIONS, {"host": "node-a"}))
