"""Goodput of a log with a million entries, side by side with ml-goodput-measurement, each in a process of its own.

    python -m benchmarks.goodput [--runs 3] [--entries 1000000] [--interruptions 466] [--shape loading]

The log is one job's, made here: starts, initialisation, a step of 14 s and its data loading over and over, a checkpoint
every 100 steps, an evaluation every 1,000, failures after which the steps since the checkpoint are taken again. With a
million entries that is a run of 54 days, and 466 interruptions are what was published of one (Llama 3). The library
goes through all entries again at each of them, so that the ratio grows with them; `--interruptions 8` is a quiet job.
Each entry is what Cloud Logging exports, about 400 bytes. Shapes: `steps` (steps alone), `loading` (with the two
entries of each data loading, as MaxText writes them), `pretty` (an indented array, as `gcloud logging read
--format=json` prints it), `grpc` (whole numbers as floats, keys in any order).

Compared, whole processes from start to exit:

    exact         the collector reads the file, our analyzer answers by the exact rules
    ml-goodput    the same, by that library's rules
    ingest+show   `chipledger ingest` and then `chipledger show RUN goodput`: two processes, all tables stored
    library       json.loads of each entry, then GoodputCalculator.get_job_goodput and get_job_goodput_details

Seconds inside the processes are told apart: reading, and answering from what was read. The library has no reader for
files: it is given the payloads where it would have fetched them from Cloud Logging. Ratios are told with parsing on
both sides and without it on both; they are of medians of runs taken in turn. Wall-clock times differ between machines:
reading uses all cores, the library one.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.xplane_ingest import Measured, run

JOB = "benchmark-run"
START_S = 1_767_571_200.0
SAVE_EVERY, EVALUATE_EVERY = 100, 1_000
STARTING = (
    ("job_start_time", 0),
    ("tpu_init_start_time", 1),
    ("tpu_init_end_time", 30),
    ("training_prep_start_time", 1),
    ("training_prep_end_time", 20),
)
SHAPES = ("loading", "steps", "pretty", "grpc")

LIBRARY = """
import datetime, json, sys, tempfile, time
begin = time.perf_counter()
from ml_goodput_measurement.src import goodput
imported = time.perf_counter()
text = open(sys.argv[1]).read()
if text.startswith("["):
    entries = json.loads(text)
else:
    entries = [json.loads(line) for line in text.splitlines()]
payloads = [entry["jsonPayload"] for entry in entries]
last = (datetime.datetime.fromisoformat(entries[-1]["timestamp"]), entries[-1]["insertId"])
parsed = time.perf_counter()

class Given:
    "Stands where the library fetches: hands over the payloads, oldest first."
    def read_cloud_logging_entries(self, start_time=None, end_time=None, last_entry_info=None):
        return payloads, last

calculator = goodput.GoodputCalculator(sys.argv[2], "log", Given(), cache_dir=tempfile.mkdtemp())
share, badput, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
calculator.get_job_goodput_details()
print(json.dumps({"import": imported - begin, "read": parsed - imported, "answer": time.perf_counter() - parsed,
                  "share": share / 100}))
"""


def payloads(count: int, interruptions: int, loading: bool) -> Iterator[tuple[float, dict[str, Any]]]:
    """(time, payload) of about `count` entries of one job, without its last: the end."""
    draw = random.Random(4)
    steps = max(1, round(count / (3.03 if loading else 1.03)))  # of all attempts
    now, step = START_S, 0
    for attempt in range(interruptions + 1):
        for key, after in STARTING:
            now += after
            yield now, {key: now}
        for _ in range(steps * attempt // (interruptions + 1), steps * (attempt + 1) // (interruptions + 1)):
            if loading:
                yield now, {"data_loading_start_time": now}
                now += draw.uniform(0.01, 0.2)
                yield now, {"data_loading_end_time": now}
            yield now, {"step_count": step, "step_start_time": now}
            now += draw.uniform(13.5, 14.5)
            if step % SAVE_EVERY == SAVE_EVERY - 1:
                yield now, checkpoint(step, now)
                now += 5.5
            if step % EVALUATE_EVERY == EVALUATE_EVERY - 1:
                for side in ("start", "end"):
                    yield now, {"custom_badput_event_type": "eval", f"custom_badput_event_{side}_time": now}
                    now += 60
            step += 1
        now += 600
        step -= step % SAVE_EVERY


def checkpoint(step: int, now: float) -> dict[str, Any]:
    """A save as Orbax logs it."""
    spans = {"wait_for_prev": 0.0, "checkpointer_blocking": 4.25, "get_old_steps": 0.5}
    spans["checkpoint_manager_blocking"] = 5.5
    return {
        "event_type": "save",
        "step": step,
        "directory": "gs://bucket/run",
        "reached_preemption": False,
        "preemption_received_at": None,
        "synchronous": True,
        "time_between_consecutive_saves_sec": None,
        **{f"{name}_start_time": now for name in spans},
        **{f"{name}_duration_secs": s for name, s in spans.items()},
    }


def write_log(path: Path, count: int, interruptions: int, shape: str) -> int:
    """Write the log; returns how many entries it has."""
    draw, number, now = random.Random(7), 0, START_S
    with path.open("w") as f:
        f.write("[\n" if shape == "pretty" else "")

        def put(at: float, payload: dict[str, Any]) -> None:
            nonlocal number, now
            stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            payload = {"job_name": JOB, **payload}
            if shape == "grpc":
                items = [(k, float(v) if type(v) is int else v) for k, v in payload.items()]
                draw.shuffle(items)
                payload = dict(items)
            entry = {
                "insertId": f"{number:014x}",
                "jsonPayload": payload,
                "labels": {"python_logger": f"_ml_goodput_async.goodput_{JOB}.1"},
                "logName": f"projects/p/logs/goodput_{JOB}",
                "receiveTimestamp": stamp,
                "resource": {"labels": {"project_id": "p"}, "type": "global"},
                "severity": "INFO",
                "timestamp": stamp,
            }
            if shape == "pretty":
                f.write(",\n" if number else "")
                f.write("  " + json.dumps(entry, indent=2).replace("\n", "\n  "))
            else:
                f.write(json.dumps(entry) + "\n")
            number, now = number + 1, at

        for at, payload in payloads(count, interruptions, shape != "steps"):
            put(at, payload)
        put(now + 2, {"job_end_time": now + 2})
        f.write("\n]\n" if shape == "pretty" else "")
    return number


def in_one_process(rules: str) -> Callable[[Path, Path], list[Measured]]:
    return lambda log, scratch: [run([sys.executable, "-m", "benchmarks.goodput_answer", str(log), rules])]


def ingest_and_show(log: Path, scratch: Path) -> list[Measured]:
    store = scratch / "store"
    shutil.rmtree(store, ignore_errors=True)
    chipledger = [sys.executable, "-m", "app.cli", "--store", str(store)]
    stored = run([*chipledger, "ingest", str(log), "--name", "log", "--chips", "1", "--json"])
    return [stored, run([*chipledger, "show", "log", "goodput", "--json"])]


def library(log: Path, scratch: Path) -> list[Measured]:
    return [run([sys.executable, "-c", LIBRARY, str(log), JOB])]


def compare(entries: int, interruptions: int, shape: str, runs: int) -> None:
    peers = {
        "exact": in_one_process("exact"),
        "ml-goodput": in_one_process("ml-goodput"),
        "ingest+show": ingest_and_show,
        "library": library,
    }
    with tempfile.TemporaryDirectory(prefix="chipledger-benchmark-") as folder:
        scratch = Path(folder)
        log = scratch / "goodput.json"
        count = write_log(log, entries, interruptions, shape)
        print(f"log: {shape}, {count:,} entries, {interruptions} interruptions, {log.stat().st_size / 1e6:.0f} MB")
        taken: dict[str, list[list[Measured]]] = {name: [] for name in peers}
        for _ in range(runs):
            for name, measure in peers.items():
                taken[name].append(measure(log, scratch))
    report(taken)


def report(taken: dict[str, list[list[Measured]]]) -> None:
    """Prints medians of all runs, and how many times as long the library took as each way of ours."""
    said = {name: [json.loads(processes[-1].output) for processes in all_runs] for name, all_runs in taken.items()}
    walls = {name: sorted(sum(m.wall_s for m in processes) for processes in runs) for name, runs in taken.items()}
    theirs = statistics.median(walls["library"])
    head = ("wall s", 9), ("min", 8), ("max", 8), ("read s", 8), ("answer s", 10), ("peak MB", 9), ("goodput", 10)
    print(" " * 12 + "".join(f"{title:>{width}}" for title, width in head) + "  library takes")
    for name, all_runs in taken.items():
        wall = statistics.median(walls[name])
        read, answer = (f"{seconds:.2f}" if seconds else "" for seconds in inside(said[name]))
        peak = max(m.peak_bytes for processes in all_runs for m in processes) / 1e6
        share = said[name][-1].get("share", said[name][-1].get("goodput_share"))
        print(
            f"{name:12}{wall:9.2f}{walls[name][0]:8.2f}{walls[name][-1]:8.2f}{read:>8}{answer:>10}{peak:9.0f}"
            f"{share:10.4%}{theirs / wall:10.1f} x"
        )
    parsed, answered = inside(said["library"])
    for name in ("exact", "ml-goodput"):
        read, answer = inside(said[name])
        print(
            f"{name}: file to answer {read + answer:.2f} s, library {(parsed + answered) / (read + answer):.1f} x; "
            f"answer alone {answer:.2f} s, library {answered / answer:.1f} x"
        )


def inside(said: list[dict[str, Any]]) -> tuple[float, float]:
    """Median seconds of (reading, answering) as the processes told them; 0 where they did not."""
    return tuple(statistics.median(one.get(key, 0.0) for one in said) for key in ("read", "answer"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="measured runs of each, taken in turn")
    parser.add_argument("--entries", type=int, default=1_000_000, help="entries of the log")
    parser.add_argument("--interruptions", type=int, default=466, help="how often the job starts anew")
    parser.add_argument("--shape", choices=SHAPES, default="loading", help="what the log looks like")
    given = parser.parse_args()
    compare(given.entries, given.interruptions, given.shape, given.runs)


if __name__ == "__main__":
    main()
