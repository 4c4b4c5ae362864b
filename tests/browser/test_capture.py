"""From a running job to its run, in a browser: the hosts that are offered, the recording, what came, and cancelling."""

import re

import pytest
from playwright.sync_api import expect

from runs.store import Store
from tests.app.capture_jobs import SERVER, job
from tests.app.serving import free_port, serving

pytest.importorskip("jax", reason="a job of JAX is captured: pip install 'chipledger[reference]'")


@pytest.fixture(scope="module")
def capturing(tmp_path_factory):
    """A server that may record two jobs and an address where nobody listens; its store."""
    store, dead = tmp_path_factory.mktemp("capture"), f"127.0.0.1:{free_port()}"
    with job(SERVER) as first, job(SERVER) as second:
        where = f"127.0.0.1:{first},127.0.0.1:{second},{dead}"
        with serving(store, "--capture", where) as address:
            yield address, where.split(","), store


@pytest.mark.parametrize("dark", [False, True])
def test_jobs_are_recorded_into_a_run(visit, capturing, dark):
    server, where, store = capturing
    page = visit(f"{server}/capture", dark=dark)
    for host in where:
        expect(page.get_by_role("button", name=host, exact=True)).to_be_visible()
    page.get_by_role("textbox", name="Name", exact=True).fill(f"seen {dark}")
    page.get_by_test_id("stBaseButton-primaryFormSubmit").click()
    expect(page.get_by_text(re.compile(r"Recording 2 of 3 hosts"))).to_be_visible()
    expect(page.get_by_text("on: 2 of 3 hosts. No trace of")).to_be_visible(timeout=60_000)
    expect(page).to_have_url(re.compile(r"/capture\?made=[0-9a-f]+$"))
    run = Store(store).find(f"seen {dark}")
    assert run.run_id in page.url and run.manifest.tables["captures"] == 2
    page.get_by_test_id("stMain").get_by_role("link", name="Steps").first.click()
    expect(page.get_by_role("heading", name=f"seen {dark}")).to_be_visible()


def test_a_recording_is_cancelled(visit, capturing):
    server, where, store = capturing
    before = len(Store(store).runs())
    page = visit(f"{server}/capture")
    page.get_by_role("textbox", name="How long to record (s)").fill("60")
    page.get_by_test_id("stBaseButton-primaryFormSubmit").click()
    expect(page.get_by_text(re.compile(r"Recording 2 of 3 hosts"))).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled. Nothing was added.")).to_be_visible()
    assert len(Store(store).runs()) == before


def test_what_cannot_be_asked_is_said(visit, capturing):
    page = visit(f"{capturing[0]}/capture")
    page.get_by_role("textbox", name="How long to record (s)").fill("soon")
    page.get_by_test_id("stBaseButton-primaryFormSubmit").click()
    expect(page.get_by_text(re.compile("a number from 0.05 to 60")).first).to_be_visible()
