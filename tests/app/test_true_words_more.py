"""Sentences at their edges: ties, one of a kind, nothing, more unknown than known, a change the other way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyzers.device import input, roofline
from analyzers.ranks import collectives, stragglers
from analyzers.serving import kv_cache as kv
from analyzers.time.ledger import LedgerResult
from app import topologies
from app.questions.collectives import words as collectives_words
from app.questions.input import words as input_words
from app.questions.kv_cache import words as kv_words
from app.questions.ledger import words as ledger_words
from app.questions.roofline import words as roofline_words
from app.questions.speculation import words as speculation_words
from app.questions.stragglers import words as straggler_words
from app.topologies.compare_words import compared
from errors import format as fmt
from errors.options import parse_options
from runs.ledger import Account, Ledger
from runs.run import facts_of
from runs.tables import MemoryTables
from simulators.topology.search import HopCounts
from tests.analyzers.device_rows import collective_rows
from tests.analyzers.op_tables import PEAK, V5P, ask_with
from tests.analyzers.worlds import World
from tests.app import ledgers


def ask(question, tables, facts=None, **options):
    return question.analyze(tables, facts_of(facts or {}), parse_options(question.OPTIONS, options))


def ledger(dark_hours):
    kept = [ledgers.leaf("useful_maths", 50), ledgers.leaf("not_profiled", dark_hours, "unattributed")]
    parts = [Account.total("productive", kept), Account.total("badput", [ledgers.leaf("checkpoint_save", 12)])]
    held = Ledger(chips=1, account=Account.total("held", parts))
    return LedgerResult(ledger=held, start_ns=None, end_ns=None, interruptions=(), profiled_share=0.0, notes=())


@pytest.mark.parametrize(("dark", "said"), [(30, "cost the most of what is known: 13 %"), (6, "cost the most: 18 %")])
def test_what_is_not_known_may_hide_a_larger_loss(dark, said):
    assert f"Saving checkpoints {said}" in ledger_words.verdict(ledger(dark))


def test_shares_below_nothing_have_a_sign_and_no_minus_nothing():
    assert [fmt.whole_share(s) for s in (-0.031, -0.004, 0.0, 0.004)] == ["−3 %", "0 %", "0 %", "less than 1 %"]
    assert [fmt.whole_share(s) for s in (797.88, -12.5)] == ["79,788 %", "−1,250 %"]


def of_sizes(*seconds):
    """Collectives of two sizes whose durations are these, on one device."""
    rows = [("h", 0, "all-reduce", k, 1000 * (k + 1), round(s * 1e9)) for k, s in enumerate(seconds)]
    return {
        "host": [r[0] for r in rows],
        "device": [r[1] for r in rows],
        "kind": [r[2] for r in rows],
        "op": [f"op.{r[3]}" for r in rows],
        "bytes": [float(r[4]) for r in rows],
        "start_ns": [10**10 * r[3] for r in rows],
        "end_ns": [10**10 * r[3] + r[5] for r in rows],
    }


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((1.0, 0.001), "The largest part, more than 99 %, went into"),
        ((1.0,), "All of it went into"),
        ((0.0, 0.0), None),
    ],
)
def test_all_of_it_is_all_of_it(seconds, said):
    text = collectives_words.verdict(ask(collectives, MemoryTables({"collectives": of_sizes(*seconds)})))
    assert said in text if said else ("part" not in text and "All of" not in text)


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (1, "All of it went into all-to-alls, of 1.00 kB to 50.0 kB."),
        (2, "The largest part, 83 %, went into all-to-alls, of 1.00 kB to 50.0 kB."),
    ],
)
def test_exchanges_of_another_size_each_time_are_the_largest_part_together(kinds, said):
    """50 exchanges of experts of 20 ms each, and one all-reduce of 200 ms, which is the longest row."""
    told = of_sizes(*[0.02] * 50, *[0.2] * (kinds - 1))
    told["kind"][:50] = ["all-to-all"] * 50
    text = collectives_words.verdict(ask(collectives, MemoryTables({"collectives": told})))
    assert said in text and "into all-reduce" not in text and "bus bandwidth" not in text


def test_one_stall_is_once_and_steps_taken_again_are_no_stretch():
    world = World(steps=40, fetch_ms=1.0)
    result = ask(input, world.tables(), {"chips": 4})
    stalls = pd.DataFrame(
        {
            "step": [12],
            "attempt": [0],
            "kept": [True],
            "stalled": [True],
            "extra_s": [2.0],
            "fetch_s": [2.0],
            "dur_s": [3.0],
            "waited_s": [2.0],
        }
    )

    def told(*steps):
        rows = pd.concat([stalls.assign(step=s) for s in steps], ignore_index=True)
        return input_words.verdict(replace(result, verdict="stalls", rows=rows, stall_chip_seconds=8.0))

    assert "but it stalled once: at step 12, 2.00 s longer, 8.00 chip-seconds in all" in told(12)
    assert "it stalls now and then: at step 12, 2 times, 2.00 s longer each" in told(12, 12)
    assert "at steps 12 to 14, 2.00 s longer each" in told(14, 12, 13)
    assert "3 times between steps 12 and 14" in told(12, 12, 14)


def test_arithmetic_that_agrees_is_neither_more_nor_fewer():
    facts = {"model": "llama3.1-8b", "chip": "v6e", "seq": 8192}
    result = ask(kv, MemoryTables({}), facts)
    same = replace(
        result, comparison={"engine_tokens": 5000, "arithmetic_tokens": 5000, "difference": 0.0, "implied_bytes": 0.0}
    )
    assert "The engine found room for 5,000 tokens; arithmetic gives as many." in kv_words.verdict(same).whole


def test_nothing_is_gained_below_nothing():
    dot = {"op": "dot.1", "category": "matmul", "total_ns": 20e6, "self_ns": 20e6, "flops": PEAK * 0.01, "bytes": 1e9}
    result = ask_with(roofline, [dot], V5P)
    faster = roofline_words.verdict(replace(result, device_seconds=1.0, roof_seconds=1.1))
    assert faster.endswith("at the roofs 0 % of it would be gained.")


def test_ranks_late_in_one_step_are_one_or_several():
    alike = [(k, host, 0, "all-reduce", "g", 1000, k, 10) for k, host in enumerate("ab")]
    result = ask(stragglers, MemoryTables(collective_rows(alike)))
    worst = pd.DataFrame(
        {
            "rank": ["1", "2"],
            "host": ["", ""],
            "lag_s": [0.5, 0.2],
            "first_step": [7, 7],
            "last_step": [7, 7],
            "cause": ["unknown"] * 2,
        }
    )
    one = replace(result, verdict="one_step", ranks=worst.head(1), cost_chip_seconds=4.0)
    assert "rank 1 was 500 ms late in step 7" in straggler_words.verdict(one)
    two = replace(one, ranks=worst)
    assert "rank 1 and 1 more were late, up to 500 ms, in step 7" in straggler_words.verdict(two)
    assert straggler_words.verdict(replace(one, verdict="none", apart_s=None)) == "No rank is a straggler."


def test_a_comparison_says_what_grows_and_what_is_alike():
    torus, mesh = (topologies.report(text, (), None) for text in ("torus:4x4", "mesh:4x4"))
    assert "takes 33 % off the longest way and 20 % off the mean" in compared([mesh, torus])[1]
    near = replace(torus, hops=HopCounts(np.array([0, 10, 0, 0, 1]), 0, "made"))  # a longer way, but hardly ever
    even = replace(torus, hops=HopCounts(np.array([0, 0, 0, 11]), 0, "made"))
    assert "takes 25 % off the longest way and adds 136 % to the mean" in compared([near, even])[1]
    assert compared([torus, torus])[-1].endswith("pairs: all carry it alike.")


def test_one_sequence_is_one():
    class Bound:
        @staticmethod
        def caches_bound(draft: float) -> bool:
            return True

    class Result:
        draft, machine, pays, batch, batch_speedup = 4.0, Bound, ((1.0, 1.2),), None, None

    assert speculation_words._batch(Result) == ("On this chip it pays up to about 1 sequence at a time.",)
