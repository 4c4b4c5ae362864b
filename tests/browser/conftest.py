"""A real Chromium against a real server. Without a Chromium these tests skip, in CI they fail.

Most of what a visit takes is to compile Streamlit's scripts and Plotly's. A browser with a profile keeps them compiled,
by their addresses, from the third visit on: so visitors share a profile, and a server takes over the port of one that
ended. Chromium keeps none where it loads scripts past the main thread, so that this is off.
"""

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.cli.commands.doctor import chromium
from benchmarks import kineto_trace
from collectors.ingest import ingest
from runs.store import Store
from tests.app import made_runs
from tests.app import serving as served
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
)
SHELL = "chromium-headless-shell"  # the same without windows, which nobody sees: drawing them is a quarter of a visit
STARTER = """#!/bin/sh
for given; do
  shift
  case $given in --disable-features=*) given=$given,BackgroundResourceFetch ;; esac
  set -- "$@" "$given"
done
exec {} "$@"
"""  # the last list of features counts alone: what is off goes on to that of Playwright
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


@pytest.fixture(scope="session", autouse=True)
def _ports():
    served.left = []
    yield
    served.left = None


@pytest.fixture(scope="session")
def starter(tmp_path_factory) -> Path:
    """What starts the browser of this machine."""
    path = shutil.which(SHELL) or chromium()
    if path is None:
        _missing(HOW)
    script = tmp_path_factory.mktemp("starter") / "chromium"
    script.write_text(STARTER.format(shlex.quote(path)))
    script.chmod(0o755)
    return script


@pytest.fixture(scope=_lasting)
def context(starter, tmp_path_factory):
    """What visitors share: scripts that were fetched and compiled, which is most of what a visit takes. Nothing of the
    dashboard's lives longer than its page."""
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        _missing(HOW)
    expect.set_options(timeout=PATIENCE_MS)  # as for all else that is waited for: other tests run beside these
    with sync_playwright() as playwright:
        profile = tmp_path_factory.mktemp("profile")
        made = playwright.chromium.launch_persistent_context(
            profile, executable_path=starter, args=list(FLAGS), accept_downloads=True
        )
        yield made
        made.close()


@pytest.fixture(scope=_lasting)
def browser(context):
    """For visitors who were never here, and share nothing."""
    return context.browser


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


@pytest.fixture
def visit(browser, context):
    """Opens an address in a tab of its own; with `fresh`, in a browser that was never here."""
    opened, watched = [], Watched()

    def open_(address: str, *, fresh: bool = False, dark: bool = False, width: int = 1440, height: int = 900):
        within = browser.new_context(accept_downloads=True) if fresh else context
        page = within.new_page()
        opened.append(within if fresh else page)
        watched.watch(page)
        return at(page, address, dark, width, height)

    yield open_
    for one in opened:
        one.close()
    watched.check()


def at(page, address: str, dark: bool, width: int, height: int):
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": width, "height": height})
    page.goto(address)
    return page


@pytest.fixture(scope="module")
def tab(context):
    watched = Watched()
    page = context.new_page()
    watched.watch(page)
    return page, watched


@pytest.fixture
def look(tab):
    """Opens an address in the tab that all tests of a file share: for what is looked at and not changed."""
    page, watched = tab

    def open_(address: str, *, dark: bool = False, width: int = 1440, height: int = 900):
        return at(page, address, dark, width, height)

    yield open_
    page.goto("about:blank")  # ends what the page may still ask for, before it is judged
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
def traced(store, tmp_path_factory) -> str:
    """Of a trace of PyTorch with a host that is late."""
    trace = tmp_path_factory.mktemp("traced") / "rank0.pt.trace.json"
    kineto_trace.write(trace, 1_000_000)
    return ingest([trace], Store(store), name="traced").run_id


@pytest.fixture(scope="session")
def server(store, run) -> Iterator[str]:
    with serving(store) as address:
        yield address
