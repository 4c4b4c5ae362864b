"""The library with many runs: a store of 10,000, and how long a browser and the API wait for it.

    python -m benchmarks.library [--store FOLDER] [--runs 10000] [--times 10] [--no-browser] [--registry-file FILE]

The store is made of a few small runs, each of other chips, names and lengths, whose folders are copied under ids of
their own: tables are hard links, each `run.json` is its own. A tenth has tags, notes, stars or a group, a twentieth is
archived. Numbers of the rows (`glimpses`) are kept, as once a server has worked them out. A folder that holds a
store already is measured as it is. Measured, in Chromium against `chipledger serve` in a process of its own:

    cold      from the server's start to its first answer, and from that to its first list of runs (`/api/runs`)
    paint     from navigation to the first row drawn, in a browser that was there before
    search    from Enter in the search field to the first row of what was found
    memory    resident bytes of the server after all of it

Each is given as median, 95th of 100 and worst of `--times`, with the load of the machine (`os.getloadavg`) before and
after.
"""

import argparse
import hashlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from analyzers.fleet.spent import ID_LENGTH
from app.cli.commands.doctor import chromium
from app.library.answers import glimpse_of
from app.library.working import key_of
from app.registry_place import FILE_VARIABLE
from app.workspace import Workspace, workspace
from runs.database import put
from runs.registry import Extras
from runs.run import MANIFEST, Run, facts_of
from runs.schema import SCHEMAS
from runs.shelf import Shelf

S = 1_000_000_000
PATTERNS = 12
START_NS, DAY_S = 1_700_000_000 * S, 86_400
CHIPS = (("TPU v5p", 459e12, 256), ("TPU v5e", 197e12, 64), ("H100 SXM", 989e12, 128), ("TPU v6e", 918e12, 32))
MODELS = ("llama2-7b", "llama2-70b", "gpt3-175b", "mixtral-8x7b")
PROJECTS = ("pretraining", "ablations", "long-context", "serving")
WORDS = ("llama", "mixtral", "sweep", "baseline", "retry", "fp8", "fsdp", "warmup", "longctx", "dpo")
SEARCHES = ("retry", "chip:v5p mfu<45", "tag:prod", "is:starred", "sweep fp8 -tag:old", "goodput>80")
ROW = "tbody tr a[href*='/findings?run=']"
COUNTED = re.compile(r"^[\d,]+ runs?( of [\d,]+)?$")
CHANGED = """before => [...document.querySelectorAll('p')].some(
    p => /^[\\d,]+ runs?( of [\\d,]+)?$/.test(p.textContent) && p.textContent !== before)"""
START_S, COLD_S = 120.0, 1800.0


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--no-browser", action="store_true", help="ask the API alone")
    parser.add_argument(
        "--registry-file", help="a file with the address of a registry on PostgreSQL, of this store or none"
    )
    asked = parser.parse_args(arguments)
    more = {FILE_VARIABLE: asked.registry_file} if asked.registry_file else {}
    os.environ.update(more)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder) / "store"
        if not (store / "runs").is_dir():
            began = time.monotonic()
            make(store, asked.runs)
            print(f"made {asked.runs:,} runs in {time.monotonic() - began:.0f} s", flush=True)
        for line in measure(store, asked.times, browser=not asked.no_browser, **more):
            print(line, flush=True)


def make(store: Path, count: int) -> None:
    """A store of so many runs."""
    place = workspace(str(store))
    patterns = [_pattern(place, number) for number in range(PATTERNS)]
    told = [(run, glimpse_of(run, place.registry).to_json()) for run in patterns]
    rng, shelf = random.Random(1), Shelf(place.registry.at)
    copies = [_copy(place, *rng.choice(told), number, rng) for number in range(count - len(patterns))]
    _keep_numbers(shelf, [(r.run_id, key_of(r, Extras()), text) for r, text in copies])
    ids = [run.run_id for run, _ in copies]
    add_to_runs(ids, count, rng, shelf)


def add_to_runs(ids: list[str], count: int, rng: random.Random, shelf: Shelf) -> None:
    """What people say of so many runs: tags, stars, groups and notes of some, some put away."""
    rng.shuffle(ids)
    tenth = max(count // 10, 1)
    shelf.tag(ids[:tenth], {"prod": ""})
    shelf.tag(ids[tenth : 2 * tenth], {"team": "research", "old": ""})
    shelf.star(ids[::17])
    shelf.archive(ids[::20])
    for number, project in enumerate(PROJECTS):
        shelf.group(ids[number::10], project, f"experiment {number}")
    for run_id in ids[:: max(count // 200, 1)]:
        shelf.add_note(run_id, "Diverged after the *second* restart.", "ann")


def _pattern(place: Workspace, number: int) -> Run:
    """A small training run: steps of one pace, with a save now and then."""
    chip, peak, chips = CHIPS[number % len(CHIPS)]
    steps, step_s = 60 + 20 * number, 4.0 + number
    begin_ns = START_NS + number * 8 * DAY_S * S
    starts = [begin_ns + int(n * step_s * S) for n in range(steps)]
    columns = {
        "step": list(range(steps)),
        "start_ns": starts,
        "attempt": [0] * steps,
        "order": list(range(steps)),
        "model_flops_per_chip": [(0.3 + 0.02 * number) * peak * step_s] * steps,
        "loss": [3.0 - 0.001 * n for n in range(steps)],
    }
    saves = {
        "kind": ["job", "checkpoint_save"],
        "start_ns": [begin_ns - 60 * S, starts[30]],
        "end_ns": [starts[-1] + 90 * S, starts[30] + (1 + number % 5) * S],
        "order": [0, 1],
    }
    facts = {"chip": chip, "chips": chips, "model": MODELS[number % len(MODELS)], "peak_flops_per_s": peak}
    facts |= {"usd_per_chip_hour": 1.5 + number / 10} if number % 2 else {}
    with place.store.writer() as writer:
        for table, rows in (("steps", columns), ("lifecycle", saves)):
            more = {"source": ["made.jsonl"] * len(rows["order"])}
            writer.rows(table, SCHEMAS[table].batch({**rows, **more}))
        digest = hashlib.sha256(f"pattern {number}".encode()).hexdigest()
        sources = [{"name": "made.jsonl", "sha256": digest, "bytes": 1, "collector": "test"}]
        return writer.commit(
            run_id=digest, name=f"pattern {number}", kind="training", facts=facts_of(facts), sources=sources
        )


def _copy(place: Workspace, run: Run, told: str, number: int, rng: random.Random) -> tuple[Run, str]:
    """The run under another id and name, made of another file, written a while later."""
    digest = hashlib.sha256(f"copy {number}".encode()).hexdigest()
    run_id, sources = digest[: len(run.run_id)], [{**run.written.sources[0], "sha256": digest}]
    told = told.replace(run.written.sources[0]["sha256"][:ID_LENGTH], digest[:ID_LENGTH])
    folder = place.store.runs_folder / run_id
    for file in (f for f in run.folder.rglob("*") if f.is_file() and f.name != MANIFEST):
        target = folder / file.relative_to(run.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, target)
    name = f"{'-'.join(rng.sample(WORDS, 3))}-{number}"
    when_ns = START_NS + number * 3600 * S
    written = replace(run.written, run_id=run_id, name=name, created_ns=when_ns, sources=sources)
    (folder / MANIFEST).write_text(written.to_json())
    return Run(folder), told


def _keep_numbers(shelf: Shelf, rows: list[tuple[str, str, str]]) -> None:
    """In one transaction: ten thousand of them would take minutes."""
    with shelf._connect() as db:
        db.executemany(put("glimpses", "run_id", "key, told"), rows)


@dataclass
class Waits:
    """Seconds that were waited, by what for."""

    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def time(self, what: str, act: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        done = act()
        self.seconds.setdefault(what, []).append(time.perf_counter() - began)
        return done

    def lines(self) -> Iterator[str]:
        for what, took in self.seconds.items():
            late = sorted(took)[int(0.95 * len(took))]
            worst = f", 95th {1e3 * late:,.0f} ms, worst {1e3 * max(took):,.0f} ms of {len(took)}" if took[1:] else ""
            yield f"{what:34} median {1e3 * statistics.median(took):,.0f} ms{worst}"


def measure(store: Path, times: int, *, browser: bool = True, **env: str) -> Iterator[str]:
    """What is measured of a store, a line each."""
    from tests.app.serving import get

    load, waits = os.getloadavg(), Waits()
    with serving(store, waits, env=env) as (address, process):
        waits.time(
            "cold: first list of all (API)", lambda: urlopen(f"{address}/api/runs?limit=50", timeout=COLD_S).read()
        )
        for query in SEARCHES:
            for _ in range(times):
                waits.time("search (API)", lambda q=query: get(f"{address}/api/runs?limit=50&q={quote(q)}"))
        if browser:
            _in_a_browser(address, waits, times)
        yield from waits.lines()
        yield f"{'memory of the server':34} {_resident(process) / 2**20:,.0f} MiB"
    yield f"{'load of the machine':34} {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"


def _in_a_browser(address: str, waits: Waits, times: int) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--headless", "--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        for number in range(times + 1):
            page = context.new_page()
            what = "paint: list, first visit" if not number else "paint: list, warm"
            waits.time(what, lambda page=page: (page.goto(address), page.locator(ROW).first.wait_for(timeout=60_000)))
            if number:
                query = SEARCHES[number % len(SEARCHES)]
                _search(page, query, waits)
            page.close()
        browser.close()


def _search(page: Any, query: str, waits: Waits) -> None:
    """Type it, press Enter, and wait for another count and its first row."""
    page.wait_for_timeout(1500)  # what the page still draws
    count = page.get_by_text(COUNTED).first
    before, field_ = count.inner_text(), page.get_by_role("textbox", name="Search").first
    field_.fill(query)

    def found() -> None:
        field_.press("Enter")
        page.wait_for_function(CHANGED, arg=before, polling=10)
        page.locator(ROW).first.wait_for()

    waits.time("search: from Enter to its rows", found)


@contextmanager
def serving(
    store: Path, waits: Waits, log: Path = Path(os.devnull), env: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """(its address, its process id). `log`: where it writes what it says."""
    from tests.app.serving import environment, free_port, get

    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--store", str(store), "--port", str(port)]
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said, env=environment(**(env or {}))) as process,
    ):
        address = f"http://127.0.0.1:{port}"

        def answers() -> None:
            until = time.monotonic() + START_S
            while time.monotonic() < until:
                with suppress(OSError):
                    if get(f"{address}/healthz")[0] == 200:
                        return
                time.sleep(0.05)
            raise SystemExit("the server does not answer")

        try:
            waits.time("cold: the server's start", answers)
            yield address, process.pid
        finally:
            process.terminate()


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1:])
