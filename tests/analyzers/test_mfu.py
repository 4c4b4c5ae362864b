"""MFU: against arithmetic on made jobs, the bundled run's truth, and the field's printed tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from analyzers.flops import mfu
from analyzers.flops.precision import native_peak, parse_mix
from catalog import chip
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests import bundled as bundled_runs
from tests.analyzers.mfu_lines import EXACT, LLAMA, LOOSE, ask, of_model
from tests.analyzers.worlds import EPOCH, World

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"
S = 1_000_000_000
TOKENS = 16_384  # per chip and step


def lines(seconds, numbers=None, per_token=LOOSE, tokens=TOKENS, start_s=None, source="a.log"):
    """Step lines as MaxText prints them: seconds to the millisecond, rates of the exact duration."""
    count = len(seconds)
    columns = {
        "step": list(numbers if numbers is not None else range(count)),
        "source": [source] * count,
        "dur_ns": [round(s * 1000) * 1_000_000 for s in seconds],
        "order": list(range(count)),
    }
    if tokens:
        columns["tokens_per_s_per_chip"] = [round(tokens / s, 3) for s in seconds]
    if per_token:
        rate = [round(TOKENS * per_token / s / 1e12, 3) for s in seconds]
        columns["model_flops_per_chip"] = [r * 1e12 * round(s, 3) for r, s in zip(rate, seconds, strict=True)]
    if start_s is not None:
        columns["start_ns"] = [EPOCH + int(s * S) for s in start_s]
    return columns


def test_the_contract_of_the_json():
    said = ask(lines([30.0] + [2.2] * 20)).to_dict()
    wanted = {
        "mfu",
        "hfu",
        "emfu",
        "convention",
        "peak_flops_per_s",
        "flops_per_token",
        "tokens_per_s_per_chip",
        "average",
        "best",
    }
    assert wanted <= set(said)
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_what_gpus_counted_of_themselves_stands_beside():
    counted = {"ts_ns": [EPOCH + S], "name": ["GPU 0 tensor pipe active"], "value": [31.0], "unit": ["%"]}
    tables = MemoryTables({"steps": lines([2.0] * 5, start_s=range(0, 10, 2)), "scalars": counted})
    notes = mfu.analyze(tables, facts_of({"chip": "H100 SXM"}), parse_options(mfu.OPTIONS, {})).notes
    assert "By its own counters GPU 0 was in use, in the mean of 1 sample: tensor pipe active 31 %." in notes


def test_tokens_are_counted_by_the_exact_convention_whatever_the_job_printed():
    result = ask(lines([30.0] + [2.2] * 20))
    assert (result.convention, result.flops_per_token) == ("causal", EXACT)
    assert result.mfu == pytest.approx(TOKENS * EXACT / 2.2 / 918e12, rel=1e-4)
    assert result.tokens_per_s_per_chip == pytest.approx(TOKENS / 2.2, rel=1e-4)
    assert result.fingerprint.matching[0].name == "noncausal"
    assert result.to_dict()["printed_convention"] == "noncausal"


@pytest.mark.parametrize("convention, per_token", [("job", LOOSE), ("noncausal", LOOSE), ("causal", EXACT)])
def test_the_convention_can_be_switched(convention, per_token):
    result = ask(lines([30.0] + [2.2] * 20), convention=convention)
    assert result.convention == convention
    assert result.mfu == pytest.approx(TOKENS * per_token / 2.2 / 918e12, rel=1e-3)
    assert result.flops_per_token == pytest.approx(per_token, rel=1e-5)


def test_without_tokens_the_job_s_own_count_holds():
    result = ask(lines([30.0] + [2.2] * 20, tokens=None))
    assert result.convention == "job" and "by its own convention" in " ".join(result.notes)
    assert result.mfu == pytest.approx(TOKENS * LOOSE / 2.2 / 918e12, rel=1e-3)
    with pytest.raises(QuestionError, match="the convention causal need a model, a sequence length and printed tokens"):
        ask(lines([2.2] * 5, tokens=None), convention="causal")


def test_without_tflops_the_tokens_are_enough():
    result = ask(lines([30.0] + [2.2] * 20, per_token=None))
    assert result.convention == "causal"
    assert result.mfu == pytest.approx(TOKENS * EXACT / 2.2 / 918e12, rel=1e-4)
    assert not result.fingerprint.conventions


def test_the_mean_is_over_time_and_best_is_the_best_usual_step():
    seconds = [30.0, 2.0, 4.0, 2.5, 2.0]
    result = ask(lines(seconds))
    assert result.mfu == pytest.approx(4 * TOKENS * EXACT / (2 + 4 + 2.5 + 2) / 918e12, rel=1e-4)
    assert result.best == pytest.approx(TOKENS * EXACT / 2.0 / 918e12, rel=1e-4)
    assert result.average == pytest.approx(5 * TOKENS * EXACT / 40.5 / 918e12, rel=1e-4)


def test_the_average_is_over_the_wall_time_with_lost_steps_and_restarts():
    """Steps 0 to 5, then 100 s of nothing, then 3 to 8: six of twelve kept before and after, 3 lost."""
    first, second = [10.0] + [2.0] * 5, [12.0] + [2.0] * 5
    starts = [0, 10, 12, 14, 16, 18, 120, 132, 134, 136, 138, 140]
    columns = lines(first + second, [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8], start_s=starts)
    result = ask(columns)
    assert list(result.rows["kept"]) == [True] * 3 + [False] * 3 + [True] * 6
    assert result.wall_s == 142
    assert result.average == pytest.approx(9 * TOKENS * EXACT / 142 / 918e12, rel=1e-4)
    assert result.mfu == pytest.approx(TOKENS * EXACT / 2 / 918e12, rel=1e-4)


def test_impossible_steps_are_rejected_and_named():
    """Asynchronous dispatch: 0.319 s at over 2,400 TFLOP/s on a chip of 918."""
    result = ask(lines([0.319, 0.02] + [2.2] * 20))
    assert result.best == pytest.approx(TOKENS * EXACT / 2.2 / 918e12, rel=1e-3)
    assert list(result.rows["implausible"] != "")[:3] == [True, True, False]
    assert "0.319 s at 2,644 TFLOP/s: its FLOP/s exceed the chip's peak" in result.rows["implausible"][0]
    said = result.to_dict()
    assert said["implausible_steps"] == 2 and said["implausible"][0]["step"] == 0
    assert any(n.startswith("Step 0 cannot be true: 0.319 s") for n in result.notes)
    assert result.average <= result.best


def test_a_step_faster_than_bf16_is_possible_where_the_format_is_not_known():
    """v5e: BF16 197 TFLOP/s, int8 393. At 300, a run of unknown format may have used int8; one in BF16 may not."""
    seconds = [TOKENS * EXACT / 300e12] * 6
    facts = {"chip": "TPU v5e", "model": "llama3.1-8b", "max_target_length": 8192}
    unknown = ask(lines(seconds, per_token=None), facts)
    assert not (unknown.rows["implausible"] != "").any() and unknown.mfu > 1
    assert (ask(lines(seconds, per_token=None), {**facts, "precision": "bf16"}).rows["implausible"] != "").all()
    int8 = ask(lines(seconds, per_token=None), {**facts, "quantization": "int8"})
    assert int8.mfu == pytest.approx(300 / 393, rel=5e-3) and int8.emfu == pytest.approx(300 / 197, rel=5e-3)


def test_ramped_batches_keep_their_own_tokens():
    small, large = [1.0] * 10, [2.0] * 10
    columns = lines(small + large)
    columns["tokens_per_s_per_chip"] = [8192.0] * 20
    result = ask(columns, convention="causal")
    assert result.rows["tokens_per_s_per_chip"].to_numpy() == pytest.approx(np.full(20, 8192.0))


def test_rounded_seconds_do_not_round_the_tokens():
    """98.4 ms is printed as 0.098: each step's product is off by 0.4 %, the run's tokens are not."""
    rng = np.random.default_rng(3)
    seconds = [4.0, *rng.uniform(0.09, 0.11, 200)]
    facts = {**LLAMA, "per_device_batch_size": 2.0}
    columns = lines(seconds, per_token=None)
    stated = ask(columns, {**facts, "chip": "B200"}, convention="causal", peak_flops_per_s=1e18)
    assert (stated.rows["tokens_per_s_per_chip"] * stated.rows["dur_s"]).to_numpy() == pytest.approx(
        np.full(201, float(TOKENS))
    )
    unstated = ask(columns, LLAMA, peak_flops_per_s=1e18)
    assert unstated.tokens_per_s_per_chip == pytest.approx(stated.tokens_per_s_per_chip, rel=5e-4)


# HFU ------------------------------------------------------------------------------------------------------------------


def test_hfu_adds_what_the_profiled_programs_recompute():
    world = World(steps=20, executed_flops=4e12, remat_share=0.2)
    tables = world.tables()
    facts = facts_of({"chip": "TPU v5p", "peak_flops_per_s": 1e14})
    result = mfu.analyze(tables, facts, parse_options(mfu.OPTIONS, {}))
    assert result.hfu == pytest.approx(result.mfu / 0.8) and result.hfu_basis == "derived"


def test_hfu_by_a_stated_policy():
    none, selective, full = (ask(lines([2.2] * 9), remat=policy) for policy in ("none", "selective", "full"))
    assert none.hfu == none.mfu
    attention = 32 * 12 * 4096 * 4096
    assert selective.hfu == pytest.approx(selective.mfu * (1 + attention / 3 / EXACT))
    assert full.hfu == pytest.approx(full.mfu * 4 / 3) and full.hfu_basis == "modelled"
    assert ask(lines([2.2] * 9), {**LLAMA, "remat_policy": "full"}).hfu == full.hfu
    unknown = ask(lines([2.2] * 9))
    assert unknown.hfu is None and any("HFU is not known" in n for n in unknown.notes)


# Peaks and number formats ---------------------------------------------------------------------------------------------


def test_the_native_peak_of_a_mix_is_harmonic():
    """70 % of FLOPs at 4,500 and 30 % at 2,250 TFLOP/s take 0.7/4500 + 0.3/2250 of a second a TFLOP."""
    assert native_peak(chip("B200"), parse_mix("fp8=0.7,bf16=0.3")) == pytest.approx(1e12 / (0.7 / 4500 + 0.3 / 2250))
    result = of_model(tflops_per_s="1507", chip="B200", precision="fp8=0.7,bf16=0.3")
    assert result.emfu == pytest.approx(1507 / 2250)
    assert result.mfu == pytest.approx(1507 * (0.7 / 4500 + 0.3 / 2250))


@pytest.mark.parametrize(
    "precision, said",
    [
        ("fp8=0.7,bf16=0.2", "sum to 0.9"),
        ("fp8=0.7,fp8=0.3", "precision 'fp8=0.7,fp8=0.3'"),
        ("fp12", "precision 'fp12'"),
        ("fp8=x", "precision 'fp8=x'"),
        ("fp8=-1,bf16=2", "precision"),
        ("fp4", "does not know fp4_flops_per_s of TPU v6e"),
    ],
)
def test_a_format_that_cannot_be_is_told(precision, said):
    with pytest.raises(QuestionError) as e:
        of_model(tflops_per_s="400", chip="v6e", precision=precision)
    assert said in str(e.value)


def test_what_is_asked_wins_over_what_is_known():
    columns = lines([2.2] * 9)
    declared = {**LLAMA, "peak_flops_per_s": 500e12}
    assert ask(columns, declared).peaks.native == 500e12
    assert ask(columns, declared, chip="v5p").peaks.native == 459e12
    assert ask(columns, declared, precision="int8").peaks.native == 1836e12
    assert ask(columns, declared, chip="v5p", peak_flops_per_s="4e14").peaks.native == 4e14
    assert ask(columns, declared, model="llama2-7b").model == "llama2-7b"


def test_emfu_of_an_unknown_chip_needs_to_know_that_its_peak_is_bf16():
    facts = {**LLAMA, "chip": "abacus", "peak_flops_per_s": 9e14}
    assert ask(lines([2.2] * 9), facts).emfu == ask(lines([2.2] * 9), facts).mfu
    assert ask(lines([2.2] * 9), {**facts, "precision": "float32"}).emfu is None


def test_without_a_peak_the_rate_is_given():
    result = ask(lines([2.2] * 9), {"model": "llama3.1-8b", "max_target_length": 8192, "chip": "abacus"})
    assert (result.mfu, result.emfu, result.best, result.average) == (None,) * 4
    assert result.tflops_per_s_per_chip == pytest.approx(TOKENS * EXACT / 2.2 / 1e12, rel=1e-3)
    assert any("No peak is known" in n for n in result.notes)


def test_a_model_that_the_catalogue_lacks_is_told_and_the_job_s_count_used():
    result = ask(lines([2.2] * 9), {**LLAMA, "model": "our-own-8b"})
    assert result.convention == "job" and result.model is None
    assert any("no model is called 'our-own-8b'" in n for n in result.notes)
    with pytest.raises(QuestionError, match="no model is called"):
        ask(lines([2.2] * 9), model="our-own-8b")


@pytest.mark.parametrize(
    "options, said",
    [
        ({}, "there are no steps to take a rate from"),
        ({"tokens_per_s": "100"}, "need a model, a sequence length and tokens per second"),
        ({"tokens_per_s": "100", "seq": "8192", "convention": "job"}, "without tflops_per_s there is no count"),
        ({"tflops_per_s": "400", "convention": "causal"}, "need a model, a sequence length and tokens per second"),
        ({"tflops_per_s": "0"}, "option tflops_per_s=0; expected a number above 0"),
        ({"tflops_per_s": "-3"}, "option tflops_per_s=-3"),
        ({"tflops_per_s": "nan"}, "option tflops_per_s='nan'"),
        ({"tflops_per_s": "1", "chip": "v77"}, "no chip is called 'v77'"),
        ({"tflops_per_s": "1", "precision": "fp8"}, "no chip is known whose peak this precision has"),
        ({"tflops_per_s": "1", "seq": "0"}, "option seq=0; expected a whole number from 1"),
        ({"tflops_per_s": "1", "convention": "x"}, "option convention='x'; expected one of job, shapes, causal"),
    ],
)
def test_what_cannot_be_asked_is_told(options, said):
    with pytest.raises(QuestionError) as e:
        of_model(**options)
    assert said in str(e.value)


def test_steps_without_any_rate_say_what_is_missing():
    with pytest.raises(QuestionError, match="no input says how many FLOPs or tokens a step is"):
        ask({"step": [0, 1], "start_ns": [EPOCH, EPOCH + S], "order": [0, 1]})
    with pytest.raises(QuestionError, match="the model or its sequence length is not known"):
        ask(lines([1.0] * 4, per_token=None), {"chip": "v6e"})


@pytest.mark.parametrize("options", [{}, {"convention": "causal"}])
def test_steps_that_generate_what_they_train_on_have_no_mfu_by_their_tokens(options):
    facts = {"model": "llama3.1-8b", "chip": "v6e", "sequence_length": 8192, "steps_generate": True}
    with pytest.raises(QuestionError, match="the steps generate and score"):
        ask(lines([1.0] * 4, per_token=None), facts, **options)
    assert ask(lines([1.0] * 4), facts).convention == "job"


def test_tokens_of_the_global_batch_where_no_line_prints_a_rate():
    columns = {"step": [0, 1, 2], "order": [0, 1, 2], "dur_ns": [4 * S, 2 * S, 2 * S], "source": ["a"] * 3}
    facts = {"model": "llama3.1-8b", "chip": "v6e", "global_batch": 512, "sequence_length": 8192, "chips": 256}
    told = ask(columns, facts)
    assert told.tokens_per_s_per_chip == pytest.approx(TOKENS / 2)
    assert told.tflops_per_s_per_chip == pytest.approx(TOKENS * EXACT / 2 / 1e12)
    for missing in ("global_batch", "sequence_length", "chips"):
        with pytest.raises(QuestionError, match="how many FLOPs or tokens"):
            ask(columns, {k: v for k, v in facts.items() if k != missing})


# The bundled run ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    run = bundled_runs.bundled(tmp_path_factory, "training")
    return mfu.analyze(run.tables, run.manifest.facts, parse_options(mfu.OPTIONS, {}))


def test_the_bundled_run_against_its_truth(bundled):
    """Useful FLOPs by the program's own dimensions over the times by the record of process 0, at the measured peak."""
    truth = json.loads((REFERENCE.parent / "training.truth.json").read_text())
    peak = truth["peak"]["flops_per_s_per_chip"]
    weights = 2 * (4 * 256 * 256 + 2 * 256 * 1024) + 256 * 256
    tokens = 3 * 128
    per_token = 6 * weights + 2 * 12 * 256 * 128 / 2
    assert bundled.flops_per_token == per_token
    steps = sorted((s for s in truth["steps"] if s[1] == 0), key=lambda s: s[3])
    first = {a: min(s[2] for s in steps if s[0] == a) for a in (0, 1, 2)}
    kept = [s for s in steps if not any(t[0] > s[0] and first[t[0]] <= s[2] for t in steps)]
    assert len(kept) == 121
    whole = (steps[-1][4] - steps[0][3]) / 1e9
    assert bundled.average == pytest.approx(121 * tokens * per_token / whole / peak, rel=0.005)
    took = {(s[0], s[2]): (s[4] - s[3]) / 1e9 for s in steps if s[4]}  # a killed step has no end
    quick = [k for k in took if k[1] not in (20, 40, 60, 80, 100) and k[1] != first[k[0]]]  # a save follows those
    rows = bundled.rows.set_index(["attempt", "step"])
    ours = [rows.loc[k, "mfu"] for k in quick if np.isfinite(rows.loc[k, "mfu"])]
    true = [tokens * per_token / took[k] / peak for k in quick if np.isfinite(rows.loc[k, "mfu"])]
    assert np.median(np.array(ours) / np.array(true)) == pytest.approx(1, abs=0.01)
    assert bundled.best == pytest.approx(max(true), rel=0.03)


def test_the_bundled_run_recomputes_nothing_and_says_what_it_lacks(bundled):
    assert bundled.hfu == bundled.mfu and bundled.hfu_basis == "derived"
    assert bundled.emfu is None and any("no BF16 peak" in n for n in bundled.notes)
    assert bundled.average < bundled.mfu < bundled.best
    assert bundled.to_dict()["printed_convention"] == "causal"


def test_averages_over_time_give_back_the_totals():
    """Steps of unequal work and speed: a rate times the time it is an average over is what was done in that time."""
    seconds, work = [30.0, 2.0, 4.0, 8.0, 2.0], [1.0, 1.0, 3.0, 2.0, 0.5]
    columns = lines(seconds, tokens=None, per_token=None, start_s=[0, 30, 40, 50, 60])
    columns["model_flops_per_chip"] = [w * 1e15 for w in work]
    columns["tokens_per_s_per_chip"] = [w * 1e4 / s for w, s in zip(work, seconds, strict=True)]
    result = ask(columns, {"chip": "TPU v6e"}, convention="job")
    usual_s, usual_work = sum(seconds[1:]), sum(work[1:])
    assert result.tflops_per_s_per_chip * usual_s == pytest.approx(usual_work * 1e3)
    assert result.tokens_per_s_per_chip * usual_s == pytest.approx(usual_work * 1e4)
    assert result.mfu * usual_s * 918e12 == pytest.approx(usual_work * 1e15)
    assert result.wall_s == 62
    assert result.average * 62 * 918e12 == pytest.approx(sum(work) * 1e15)
    assert result.best == pytest.approx(max(w / s for w, s in zip(work[1:], seconds[1:], strict=True)) * 1e15 / 918e12)


def test_a_step_that_hung_is_no_usual_step_but_its_time_is_in_the_average():
    seconds = [2.0] * 20 + [3600.0] + [2.0] * 20
    result = ask(lines(seconds))
    assert result.mfu == pytest.approx(TOKENS * EXACT / 2 / 918e12, rel=1e-4)
    assert result.average == pytest.approx(41 * TOKENS * EXACT / sum(seconds) / 918e12, rel=1e-3)
    assert any("Step 20 took 1 h" in note for note in result.notes)
