"""A large upload: what it costs the server's memory, and how long others wait meanwhile.

    python -m benchmarks.upload [--gb 2] [--store FOLDER] [--way push|put] [--link-mb-per-s 0]

Against `chipledger serve` over a store of its own, or over the one that is named: memory at rest (resident set, after
each kind of request was made once), then `chipledger push` sends a file of random bytes while one person asks for runs,
health and a run's answer in turn, 20 times a second at most. Told are the largest resident set meanwhile less that at
rest, the rate, and how long others waited: median, 95th percentile, worst. `put`: the same file by one plain PUT.

The page cache of the machine is no part of a resident set. Sender and server share the machine: its rate is no measure
of a network's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from app.client import Client
from benchmarks.library import Waits, serving

PAUSE_S = 0.05
BLOCK = 1 << 24
ASKED = ("/healthz", "/api/runs", "/api/jobs")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--way", choices=("push", "put"), default="push")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = _made(Path(folder) / "core.bin", int(asked.gb * 1e9))
        with serving(asked.store or Path(folder) / "store", Waits()) as (address, pid):
            print(json.dumps(measured(address, pid, file, asked.way), indent=1))


def measured(address: str, pid: int, file: Path, way: str) -> dict[str, float | str]:
    """What one upload costs."""
    for _ in range(3):
        waited(address)
    time.sleep(2)
    rest_b, seen, others, over = _resident(pid), [0], [], threading.Event()
    quiet = sorted(s for _ in range(40) for s in waited(address))

    def watch() -> None:
        while not over.is_set():
            seen[0] = max(seen[0], _resident(pid))
            time.sleep(0.02)

    def ask() -> None:
        while not over.is_set():
            others.extend(waited(address))

    threads = [threading.Thread(target=one) for one in (watch, ask)]
    for thread in threads:
        thread.start()
    began_s = time.monotonic()
    (_push if way == "push" else _put)(address, file)
    took_s = time.monotonic() - began_s
    over.set()
    for thread in threads:
        thread.join()
    n_bytes = file.stat().st_size
    return {
        "way": way,
        "bytes": n_bytes,
        "took_s": round(took_s, 2),
        "bytes_per_s": round(n_bytes / took_s),
        "resident_at_rest_bytes": rest_b,
        "resident_above_bytes": seen[0] - rest_b,
        "others_requests": len(others),
        "others_median_s": round(statistics.median(others), 4),
        "others_p95_s": round(statistics.quantiles(others, n=20)[-1], 4),
        "others_worst_s": round(max(others), 4),
        "others_p95_at_rest_s": round(statistics.quantiles(quiet, n=20)[-1], 4),
    }


def waited(address: str) -> list[float]:
    """Seconds that each request took."""
    found = []
    for path in ASKED:
        began_s = time.monotonic()
        with urllib.request.urlopen(address + path, timeout=60) as answer:
            answer.read()
        found.append(time.monotonic() - began_s)
        time.sleep(PAUSE_S)
    return found


def _push(address: str, file: Path) -> None:
    """As a job does it, in a process of its own; what is no log becomes no run, which is not measured here."""
    words = [sys.executable, "-m", "app.cli", "push", str(file), "--server", address]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _put(address: str, file: Path) -> None:
    with Client(address) as client:
        upload_id = client._door.json("POST", "/api/uploads")["upload_id"]
    words = ["curl", "-sS", "--fail", "-T", str(file), f"{address}/upload/{upload_id}/{file.name}"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _made(path: Path, n_bytes: int) -> Path:
    with path.open("wb") as f:
        while f.tell() < n_bytes:
            f.write(os.urandom(min(BLOCK, n_bytes - f.tell())))
    return path


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1:])
