"""The page of launches in a browser: a trace with a host that is late, each view, light and dark."""

from playwright.sync_api import expect

from tests.browser.drawn import drawn


def test_a_late_host_is_told_in_each_view(visit, server, traced):
    page = visit(f"{server}/launches?run={traced}")
    assert "Devices are idle for" in drawn(page)
    dark = visit(f"{server}/launches?run={traced}&view=operations", dark=True)
    assert "Devices are idle for" in drawn(dark)
    expect(dark.get_by_text("A call of cudaLaunchKernel keeps its thread")).to_be_visible()
    for view, says in (("calls", "What launching takes"), ("streams", "Stream by stream, as HTA counts")):
        page = visit(f"{server}/launches?run={traced}&view={view}")
        expect(page.get_by_text(says)).to_be_visible()
        expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
