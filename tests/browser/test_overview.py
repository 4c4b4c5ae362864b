"""The first page of a run: what is wrong, what that is worth, and the run as it would be with it mended."""

import re

from playwright.sync_api import expect

from tests.app.serving import get


def test_what_is_wrong_stands_first_and_leads_to_its_evidence(visit, demo, runs):
    run = runs["reference-training"]
    page = visit(f"{demo}/findings?run={run}")
    said = get(f"{demo}/api/runs/{run}/show/findings")[1]
    assert said["verdict"] == "found" and len(said["findings"]) == 3
    for number, finding in enumerate(said["findings"], 1):
        expect(page.get_by_text(f"{number}. {finding['what']}")).to_be_visible()
        expect(page.get_by_text(finding["title"]).last).to_be_visible()
    shares = [f"{finding['gain_share'] * 100:.3g} %" for finding in said["findings"]]
    told = page.get_by_test_id("stMetric").filter(has=page.get_by_text("Gives back", exact=True))
    expect(told.get_by_test_id("stMetricValue")).to_have_text(shares)
    page.get_by_role("link", name="See the evidence: Stragglers").click()
    expect(page).to_have_url(re.compile(rf"/stragglers\?run={run}"))


def test_what_is_ticked_is_mended_on_paper(visit, demo, runs):
    page = visit(f"{demo}/findings?run={runs['reference-training']}")
    said = get(f"{demo}/api/runs/{runs['reference-training']}/show/findings")[1]
    boxes = page.get_by_text("Mend it on paper")
    expect(boxes).to_have_count(3)
    boxes.nth(1).click()
    expect(page.get_by_text(re.compile("^On paper, modelled: the same steps in"))).to_contain_text(
        f"{said['findings'][1]['gain_share'] * 100:.3g} % less chip time"
    )
    expect(page.locator(".js-plotly-plot")).to_have_count(3)  # mended, the ledger, the ladder


def test_a_sound_run_is_told_to_be_one(visit, demo, runs):
    page = visit(f"{demo}/findings?run={runs['compiled-llama3.1-8b-v5p']}")
    expect(page.locator("h5").first).to_contain_text("Nothing stands out")
    expect(page.get_by_text("Looked for and ruled out")).to_be_visible()


def test_what_is_promised_stands_on_the_run_and_among_the_promises(visit, demo, runs):
    run = runs["reference-training"]
    page = visit(f"{demo}/findings?run={run}")
    page.get_by_text("Mend it on paper").first.click()
    slider = page.get_by_role("slider")
    expect(slider).to_have_count(1)
    page.get_by_role("button", name="Keep this as a promise").click()
    expect(page.get_by_text("Promised of this run")).to_be_visible()
    expect(page.get_by_text("no later run of this job yet")).to_be_visible()
    page.get_by_role("link", name="All promises").click()
    expect(page).to_have_url(re.compile("/promises"))
    expect(page.locator("h5").first).to_have_text("1 promise waits for a later run.")
