"""The page *Query*, as a visitor sees it: an example, its answer in the address, and files to take away."""

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_example_is_asked_and_its_answer_taken_away(visit, demo, runs, dark):
    page = visit(f"{demo}/query?run={runs['reference-training']}", dark=dark)
    page.get_by_role("button", name="Statistics of events").click()
    expect(page.get_by_text("19 rows in")).to_be_visible()
    asked = page.evaluate("new URL(location).searchParams.get('sql')")
    assert "from event_stats" in asked
    expect(page.get_by_label("SQL", exact=True)).to_have_value(asked)
    with page.expect_download() as taken:
        page.get_by_role("button", name="Parquet").click()
    table = pq.read_table(taken.value.path())
    assert table.num_rows == 19 and {"_src", "hlo_op"} <= set(table["name"].to_pylist())


def test_what_is_typed_is_asked_with_a_key(visit, demo, runs):
    page = visit(f"{demo}/query?run={runs['reference-serving']}")
    box = page.get_by_label("SQL", exact=True)
    box.fill("select count(*) as n, 9007199254740993 as exact from scalars")
    box.press("Control+Enter")
    expect(page.get_by_text("1 row in")).to_be_visible()
    assert "sql=select" in page.url
