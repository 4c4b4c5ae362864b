"""Collectives that a profile shows and NCCL's Inspector timed as well count once."""

import pytest

from analyzers.ranks import collectives
from analyzers.ranks.meetings import meetings
from analyzers.ranks.waits import waits
from collectors.ingest import ingest
from runs.store import Store
from runs.tables import MemoryTables
from tests.collectors.kineto_traces import collective, launch, step, trace
from tests.collectors.test_nccl_inspector import HEADER, US, lines, operation, record, traced

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000, "computeMajor": 9, "numSms": 132}
STEPS = 3


def profile() -> bytes:
    events = [step(n, 1000 * n, 990) for n in range(STEPS)]
    for n in range(STEPS):
        events += [launch(1000 * n + 10, 2, n + 1), collective("allreduce", 1000 * n + 100, 500, n + 1)]
    told = {"backend": "nccl", "rank": 0, "world_size": 2}
    return trace(events, deviceProperties=[H100], distributedInfo=told)


def log(verbose: bool | list[bool] = True) -> str:
    """`verbose`: whether kernels are traced, of all or of each."""
    header = {**HEADER, "rank": 0, "n_ranks": 2}
    told = verbose if isinstance(verbose, list) else [verbose] * STEPS
    each = (traced(US + 1000 * n) if whether else {} for n, whether in enumerate(told))
    told = [operation("Broadcast", size=2048, micros=500, sn=n, **more) for n, more in enumerate(each)]
    return lines(*(record(one, header=header) for one in told))


@pytest.fixture
def asked(tmp_path):
    def ask(**files):
        folder = tmp_path / "-".join(files)
        folder.mkdir()
        for name, content in files.items():
            ending = ".json" if isinstance(content, bytes) else "-pid1.log"
            (folder / f"{name}{ending}").write_bytes(content if isinstance(content, bytes) else content.encode())
        store = Store(tmp_path / "store")
        run = store.get(ingest([folder], store).run_id)
        assert run is not None
        return run.tables, collectives.analyze(run.tables, run.manifest.facts, {})

    return ask


@pytest.mark.parametrize("verbose", [True, False])
def test_those_of_the_profile_count_and_it_is_said_that_others_do_not(asked, verbose):
    _, alone = asked(trace_rank_0=profile())
    tables, both = asked(trace_rank_0=profile(), node=log(verbose))
    assert both.totals == alone.totals and both.totals["count"] == STEPS and list(both.rows["kind"]) == ["all-reduce"]
    assert not any("Inspector" in note for note in alone.notes)
    assert [note for note in both.notes if "Without 3 operations that NCCL's Inspector timed" in note]
    assert len(waits(tables).rows) == len(meetings(tables).rank) == STEPS and len(meetings(tables).ranks) == 1


def test_a_log_alone_counts(asked):
    tables, answer = asked(node=log())
    assert answer.totals["count"] == STEPS == len(meetings(tables).rank)
    assert not any("Without" in note for note in answer.notes)


@pytest.mark.parametrize("verbose", [True, False, [True, False, True]])
def test_what_was_computed_beside_those_of_a_log_alone_is_not_known(asked, verbose):
    _, answer = asked(node=log(verbose))
    assert answer.totals["count"] == STEPS and answer.totals["total_s"] == pytest.approx(STEPS * 500e-6)
    assert answer.totals["uncovered_s"] is None and answer.rows["uncovered_s"].isna().all()
    words = f"What was computed beside {STEPS} executions is not known: no profile tells of their devices."
    assert (words in answer.notes) == (verbose is not False)
    assert any("what was computed beside them is not known" in note for note in answer.notes) == (verbose is False)


def test_those_without_a_start_do_not_count_beside_a_profile(asked):
    _, both = asked(trace_rank_0=profile(), node=log([True, False, True]))
    assert both.totals["count"] == STEPS and both.totals["uncovered_s"] == both.totals["total_s"]
    assert not any("What was computed beside" in note for note in both.notes)


@pytest.mark.parametrize("gap", ["start_ns", "end_ns"])
def test_a_profile_without_times_leaves_the_log_to_count(gap):
    rows = {
        "capture": [0, None, None],
        "host": ["a", "n-pid1", "n-pid1"],
        "kind": ["all-reduce"] * 3,
        "op": ["allreduce", "nccl:AllReduce w", "nccl:AllReduce w"],
        "start_ns": [10, 10, 20],
        "end_ns": [15, 15, 25],
    }
    rows[gap] = [None, *rows[gap][1:]]
    assert len(meetings(MemoryTables({"collectives": rows})).rank) == 2


def test_rows_of_other_sources_without_a_capture_count_beside_profiles():
    rows = {
        "capture": [0, None, None, None],
        "host": ["a", "b", "b", "n-pid1"],
        "kind": ["all-reduce"] * 4,
        "op": ["allreduce", "mine", None, "nccl:AllReduce w"],
        "start_ns": [10, 10, 20, 20],
        "end_ns": [15, 15, 25, 25],
    }
    tables = MemoryTables({"collectives": rows})
    assert len(meetings(tables).rank) == 3 and collectives.analyze(tables, {}, {}).totals["count"] == 3
