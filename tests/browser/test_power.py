"""The power page in a browser: what chips drew by nvidia-smi's own log, light and dark."""

import re

from playwright.sync_api import expect

from collectors.ingest import ingest
from runs.store import Store
from tests.browser.drawn import drawn
from tests.collectors.test_nvidia_smi import QUERIED


def test_what_chips_drew_is_told(visit, server, store, tmp_path):
    (tmp_path / "gpus.csv").write_text(QUERIED)
    run = ingest([tmp_path / "gpus.csv"], Store(store), name="power").run_id
    for dark in (False, True):
        page = visit(f"{server}/power?run={run}", dark=dark)
        expect(page.locator("h5").first).to_contain_text(re.compile(r"A chip drew 70\.\d W in the mean"))
        expect(page.get_by_text("Traceback")).to_have_count(0)
        assert "Heat (hardware) held 2 of 2 chips down" in drawn(page)
