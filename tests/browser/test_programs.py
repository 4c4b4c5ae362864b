"""Pages of programs in a browser: text and search, a graph that is walked by clicks, the heap, a difference."""

from playwright.sync_api import expect

from app.cli import main
from tests.app.serving import get, serving
from tests.browser.drawn import drawn, settled
from tests.bundled import RUNS


def test_programs_are_read_walked_and_compared(visit, tmp_path):
    store = tmp_path / "store"
    for name in ("compiled-llama3.1-8b-v5p", "compiled-llama3.1-8b-v6e", "training"):
        assert main(["--store", str(store), "ingest", str(RUNS / name)]) == 0
    with serving(store) as server:
        ids = {r["name"]: r["run_id"] for r in get(f"{server}/api/runs")[1]["runs"]}
        first, other = ids["compiled-llama3.1-8b-v5p"], ids["compiled-llama3.1-8b-v6e"]
        trained = next(run for name, run in ids.items() if "training" in name)

        page = visit(f"{server}/hlo?run={first}&q=all-gather%20dot")
        expect(page.get_by_text("instructions hold")).to_be_visible()
        expect(page.get_by_text("HloModule jit_step")).to_be_visible()
        with page.expect_download() as taken:
            page.get_by_role("button", name="Whole text").click()
        text = taken.value.path().read_text()
        assert text.startswith("HloModule jit_step") and text.count("\n") > 4900

        page = visit(f"{server}/hlo_graph?run={first}&op=fusion.650", dark=True)
        assert "fusion.650 is a fusion of train_step" in drawn(page)
        settled(page)
        page.get_by_role("button", name="Open fusion.650").click()
        expect(page.get_by_role("button", name="Close fusion.650")).to_be_visible()
        settled(page)
        page.get_by_role("button", name="Called by while.312").click()
        expect(page.get_by_text("while.312 is a while of train_step")).to_be_visible()

        assert "at its fullest, at copy_bitcast_fusion.3" in drawn(visit(f"{server}/heap?run={trained}"))
        page = visit(f"{server}/hlo_diff?run={first}&other_run={other}")
        assert "operations are unchanged" in drawn(page)
        page = visit(f"{server}/operations?run={trained}&op=jit_train_step/all-reduce.25")
        link = page.get_by_role("link", name="all-reduce.25 in its program")
        expect(link).to_be_visible()
        link.click()
        expect(page.get_by_text("all-reduce.25 is an all-reduce of jit_train_step")).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
