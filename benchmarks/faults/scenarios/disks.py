"""A disk that is full, a store that is gone, one that may not be entered."""

import subprocess
from pathlib import Path
from typing import Any

from benchmarks.faults.kills.servers import ask
from benchmarks.faults.kills.state import leaks, look
from benchmarks.faults.scenarios.places import a_run, as_anybody, disk, fill, freed, ingest, serving, upload
from benchmarks.faults.scenarios.told import Told


def disk_full(told: Told, folder: Path) -> None:
    with disk(folder / "disk") as mount, serving(mount / "store") as server:
        port, run = server.port, a_run(server.port, 1)
        status, waiting = upload(port, 2)
        told.done((status, waiting), "an upload while there is room")
        fill(mount)
        told.refused(upload(port, 3), "an upload")
        status, job = ingest(port, waiting)
        told.say(f"an ingest: {job.get('state')} {job.get('error')}")
        told.must(status >= 400 or (job["state"] == "failed" and "defect" not in job["error"]), f"ingest: {job}")
        answer: tuple[int, Any] = (0, None)
        for n in range(3000):  # until the registry itself needs more room
            answer = ask(port, "POST", f"/api/runs/{run}/notes", {"text": f"note {n} " + "x" * 5000})
            if answer[0] >= 300:
                break
        told.refused(answer, "a note")
        for path in (
            "/api/runs",
            f"/api/runs/{run}",
            f"/api/runs/{run}/show/ledger",
            f"/api/runs/{run}/notes",
            "/healthz",
        ):
            told.done(ask(port, "GET", path), f"reading {path}")
        told.done(ask(port, "DELETE", f"/api/runs/{run}"), "a deletion into the bin, which needs no room")
        told.done(ask(port, "POST", f"/api/runs/{run}/restore"), "a restore")
        freed(mount)
        told.done(ask(port, "PATCH", f"/api/runs/{run}", {"name": "after"}), "a name once there is room")
        status, job = ingest(port, waiting)
        told.must(status < 300 and job["state"] == "done", f"the same ingest once there is room: {job}")
        found = look(mount / "store")
        told.must(not found.problems and len(found.ids) == 2, f"{found.problems} {found.ids}")
        told.must(not leaks(mount / "store"), f"left behind: {leaks(mount / 'store')}")
        told.served(server)


def store_unmounted(told: Told, folder: Path) -> None:
    (folder / "real").mkdir()
    (at := folder / "at").mkdir()
    bind = ["mount", "--bind", str(folder / "real"), str(at)]
    subprocess.run(bind, check=True)
    try:
        with serving(at / "store") as server:
            run = a_run(server.port, 1)
            subprocess.run(["umount", "-l", str(at)], check=True)
            for method, path, body in (
                ("GET", "/api/runs", None),
                ("GET", f"/api/runs/{run}/show/ledger", None),
                ("POST", "/api/uploads", None),
                ("PATCH", f"/api/runs/{run}", {"name": "x"}),
                ("DELETE", f"/api/runs/{run}", None),
            ):
                told.refused(ask(server.port, method, path, body), f"{method} {path.replace(run, 'RUN')}")
            told.must(not list(at.rglob("*")), f"written where the store was: {list(at.rglob('*'))[:5]}")
            subprocess.run(bind, check=True)
            told.done(ask(server.port, "PATCH", f"/api/runs/{run}", {"name": "back"}), "a name once it is back")
            told.must(len(ask(server.port, "GET", "/api/runs")[1]["runs"]) == 1, "the run is back")
            told.served(server)
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False)


def permissions_taken(told: Told, folder: Path) -> None:
    folder.chmod(0o777)
    with serving(folder / "store", as_anybody) as server:
        run = a_run(server.port, 1)
        for path, mode in ((folder / "store", 0), (folder / "store" / "runs", 0), (folder / "store" / "runs", 0o500)):
            was = path.stat().st_mode
            path.chmod(mode)
            what = f"{path.name} is {mode:03o}"
            answer = ask(server.port, "GET", "/api/runs")
            told.done(answer, what) if mode else told.refused(answer, f"{what}: GET /api/runs")
            told.refused(ask(server.port, "DELETE", f"/api/runs/{run}"), f"{what}: DELETE")
            path.chmod(was)
        told.done(ask(server.port, "GET", f"/api/runs/{run}/show/ledger"), "once they are given back")
        told.served(server)
