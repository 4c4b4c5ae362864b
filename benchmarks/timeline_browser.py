"""The timeline in a browser: how long until there is a picture, how evenly it is drawn along, how soon it is sharp.

    python -m benchmarks.timeline_browser --store FOLDER [--run NAME] [--zooms 60] [--width 1440] [--height 900]

A store with a run of many events is named. In Chromium with software rendering, against `chipledger serve` in a process
of its own, the run's timeline is opened once to warm the server, and then in a new tab:

    picture   from the moment at which the viewer stands on the page until its marks are drawn sharp
    drag      frames in a second while the mouse draws the picture along, by the stamps of animation frames; 95th of
              100 of the times between two
    scroll    the same while the wheel scrolls the lanes, of a run with more than fit
    zoom      from a turn of the wheel, by a random factor at a random place, until marks are drawn sharp; median, 95th
              of 100, worst
    bytes     of the answers that a view took, as they came over the wire and as they are unpacked
    memory    by how much the server grew for each of SESSIONS more tabs that are open and were zoomed in as often

and the load of the machine before and after. Runs of many lanes: `benchmarks.timeline --keep FOLDER --devices 1024`. On
2 cores at a load of 6, lanes of 1,024 devices (3,072) scrolled at 59.9 frames/s, those of 4,096 (12,288) at 60.0.
"""

import argparse
import os
import random
import statistics
import sys
from pathlib import Path
from typing import Any

from app.cli.commands.doctor import chromium
from app.workspace import workspace
from benchmarks.library import Waits, serving
from benchmarks.load import Server

PATIENCE_MS = 300_000
SESSIONS = 5
DRAG_PX, SCROLL_PX, MOVES = 500, 120, 400
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")
WATCH = """(() => {
    const roots = [document], attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function (how) {
        const made = attach.call(this, how); roots.push(made); return made };
    window.found = () => { for (const r of roots) { const one = r.querySelector?.('.timeline'); if (one) return one } };
    const busy = () => found()?.querySelector('.stage').getAttribute('aria-busy');
    const look = () => { const now = performance.now();
        if (found()) window.stood ??= now;
        if (busy() === 'false') { window.drawn = now; return }
        requestAnimationFrame(() => setTimeout(look)) };
    look();
    window.stamps = [];
    const stamp = t => { stamps.push(t); requestAnimationFrame(stamp) };
    requestAnimationFrame(stamp);
    addEventListener('wheel', () => { const began = performance.now(); window.took = null;
        const wait = () => requestAnimationFrame(() => setTimeout(() => {
            if (busy() === 'false') window.took = performance.now() - began; else wait() }));
        wait() }, { capture: true });
})()"""
GOT = """() => { const all = performance.getEntriesByType('resource').filter(e => e.name.includes('/timeline'));
    performance.clearResourceTimings();
    return all.map(e => [e.name.includes('/tiles'), e.encodedBodySize, e.decodedBodySize]) }"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--run", default="", help="its name or its id; default: the first of the store")
    parser.add_argument("--zooms", type=int, default=60)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    asked = parser.parse_args(arguments)
    runs = workspace(str(asked.store)).store.runs()
    run = next(run for run in runs if asked.run in ("", run.manifest.name, run.run_id))
    load = os.getloadavg()[0]
    with serving(asked.store, Waits()) as (address, pid):
        page = f"{address}/timeline?run={run.run_id}"
        told = measured(page, Server(pid), asked.zooms, asked.width, asked.height)
    print(f"{run.manifest.name}, {asked.width} x {asked.height} pixels")
    for line in told:
        print(f"  {line}")
    print(f"  load    {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


def measured(address: str, server: Server, zooms: int, width: int, height: int) -> list[str]:
    """What is measured of a timeline, a line each."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        context = browser.new_context(viewport={"width": width, "height": height})
        context.set_default_timeout(PATIENCE_MS)
        _opened(context, address).close()
        tab = _opened(context, address)
        lines = [f"picture {tab.evaluate('drawn - stood'):.0f} ms", _bytes("the first view", tab.evaluate(GOT))]
        lines += [*_zoomed(tab, zooms), _dragged(tab), _scrolled(tab), _sessions(context, address, server, zooms)]
        browser.close()
    return lines


def _opened(context: Any, address: str) -> Any:
    tab = context.new_page()
    tab.add_init_script(WATCH)
    tab.goto(address)
    tab.wait_for_function("() => window.drawn")
    tab.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    tab.locator(".timeline .picture").scroll_into_view_if_needed()
    return tab


def _sessions(context: Any, address: str, server: Server, zooms: int) -> str:
    before = server.resident()
    for _ in range(SESSIONS):
        _zoomed(_opened(context, address), zooms)
    each = (server.resident() - before) / SESSIONS / 2**20
    return f"memory  {each:.1f} MiB more for each of {SESSIONS} sessions more; {before / 2**20:,.0f} before"


def _dragged(tab: Any) -> str:
    box = tab.locator(".timeline .picture").bounding_box()
    x, y = box["x"] + box["width"] * 0.8, box["y"] + 120
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.evaluate("stamps.length = 0")
    for i in range(MOVES):
        tab.mouse.move(x - DRAG_PX * i / MOVES, y)
    told = _frames(tab)
    tab.mouse.up()
    return f"drag    {told}, {tab.evaluate('found().viewer.seen.length')} rows"


def _scrolled(tab: Any) -> str:
    box = tab.locator(".timeline .picture").bounding_box()
    tab.mouse.move(box["x"] + 60, box["y"] + 120)
    tab.evaluate("stamps.length = 0")
    for i in range(MOVES):
        tab.mouse.wheel(0, SCROLL_PX if i < MOVES // 2 else -SCROLL_PX)
    told, lanes = _frames(tab), tab.evaluate("found().viewer.of.lanes.length")
    high = tab.evaluate("(s => s.scrollHeight - s.clientHeight)(found().querySelector('.stage'))")
    return f"scroll  {told}, {lanes:,} lanes" if high > 0 else f"scroll  all of {lanes} lanes fit"


def _frames(tab: Any) -> str:
    stamps = tab.evaluate("[...stamps]")
    apart = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
    return f"{1000 * len(apart) / (stamps[-1] - stamps[0]):.1f} frames/s, 95th {_nth(apart, 0.95):.0f} ms apart"


def _zoomed(tab: Any, zooms: int) -> list[str]:
    rng, took, bytes_ = random.Random(1), [], []
    box = tab.locator(".timeline .picture").bounding_box()
    depth = 0.0
    for _ in range(zooms):
        turn = rng.uniform(200, 900) * (1 if rng.random() < depth / 6000 else -1)
        depth = max(depth - turn, 0.0)
        tab.evaluate("window.took = null")
        tab.mouse.move(box["x"] + rng.uniform(0.25, 0.95) * box["width"], box["y"] + 100)
        tab.mouse.wheel(0, turn)
        tab.wait_for_function("() => window.took !== null")
        took.append(tab.evaluate("took"))
        bytes_.append(tab.evaluate(GOT))
    worst = max(bytes_, key=lambda got: sum(wire for _, wire, _ in got))
    times = f"median {statistics.median(took):.0f} ms, 95th {_nth(took, 0.95):.0f} ms, worst {max(took):.0f} ms"
    return [f"zoom    {times}", _bytes("the worst zoom", worst)]


def _bytes(what: str, got: list[tuple[bool, int, int]]) -> str:
    wire, plain = sum(wire for _, wire, _ in got), sum(plain for _, _, plain in got)
    return f"bytes   {wire:,} for {what}, in {len(got)} answers, {plain:,} unpacked"


def _nth(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


if __name__ == "__main__":
    main(sys.argv[1:])
