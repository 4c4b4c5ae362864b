"""A live run in a browser: its page draws itself anew when there is more, and what was chosen on it stays."""

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.serving import environment, get, serving
from tests.collectors.job_entries import PROJECT, S, job
from tests.collectors.logging_server import LoggingServer

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000


@contextlib.contextmanager
def followed(store: Path, logs: LoggingServer) -> Iterator[None]:
    """`chipledger watch` of the job, for as long as this lasts."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "app.cli",
            "watch",
            "--store",
            str(store),
            "--project",
            PROJECT,
            "--job",
            "night-run",
            "--chips",
            "256",
            "--every",
            "1s",
            "--endpoint",
            logs.address,
        ],
        stdout=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            process.kill()


def test_a_live_run_grows_before_ones_eyes(visit, tmp_path):
    entries = job(time.time_ns() - 3600 * S, 300, ends=False)
    with LoggingServer() as logs, followed(tmp_path, logs), serving(tmp_path) as address:
        library = visit(address)
        nothing = library.get_by_text(f"Following job night-run of project {PROJECT}: no entry yet")
        expect(nothing).to_be_visible(timeout=PATIENCE_MS)
        logs.add(*entries[:100])
        link = library.get_by_role("link", name="night-run")
        expect(link).to_be_visible(timeout=PATIENCE_MS)  # by itself, as all that follows
        expect(library.get_by_text(re.compile(r"^live, updated (just now|\d+ s ago)$"))).to_be_visible()
        assert link.get_attribute("href") == "/findings?run=live%3Anight-run"

        page = visit(f"{address}/steps?run=live:night-run&scale=log")
        steps = page.get_by_test_id("stMetric").filter(has=page.get_by_text("Steps ●", exact=True))
        expect(steps.get_by_test_id("stMetricValue")).to_have_text("97", timeout=PATIENCE_MS)
        expect(page.get_by_text("100 log entries")).to_be_visible()
        before = get(f"{address}/api/runs/live:night-run")[1]["run_id"]
        logs.add(*entries[100:])
        expect(steps.get_by_test_id("stMetricValue")).to_have_text("300", timeout=PATIENCE_MS)
        expect(page.get_by_text("303 log entries")).to_be_visible()
        assert re.search(r"run=live(:|%3A)night-run", page.url) and "scale=log" in page.url
        logarithmic = page.get_by_role("radio", name="Logarithmic")
        expect(logarithmic).to_have_count(1)  # while it is drawn anew, the old one stands there for a moment too
        expect(logarithmic).to_be_checked()

        now = get(f"{address}/api/runs/{before}")[1]
        assert now["run_id"] != before and now["live"]["name"] == "night-run"
        assert len(get(f"{address}/api/runs")[1]["runs"]) == 1
        old = visit(f"{address}/ledger?run={before}")
        expect(old).to_have_url(re.compile(r"run=live(:|%3A)night-run"), timeout=PATIENCE_MS)
