"""The page of modules in a browser: layers folded and opened, each band, light and dark."""

from playwright.sync_api import expect

from app.cli import main
from benchmarks import kineto_trace
from tests.app.serving import get, serving
from tests.browser.drawn import drawn


def test_modules_are_told_folded_and_opened(visit, tmp_path):
    kineto_trace.write(tmp_path / "rank0.pt.trace.json", 1_000_000)
    store = tmp_path / "store"
    assert main(["--store", str(store), "ingest", str(tmp_path / "rank0.pt.trace.json")]) == 0
    with serving(store) as server:
        run = get(f"{server}/api/runs")[1]["runs"][0]["run_id"]
        page = visit(f"{server}/modules?run={run}")
        assert "most of the rest is in Block_[0-31]" in drawn(page)
        dark = visit(f"{server}/modules?run={run}&view=pass&scope=Block_[0-31]", dark=True)
        assert "Block_[0-31]" in drawn(dark)
        expect(dark.get_by_role("button", name="all operations")).to_be_visible()
        each = visit(f"{server}/modules?run={run}&fold=none")
        assert "Block_" in drawn(each)
        for shown in (page, dark, each):
            expect(shown.get_by_text("Traceback")).to_have_count(0)
        operations = visit(f"{server}/operations?run={run}")
        expect(operations.get_by_text("Matrix products and tensor cores")).to_be_visible()
