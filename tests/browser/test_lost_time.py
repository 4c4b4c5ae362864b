"""The pages about lost time, drawn by a real Chromium at the scale they are for: the bundled simulated run, and a
pipeline made here."""

import re

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from collectors.ingest import ingest
from runs.store import Store
from tests.analyzers import pipelines
from tests.app.serving import get

SOME = {
    "ledger": "953,000 chip-hours",
    "goodput": "disrupted 466 times",
    "interruptions": "466 interruptions in 54 d",
    "checkpoints": "would give back",
    "stragglers": "Rank 8147 (r063-n10)",
}
SIZES = "() => [...document.querySelectorAll('.js-plotly-plot')].map((p) => JSON.stringify(p.data).length)"
MOST_BYTES = 2_000_000  # that a page of a run may send


@pytest.fixture(scope="module")
def run_id(demo):
    (run,) = [r for r in get(f"{demo}/api/runs")[1]["runs"] if r["simulated"]]
    return run["run_id"]


@pytest.mark.parametrize("name", SOME)
def test_a_page_reads_at_scale_and_says_that_it_is_simulated(look, demo, run_id, name):
    page = look(f"{demo}/{name}?run={run_id}", dark=name == "interruptions")
    drawn(page)
    expect(page.locator("h5").first).to_contain_text(SOME[name])
    expect(page.get_by_text("simulated: nobody ran this")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    sizes = page.evaluate(SIZES)
    assert sizes and sum(sizes) < MOST_BYTES


def test_an_interruption_opens_by_its_permalink(look, demo, run_id):
    told = get(f"{demo}/api/runs/{run_id}/show/interruptions")[1]["interruptions"]
    wanted = next(i for i, row in enumerate(told) if row["cause"] == "power")
    page = look(f"{demo}/interruptions?run={run_id}&at={wanted + 1}")
    drawn(page)
    expect(page.get_by_text(re.compile(r"Power Supply \d failure detected"))).to_be_visible()
    expect(page.get_by_text(re.compile(rf"Power supply on {told[wanted]['host']}"))).to_be_visible()


def test_a_pipeline_has_its_page(visit, server, store, tmp_path):
    slow = lambda step, dp, stage, batch: (30 if (dp, stage) == (1, 0) else 10) * pipelines.MS  # noqa: E731
    rows = pipelines.Pipelines(forward=slow, steps=4).tables().arrow("pipeline")
    pq.write_table(rows, tmp_path / "pipeline.parquet")
    run = ingest([tmp_path / "pipeline.parquet"], Store(store), name="pipeline")
    page = visit(f"{server}/slowdown?run={run.run_id}")
    drawn(page)
    expect(page.locator("h5").first).to_contain_text("slow worker (data rank 1, stage 0)")
    expect(page.get_by_role("link", name="Slowdown")).to_be_visible()


def drawn(page):
    page.wait_for_selector(".js-plotly-plot .main-svg")
    expect(page.get_by_text("Traceback")).to_have_count(0)
