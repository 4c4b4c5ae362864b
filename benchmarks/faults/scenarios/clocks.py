"""A clock that jumps, forwards and back: what goes by age, what is in order of time, and what leases."""

from pathlib import Path

from benchmarks.faults.kills.servers import ask
from benchmarks.faults.kills.state import look
from benchmarks.faults.scenarios.places import a_run, upload
from benchmarks.faults.scenarios.told import Told

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")  # Debian's package libfaketime
DAYS = (0, 400, 0, -1000, 0)


def clock_jumps(told: Told, folder: Path) -> None:
    """A server is started at each of these days from today; a file with the day is read by it all the while, so that
    the clock jumps under it too."""
    if not FAKETIME.exists():
        told.say("not tried: libfaketime is not installed")
        return
    from tests.app.serving import serving

    clock, root = folder / "clock", folder / "store"
    environment = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }
    clock.write_text("+0")
    names: list[str] = []
    for turn, days in enumerate(DAYS):
        clock.write_text(f"{days * 86_400:+d}")
        with serving(root, cwd=None, **environment) as address:
            port = int(address.rpartition(":")[2])
            _turn(told, port, root, turn, days, names)
            clock.write_text(f"{(days + 90) * 86_400:+d}")  # under a server that runs
            told.done(
                ask(port, "PATCH", f"/api/runs/{names[-1]}", {"tags": {"jumped": str(turn)}}), "a tag after a jump"
            )
            names.append(a_run(port, 100 + turn))
            clock.write_text(f"{days * 86_400:+d}")
            _listed(told, port, names, f"day {days}, after a jump of 90 days and back")
    found = look(root)
    told.must(not found.problems, str(found.problems))
    lying = [k for k, v in found.state.items() if k in found.ids and v["at"] == "bin"]
    kept = [k for k in found.state if k.startswith("upload:") and "job-50" in k]
    told.say(
        f"{len(names)} runs; {len(lying)} of {len(DAYS)} in the bin; {len(kept)} of {len(DAYS)} unused uploads kept"
    )
    told.must(len(lying) == len(DAYS), "the bin was emptied of what was just put there")
    told.must(len(kept) == len(DAYS), "an upload that was just sent was swept")


def _turn(told: Told, port: int, root: Path, turn: int, days: int, names: list[str]) -> None:
    names.append(a_run(port, turn))
    binned = a_run(port, 200 + turn)
    told.done(ask(port, "DELETE", f"/api/runs/{binned}"), f"day {days}: a deletion")
    told.done(upload(port, 500 + turn), f"day {days}: an upload that nobody reads")
    status, lying = ask(port, "GET", "/api/bin")
    told.must(status == 200 and all(b["until_ns"] > b["since_ns"] for b in lying["bin"]), f"day {days}: {lying}")
    for what in ("", "/show/ledger", "/notes", "/facts"):
        told.done(ask(port, "GET", f"/api/runs/{names[-1]}{what}"), f"day {days}: {what}")
    _listed(told, port, names, f"day {days}")


def _listed(told: Told, port: int, names: list[str], when: str) -> None:
    status, listed = ask(port, "GET", "/api/runs")
    created = [run["created_ns"] for run in listed["runs"]]
    told.must(
        status == 200 and sorted(r["run_id"] for r in listed["runs"]) == sorted(names), f"{when}: {status} listed"
    )
    told.must(created == sorted(created, reverse=True), f"{when}: not in order of time")
