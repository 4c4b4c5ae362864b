"""A real Chromium against a real server. Without a Chromium these tests skip, in CI they fail."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.cli.commands.doctor import chromium
from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, serving
from tests.bundled import demo_store

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--process-per-site",  # what a page compiled stands for the next one
    "--js-flags=--no-opt,--no-maglev",  # pages live for seconds: to optimise their code takes longer than it saves
)
PATIENCE_MS = 60_000
POLICY = "Content Security Policy"  # what Chromium says where a page does what its policy does not allow
HOW = "no Chromium here: install the system package `chromium` and the Python package `playwright`"


def _missing(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _lasting(fixture_name: str, config: pytest.Config) -> str:
    """One for all files where these are all that run: its event loop is in this thread, where others run theirs."""
    chosen = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    alone = all(path.is_relative_to(Path(__file__).parent) for path in chosen)
    return "session" if alone and not hasattr(config, "workerinput") else "module"


@pytest.fixture(scope=_lasting)
def browser():
    path = chromium()
    if path is None:
        _missing(HOW)
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        _missing(HOW)
    expect.set_options(timeout=PATIENCE_MS)  # as for all else that is waited for: other tests run beside these
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


class Watched:
    """What pages asked for beyond this machine, and what went wrong in them."""

    def __init__(self):
        self.strangers: list[str] = []
        self.faults: list[str] = []

    def watch(self, page) -> None:
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda r: self.strangers.append(r.url) if _leaves(r.url) else None)
        page.on("pageerror", lambda e: self.faults.append(str(e)))
        page.on("console", lambda m: self.faults.append(m.text) if POLICY in m.text and _dashboard(page.url) else None)
        page.on("dialog", lambda d: (self.faults.append(f"dialog: {d.message}"), d.accept()))

    def check(self) -> None:
        """Nothing may have asked for anything beyond this machine, and nothing may have failed."""
        strangers, faults = self.strangers[:], self.faults[:]
        self.strangers.clear(), self.faults.clear()
        assert not strangers
        assert not faults


@pytest.fixture(scope=_lasting)
def context(browser):
    """What visitors share: scripts that were fetched and compiled, which is most of what a first visit
    takes. Nothing of the dashboard's lives longer than its page."""
    made = browser.new_context(accept_downloads=True)
    resident = made.new_page()  # the process that holds them ends with its last page
    resident.route("**/*", lambda route: route.fulfill(body=""))
    resident.goto("http://127.0.0.1/")
    yield made
    made.close()


@pytest.fixture(scope=_lasting)
def idle(context):
    """Tabs that are at rest, with who watches them."""
    return []


@pytest.fixture
def visit(browser, context, idle):
    """Opens an address in a tab that no other test has meanwhile. `own`: in one that ends with the test, for who gives
    it a listener, a route or a script that would live on; `fresh`: in a browser that was never here."""
    lent, ended, owned = [], [], Watched()

    def tab_for(own: bool, fresh: bool):
        if not (own or fresh):
            lent.append(idle.pop() if idle else watched_tab(context))
            return lent[-1][0]
        within = browser.new_context(accept_downloads=True) if fresh else context
        page = within.new_page()
        ended.append(within if fresh else page)
        owned.watch(page)
        return page

    def open_(address: str, *, own=False, fresh=False, dark: bool = False, width: int = 1440, height: int = 900):
        return at(tab_for(own, fresh), address, dark, width, height)

    yield open_
    for one in ended:
        one.close()
    for page, _ in lent:
        rest(page)
    idle += lent
    for watched in (owned, *(watched for _, watched in lent)):
        watched.check()


def watched_tab(context):
    page, watched = context.new_page(), Watched()
    watched.watch(page)
    return page, watched


def rest(page) -> None:
    """Ends what a page may still ask for, before it is judged; a picture of the next one has no mouse on it."""
    page.mouse.move(0, 0)
    page.goto("about:blank")


def at(page, address: str, dark: bool, width: int, height: int):
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": width, "height": height})
    page.goto(address)
    return page


@pytest.fixture(scope="module")
def tab(context):
    return watched_tab(context)


@pytest.fixture
def look(tab):
    """Opens an address in the tab that all tests of a file share: for what is looked at and not changed."""
    page, watched = tab

    def open_(address: str, *, dark: bool = False, width: int = 1440, height: int = 900):
        return at(page, address, dark, width, height)

    yield open_
    rest(page)
    watched.check()


def _dashboard(url: str) -> bool:
    """Whether an address is of a page of Streamlit's: docs, reports and XProf have policies and tests of their own."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not parts.path.startswith(("/docs", "/api/", "/xprof"))


def _leaves(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The dashboard on the bundled runs; tests look and change nothing."""
    with serving(demo_store(tmp_path_factory), verb="demo") as server:
        yield server


@pytest.fixture(scope="session")
def runs(demo):
    """Ids of the bundled runs by name."""
    return {r["name"]: r["run_id"] for r in get(f"{demo}/api/runs")[1]["runs"]}


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def run(store):
    return made_runs.interrupted(Store(store))


@pytest.fixture(scope="session")
def server(store, run) -> Iterator[str]:
    with serving(store) as address:
        yield address
