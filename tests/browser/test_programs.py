"""Pages of programs in a browser: text and search, a graph that is walked by clicks, the heap, a difference."""

from playwright.sync_api import expect

from tests.browser.drawn import drawn, settled


def test_programs_are_read_walked_and_compared(visit, demo, runs):
    first, other = runs["compiled-llama3.1-8b-v5p"], runs["compiled-llama3.1-8b-v6e"]
    trained = runs["reference-training"]

    page = visit(f"{demo}/hlo?run={first}&q=all-gather%20dot")
    expect(page.get_by_text("instructions hold")).to_be_visible()
    expect(page.get_by_text("HloModule jit_step")).to_be_visible()
    with page.expect_download() as taken:
        page.get_by_role("button", name="Whole text").click()
    text = taken.value.path().read_text()
    assert text.startswith("HloModule jit_step") and text.count("\n") > 4900

    page = visit(f"{demo}/hlo_graph?run={first}&op=fusion.650", dark=True)
    assert "fusion.650 is a fusion of train_step" in drawn(page)
    settled(page)
    page.get_by_role("button", name="Open fusion.650").click()
    expect(page.get_by_role("button", name="Close fusion.650")).to_be_visible()
    settled(page)
    page.get_by_role("button", name="Called by while.312").click()
    expect(page.get_by_text("while.312 is a while of train_step")).to_be_visible()

    assert "at its fullest, at copy_bitcast_fusion.3" in drawn(visit(f"{demo}/heap?run={trained}"))
    page = visit(f"{demo}/hlo_diff?run={first}&other_run={other}")
    assert "operations are unchanged" in drawn(page)
    page = visit(f"{demo}/operations?run={trained}&op=jit_train_step/all-reduce.25")
    link = page.get_by_role("link", name="all-reduce.25 in its program")
    expect(link).to_be_visible()
    link.click()
    expect(page.get_by_text("all-reduce.25 is an all-reduce of jit_train_step")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
