"""The made trace of the benchmark is one that the reader reads whole, and that tells what it was made to tell."""

from analyzers.device.launches import launches
from benchmarks import kineto_trace
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store


def test_the_made_trace_is_read_whole(tmp_path):
    path = tmp_path / "rank0.pt.trace.json"
    events = kineto_trace.write(path, 3_000_000)
    store = Store(tmp_path / "store")
    run = store.get(ingest([path], store).run_id)
    arrows = run.tables.rows("launches") - run.tables.rows("collectives")
    assert run.tables.rows("op_events") == events - 2 * arrows
    assert run.tables.rows("steps") > 1
    result = launches.analyze(run.tables, {}, parse_options(launches.OPTIONS, {}))
    assert result.totals["idle_s"] > 0
    assert result.devices["told_share"].tolist() == [1.0]


def test_the_same_bytes_for_the_same_numbers(tmp_path):
    for name in "ab":
        kineto_trace.write(tmp_path / name, 100_000)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
