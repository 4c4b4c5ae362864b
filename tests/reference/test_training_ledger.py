"""The bundled run, read as any upload would be, against the truth file that no analyzer sees."""

import json
import math
from pathlib import Path

import pytest

from analyzers.time import ledger, steps
from tests.bundled import bundled

FOLDER = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"
TRUTH = json.loads((FOLDER.parent / "training.truth.json").read_text())
CHIPS = 4
CLOSE = 0.10  # what the truth and the ledger may differ by


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def result(run):
    return ledger.analyze(run.tables, run.manifest.facts, {})


def injected(what):
    return [i for i in TRUTH["injections"] if i["what"] == what]


def test_every_account_closes(result):
    def check(account):
        if account.children:
            total = math.fsum(c.chip_seconds for c in account.children)
            assert math.isclose(total, account.chip_seconds, rel_tol=1e-9)
            for child in account.children:
                check(child)

    check(result.ledger.account)
    assert result.ledger.chips == CHIPS


def test_held_time_is_that_of_the_job(result):
    first, last = TRUTH["attempts"][0], TRUTH["attempts"][-1]
    held_s = (last["job_end_ns"] - first["job_start_ns"]) / 1e9
    assert result.ledger.chip_seconds == pytest.approx(CHIPS * held_s, rel=1e-3)


def test_the_killed_processes_cost_their_downtime(result):
    downtime_s = sum(k["downtime_s"] for k in injected("kill"))
    assert result.ledger.amount("infrastructure_recovery") == pytest.approx(CHIPS * downtime_s, rel=CLOSE)


def test_and_the_steps_since_the_last_checkpoint(result):
    wasted_s = sum(k["wasted_span_s"] for k in injected("kill"))
    assert result.ledger.amount("wasted_progress") == pytest.approx(CHIPS * wasted_s, rel=CLOSE)
    assert [i.wasted_steps for i in result.interruptions] == [
        pytest.approx(len(k["wasted_steps"]), abs=1)
        for k in injected("kill")  # and the one under way
    ]
    assert [i.resumed_step for i in result.interruptions] == [k["next_first_step"] for k in injected("kill")]


def test_the_slow_host_is_named_and_costs_what_the_others_waited(result):
    (slow,) = injected("straggler")
    waiting = result.ledger.find("straggler_wait")
    named = [c for c in waiting.children if c.name.startswith("waiting for ")]
    assert [c.name.rpartition("/")[2] for c in named] == [str(slow["process"])]
    assert named[0].chip_seconds == pytest.approx((CHIPS - 1) * slow["total_s"], rel=CLOSE)


def test_the_stalled_input_is_input_wait(result):
    stalled_s = sum(s["total_s"] for s in injected("input_stall"))  # one entry a process
    assert result.ledger.amount("input_wait") == pytest.approx(stalled_s, rel=CLOSE)


def test_cold_caches_cost_more_than_the_warm_one(run, result):
    rows = steps.analyze(run.tables, run.manifest.facts, {}).rows
    first = rows[rows["first"]].set_index("attempt")["dur_s"]
    state = {a["attempt"]: a["cache"] for a in TRUTH["attempts"]}
    assert set(state.values()) == {"cold", "warm"}
    cold, warm = ([first[a] for a, s in state.items() if s == which] for which in ("cold", "warm"))
    assert min(cold) > max(warm)
    compiling = [[c["from_first_step"]["backend_compile_duration_s"] for c in a["compile"]] for a in TRUTH["attempts"]]
    compiled_s = sum(max(processes) for processes in compiling)
    assert result.ledger.amount("program_startup") > CHIPS * compiled_s


def test_little_of_it_is_unknown(result):
    productive = result.ledger.amount("productive")
    assert result.profiled_share > 0.9
    assert result.ledger.amount("unattributed") < 0.1 * productive
    assert result.ledger.amount("useful_maths") > 0


def test_steps_are_all_there(run):
    result = steps.analyze(run.tables, run.manifest.facts, {})
    taken = {s for a, p, s, _, end in TRUTH["steps"] if p == 0 and end is not None}
    assert result.steps == len(taken)
    ends = {(a, s): (start, end) for a, p, s, start, end in TRUTH["steps"] if p == 0 and end is not None}
    assert result.median_step_s == pytest.approx(TRUTH["natural_step"]["median_s"], rel=0.25)
    for row in result.rows[result.rows["kept"]].itertuples():  # the mark is set once the batch is there
        start, end = ends[row.attempt, row.step]
        assert start <= row.start_ns < end


def test_nothing_was_lost_in_reading(run):
    """All that is said is that a glog line names no time zone, once for each attempt's log."""
    assert [w for w in run.manifest.warnings if "no time zone" not in w] == []
    assert len(run.manifest.warnings) == len(TRUTH["attempts"])


def test_the_whole_run_is_small():
    assert sum(p.stat().st_size for p in FOLDER.rglob("*") if p.is_file()) < 15e6
