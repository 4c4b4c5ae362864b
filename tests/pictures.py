"""`python -m tests.pictures [PAGE ...]` takes the pictures of the docs anew: every page of the bundled runs, in light.

Each is a WebP of at most 60 kB below docs/pictures; what stands on the page goes into docs/pictures/seen.json, from
which `make docs` writes what is on each page. What no bundled run tells is taken of runs made as the tests make them.
"""

import io
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from app.cli.commands.demo import load
from app.cli.commands.doctor import chromium
from app.manual.pictures import FOLDER, Seen, note, seen
from app.menu import Page
from app.pages.all import every_page
from app.questions import QUESTIONS
from benchmarks import kineto_trace
from collectors.ingest import ingest
from runs.run import Run
from runs.store import Store
from tests.analyzers import pipelines
from tests.app.made_runs import START_NS, step_columns, write
from tests.app.serving import get, serving
from tests.collectors import flight_dumps, test_flight_recorder

WIDTH, HEIGHT, SCALE = 1280, 1100, 0.75  # of the window, and of the picture in it
MOST_BYTES, MOST_BYTES_IN_ALL = 60_000, 2_500_000
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--force-color-profile=srgb")
FIRST = {  # the run that shows a page best; of others the first that answers, in the order of RUNS
    "goodput": "54 days on 16,384 accelerators",
    "interruptions": "54 days on 16,384 accelerators",
    "checkpoints": "54 days on 16,384 accelerators",
    "modules": "reference-pytorch",
    "timeline": "reference-pytorch",
    "engine": "reference-serving-client",
    "hlo_diff": "compiled-llama3.1-8b-v6e",
    "compare": "reference-serving",
}
RUNS = (
    "reference-training",
    "reference-pytorch",
    "reference-serving",
    "reference-serving-client",
    "compiled-llama3.1-8b-v6e",
    "54 days on 16,384 accelerators",
)
ASKED = {  # of pages that begin with an empty form; the name of a run stands for its id
    "topology": {"spec": "v5p:4x4x8"},
    "objectives": {"ttft_s": "0.5", "tpot_s": "0.05"},
    "hlo_diff": {"other_run": "compiled-llama3.1-8b-v5p"},
    "compare": {"with": "reference-serving-client"},
    "several": {"q": "reference"},
    "history": {"search": "nightly v5p"},
    "fleet": {"by": "chip", "every": "day", "since": "2026-11-01"},
}
OF_MANY = ("fleet", "several")
DAY_NS = 86_400 * 10**9
DRAWN = "[data-testid=stMain] [data-testid=stElementContainer]"
STAND = """() => [...document.querySelectorAll(
  '[data-testid=stMain] :is(summary, [data-testid=stMetricLabel], [role=tab], [data-testid=stMarkdown] strong)')]
  .filter((e) => e.matches('summary') || !e.closest('details'))
  .map((e) => { const texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), told = [];
    while (texts.nextNode()) {  // an icon is a word in a font of its own
      const { parentElement, data } = texts.currentNode;
      if (!getComputedStyle(parentElement).fontFamily.includes('Material')) told.push(data);
    }
    return told.join(''); })"""
ON_EVERY_PAGE = "How this is computed"
MARKS = "●◐○◆◇▨"
SETTLED = """() => !document.querySelector('[data-testid=stSpinner], [data-testid=stSkeleton]')
  && !document.querySelector('[data-testid=stApp][data-test-script-state=running]')
  && !document.querySelector('[data-stale=true]')"""


def address(page: Page, run: str | None, ids: Mapping[str, str]) -> str:
    """The page's address about a run, with what it is asked."""
    query = urlencode(asked(page, run, ids), safe=":")
    return f"/{page.path if page.name != 'library' else ''}{'?' + query if query else ''}"


def asked(page: Page, run: str | None, ids: Mapping[str, str]) -> dict[str, str]:
    """What stands in its address."""
    more = {key: ids.get(value, value) for key, value in ASKED.get(page.name, {}).items()}
    return ({"run": run} if run else {}) | more


def about(page: Page, runs: dict[str, Run], server: str) -> Run | None:
    """The run that its picture is taken of: one that answers."""
    names = dict.fromkeys((FIRST.get(page.name, RUNS[0]), *RUNS, *runs))
    for run in (runs[name] for name in names if name in runs):
        if page.tells_of(run) and _answers(page, run, server):
            return run
    return None


def _answers(page: Page, run: Run, server: str) -> bool:
    if page not in QUESTIONS or page.name in ASKED:
        return True
    return get(f"{server}/api/runs/{run.run_id}/show/{page.name}")[0] == 200


def worked_out(server: str) -> None:
    """Wait until the numbers of all runs are there: what is told of many runs at once lacks them until then."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and "pending" in get(f"{server}/api/fleet")[1]["left_out"]:
        time.sleep(1.0)


def opened(tab: Any, where: str) -> None:
    """Go there, and wait until nothing is drawn any more."""
    tab.goto(where)
    tab.wait_for_function(f"() => document.querySelectorAll('{DRAWN}').length > 1")
    quiet, deadline = 0, time.monotonic() + 90
    while quiet < 4 and time.monotonic() < deadline:
        tab.wait_for_timeout(400)
        quiet = quiet + 1 if tab.evaluate(SETTLED) else 0


def stands(tab: Any) -> tuple[str, ...]:
    """What is named on the page: figures, pictures, tabs and what opens; whatever holds a number is left out."""
    names = (" ".join(t.split()).rstrip(MARKS + ":, ").strip() for t in tab.evaluate(STAND))
    told = (n for n in names if 2 < len(n) < 70 and not any(c.isdigit() for c in n) and n != ON_EVERY_PAGE)
    return tuple(dict.fromkeys(told))


def webp(png: bytes) -> bytes:
    """The picture, as good as it fits."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for quality in (72, 60, 50, 40, 30):
        out = io.BytesIO()
        image.save(out, "WEBP", quality=quality, method=6)
        if out.tell() <= MOST_BYTES:
            break
    return out.getvalue()


def take(server: str, store: Store, names: list[str]) -> Iterator[tuple[Page, Seen, bytes]]:
    """Each page with what stands on it and its picture."""
    from playwright.sync_api import sync_playwright

    runs = {r.manifest.name: r for r in store.runs()}
    ids = {name: run.run_id for name, run in runs.items()}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        size = {"width": WIDTH, "height": HEIGHT}
        tab = browser.new_page(viewport=size, device_scale_factor=SCALE, color_scheme="light")
        for page in (*every_page()[1:], every_page()[0]):  # the library, when ledgers were computed
            if names and page.name not in names:
                continue
            run = about(page, runs, server) if page.about else None
            if page.name in OF_MANY:
                worked_out(server)
            opened(tab, server + address(page, run.run_id if run else None, ids))
            told = Seen(run.manifest.name if run else "", stands(tab))
            yield page, told, webp(tab.screenshot())
        browser.close()


def make(folder: Path) -> None:
    """Runs of what no bundled one tells: a late host before GPUs, a job that hangs, a pipeline with a slow stage, a GPU
    that heat holds down, a job of every night."""
    slow = lambda step, dp, stage, batch: (30 if (dp, stage) == (1, 0) else 10) * pipelines.MS  # noqa: E731
    kineto_trace.write(folder / "rank-0.pt.trace.json", 1_000_000)
    dump = folder / "nccl_trace_rank_2"
    dump.write_bytes(flight_dumps.pickled(test_flight_recorder.WHOLE))
    table = folder / "pipeline.parquet"
    pq.write_table(pipelines.Pipelines(forward=slow, steps=4).tables().arrow("pipeline"), table)
    store = Store(folder / "store")
    for name, path in (("gpu-trace", folder / "rank-0.pt.trace.json"), ("hung-job", dump), ("pipeline", table)):
        ingest([path], store, name=name)
    ingest(hot(folder / "hot"), store, name="hot-gpu", chips=8)
    nights(store)


def hot(folder: Path) -> list[Path]:
    """What nvidia-smi and Megatron-LM write of ten minutes in which one of eight GPUs becomes too hot."""
    folder.mkdir()
    head = "timestamp, index, name, power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz], "
    samples, lines = [head + "clocks_event_reasons.hw_thermal_slowdown"], list[str]()
    for second in range(0, 600, 5):
        for gpu in range(8):
            at = f"2026/07/31 00:{second // 60:02}:{second % 60:02}.000"
            state = "420 W, 700 W, 87, 1230 MHz, Active" if gpu == 5 and second >= 300 else ""
            state = state or f"{640 - 5 * gpu} W, 700 W, {60 + gpu}, 1755 MHz, Not Active"
            samples.append(f"{at}, {gpu}, NVIDIA H100 80GB HBM3, {state}")
    took, ended = [1.0] * 300 + [1.4] * 210, 0.0
    for step, seconds in enumerate(took, 1):
        ended += seconds
        at = f"2026-07-31 00:{int(ended // 60):02}:{ended % 60:09.6f}"
        lines.append(
            f" [{at}] iteration {step:8}/    1000 | consumed samples: {64 * step} | elapsed time per iteration (ms): "
            f"{seconds * 1000:.1f} | global batch size:    64 | lm loss: 2.0E+00 |"
        )
    paths = [folder / "gpu.csv", folder / "train.log"]
    for path, text in zip(paths, (samples, lines), strict=True):
        path.write_text("\n".join(text) + "\n")
    return paths


def nights(store: Store) -> None:
    """30 runs of a job, the newest of which is a month old: from the eighteenth on its steps take 5 % longer."""
    rng, first = np.random.default_rng(22), START_NS - 90 * DAY_NS
    for n in range(30):
        took = (0.0 if n < 17 else 0.05) + 1 + 0.006 * rng.normal() + 0.02 * rng.normal(size=60)
        columns = step_columns(took * 1e9, first + n * DAY_NS)
        facts = {"chip": "TPU v5p", "chips": 4, "n": n}
        write(store, "nightly", {"steps": columns}, facts, tags={"commit": f"c{n // 2:02d}"})


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        load(f"{folder}/store")  # last, since the library shows the newest first
        taken = dict(seen()) if names else {}
        with serving(Path(folder) / "store") as server:
            for page, told, picture in take(server, Store(Path(folder) / "store"), names):
                (FOLDER / f"{page.name}.webp").write_bytes(picture)
                taken[page.name] = told
                print(f"{page.name}: {told.run or 'no run'}, {len(picture):,} bytes, {len(told.headings)} names")
    note(taken)


if __name__ == "__main__":
    main(sys.argv[1:])
