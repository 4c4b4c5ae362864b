"""The made trace of the benchmark is one that the reader reads whole, and that tells what it was made to tell."""

import pytest

from analyzers.device import overlap
from analyzers.device.launches import launches
from benchmarks import kineto_answers, kineto_trace
from benchmarks.kineto_ingest import ALL, medians_of
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """How many events the trace holds, and its tables."""
    folder = tmp_path_factory.mktemp("made")
    path, store = folder / "rank0.pt.trace.json", Store(folder / "store")
    events = kineto_trace.write(path, 3_000_000)
    return events, store.get(ingest([path], store).run_id)


def test_the_made_trace_is_read_whole(made):
    events, run = made
    arrows = run.tables.rows("launches") - run.tables.rows("collectives")
    assert run.tables.rows("op_events") == events - 2 * arrows
    assert run.tables.rows("steps") > 1
    result = launches.analyze(run.tables, {}, parse_options(launches.OPTIONS, {}))
    assert result.totals["idle_s"] > 0
    assert result.devices["told_share"].tolist() == [1.0]


def test_the_five_answers_are_what_the_questions_tell(made):
    tables = made[1].tables
    told = overlap.analyze(tables, {}, parse_options(overlap.OPTIONS, {"window": "operations"})).devices.iloc[0]
    (row,) = kineto_answers.temporal_breakdown(tables).to_dict("records")
    for name, seconds in (("idle", told.idle_s), ("compute", told.compute_s), ("kernel", told.window_s)):
        assert row[f"{name}_time(us)"] == pytest.approx(1e6 * seconds)
    (share,) = kineto_answers.comm_comp_overlap(tables)["comp_comm_overlap_pctg"]
    assert share == pytest.approx(100 * told.overlap_share, abs=0.01)
    kinds, kernels = kineto_answers.gpu_kernel_breakdown(tables)
    assert kinds["sum"].sum() == pytest.approx(1e6 * (told.compute_s + told.exposed_s))
    events = tables.arrow("op_events", ["dur_ps"], [("device", ">=", 0)])["dur_ps"].to_numpy()
    assert kernels["sum"].sum() == pytest.approx(events.sum() / 1e6, rel=1e-3)  # whole nanoseconds
    assert len(kernels) == len({kernel for _, kernel, *_ in kineto_trace.OPERATORS}) + 1


def test_idle_causes_and_queues_are_those_of_the_streams(made):
    tables = made[1].tables
    told = launches.analyze(tables, {}, parse_options(launches.OPTIONS, {})).streams.set_index("line")
    idle = kineto_answers.idle_time_breakdown(tables).set_index(["stream", "idle_category"])["idle_time"]
    queues = kineto_answers.queue_length_summary(tables).set_index("stream")
    for line, row in told.iterrows():
        for kind in ("host_wait", "kernel_wait", "other"):
            assert idle[line, kind] == pytest.approx(1e6 * row[f"{kind}_s"])
        queue = queues.loc[line]
        assert (queue["mean"], queue["50%"], queue["max"]) == (row.queue_mean, row.queue_median, row.queue_max)


def test_the_median_of_all_answers_is_that_of_whole_rounds():
    rounds = [
        {"a": (1.0, 1.0), "b": (5.0, 2.0)},
        {"a": (2.0, 3.0), "b": (1.0, 1.0)},
        {"a": (9.0, 2.0), "b": (9.0, 9.0)},
    ]
    assert medians_of(rounds) == {"a": (2.0, 2.0), "b": (5.0, 2.0), ALL: (6.0, 4.0)}


def test_the_same_bytes_for_the_same_numbers(tmp_path):
    for name in "ab":
        kineto_trace.write(tmp_path / name, 100_000)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
