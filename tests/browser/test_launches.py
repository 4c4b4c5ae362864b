"""The page of launches in a browser: a trace with a host that is late, each view, light and dark."""

from playwright.sync_api import expect

from app.cli import main
from benchmarks import kineto_trace
from tests.app.serving import get, serving
from tests.browser.drawn import drawn


def test_a_late_host_is_told_in_each_view(visit, tmp_path):
    kineto_trace.write(tmp_path / "rank0.pt.trace.json", 1_000_000)
    store = tmp_path / "store"
    assert main(["--store", str(store), "ingest", str(tmp_path / "rank0.pt.trace.json")]) == 0
    with serving(store) as server:
        run = get(f"{server}/api/runs")[1]["runs"][0]["run_id"]
        page = visit(f"{server}/launches?run={run}")
        assert "Devices are idle for" in drawn(page)
        dark = visit(f"{server}/launches?run={run}&view=operations", dark=True)
        assert "Devices are idle for" in drawn(dark)
        expect(dark.get_by_text("A call of cudaLaunchKernel keeps its thread")).to_be_visible()
        for view, says in (("calls", "What launching takes"), ("streams", "Stream by stream, as HTA counts")):
            page = visit(f"{server}/launches?run={run}&view={view}")
            expect(page.get_by_text(says)).to_be_visible()
            expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
            expect(page.get_by_text("Traceback")).to_have_count(0)
