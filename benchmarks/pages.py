"""Every page of one run: how long a browser waits until it is drawn.

    python -m benchmarks.pages [--run "54 days on 16,384 accelerators"] [--store FOLDER] [--times 5] [--pages mfu,steps]

A store of the bundled runs is made, or the one named is taken as it is. In Chromium against `chipledger serve` in a
process of its own, each page that tells of the run is opened `1 + times` times, from a new tab. It is drawn at the
first moment from which on, for half a second, its script has ended, nothing is stale or waited for, and each figure has
its picture. Seconds are the tab's own, from the begin of its navigation:

    cold   the first opening: its question is answered
    warm   those that follow, as median and worst
"""

import argparse
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
PATIENCE_MS = 120_000


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="54 days on 16,384 accelerators")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--pages", default="", help="names of some, with commas between")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder) / "store"
        place = workspace(str(store))
        if not asked.store:
            load(str(store))
        run = next(run for run in place.store.runs() if asked.run in (run.manifest.name, run.run_id))
        names = [name for name in asked.pages.split(",") if name]
        pages = [p for p in every_page() if p.file and p.about and p.tells_of(run) and (not names or p.name in names)]
        load_before = os.getloadavg()[0]
        with serving(store, Waits()) as (address, _):
            _walk(
                [(page.name, f"{address}/{page.path}?run={run.run_id}") for page in pages],
                asked.times,
                Path(folder) / "profile",
            )
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
