"""Every page of one run: how long a browser waits until it is drawn.

    python -m benchmarks.pages [--run "54 days on 16,384 accelerators"] [--store FOLDER] [--times 5] [--pages mfu,steps]

A store of the bundled runs is made, or the one named is taken as it is. In Chromium against `chipledger serve` in a
process of its own, each page that tells of the run is opened `1 + times` times, from a new tab. It is drawn at the
first moment from which on, for half a second, its script has ended, nothing is stale or waited for, and each figure has
its picture. Seconds are the tab's own, from the begin of its navigation:

    cold   the first opening: its question is answered
    warm   those that follow, as median and worst

    python -m benchmarks.pages --fresh [--run all]

Instead: deep links. A session opens each page once, so that the server is warm; then each is opened in an empty window
of a browser that has nothing of it yet, and nobody looks into it; told is when its first figure is there (where it has
none, when it is drawn).
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.cli.commands.demo import load
from app.cli.commands.doctor import chromium
from app.pages.all import every_page
from app.workspace import workspace
from benchmarks.library import Waits, serving
from benchmarks.load import warmed
from benchmarks.unwatched import browser

DRAWN = """() => new Promise(told => {
    const all = selector => [...document.querySelectorAll(selector)];
    const drawn = () => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
        && all('[data-testid=stMain] [data-testid=stElementContainer]').length > 1
        && !document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner], [data-stale=true]')
        && all('[data-testid=stPlotlyChart]').every(chart => chart.querySelector('.main-svg'));
    let since = null;
    const look = () => {
        const now = performance.now();
        since = drawn() ? since ?? now : null;
        if (since !== null && now - since > 500) told(since / 1000);
        else requestAnimationFrame(look);
    };
    look();
})"""
FIRST = """() => new Promise(told => {
    const look = () => document.querySelector('[data-testid=stPlotlyChart] .main-svg, [data-testid=stMain] canvas')
        ? told(performance.now() / 1000) : requestAnimationFrame(look);
    look();
})"""
EITHER = f"Promise.race([({FIRST})(), ({DRAWN})()])"
PATIENCE_MS = 120_000
ALL, ASKED_S = "all", 2.0


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="54 days on 16,384 accelerators")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--pages", default="", help="names of some, with commas between")
    parser.add_argument("--fresh", action="store_true", help="each in a browser that has nothing yet, the server warm")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder) / "store"
        place = workspace(str(store))
        if not asked.store:
            load(str(store))
        runs = [run for run in place.store.runs() if asked.run in (ALL, run.manifest.name, run.run_id)]
        names = [name for name in asked.pages.split(",") if name]
        pages = [p for p in every_page() if p.file and p.about and (not names or p.name in names)]
        of = [(p, run) for run in runs for p in pages if p.tells_of(run)]
        load_before = os.getloadavg()[0]
        with serving(store, Waits()) as (address, _):
            if asked.fresh:
                asyncio.run(warmed(address, [(page.path, f"run={run.run_id}") for page, run in of]))
                told = [
                    (f"{run.manifest.name[:40]:40} {page.name}", f"{address}/{page.path}?run={run.run_id}")
                    for page, run in of
                ]
                _fresh(told, asked.times)
            else:
                links = [(page.name, f"{address}/{page.path}?run={run.run_id}") for page, run in of]
                _walk(links, asked.times, Path(folder) / "profile")
        print(f"load of the machine {load_before:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


def _walk(pages: list[tuple[str, str]], times: int, profile: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=chromium(),
            args=["--headless", "--no-sandbox"],
            viewport={"width": 1440, "height": 900},
        )
        _opened(context, pages[0][1].split("?")[0])  # what a browser fetches once of all pages
        for name, address in pages:
            cold, *warm = (_opened(context, address) for _ in range(1 + times))
            median, worst = statistics.median(warm), max(warm)
            print(f"{name:16} cold {cold:6.2f} s   warm {median:5.2f} s, worst {worst:5.2f} s of {times}", flush=True)
        context.close()


def _fresh(pages: list[tuple[str, str]], times: int) -> None:
    worst: list[tuple[float, str]] = []
    with browser() as unwatched:
        for name, address in pages:
            seconds = [unwatched.fresh(address, EITHER) for _ in range(times)]
            worst.append((statistics.median(seconds), name))
            print(f"{name:60} {worst[-1][0]:5.2f} s, worst {max(seconds):5.2f} s of {times}", flush=True)
    worst.sort(reverse=True)
    late = sum(s > ASKED_S for s, _ in worst)
    median = statistics.median(s for s, _ in worst)
    print(f"{len(worst)} pages: median {median:.2f} s, worst {worst[0][0]:.2f} s, {late} over {ASKED_S:.0f} s")


def _opened(context: Any, address: str) -> float:
    """Seconds from the begin of a new tab's navigation until the page is drawn."""
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE_MS)
    tab.goto(address)
    seconds = tab.evaluate(DRAWN)
    tab.close()
    return seconds


if __name__ == "__main__":
    main(sys.argv[1:])
