"""MFU and HFU of a run that only its profiles tell of, against arithmetic on a made job."""

import pytest

from analyzers.flops import mfu
from app.questions.mfu import words
from errors.options import parse_options
from runs.run import facts_of
from tests.analyzers.mfu_lines import LLAMA, LOOSE, ask, of_model
from tests.analyzers.worlds import World

PEAK, EXECUTED, STEP_S = 1e14, 4e12, 0.077
FACTS = {"chip": "TPU v5p", "peak_flops_per_s": PEAK}


def profiled(world, **options):
    """MFU of what a profile alone tells."""
    return mfu.analyze(world.tables(goodput=False), facts_of(FACTS), parse_options(mfu.OPTIONS, options))


def test_what_ran_holds_what_is_computed_again():
    """HFU is all that ran over the peak; a fifth of it is no useful maths."""
    result = profiled(World(steps=20, executed_flops=EXECUTED, remat_share=0.2))
    assert result.convention == "shapes" and result.hfu_basis == "derived"
    assert result.hfu == pytest.approx(EXECUTED / STEP_S / PEAK)
    assert result.mfu == pytest.approx(0.8 * EXECUTED / STEP_S / PEAK) and result.best == pytest.approx(result.mfu)
    assert any("MFU leaves out 20 %, which the profiled programs compute again" in n for n in result.notes)


def test_where_nothing_tells_what_is_computed_again_all_that_ran_counts():
    result = profiled(World(steps=20, executed_flops=EXECUTED, remat_share=float("nan")))
    assert result.mfu == result.hfu == pytest.approx(EXECUTED / STEP_S / PEAK)
    assert any(n.startswith("What is computed again counts as well") for n in result.notes)


@pytest.mark.parametrize("remat, factor", [("full", 4 / 3), ("none", 1.0)])
def test_a_policy_tells_which_part_of_what_ran_is_useful(remat, factor):
    result = profiled(World(steps=20, executed_flops=EXECUTED), remat=remat)
    assert result.hfu == pytest.approx(EXECUTED / STEP_S / PEAK)
    assert result.mfu == pytest.approx(EXECUTED / STEP_S / PEAK / factor)


@pytest.mark.parametrize(
    "convention, factor",
    [("causal", 4 / 3), ("megatron", 4 / 3), ("6n", 4 / 3), ("lora", 3 / 2), ("hardware_full_remat", 1.0)],
)
def test_full_recomputation_is_counted_once_by_every_convention(convention, factor):
    """Of LoRA's 4N the forward pass is half; the hardware count holds it already."""
    asked = {"tokens_per_s": "1000", "seq": "8192", "chip": "H100 SXM", "remat": "full", "convention": convention}
    result = of_model(**asked)
    assert result.mfu is not None and result.hfu == pytest.approx(result.mfu * factor)


def test_printed_hardware_flops_are_not_added_to_again():
    """TFLOP/s that are 4/3 of the model's: whoever printed them counted the forward pass twice."""
    steps = {"step": [0, 1], "dur_ns": [10**9] * 2, "order": [0, 1], "source": ["a.log"] * 2}
    steps["tokens_per_s_per_chip"] = [1000.0] * 2
    for per_token, factor in ((51_470_401_536 * 4 / 3, 1.0), (LOOSE, 4 / 3)):
        columns = {**steps, "model_flops_per_chip": [1000.0 * per_token] * 2}
        result = ask(columns, {**LLAMA, "remat_policy": "full"}, convention="job")
        assert result.mfu is not None and result.hfu == pytest.approx(result.mfu * factor)


# The average over time ----------------------------------------------------------------------------------------------


def seen_at(steps, starts_s):
    """One host's profiled steps of a second each; each capture's first starts at `starts_s` of it."""
    numbers = [n for first in steps for n in range(first, first + 4)]
    at = [int((s + k) * 1e9) for s in starts_s for k in range(4)]
    capture = [c for c, _ in enumerate(starts_s) for _ in range(4)]
    columns = {"step": numbers, "start_ns": at, "dur_ns": [10**9] * len(at), "capture": capture}
    columns |= {"host": ["w0"] * len(at), "model_flops_per_chip": [4e13] * len(at)}
    return ask(columns, FACTS, convention="job")


@pytest.mark.parametrize("steps", [(10, 900_010), (10, 10), (10, 15)])
def test_steps_between_captures_ran_unseen_and_leave_the_average_unknown(steps):
    result = seen_at(steps, (0, 3600))
    assert result.mfu == pytest.approx(0.4) and result.average is None and result.wall_s is None
    assert any(n.startswith("Profiles saw only some of the steps") for n in result.notes)
    assert words.verdict(result).endswith("That is as good as the best.")


def test_steps_that_profiles_saw_one_and_all_have_an_average():
    """Two captures whose steps follow one another, two seconds apart."""
    result = seen_at((10, 14), (0, 6))
    assert result.wall_s == 10 and result.average == pytest.approx(0.4 * 8 / 10)
    said = words.verdict(result)
    assert "Over the 10.0 s from the first profiled step to the last it is 32" in said and "restarts" not in said
