"""A registry that is locked for long, gone or corrupt; a job that is killed."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.faults.kills.servers import ask
from benchmarks.faults.kills.state import leaks, look
from benchmarks.faults.scenarios.places import a_run, ingest, serving, upload
from benchmarks.faults.scenarios.told import Told


def registry_locked(told: Told, folder: Path) -> None:
    with serving(folder / "store") as server:
        run = a_run(server.port, 1)
        db = sqlite3.connect(folder / "store" / "registry.db", isolation_level=None)
        db.execute("begin immediate")
        answers: list[Any] = []
        began = time.monotonic()
        threads = [
            threading.Thread(
                target=lambda n=n: answers.append(ask(server.port, "POST", f"/api/runs/{run}/notes", {"text": f"{n}"}))
            )
            for n in range(60)
        ]
        for thread in threads:
            thread.start()
        slowest = 0.0
        while any(t.is_alive() for t in threads) and time.monotonic() - began < 60:
            at = time.monotonic()
            told.done(ask(server.port, "GET", "/healthz"), "health while it is locked")
            slowest = max(slowest, time.monotonic() - at)
            time.sleep(0.2)
        took = time.monotonic() - began
        at = time.monotonic()
        told.done(ask(server.port, "GET", f"/api/runs/{run}"), "reading while it is locked")
        then = time.monotonic() - at
        told.say(f"60 notes were refused within {took:.1f} s; a run was read in {then:.2f} s")
        told.say(f"health answered in {slowest * 1e3:.0f} ms at most")
        told.must(took < 45, f"60 notes waited {took:.0f} s")
        told.refused(answers[0], "a note")
        told.must(all(status == 400 for status, _ in answers), f"{sorted({s for s, _ in answers})}")
        db.execute("rollback")
        db.close()
        told.done(ask(server.port, "POST", f"/api/runs/{run}/notes", {"text": "after"}), "a note once it is let go")
        notes = ask(server.port, "GET", f"/api/runs/{run}/notes")[1]["notes"]
        told.must([n["text"] for n in notes] == ["after"], f"notes that were refused are there: {notes}")
        told.served(server)


def registry_gone(told: Told, folder: Path) -> None:
    with serving(folder / "store") as server:
        run = a_run(server.port, 1)
        told.done(ask(server.port, "PATCH", f"/api/runs/{run}", {"name": "named"}), "a name")
        for path in (folder / "store").glob("registry.db*"):
            path.unlink()
        told.must(len(ask(server.port, "GET", "/api/runs")[1]["runs"]) == 1, "the run is listed without a registry")
        told.done(
            ask(server.port, "POST", f"/api/runs/{run}/notes", {"text": "after"}), "a note, in one that is made anew"
        )
        told.must(not look(folder / "store").problems, "the one that was made anew is whole")
        told.served(server)


def registry_corrupt(told: Told, folder: Path) -> None:
    """Bits turned over all over the file, cut anywhere, its log lost or torn."""
    chance = random.Random(5)
    with serving(folder / "store") as server:
        run = a_run(server.port, 1)
        for n in range(30):
            ask(server.port, "POST", f"/api/runs/{run}/notes", {"text": f"note {n}"})
        path = folder / "store" / "registry.db"
        with sqlite3.connect(path) as db:
            db.execute("pragma wal_checkpoint(truncate)")
        db.close()
        whole, outcomes = path.read_bytes(), dict[str, int]()
        for n in range(120):
            data = bytearray(whole)
            match n % 4:
                case 0:
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                case 1:
                    for _ in range(200):
                        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                case 2:
                    del data[chance.randrange(len(data)) :]
                case _:
                    at = chance.randrange(0, len(data), 4096)
                    data[at : at + 4096] = chance.randbytes(4096)
            _in_place(path, bytes(data), chance.randbytes(5000) if n % 5 == 0 else None)
            for method, where, body in (
                ("GET", "/api/runs", None),
                ("GET", f"/api/runs/{run}", None),
                ("GET", f"/api/runs/{run}/notes", None),
                ("PATCH", f"/api/runs/{run}", {"name": f"n{n}", "tags": {"a": "b"}}),
                ("GET", "/api/bin", None),
                ("GET", "/api/baselines", None),
            ):
                status, said = ask(server.port, method, where, body)
                outcomes[str(status)] = outcomes.get(str(status), 0) + 1
                if status >= 500 or (status >= 400 and "\n" in str(said.get("error"))):
                    told.must(False, f"{method} {where.replace(run, 'RUN')}: {status} {str(said)[:200]} (damage {n})")
        told.say(f"720 requests over 120 damages: {outcomes}")
        _in_place(path, whole, None)
        told.done(
            ask(server.port, "POST", f"/api/runs/{run}/notes", {"text": "after"}), "a note once it is whole again"
        )
        told.must(len(ask(server.port, "GET", f"/api/runs/{run}/notes")[1]["notes"]) == 31, "all notes are back")
        told.served(server)


def _in_place(path: Path, data: bytes, log: bytes | None) -> None:
    for left in ("-wal", "-shm"):
        Path(f"{path}{left}").unlink(missing_ok=True)
    made = path.with_name("made")
    made.write_bytes(data)
    made.replace(path)
    if log is not None:
        Path(f"{path}-wal").write_bytes(log)


def job_killed(told: Told, folder: Path) -> None:
    """What the system does to a job that takes too much memory."""
    with serving(folder / "store") as server:
        _, upload_id = upload(server.port, 1, 3_000_000)
        _, job = ask(server.port, "POST", "/api/ingest", {"upload_id": upload_id})
        killed = False
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    if upload_id in path.read_text() or upload_id in str(path):
                        os.kill(int(path.parent.name), signal.SIGKILL)
                        killed = True
        while job["state"] in ("waiting", "running") and time.monotonic() < until:
            time.sleep(0.1)
            _, job = ask(server.port, "GET", f"/api/jobs/{job['job_id']}")
        told.say(f"killed: {killed}; {job['state']}: {job['error']}")
        told.must(killed and job["state"] in ("failed", "done") and "defect" not in str(job["error"]), f"{job}")
        status, job = ingest(server.port, upload_id)
        told.must(job.get("state") == "done", f"the same again: {job}")
        told.must(not leaks(folder / "store"), f"left behind: {leaks(folder / 'store')}")
        told.served(server)
