"""The bundled PyTorch run: a real job on a CPU, held against the record of what was done to it."""

import gzip
import json
import re

import pytest

from analyzers.device import overlap
from analyzers.device.input import OPTIONS as INPUT_OPTIONS
from analyzers.device.input import analyze as input_of
from analyzers.flops import mfu
from analyzers.flops.ran import ran_in_steps
from analyzers.time import ledger
from errors.options import parse_options
from reference.gpu.plan import PLANS, Dims, within
from runs.tables import frame
from tests.bundled import RUNS, bundled

NAME = "pytorch"
LEAK = re.compile(rb"/(home|root|tmp|work|Users|mnt|opt|var|private)/")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, NAME)


@pytest.fixture(scope="module")
def truth():
    return json.loads((RUNS / f"{NAME}.truth.json").read_text())


def done(truth, what, rank):
    """Seconds of what was done to a rank, by step."""
    mine = [i for i in truth["injections"] if i["what"] == what and i["rank"] == rank]
    return {i["step"]: (i["end_ns"] - i["start_ns"]) / 1e9 for i in mine}


def test_it_is_small_and_names_no_machine():
    files = sorted((RUNS / NAME).iterdir())
    assert sum(f.stat().st_size for f in files) < 6_000_000
    for file in files:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert not LEAK.search(raw), (file.name, LEAK.search(raw))


def test_the_plan_is_the_one_that_is_bundled(truth):
    assert truth["plan"] == json.loads(PLANS["torch"].to_json())


def test_steps_are_those_that_were_taken(run, truth):
    steps = frame(run.tables, "steps", ["host", "step", "dur_ns"])
    first, last = truth["plan"]["profiled"]
    for rank in range(truth["plan"]["ranks"]):
        mine = steps[steps["host"] == f"rank {rank}"]
        assert len(mine) == last - first + 1
        told = [(e - s) / 1e9 for r, n, s, e in truth["steps"] if r == rank and first <= n <= last]
        assert mine["dur_ns"].sum() / 1e9 == pytest.approx(sum(told), rel=0.05)  # the profiler's own steps between


def test_flops_of_a_step_are_those_of_the_plan(run, truth):
    """By the shapes that ran; fused attention is counted by its mask, forward and backward."""
    ran = ran_in_steps(run.tables, run.manifest.facts)
    dims = Dims(**truth["plan"]["dims"])
    assert ran is not None
    pairs = dims.batch_size * dims.heads * dims.seq_len**2 / 2
    again = dims.layers * 4 * pairs * dims.head_dim * 0.5  # its gradient takes 2.5 times, not twice
    assert ran.flops.median() == pytest.approx(dims.flops() + again, rel=1e-6)
    answer = mfu.analyze(run.tables, run.manifest.facts, parse_options(mfu.OPTIONS, {}))
    assert answer.convention == mfu.JOB and answer.mfu and 0.05 < answer.mfu < 1


def test_stalls_of_the_input_are_found_in_their_steps(run, truth):
    answer = input_of(run.tables, run.manifest.facts, parse_options(INPUT_OPTIONS, {}))
    rows = frame(run.tables, "lifecycle", ["kind", "host", "start_ns", "end_ns"])
    for rank in range(truth["plan"]["ranks"]):
        mine = rows[(rows["kind"] == "data_loading") & (rows["host"] == f"rank {rank}")]
        long = mine[(mine["end_ns"] - mine["start_ns"]) > 0.5e9 * truth["plan"]["stall_s"]]
        told = done(truth, "stall", rank)
        assert len(long) == len(told)
        assert (long["end_ns"] - long["start_ns"]).sum() / 1e9 == pytest.approx(sum(told.values()), rel=0.1)
    planted = sum(sum(done(truth, "stall", rank).values()) for rank in range(truth["plan"]["ranks"]))
    assert answer.waited_s == pytest.approx(planted, rel=0.1)


def test_the_device_is_idle_where_small_operations_were_launched(run, truth):
    """The CPU computes hardly anything in them; the framework runs between."""
    answer = overlap.analyze(run.tables, run.manifest.facts, parse_options(overlap.OPTIONS, {}))
    rows = answer.steps.set_index("step")
    small = [s for s in rows.index if within(s, tuple(truth["plan"]["launch_bound"]))]
    harm = [tuple(truth["plan"][k]) for k in ("launch_bound", "stalled", "straggler")]
    plain = [s for s in rows.index if not any(within(s, steps) for steps in harm)]
    planted = sum(sum(done(truth, "small_calls", r).values()) for r in (0, 1)) / 2 / len(small)
    more = rows.loc[small, "idle_s"].mean() - rows.loc[plain, "idle_s"].median()
    assert 0.4 * planted < more < 1.5 * planted


def test_the_late_rank_kept_the_other_waiting(run, truth):
    """Told by the ledger, account by account, and by no step that was not hurt."""
    answer = ledger.analyze(run.tables, run.manifest.facts, parse_options(ledger.OPTIONS, {}))
    late = truth["plan"]["late_rank"]
    waited = next(a for name, a in _accounts(answer.ledger.account) if name == f"waiting for rank {late}")
    planted = sum(done(truth, "late", late).values())  # one other rank waits as long as this one is late
    assert planted * 0.8 < waited < planted * 1.6


def _accounts(account):
    yield account.name, account.chip_seconds
    for child in account.children:
        yield from _accounts(child)
