"""What the ledger entered each instant in: a strip for the job's calendar, and one for each profiled device.

The strips are the ledger's own painting (`time/calendar.py`, `time/device_uses.py`), so that the time of an account in
them is the time that the ledger books. Computing is one strip's colour: the ledger parts it by FLOPs, which have no
place in time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from analyzers.base import Facts, fact
from analyzers.device.host_work import COMPILING, WAITING
from analyzers.intervals import Painting
from analyzers.ranks.waits import Waits, waits
from analyzers.serving.accounts import is_serving
from analyzers.time.calendar import CODE as HEADING
from analyzers.time.calendar import Calendar
from analyzers.time.device_time import device_traces, devices
from analyzers.time.device_uses import BLAMED, COMPUTING, COPYING, EXPOSED, IDLE, INPUT, UNSEEN, UNTOLD, WAIT, painted
from analyzers.time.history import History
from analyzers.time.job_past import job_past
from analyzers.time.training_accounts import clock_shift, kept_of
from analyzers.timeline.lanes import CODE, DEVICE, JOB, Lane, Part
from runs.accounts import ACCOUNTS
from runs.tables import Tables, frame

ACCOUNT = "account"
USES = {
    UNSEEN: "unattributed",
    IDLE: "device_idle",
    INPUT: "input_wait",
    COPYING: "exposed_copies",
    EXPOSED: "exposed_communication",
    UNTOLD: "unattributed",
    WAIT: "straggler_wait",
    COMPUTING: "productive",
}


@dataclass(frozen=True)
class Booked:
    """What strips are made of. `days`: None where no input gives the job times of day; `devices`: (host, device) of
    those that have one; `waited`: None where there are none."""

    past: History
    days: Calendar | None
    devices: tuple[tuple[str, int], ...]
    waited: Waits | None
    dated: frozenset[str]


def strips(tables: Tables, facts: Facts) -> Iterator[Part]:
    """None of a run whose ledger is no painting: one that was served, or that nobody ran."""
    if (of := booked(tables, facts)) is not None:
        yield from job_strip(of)
        yield from device_strips(tables, of)


def booked(tables: Tables, facts: Facts) -> Booked | None:
    """None where there are no strips."""
    if fact(facts, "outcome") is not None or is_serving(tables):
        return None
    past, days = job_past(tables, facts)
    if days is None and len(past.rows) and past.origin != "profile" and not past.timed:
        return None  # the ledger is of step lines, and books no device
    seen = devices(tables)
    return Booked(past, days, tuple(seen), waits(tables) if seen else None, frozenset(_dated_hosts(tables)))


def job_strip(of: Booked) -> Iterator[Part]:
    if of.days is not None:
        names = {n: "productive" if h == "kept" else h for h, n in HEADING.items() if h != "outside"}
        yield _strip(Lane(JOB, "", None, "accounts", ACCOUNT), of.days.painting, names, 0)


def device_strips(tables: Tables, of: Booked) -> Iterator[Part]:
    """Of each of its devices, in what the ledger books of it."""
    if of.waited is None:
        return
    for trace in device_traces(tables, of.waited, of.devices):
        shift = clock_shift(trace, of.past) if of.days else 0
        kept = kept_of(trace, of.days, of.past)
        if not len(kept.start):
            continue
        painting, hosts, work = painted(trace, kept, of.days, shift)
        names = USES | {BLAMED + k: "straggler_wait" for k in range(len(hosts))} | _of_host_work(work)
        lane = Lane(DEVICE, trace.host, trace.device, "accounts", ACCOUNT)
        yield _strip(lane, painting, names, shift, trace.host in of.dated)


def _dated_hosts(tables: Tables) -> set[str]:
    """Those of which a capture has a time of day, as `traced.py` takes it."""
    rows = frame(tables, "captures", ["host", "start_ns"])
    return set(rows.loc[rows["start_ns"].fillna(0) > 0, "host"])


def _of_host_work(work: Mapping[int, str]) -> dict[int, str]:
    return {
        label: COMPILING if kind == COMPILING else "idle_unexplained" if kind == WAITING else f"idle_{kind}"
        for label, kind in work.items()
    }


def _strip(lane: Lane, painting: Painting, names: Mapping[int, str], shift: int, dated: bool = True) -> Part:
    """Neighbouring cells of one account as one event, put back on the device's own clock."""
    account = np.array([CODE.get(names.get(int(n), ""), -1) for n in range(int(painting.label.max()) + 1)])
    label = account[painting.label]
    opens = np.flatnonzero(np.diff(label, prepend=-2))
    starts = painting.edges[:-1][opens] + shift
    ends = np.append(painting.edges[opens[1:]], painting.edges[-1]) + shift
    kept = label[opens] >= 0
    code = label[opens][kept].astype(np.uint8)
    titles = np.array([kind.title for kind in ACCOUNTS.values()], dtype=object)
    if lane.group == DEVICE:
        titles[CODE["productive"]] = "Computing"
    base = int(starts[0]) if dated else 0
    return Part(lane, base, 1, starts[kept] - base, (ends - starts)[kept], titles, code, code, dated=dated)
