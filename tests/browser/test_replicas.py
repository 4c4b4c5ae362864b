"""A replica is killed in the middle of a session: the browser connects to the other, and shows the same page."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.app import made_runs
from tests.app.replicas import Proxy, address_file, replicas
from tests.app.serving import command
from tests.browser.drawn import bars, click_bar, shown_titles

RECONNECT_MS = 60_000


def until(ready, page):
    deadline = time.monotonic() + RECONNECT_MS / 1e3
    while not ready():
        assert time.monotonic() < deadline
        page.wait_for_timeout(100)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "goodput.jsonl").write_bytes(made_runs.goodput_log(2_000, "steady"))
    return tmp_path


def test_who_is_looking_sees_the_same_page_once_the_replica_is_killed(folder, postgres, visit):
    file, store = address_file(folder, postgres.url(postgres.schema())), folder / "store"
    done = command(
        *("ingest", folder / "goodput.jsonl", "--name", "steady", "--chips", 4, "--store", store),
        CHIPLEDGER_REGISTRY_FILE=file,
    )
    assert done.returncode == 0, done.stderr
    with replicas(store, 2, CHIPLEDGER_REGISTRY_FILE=file) as (first, second):
        proxy = Proxy([first.port, second.port])
        page = visit(f"{proxy.address}/ledger?run=steady")
        click_bar(page, "badput")
        expect(page).to_have_url(re.compile(r"[?&]account=badput(&|$)"))
        back = page.get_by_role("button", name="Chip time held ›")
        expect(back).to_be_visible()
        seen = bars(page), shown_titles(page)
        assert set(proxy.took) == {first.port}
        heard: list[float] = []  # when the page was told something over a connection that was made since
        page.on("websocket", lambda made: made.on("framereceived", lambda _: heard.append(time.monotonic())))
        first.kill()
        until(lambda: second.port in proxy.took and heard and time.monotonic() - heard[-1] > 1.0, page)
        expect(back).to_be_visible()
        assert (bars(page), shown_titles(page)) == seen, "without anything being done"
        back.click()  # answered by the other, which never saw this browser
        expect(page).not_to_have_url(re.compile("account="), timeout=RECONNECT_MS)
        page.go_back()
        expect(page).to_have_url(re.compile(r"[?&]account=badput(&|$)"))
        expect(back).to_be_visible()
        assert (bars(page), shown_titles(page)) == seen and second.port in proxy.took
        proxy.close()
