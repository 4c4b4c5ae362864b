"""Pages agree: the same name is the same number on each, and none names as the largest what another shows smaller."""

import pytest

from analyzers.device import input, memory
from analyzers.device import operations as ops
from analyzers.flops import flops, mfu, padding
from analyzers.lost import goodput, interruptions
from analyzers.ranks import collectives
from analyzers.time import ledger, steps
from app.questions import QUESTIONS, question
from app.questions.collectives import words as collectives_words
from app.whatif.checkpoint.wording import band
from errors.options import parse_options
from runs.run import FactValue, facts_of
from runs.tables import MemoryTables
from tests.analyzers.device_rows import device_tables
from tests.analyzers.stopped_jobs import Attempt, Job

S = 1_000_000_000
EPOCH = 1_767_571_200 * S


def ask(asked, tables, facts=None, **options):
    given = tables if isinstance(tables, MemoryTables) else MemoryTables(tables)
    return asked.analyze(given, facts_of(facts or {}), parse_options(asked.OPTIONS, options))


def said(asked, tables, facts=None, **options):
    return next(q for q in QUESTIONS if q.analyze is asked.analyze).verdict(ask(asked, tables, facts, **options))


def marked(count, step_s=1.0, **more):
    """Steps whose starts are marked, `step_s` apart, in a job that ends a second after the last began."""
    at = [EPOCH + round(n * step_s * S) for n in range(count)]
    life = {"kind": ["job"], "start_ns": [EPOCH], "end_ns": [at[-1] + round(step_s * S)]}
    return {"steps": {"step": [*range(count)], "start_ns": at, **more}, "lifecycle": life}


def test_the_collective_that_a_program_leads_with_is_the_one_that_needs_most_in_all():
    """One large all-reduce needs 1.5 ms of the links, a hundred small ones 15 ms together."""
    program = {
        "module": ["step"] * 2,
        "op": ["ar.1", "ar.2"],
        "kind": ["all-reduce"] * 2,
        "axis": ["model"] * 2,
        "group_size": [4, 4],
        "bytes": [200e6, 20e6],
        "dtype": ["bf16"] * 2,
        "count": [1, 100],
    }
    facts = {"chip": "v5e", "chips": 4, "parallelism": {"model": 4}}
    for given in (facts, {}):
        assert ask(collectives, {"program_collectives": program}, given).rows["bytes"].tolist() == [20e6, 200e6]
    text = said(collectives, {"program_collectives": program}, facts)
    assert "91 % of it for all-reduce of 20.0 MB over model among 4 ranks." in text


def test_a_group_of_one_is_one_rank():
    program = {
        "module": ["step"],
        "op": ["ar.1"],
        "kind": ["all-reduce"],
        "axis": ["model"],
        "group_size": [1],
        "bytes": [1e6],
        "dtype": ["bf16"],
        "count": [1],
    }
    row = ask(collectives, {"program_collectives": program}).rows.iloc[0].to_dict()
    assert collectives_words.name(row).endswith("among 1 rank")


def test_tokens_and_flops_of_a_usual_step_are_over_the_same_seconds():
    """A log prints 1,000 tokens/s of the half second that it times; marked steps are a second apart: 500 tokens/s."""
    tables = marked(20)
    one = tables["steps"]
    tables["steps"] = {
        "step": one["step"] * 2,
        "start_ns": one["start_ns"] + [None] * 20,
        "dur_ns": [None] * 20 + [S // 2] * 20,
        "tokens_per_s_per_chip": [None] * 20 + [1000.0] * 20,
        "source": ["marks"] * 20 + ["a.log"] * 20,
        "order": [*range(20)] * 2,
    }
    facts = {"model": "llama3.1-8b", "seq": 4096, "chip": "v5p", "chips": 4}
    of_steps, of_mfu = ask(steps, tables, facts), ask(mfu, tables, facts)
    assert of_steps.median_step_s == 1.0
    assert of_steps.tokens_per_s_per_chip == pytest.approx(of_mfu.tokens_per_s_per_chip)
    assert of_mfu.tokens_per_s_per_chip == pytest.approx(19 * 500 / 18.5)  # of the last, no mark tells the end


def test_goodput_and_ledger_name_the_same_largest_loss_also_where_it_is_evaluation():
    """100 s preparing, 200 s of steps, 300 s of evaluation between them, all of a job that took 600 s."""
    at = [100 + n * 10 + (300 if n >= 10 else 0) for n in range(20)]
    tables = {
        "steps": {"step": [*range(20)], "start_ns": [EPOCH + t * S for t in at]},
        "lifecycle": {
            "kind": ["job", "training_preparation", "eval"],
            "start_ns": [EPOCH, EPOCH, EPOCH + 200 * S],
            "end_ns": [EPOCH + 600 * S, EPOCH + 100 * S, EPOCH + 500 * S],
        },
    }
    facts = {"chips": 4, "chip": "v5p"}
    assert "Evaluations cost the most: 50 % (5 min, 0.333 chip-hours)." in said(goodput, tables, facts, rules="exact")
    text = said(ledger, tables, facts)
    assert "Evaluations cost the most: 50 % (0.333 chip-hours)." in text
    assert ask(ledger, tables, facts).ledger.amount("eval") == pytest.approx(300 * 4)


def fetching(recorded):
    """A hundred steps of a second; in the first `recorded` of them, after the first, a fetch of 1 ms."""
    tables = marked(101)
    at = [EPOCH + n * S for n in range(1, recorded + 1)]
    life = tables["lifecycle"]
    life["kind"] += ["data_loading"] * recorded
    life["start_ns"] += at
    life["end_ns"] += [t + S // 1000 for t in at]
    return tables


def test_few_recorded_fetches_do_not_tell_that_the_other_steps_waited_for_none():
    few = ask(input, fetching(10), {"chips": 4})
    assert few.verdict == "unknown" and few.waited_share is None and few.input_bound is None
    text = question("input").verdict(few)
    assert text.endswith("cannot be told: a fetch is recorded in 10 steps of 101 only.") and "0 %" not in text
    most = ask(input, fetching(90), {"chips": 4})
    assert most.verdict == "hidden"
    assert question("input").verdict(most) == "Not bound by its input: a usual fetch takes less than 1 % of a step."


def test_memory_by_formula_is_of_the_chips_that_the_run_held():
    """Nothing tells what 512 chips were for: 1,152 sequences are not laid onto one of them."""
    facts = {"model": "llama3.1-405b", "seq": 8192, "global_batch": 1152}
    shared = ask(memory, marked(3), {**facts, "chips": 512})
    assert (shared.setting["chips"], shared.setting["fsdp"], shared.setting["batch"]) == (512, 512, 2)
    assert "on each of 512 chips" in question("memory").verdict(shared)
    assert any("shared by all 512 devices (FSDP)" in note for note in shared.notes)
    alone = ask(memory, marked(3), facts)
    assert (alone.setting["chips"], alone.setting["batch"]) == (1, 1)
    assert any("Assumed, because nothing tells: one chip and one sequence a device." in note for note in alone.notes)
    asked = ask(memory, marked(3), {**facts, "chips": 512}, tp=8)
    assert asked.setting["chips"] == 8 and asked.setting["fsdp"] == 1


def test_a_job_that_took_its_steps_is_not_told_that_it_does_not_fit():
    facts = {"model": "llama3.1-405b", "seq": 8192, "chip": "h100", "chips": 64, "parallelism": {"data": 8, "model": 8}}
    text = said(memory, marked(3), facts)
    assert "on an H100 SXM: more than there is. The run took its steps all the same" in text
    assert "does not fit" not in text
    assert "it does not fit." in said(memory, marked(3), facts, tp=16)
    assert "it does not fit." in said(memory, {}, facts)


def test_a_model_without_a_name_is_the_runs_and_sentences_begin_large():
    own = {"layers": 2, "d_model": 256, "heads": 4, "d_ff": 1024, "vocab": 1000}
    facts = {"model": own, "seq": 128}
    assert said(memory, {}, facts).startswith("Training the run's model holds")
    assert said(flops, {}, facts).startswith("A token of the run's model costs")
    text = said(padding, {}, {"model": "gpt3-175b", "seq": 2048}, mxu=256).whole
    assert "More than 99 % of the padding is from attention" in text


def test_a_program_for_a_chip_that_is_not_named_has_no_least_time_rather_than_none():
    program = {"outcome": "compiled", "fits": True}
    ops_rows = {
        "op_id": [0],
        "op": ["dot.1"],
        "category": ["matmul"],
        "role": ["compute"],
        "flops": [1e9],
        "bytes": [1e6],
        "count": [1],
    }
    result = ask(ops, {"ops": ops_rows}, program)
    assert "cannot be told: no roof of its chip is known. Ask with --option chip=NAME." in question(
        "operations"
    ).verdict(result)
    assert not any("reached" in note for note in result.notes)
    assert "dot.1 takes 100 %" in said(ops, {"ops": ops_rows}, program, chip="v5p")


def test_what_ended_a_job_for_good_is_not_priced_at_nothing():
    job = Job([Attempt(60, lines=[(3.0, "time_limit", "h7", "error", "CANCELLED DUE TO TIME LIMIT")])], end=False)
    result = ask(interruptions, job.tables(), {"chips": 64})
    assert result.count == 1 and result.rows["kind"].tolist() == ["final"]
    text = question("interruptions").verdict(result)
    assert "it ended the job, and nothing was started after it." in text and "0 %" not in text
    assert "Until it was given up" not in text
    waited = "Watchdog caught collective operation timeout: it ran for 600012 milliseconds before timing out"
    hung = Job([Attempt(60, lines=[(605.0, "collective_timeout", None, "error", waited)])], end=False)
    text = question("interruptions").verdict(ask(interruptions, hung.tables(), {"chips": 64}))
    assert "Until it was given up it took 10.8 chip-hours." in text  # 605 s of 64 chips
    assert "and its last end where a log tells why" in result.notes[0]


def test_the_time_that_mfu_is_averaged_over_is_named():
    facts = {"model": "llama3.1-8b", "seq": 4096, "chip": "v5p", "chips": 4, "global_batch": 4}
    tables = marked(20)
    tables["lifecycle"]["start_ns"] = [EPOCH - 100 * S]
    result = ask(mfu, tables, facts)
    assert "Over the 19.0 s from the first step to the last, restarts and lost" in question("mfu").verdict(result)
    assert result.average == pytest.approx(result.mfu)  # nothing went by without steps


def test_a_log_without_times_beside_a_profile_of_other_steps_is_what_the_ledger_tells_of():
    """Ten steps of 2 s by the log, and a profile of 100 ns whose steps nothing places among them: 20 s were held."""
    lines = {"step": [*range(10)], "dur_ns": [2 * S] * 10, "order": [*range(10)], "source": ["a.log"] * 10}
    tables = device_tables([("h", 0, "compute", "fusion", [(0, 40)])], extra={"steps": lines}, stop_ns=100)
    facts = {"chips": 1, "chip": "v5p"}
    result = ask(ledger, tables, facts)
    assert result.ledger.chip_seconds == pytest.approx(20)
    assert ask(goodput, tables, facts, rules="exact").total_s == pytest.approx(20)
    assert not any("Only a profile was given" in note for note in result.notes)
    text = question("ledger").verdict(result)
    assert "the profile shows none of these steps" in text and "Add its goodput log or its text log" not in text


def test_a_range_whose_ends_print_alike_is_one_number():
    assert band(1e-6, 2e-6) == "< 0.1 %" and band(0.02, 0.03) == "2.00 % to 3.00 %"


def test_more_than_the_peak_is_said_to_be_impossible():
    """Steps of 8,192 tokens a chip in a tenth of the time that the peak allows for them."""
    facts = {"model": "llama3.1-8b", "seq": 4096, "chip": "v5p", "chips": 4, "global_batch": 8}
    result = ask(mfu, marked(20, step_s=0.5), facts)
    assert result.mfu > 1
    text = question("mfu").verdict(result)
    assert text.startswith("Usual steps would turn ") and "which cannot be: they ran in a narrower format" in text
    assert "The best reached" not in text


@pytest.mark.parametrize(("tflops", "false"), [(1500.0, 0), (2000.0, 1)])
def test_steps_and_mfu_find_the_same_steps_impossible(tflops, false):
    """A v6e does 1,836 T a second in 8 bits: a step at 1,500 may be one of those, whatever BF16 peak a trace states."""
    rate = [400.0] * 10 + [tflops]
    tables = device_tables(
        [("h", 0, "compute", "fusion", [(0, 40)])],
        stop_ns=100,
        extra={
            "steps": {
                "step": [*range(11)],
                "dur_ns": [S] * 11,
                "model_flops_per_chip": [r * 1e12 for r in rate],
                "order": [*range(11)],
                "source": ["a.log"] * 11,
            }
        },
    )
    facts = {"chip": "v6e", "chips": 1, "peak_flops_per_s": 918e12}
    measured = {k: FactValue(v, "measured" if k == "peak_flops_per_s" else "declared", "t") for k, v in facts.items()}
    of_steps = steps.analyze(tables, measured, {})
    of_mfu = mfu.analyze(tables, measured, parse_options(mfu.OPTIONS, {}))
    assert int((of_steps.rows["implausible"] != "").sum()) == of_mfu.to_dict()["implausible_steps"] == false
    assert of_steps.tflops_per_s_per_chip == pytest.approx(of_mfu.tflops_per_s_per_chip)


def test_a_profile_beside_a_compiled_program_ran():
    """Of a dump of one program and a profile of another, the operations that were timed are told, as measured."""
    rows = {
        "op_id": [0, 1],
        "op": ["dot.1", "copy.2"],
        "category": ["matmul", "copy"],
        "role": ["compute"] * 2,
        "flops": [1e9, 0.0],
        "bytes": [1e6, 1e6],
        "count": [1, 1],
        "capture": [None, 0],
        "host": [None, "h"],
        "device": [None, 0],
        "self_ns": [None, 5000],
        "total_ns": [None, 5000],
    }
    result = ask(ops, {"ops": rows}, {"outcome": "compiled", "chip": "v5p"})
    assert result.basis == "measured" and result.device_seconds == pytest.approx(5e-6)
    assert result.rows["op"].tolist() == ["copy.2"]
    assert not any("Nothing ran" in note for note in result.notes)
