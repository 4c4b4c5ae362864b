"""Many people at once: sessions that look at all pages of all bundled runs, and what each waits for.

    python -m benchmarks.load [--sessions 18] [--tabs 2] [--minutes 10] [--every 5] [--rest 150] [--store FOLDER]
    python -m benchmarks.load --sessions 4 --tabs 1 --minutes 0.5 --rest 5 --pages mfu,steps      (for trying)

Against `chipledger serve` in a process of its own, on the loopback address. Each person opens a page of some run, and
then another, some seconds after the one before was drawn: 5 s on average, exponentially, 30 s at most. Two kinds:

    sessions   speak Streamlit's own messages over a websocket (`benchmarks.session`). They load the server as tabs do,
               and the machine with nothing else: what is measured of them is the server
    tabs       of a real Chromium, each in a context of its own: a run's page, then a click on a link of its menu. They
               draw on the same processors that the server computes on: what is measured of them is the machine

Before, one session opens each page once: that is what a server that is warm has. Told of each kind, as median, 95th
percentile and worst: seconds from the click to the first figure (where a page has none, to the end of its script), and
until the page is whole; of tabs until it is drawn. Told of the server: processor seconds a navigation while they act
(the server's own process alone), the share of one core, resident memory warm, at its most, and after they left and
`--rest` seconds more (a session that is gone is kept for 120 s, in case it comes back). Every error counts: a traceback
on a page, a page that is not drawn within 30 s, a connection that ends, lines of the server's log that tell of a
traceback. `--most-p95`, `--most-worst`, `--most-growth`: exit 1 where a figure is above.
"""

import argparse
import asyncio
import contextlib
import itertools
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.commands.demo import load
from app.cli.commands.doctor import chromium
from app.pages.all import every_page
from app.workspace import workspace
from benchmarks.library import Waits, serving
from benchmarks.session import Session

PATIENCE_S, LONGEST_S = 30.0, 30.0
TICK = os.sysconf("SC_CLK_TCK")
CLICK = """([path, menu]) => new Promise(told => {
    const link = [...menu.querySelectorAll('.pages a')].find(a => new URL(a.href).pathname === path);
    const all = selector => [...document.querySelectorAll(selector)];
    const drawn = () => location.pathname === path
        && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
        && all('[data-testid=stMain] [data-testid=stElementContainer]').length > 1
        && !document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner], [data-stale=true]')
        && all('[data-testid=stPlotlyChart]').every(chart => chart.querySelector('.main-svg'));
    const began = performance.now();
    let since = null;
    const look = () => {
        const now = performance.now();
        since = drawn() ? since ?? now : null;
        if (since !== null && now - since > 300) told((since - began) / 1000);
        else requestAnimationFrame(look);
    };
    link.click();
    look();
})"""
Address = tuple[str, str]  # a page, and what is asked of it


@dataclass
class Seen:
    """What was waited for, in seconds, and what went wrong, of all people of one kind."""

    figure_s: list[float] = field(default_factory=list[float])
    whole_s: list[float] = field(default_factory=list[float])
    of_page: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: list[str] = field(default_factory=list[str])
    told_bytes: int = 0

    def note(self, page: str, figure_s: float, whole_s: float, told_bytes: int = 0) -> None:
        self.figure_s.append(figure_s)
        self.whole_s.append(whole_s)
        self.of_page.setdefault(page, []).append(figure_s)
        self.told_bytes += told_bytes


@dataclass
class Server:
    """The process that serves: what it has used so far."""

    pid: int
    most_bytes: int = 0

    def cpu_s(self) -> float:
        """Of all its threads, in user and system; not of processes that it started."""
        told = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / TICK

    def resident(self) -> int:
        found = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.most_bytes = max(self.most_bytes, found)
        return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="one of the bundled runs; without it one is made")
    parser.add_argument("--sessions", type=int, default=18)
    parser.add_argument("--tabs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two acts of a person, on average")
    parser.add_argument("--rest", type=float, default=150.0, help="seconds after they left")
    parser.add_argument("--pages", default="", help="names of some, with commas between")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-p95", type=float, default=math.inf, help="seconds to the first figure, of sessions")
    parser.add_argument("--most-worst", type=float, default=math.inf)
    parser.add_argument("--most-growth", type=float, default=math.inf, help="of memory after they left, as a share")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder) / "store"
        if not asked.store:
            load(str(store))
        log = Path(folder) / "log"
        names = {name for name in asked.pages.split(",") if name}
        every = [one for one in addresses(store) if not names or one[0] in names]
        with serving(store, Waits(), log) as (address, pid):
            return asyncio.run(_measured(asked, address, Server(pid), every, log))


def addresses(store: Path) -> list[Address]:
    """Every page of every run of the store, and the pages that are of no run; the first of all has no name."""
    runs = list(workspace(str(store)).store.runs())
    first, *others = (page for page in every_page() if page.file)
    of_runs = [(p.path, f"run={run.run_id}") for p in others for run in runs if p.about and p.tells_of(run)]
    return [("", ""), *of_runs, *((p.path, "") for p in others if not p.about)]


async def _measured(asked: argparse.Namespace, address: str, server: Server, every: list[Address], log: Path) -> int:
    rng = random.Random(asked.seed)
    warm_s = await warmed(address, every)
    before = server.resident()
    print(f"{len(every)} pages of all runs opened once in {warm_s:.0f} s; {before / 2**20:,.0f} MiB", flush=True)
    sessions, tabs, machine = Seen(), Seen(), os.getloadavg()[0]
    stop_s = time.monotonic() + 60 * asked.minutes
    cpu_s, began = server.cpu_s(), time.monotonic()
    watched = asyncio.create_task(_watched(server))
    people = [
        _person(address, every, sessions, random.Random(rng.random()), asked.every, stop_s)
        for _ in range(asked.sessions)
    ]
    if asked.tabs:
        people.append(_tabs(address, every, tabs, rng.random(), asked, stop_s))
    await asyncio.gather(*people)
    cpu_s, wall_s = server.cpu_s() - cpu_s, time.monotonic() - began
    load_now = os.getloadavg()[0]
    await asyncio.sleep(asked.rest)
    watched.cancel()
    after = server.resident()
    seen = sessions.errors + tabs.errors + _told_by(log)
    for line in _lines(asked, sessions, tabs):
        print(line)
    clicks = len(sessions.whole_s) + len(tabs.whole_s)
    print(f"server: {cpu_s / max(clicks, 1):.3f} s of processor a navigation ({clicks:,}), {cpu_s / wall_s:.2f} cores")
    grown = after / before - 1
    print(
        f"memory: {before / 2**20:,.0f} MiB warm, {server.most_bytes / 2**20:,.0f} at most, {after / 2**20:,.0f} "
        f"{asked.rest:.0f} s after they left ({grown:+.1%})"
    )
    print(f"load of the machine {machine:.1f} before, {load_now:.1f} at the end, {os.cpu_count()} cores")
    print(f"errors: {len(seen)}")
    for error in seen[:20]:
        print(f"  {error}")
    p95, worst = share(sessions.figure_s, 0.95), max(sessions.figure_s, default=0.0)
    above = p95 > asked.most_p95 or worst > asked.most_worst or grown > asked.most_growth
    return int(bool(seen) or above)


def share(values: Sequence[float], part: float) -> float:
    """The least value that so large a part of all does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)] if ordered else 0.0


def _lines(asked: argparse.Namespace, sessions: Seen, tabs: Seen) -> list[str]:
    lines = [f"{'':34}{'times':>7}{'median':>9}{'95 %':>9}{'worst':>9}"]
    for what, told in (
        (f"{asked.sessions} sessions: first figure", sessions.figure_s),
        ("  the page whole", sessions.whole_s),
        (f"{asked.tabs} tabs: the page drawn", tabs.whole_s),
    ):
        if told:
            parts = [share(told, 0.5), share(told, 0.95), max(told)]
            lines.append(f"{what:34}{len(told):7,}" + "".join(f"{part:8.3f}s" for part in parts))
    if sessions.whole_s:
        lines.append(f"{sessions.told_bytes / len(sessions.whole_s) / 1e3:,.0f} kB told a navigation")
    slowest = sorted(sessions.of_page.items(), key=lambda item: -share(item[1], 0.95))[:8]
    lines += [f"  {page:32}{len(took):7,}{share(took, 0.5):8.3f}s{share(took, 0.95):8.3f}s" for page, took in slowest]
    return lines


def _told_by(log: Path) -> list[str]:
    """Lines of the server's log that begin a traceback."""
    return [line for line in log.read_text(errors="replace").splitlines() if line.startswith("Traceback")]


async def _watched(server: Server) -> None:
    while True:
        server.resident()
        await asyncio.sleep(0.5)


async def warmed(address: str, every: list[Address]) -> float:
    """One session opens each page; how long that takes."""
    began, one = time.monotonic(), Session(address)
    await one.open()
    for path, query in every:
        drawn = await one.go(path, query, 20 * PATIENCE_S)
        for error in drawn.errors:
            print(f"{path}?{query}: {error}", flush=True)
    await one.close()
    return time.monotonic() - began


async def _until(stop_s: float, every_s: float, rng: random.Random, act: Callable[[], Awaitable[None]]) -> None:
    """Act again and again, with a pause before each."""
    while True:
        pause_s = min(rng.expovariate(1 / every_s), LONGEST_S)
        if time.monotonic() + pause_s > stop_s:
            return
        await asyncio.sleep(pause_s)
        await act()


async def _person(
    address: str, every: list[Address], seen: Seen, rng: random.Random, every_s: float, stop_s: float
) -> None:
    one = Session(address)

    async def act() -> None:
        path, query = rng.choice(every)
        try:
            if not one.connected:
                await one.open()
            drawn = await one.go(path, query, PATIENCE_S)
        except Exception as e:  # noqa: BLE001 - whatever it is, it is what a person would have met
            seen.errors.append(f"{path}?{query}: {type(e).__name__}: {e}"[:300])
            with contextlib.suppress(Exception):
                await one.close()
            return
        seen.note(path, drawn.figure_s, drawn.whole_s, drawn.told_bytes)
        seen.errors += [f"{path}?{query}: {error}" for error in drawn.errors]

    await _until(stop_s, every_s, rng, act)
    await one.close()


async def _tabs(
    address: str, every: list[Address], seen: Seen, seed: float, asked: argparse.Namespace, stop_s: float
) -> None:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--headless", "--no-sandbox"])
        of_runs = [one for one in every if one[1]]
        try:
            await asyncio.gather(
                *(
                    _tab(browser, address, of_runs, seen, random.Random(f"{seed} {number}"), asked.every, stop_s)
                    for number in range(asked.tabs)
                )
            )
        finally:
            await browser.close()


async def _tab(
    browser: Any, address: str, every: list[Address], seen: Seen, rng: random.Random, every_s: float, stop_s: float
) -> None:
    """A run's page by its address, then a click on a link of its menu, eight times; then another run."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    page.set_default_timeout(1e3 * PATIENCE_S)
    acts = itertools.count()

    async def act() -> None:
        try:
            if next(acts) % 9 == 0 or not await page.locator(".groups button").count():  # a link led away from runs
                await page.goto("/".join((address, "?".join(rng.choice(every)))))
                await page.locator(".pages a").first.wait_for()
                return
            took = await _clicked(page, rng)
            seen.note(took[0], took[1], took[1])
        except Exception as e:  # noqa: BLE001 - as above
            seen.errors.append(f"a tab at {page.url}: {type(e).__name__}: {e}"[:300])

    await _until(stop_s, every_s, rng, act)
    await context.close()


async def _clicked(page: Any, rng: random.Random) -> tuple[str, float]:
    """(the page, seconds until it is drawn) of a click on some link of the menu of a run's pages."""
    await page.locator(".groups button").nth(rng.randrange(await page.locator(".groups button").count())).click()
    links = page.locator(".pages a:not([aria-current])")
    if not (count := await links.count()):
        return await _clicked(page, rng)
    path = await links.nth(rng.randrange(count)).evaluate("a => new URL(a.href).pathname")
    menu = await page.locator("nav:has(.pages)").element_handle()
    return path.strip("/"), await asyncio.wait_for(page.evaluate(CLICK, [path, menu]), PATIENCE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
