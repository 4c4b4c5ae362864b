"""The page of modules in a browser: layers folded and opened, each band, light and dark."""

from playwright.sync_api import expect

from tests.browser.drawn import drawn


def test_modules_are_told_folded_and_opened(visit, server, traced):
    page = visit(f"{server}/modules?run={traced}")
    assert "most of the rest is in Block_[0-31]" in drawn(page)
    dark = visit(f"{server}/modules?run={traced}&view=pass&scope=Block_[0-31]", dark=True)
    assert "Block_[0-31]" in drawn(dark)
    expect(dark.get_by_role("button", name="all operations")).to_be_visible()
    each = visit(f"{server}/modules?run={traced}&fold=none")
    assert "Block_" in drawn(each)
    for shown in (page, dark, each):
        expect(shown.get_by_text("Traceback")).to_have_count(0)
    operations = visit(f"{server}/operations?run={traced}")
    expect(operations.get_by_text("Matrix products and tensor cores")).to_be_visible()
