"""A pause that the job recorded is no time of a step, on whichever page: a run has one step time, one rate, one MFU."""

import pytest

from app.history.told import Asked, tell
from app.library.answers import _of_steps
from app.questions.asking import ask
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from tests.app.made_runs import START_NS, S, write

TOKENS = 4096


def saving(place, save_s: int, every: int = 100):
    """Marks of 400 steps of a second, after every so manieth a save."""
    start, life, now = [], {"kind": [], "start_ns": [], "end_ns": [], "step": [], "source": []}, START_NS
    for n in range(400):
        start.append(now)
        now += S
        if n % every == every - 1 and save_s:
            row = ("checkpoint_save", now, now + save_s * S, n, "g.jsonl")
            for name, value in zip(life, row, strict=True):
                life[name].append(value)
            now += save_s * S
    steps = {
        "step": list(range(400)),
        "start_ns": start,
        "attempt": [0] * 400,
        "order": list(range(400)),
        "source": ["g.jsonl"] * 400,
    }
    facts = {"chip": "TPU v5p", "chips": 4, "model": "llama3.1-8b", "global_batch": 4, "sequence_length": TOKENS}
    return write(place.store, f"a save of {save_s} s every {every}", {"steps": steps, "lifecycle": life}, facts)


def test_a_rate_of_steps_is_the_same_wherever_it_is_told(place):
    """Steps, MFU and the list of runs told 31 % less than comparisons and histories of the same run."""
    plain, run = saving(place, 0), saving(place, 60)
    steps, mfu = ask(STEPS, run, {}, place.registry), ask(MFU, run, {}, place.registry)
    assert steps.tokens_per_s_per_chip == pytest.approx(TOKENS)
    assert mfu.mfu == pytest.approx(ask(MFU, plain, {}, place.registry).mfu)
    listed = _of_steps(run, place.registry)
    told = {
        m: tell(Asked(metric=m, name=run.manifest.name), place).result.points[0].value for m in ("tokens_per_s", "mfu")
    }
    assert told == pytest.approx({"tokens_per_s": TOKENS, "mfu": listed["mfu"]})
    assert listed["throughput"] == pytest.approx(4 * TOKENS) and listed["step_time"] == pytest.approx(1)
    assert mfu.mfu is not None and mfu.average == pytest.approx(mfu.mfu * 400 / 580, rel=0.01)  # three saves are in it


def test_a_save_after_every_step_makes_none_longer(place):
    start = [START_NS + n * 3 * S for n in range(60)]
    steps = {"step": list(range(60)), "start_ns": start, "attempt": [0] * 60, "order": list(range(60))}
    life = {"kind": ["checkpoint_save"] * 60, "start_ns": [t + S for t in start], "end_ns": [t + 3 * S for t in start]}
    run = write(place.store, "saves after every step", {"steps": steps, "lifecycle": life}, {"chips": 4})
    assert ask(STEPS, run, {}, place.registry).median_step_s == pytest.approx(1)


def test_saves_are_no_pattern_of_steps(place):
    """The sentence told of a minute where every step of the picture took a second."""
    result = ask(STEPS, saving(place, 60, every=10), {}, place.registry)
    assert result.rows["dur_s"].max() == pytest.approx(1) and result.pattern is None
