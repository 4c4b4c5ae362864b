"""The page of hangs in a browser: which rank did not enter what the others wait for, light and dark."""

import re

from playwright.sync_api import expect

from collectors.ingest import ingest
from runs.store import Store
from tests.collectors import flight_dumps, test_flight_recorder


def test_dumps_of_a_job_that_stands_still_are_told(visit, server, store, tmp_path):
    (tmp_path / "nccl_trace_rank_2").write_bytes(flight_dumps.pickled(test_flight_recorder.WHOLE))
    (tmp_path / "nccl_trace_rank_1").write_bytes(b"")
    files = [tmp_path / f"nccl_trace_rank_{rank}" for rank in (1, 2)]
    run = ingest(files, Store(store), name="hangs").run_id
    for dark in (False, True):
        page = visit(f"{server}/hangs?run={run}", dark=dark)
        expect(page.locator("h5").first).to_contain_text(re.compile(r"\w"))
        expect(page.get_by_text("Traceback")).to_have_count(0)
        expect(page.get_by_text("Evidence:").first).to_be_visible()
