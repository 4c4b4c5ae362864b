"""Whether saves are slow or too many, beside steps that are slow for another reason."""

from types import SimpleNamespace

import pytest

from analyzers.findings.rules.checkpoints import _saves
from analyzers.lost.saves import Spread
from errors import format as fmt

SAVE_S, STEP_S, STEPS = 1.3, 0.02, 8


def told(waited_s: float, save_s: float = SAVE_S, steps: int = STEPS, late_s: float = 0.0) -> str:
    """What is said of saves every so many steps of 20 ms, which wait so long for input and for a late rank."""
    step_s = STEP_S + waited_s + late_s
    found = SimpleNamespace(
        save=Spread(4, save_s, save_s, save_s, 4 * save_s),
        interval_s=steps * step_s,
        interval_steps=float(steps),
        synchronous=True,
        mttf=SimpleNamespace(mean_s=None, low_s=5.0, count=0),
    )
    amounts = {"productive": 40 * step_s, "input_wait": 40 * waited_s, "straggler_wait": 40 * late_s}
    amounts["checkpoint_save"] = 4 * save_s
    (finding,) = _saves(SimpleNamespace(amount=lambda *names: sum(amounts[name] for name in names)), found)
    if finding.cause == "slow_checkpoint":  # told against steps as they are
        assert f"as long as {fmt.number(save_s / step_s, 2)} steps" in finding.title
    return finding.cause


@pytest.mark.parametrize("waited_s", [0.0, 0.06, 0.2])
def test_a_save_is_as_slow_however_long_steps_wait_for_their_input(waited_s):
    assert told(waited_s) == "slow_checkpoint"


@pytest.mark.parametrize("late_s", [0.06, 0.2])
def test_and_however_long_they_wait_for_a_late_rank(late_s):
    assert told(0.0, late_s=late_s) == "slow_checkpoint"


def test_a_save_of_few_steps_that_comes_too_often_is_not_slow():
    assert told(0.0, save_s=10 * STEP_S) == "frequent_checkpoints"


def test_a_slow_save_every_third_step_is_one_too_many():
    assert told(0.0, steps=3) == "frequent_checkpoints"


@pytest.mark.parametrize(("step_s", "told_too"), [(0.2, True), (0.8, False)])
def test_saves_that_cost_much_at_the_best_interval_are_slow_however_long_a_step_takes(step_s, told_too):
    """Saves of 1.3 s, no more than some steps, every eight of them: 39 and 14 % of the time."""
    whole_s = 4 * SAVE_S + 40 * step_s
    found = SimpleNamespace(
        save=Spread(4, SAVE_S, SAVE_S, SAVE_S, 4 * SAVE_S),
        interval_s=8 * step_s,
        interval_steps=8.0,
        synchronous=True,
        mttf=SimpleNamespace(mean_s=None, low_s=2.5, count=0),  # 1.8 s of work are best
        saves_s=4 * SAVE_S,
        held_s=whole_s,
    )
    amounts = {"productive": 40 * step_s, "checkpoint_save": 4 * SAVE_S}
    seen = SimpleNamespace(amount=lambda *names: sum(amounts.get(name, 0.0) for name in names))
    assert [f.cause for f in _saves(seen, found)] == (["slow_checkpoint"] if told_too else [])
