"""The training ledger against worlds whose history is known."""

import contextlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.time import ledger
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.worlds import EPOCH, MS, World

PEAK = {"peak_flops_per_s": 100e12, "chips": 4}
S = 1_000_000_000


def ask(tables, **facts):
    return ledger.analyze(tables, facts_of({**PEAK, **facts}), {})


def closes(account):
    if account.children:
        total = math.fsum(c.chip_seconds for c in account.children)
        assert math.isclose(total, account.chip_seconds, rel_tol=1e-9)
        for child in account.children:
            closes(child)


def test_every_use_of_a_step_is_found_in_its_amount():
    world = World(steps=20, extra_ms={(2, n): 80.0 for n in range(5, 15)}, stall_ms={17: 500.0})
    result = ask(world.tables())
    book = result.ledger
    closes(book.account)
    # step 0 is the first of its segment, and as long as the others: nothing of it is start-up
    assert book.chip_seconds == pytest.approx(4 * (world.end - EPOCH) / S)
    assert book.amount("exposed_communication") == pytest.approx(4 * 20 * 0.010)
    assert book.amount("straggler_wait") == pytest.approx(3 * 10 * 0.080)
    assert book.amount("waiting for host 2") == pytest.approx(3 * 10 * 0.080)
    assert book.amount("input_wait") == pytest.approx(4 * (20 * 0.002 + 0.5))
    assert book.amount("device_idle") == pytest.approx(4 * 20 * 0.005 + 10 * 0.080)  # the slow host's own chip idles
    assert book.amount("useful_maths") == pytest.approx(4 * 20 * 3e12 / 100e12)
    assert book.amount("below_roofline") == pytest.approx(4 * 20 * (0.060 - 0.030))
    assert book.amount("accelerator_initialization") == pytest.approx(4 * 8)
    assert book.amount("other") == pytest.approx(4 * 2)
    assert book.amount("unattributed") == 0
    assert book.useful_flops == pytest.approx(4 * 20 * 3e12)
    assert result.profiled_share == pytest.approx(1)


def test_recomputation_is_told_apart_from_slow_computing():
    world = World(steps=20, executed_flops=4e12, remat_share=0.25)
    book = ask(world.tables()).ledger
    assert book.amount("useful_maths") == pytest.approx(4 * 20 * 0.030)  # the job says 3 TFLOP a step; 100 TFLOP/s
    assert book.amount("recomputation") == pytest.approx(4 * 20 * 0.010)
    assert book.amount("below_roofline") == pytest.approx(4 * 20 * 0.020)
    closes(book.account)


def test_without_a_word_on_model_flops_those_executed_once_are_taken():
    world = World(steps=20, executed_flops=4e12, remat_share=0.25)
    book = ask(world.tables(goodput=False)).ledger
    assert book.amount("useful_maths") == pytest.approx(4 * 20 * 0.030)
    assert book.amount("recomputation") == pytest.approx(4 * 20 * 0.010)


def test_recomputation_beyond_the_time_computed_is_cut_off():
    book = ask(World(steps=20, executed_flops=40e12, remat_share=0.9).tables()).ledger
    assert book.amount("recomputation") == pytest.approx(4 * 20 * 0.030)
    assert book.amount("below_roofline") == 0
    closes(book.account)


def test_padding_is_the_flops_that_tiles_add_at_peak():
    # 4,096 x 64 x 4,096 on a 128-wide unit: the contracted 64 is filled up to 128, so each useful FLOP is done twice
    product = {"m": [4096], "k": [64], "n": [4096], "batch": [1], "count": [1], "op": ["dot"]}
    useful = 2 * 4096 * 64 * 4096
    world = World(steps=20, executed_flops=4 * useful, matmuls=product, flops_per_step=useful)
    result = ledger.analyze(world.tables(), facts_of({"chip": "v5e", "peak_flops_per_s": 1e12}), {})
    assert result.ledger.amount("padding") == pytest.approx(4 * 20 * useful / 1e12)
    assert result.ledger.amount("useful_maths") == pytest.approx(4 * 20 * useful / 1e12)
    assert result.ledger.amount("below_roofline") == pytest.approx(4 * 20 * (0.060 - 2 * useful / 1e12))
    assert any("Padding is modelled" in n for n in result.notes)
    assert result.ledger.find("padding").basis == "modelled" and result.ledger.account.basis == "derived"
    closes(result.ledger.account)
    unknown = ledger.analyze(world.tables(), facts_of({"peak_flops_per_s": 1e12}), {})
    assert unknown.ledger.amount("padding") == 0  # no chip, so no matrix unit is known


def test_waits_in_a_captures_first_step_are_not_booked_as_communication():
    """Host 2 is 80 ms late in each of four steps; the transfer takes 10 ms. Of the first step nobody knows."""
    result = ask(World(steps=4, extra_ms={(2, n): 80.0 for n in range(4)}).tables(goodput=False))
    book = result.ledger
    assert book.amount("communication_or_wait") == pytest.approx(3 * 0.080)
    assert book.find("communication_or_wait").basis == "unattributed"
    assert book.amount("straggler_wait") == pytest.approx(3 * 3 * 0.080)
    assert book.amount("exposed_communication") == pytest.approx(4 * 4 * 0.010)
    closes(book.account)


def test_what_is_waited_for_ranks_without_a_profile_is_not_known_and_never_communication():
    world = World(steps=4, profiled=(0, 1), extra_ms={(2, n): 80.0 for n in range(4)})
    result = ask(world.tables(goodput=False))
    assert result.ledger.amount("exposed_communication") == 0
    assert result.ledger.amount("communication_or_wait") == pytest.approx(2 * 4 * 0.090)
    assert any("without a profile is not known" in note for note in result.notes)
    everyone = ask(World(steps=4).tables())
    assert not any("without a profile" in note for note in everyone.notes)


def test_copies_that_nothing_covers_are_told_from_computing_and_from_idling():
    # 10 ms of computing, 20 ms of copying of which 5 ms run under computing, then 10 ms of nothing; all in ps
    ops = {
        "capture": [0, 0],
        "op_id": [0, 1],
        "host": ["a"] * 2,
        "device": [0] * 2,
        "role": ["compute", "async"],
        "category": ["fusion", "copy"],
    }
    events = {
        "capture": [0, 0],
        "device": [0] * 2,
        "op_id": [0, 1],
        "start_ps": [0, 5 * 10**9],
        "dur_ps": [10 * 10**9, 20 * 10**9],
    }
    captures = {"capture": [0], "host": ["a"], "start_ns": [EPOCH], "stop_ns": [EPOCH + 35 * MS]}
    book = ask(MemoryTables({"ops": ops, "op_events": events, "captures": captures})).ledger
    assert book.amount("exposed_copies") == pytest.approx(0.015)
    assert book.amount("compute_unsplit") == pytest.approx(0.010)
    assert book.amount("device_idle") == pytest.approx(0.010)


@given(st.lists(st.integers(-3600 * S, 3600 * S), min_size=4, max_size=4))
@settings(max_examples=15, deadline=None)
def test_hosts_with_wrong_clocks_change_no_account(clocks):
    world = {"steps": 20, "extra_ms": {(2, n): 80.0 for n in range(5, 15)}}
    told = ask(World(**world, clock_ns=tuple(clocks)).tables()).ledger
    true = ask(World(**world).tables()).ledger
    for path, account in true.account.walk():
        assert told.amount(path[-1]) == pytest.approx(account.chip_seconds, abs=1e-6), path


def test_what_no_profile_covers_is_unattributed_beyond_its_useful_maths():
    book = ask(World(steps=20, profiled=(0, 1)).tables()).ledger
    kept = 4 * 20 * 0.077
    assert book.amount("productive") == pytest.approx(kept)
    assert book.amount("not_profiled") == pytest.approx(kept / 2 - 2 * 20 * 0.03)
    assert book.amount("useful_maths") == pytest.approx(4 * 20 * 0.03)


def test_a_profile_alone_is_taken_as_kept_and_says_so():
    world = World(steps=10)
    result = ledger.analyze(world.tables(goodput=False), facts_of({}), {})
    assert result.ledger.chips == 4
    assert result.ledger.chip_seconds == pytest.approx(4 * 10 * 0.077)
    assert result.ledger.amount("compute_unsplit") == pytest.approx(4 * 10 * 0.060)
    assert result.ledger.useful_flops is None
    assert any("Only a profile" in n for n in result.notes)
    assert any("peak is not known" in n for n in result.notes)


def test_a_profile_of_half_the_chips_leaves_the_other_half_unknown():
    world = World(steps=10, profiled=(0, 1))
    result = ledger.analyze(world.tables(goodput=False), facts_of({"chips": 4}), {})
    assert result.ledger.chip_seconds == pytest.approx(4 * 10 * 0.077)
    assert result.ledger.amount("not_profiled") == pytest.approx(2 * 10 * 0.077)
    assert result.profiled_share == pytest.approx(0.5)
    assert any("2 of 4 chips were profiled" in n for n in result.notes)


def test_a_log_without_times_is_laid_over_the_profile_of_some_of_its_steps():
    world = World(steps=10, first_step=5)
    lines = {
        "step": range(100),
        "dur_ns": [77 * MS] * 100,
        "source": ["log"] * 100,
        "order": range(100),
        "model_flops_per_chip": [3e12] * 100,
    }
    result = ask(world.tables(goodput=False, lines=lines))
    assert result.ledger.chip_seconds == pytest.approx(4 * 100 * 0.077)
    assert result.ledger.amount("exposed_communication") == pytest.approx(4 * 10 * 0.010)
    assert result.ledger.amount("useful_maths") == pytest.approx(4 * 100 * 0.030)
    assert result.ledger.amount("not_profiled") == pytest.approx(4 * 90 * 0.047)
    assert result.profiled_share == pytest.approx(0.1)


def test_an_impossible_peak_is_capped_and_named():
    result = ask(World(steps=10, flops_per_step=9e12).tables())
    assert result.ledger.amount("below_roofline") == 0
    assert result.ledger.amount("useful_maths") == pytest.approx(4 * 10 * 0.060)
    assert any("too low" in n for n in result.notes)
    closes(result.ledger.account)


def goodput_job(attempts, *, ended=True, lifecycle=()):
    """Tables from (job start, first step's start, step numbers) with 1 s steps; times in s after the epoch."""
    steps = [(n, first + i) for _, first, numbers in attempts for i, n in enumerate(numbers)]
    life = [("job", start, None, None) for start, _, _ in attempts] + list(lifecycle)
    if ended:
        last = max(t for _, t in steps) + 1
        life[len(attempts) - 1] = ("job", attempts[-1][0], last, None)
    return MemoryTables(
        {
            "steps": {"step": [n for n, _ in steps], "start_ns": [EPOCH + int(t * S) for _, t in steps]},
            "lifecycle": {
                "kind": [k for k, *_ in life],
                "start_ns": [EPOCH + int(a * S) for _, a, _, _ in life],
                "end_ns": [None if b is None else EPOCH + int(b * S) for _, _, b, _ in life],
                "detail": [d for *_, d in life],
            },
        }
    )


def test_a_crash_costs_its_lost_steps_and_its_downtime():
    tables = goodput_job([(0, 10, range(20)), (100, 110, range(15, 40))])
    result = ask(tables, chips=2)
    book = result.ledger
    assert book.amount("wasted_progress") == 2 * 4  # steps 15 to 18; the last was under way when it died
    assert book.amount("infrastructure_recovery") == 2 * (100 - 29)
    assert book.amount("productive") == 2 * (15 + 25)
    (lost,) = result.interruptions
    assert (lost.last_step, lost.resumed_step, lost.wasted_steps) == (19, 15, 5)


def test_a_restart_that_repeats_no_step_is_seen_all_the_same():
    book = ask(goodput_job([(0, 10, range(10)), (200, 210, range(10, 20))]), chips=1).ledger
    assert book.amount("infrastructure_recovery") == 200 - 20
    assert book.amount("productive") == 20
    assert book.amount("wasted_progress") == 0


def test_a_job_run_again_after_it_ended_is_not_charged_for_the_time_between():
    life = [("job", 0, 30, None)]
    tables = goodput_job([(0, 10, range(20)), (5000, 5010, range(20, 30))], lifecycle=life)
    result = ask(tables, chips=1)
    assert result.ledger.chip_seconds == pytest.approx(30 + 20)
    assert any("not counted" in n for n in result.notes)


def test_compilation_is_the_first_step_beyond_a_usual_one():
    tables = MemoryTables(
        {
            "steps": {"step": [0, 1, 2, 3], "start_ns": [EPOCH, EPOCH + 30 * S, EPOCH + 32 * S, EPOCH + 34 * S]},
            "lifecycle": {"kind": ["job"], "start_ns": [EPOCH], "end_ns": [EPOCH + 36 * S]},
        }
    )
    book = ask(tables, chips=1).ledger
    assert book.amount("program_startup") == 28
    assert book.amount("productive") == 8


def test_events_inside_steps_have_their_own_accounts_and_overlap_is_charged_once():
    life = [
        ("checkpoint_save", 15, 17, None),
        ("custom", 16, 20, "sdc_check"),
        ("custom", 19, 22, "eval"),
        ("custom", 25, None, "never ended"),
        ("training_preparation", 2, None, None),
    ]
    result = ask(goodput_job([(0, 10, range(20))], lifecycle=life), chips=1)
    book = result.ledger
    assert book.amount("checkpoint_save") == 2
    assert book.amount("sdc_check") == 3
    assert book.amount("eval") == 2
    assert book.amount("training_preparation") == 8
    assert book.amount("never ended") == 0
    assert any("2 recorded intervals have no end" in n for n in result.notes)
    assert book.chip_seconds == pytest.approx(30)


def test_without_a_profile_a_stall_is_seen_where_it_made_a_step_longer():
    at = [EPOCH + int(t * S) for t in (0, 1, 2, 3, 9, 10)]  # step 3 takes 6 s instead of 1
    loads = [(0.1, 0.3), (1.1, 1.3), (2.1, 2.3), (3.1, 8.2), (9.1, 9.3)]
    tables = MemoryTables(
        {
            "steps": {"step": range(6), "start_ns": at},
            "lifecycle": {
                "kind": ["job", *["data_loading"] * 5],
                "start_ns": [EPOCH, *(EPOCH + int(a * S) for a, _ in loads)],
                "end_ns": [EPOCH + 11 * S, *(EPOCH + int(b * S) for _, b in loads)],
            },
        }
    )
    assert ask(tables, chips=1).ledger.amount("input_wait") == pytest.approx(5.1 - 0.2)


def test_step_lines_alone_count_only_the_time_they_tell():
    tables = MemoryTables(
        {
            "steps": {
                "step": [0, 1, 2, 1, 2],
                "attempt": [0, 0, 0, 1, 1],
                "dur_ns": [2 * S] * 5,
                "order": range(5),
                "source": ["a.log"] * 5,
                "model_flops_per_chip": [100e12] * 5,
            }
        }
    )
    book = ask(tables, chips=8).ledger
    assert book.chip_seconds == 8 * 10
    assert book.amount("wasted_progress") == 8 * 4
    assert book.amount("useful_maths") == pytest.approx(8 * 3)
    assert book.amount("not_profiled") == pytest.approx(8 * 3)


def test_price_turns_every_account_into_dollars():
    result = ledger.analyze(World(steps=5).tables(), facts_of(PEAK), {"usd_per_chip_hour": 3.6})
    assert result.ledger.usd == pytest.approx(result.ledger.chip_seconds / 1000)
    with pytest.raises(QuestionError, match="price"):
        ledger.analyze(World(steps=5).tables(), facts_of(PEAK), {"usd_per_chip_hour": -1.0})


def test_an_empty_run_says_what_would_fill_it():
    with pytest.raises(QuestionError, match="Add a training log"):
        ask(MemoryTables({}))


times = st.none() | st.integers(EPOCH, EPOCH + 100 * S)
kinds = st.sampled_from(["job", "custom", "checkpoint_save", "data_loading", "training_preparation", "slices", "eval"])


@given(
    st.lists(st.tuples(kinds, times, times, st.sampled_from([None, "x", "y"])), max_size=12),
    st.lists(st.tuples(st.integers(-1, 6), times, st.none() | st.integers(0, 20 * S)), min_size=1, max_size=12),
)
@settings(max_examples=100, deadline=None)
def test_no_input_breaks_the_laws(life, steps):
    tables = MemoryTables(
        {
            "lifecycle": {
                "kind": [x[0] for x in life],
                "start_ns": [x[1] for x in life],
                "end_ns": [x[2] for x in life],
                "detail": [x[3] for x in life],
            },
            "steps": {
                "step": [x[0] for x in steps],
                "start_ns": [x[1] for x in steps],
                "dur_ns": [x[2] for x in steps],
                "source": ["log"] * len(steps),
                "order": range(len(steps)),
            },
        }
    )
    with contextlib.suppress(QuestionError):
        closes(ask(tables).ledger.account)


@pytest.mark.parametrize(
    "untold",
    [
        ("aten::conv2d", "convolution", None),
        ("flash_attn::_flash_attn_varlen_forward", "custom-call", None),
        ("splash_mha.3", "custom-call", 0.0),  # a compiler looks into none, and counts nothing
    ],
)
def test_products_of_which_nobody_tells_the_flops_are_not_slow_computing(untold):
    step = {"capture": [0], "host": ["vm"], "step": [0], "start_ns": [0], "dur_ns": [1_000_000_000], "source": ["x"]}
    ops = [("aten::mm", "matmul", 1e12), ("aten::mm", "matmul", None), untold]
    tables = MemoryTables(
        {
            "captures": {"capture": [0], "host": ["vm"], "start_ns": [0], "stop_ns": [1_000_000_000]},
            "steps": step,
            "ops": {
                "capture": [0] * 3,
                "op_id": [0, 1, 2],
                "host": ["vm"] * 3,
                "device": [0] * 3,
                "role": ["compute"] * 3,
                "op": [name for name, *_ in ops],
                "category": [category for _, category, _ in ops],
                "flops": [flops for *_, flops in ops],
            },
            "op_events": {
                "capture": [0] * 3,
                "device": [0] * 3,
                "op_id": [0, 1, 2],
                "start_ps": [0, 2 * 10**11, 3 * 10**11],
                "dur_ps": [2 * 10**11, 10**11, 4 * 10**11],
            },
        }
    )
    book = ask(tables, peak_flops_per_s=10e12, chips=1).ledger
    told = {a.name: round(a.chip_seconds, 9) for _, a in book.account.walk() if not a.children and a.chip_seconds}
    # the second kernel of aten::mm shares in the FLOPs of the first; of the other operation nothing is known
    assert told == {"useful_maths": 0.1, "below_roofline": 0.2, "compute_unsplit": 0.4, "device_idle": 0.3}
