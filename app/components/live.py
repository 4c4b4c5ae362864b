"""A live run on a page: how fresh it is, and the page drawn anew when a newer snapshot is there."""

import time

import streamlit as st

from app.components.by_itself import by_itself
from app.components.text import md
from app.workspace import Workspace, workspace
from errors import format as fmt
from runs.live import Live
from runs.run import Run

LOOK_SECONDS, IDLE_SECONDS = 3.0, 30.0  # how often the pointer is looked at: while it is followed, and otherwise
LIVE_SECONDS = 5.0  # the same, on a page about many runs
BADGES = {  # state: colour, icon, words
    "following": ("green", "sensors", "live"),
    "finished": ("gray", "check", "live run, finished"),
    "failing": ("orange", "sync_problem", "live run, cannot be read now"),
    "stopped": ("gray", "sensors_off", "live run, not followed now"),
}


def address(run: Run, place: Workspace) -> str:
    """What stands for this run in addresses: the name of its live run where it is a snapshot of one, else its id."""
    live = place.store.live.current(run.run_id)
    return live.address if live else run.run_id


def live_status(run: Run) -> None:
    """Where the run is a snapshot of a live run: how that stands, looked at again every few seconds."""
    live = workspace().store.live.current(run.run_id)
    if live is not None:
        idle = live.state_at(time.time_ns()) == "stopped"
        by_itself(_status, IDLE_SECONDS if idle else LOOK_SECONDS)(live.name, run.run_id)


def _status(name: str, shown: str) -> None:
    """The line below the run's name. View state lives in the address, so that drawing anew changes figures alone."""
    store = workspace().store
    live = store.live.read(name)
    if live is None:
        return
    if live.run_id and live.run_id != shown and store.get(live.run_id):
        st.rerun()
    now_ns = time.time_ns()
    colour, icon, words = BADGES[live.state_at(now_ns)]
    entries = fmt.count(live.entries, *(("log entry", "log entries") if live.project else ("answer",))) + odd(live)
    last = f", the last of {fmt.date(live.last_entry_ns)}" if live.last_entry_ns else ""
    st.markdown(f":{colour}-badge[:material/{icon}: {words}] updated {ago(live.moved_ns, now_ns)} · {entries}{last}")
    if live.problem:
        st.caption(md(live.problem))


def watch_live_runs(place: Workspace) -> bool:
    """On a page about many runs: drawn anew when any live run has a newer snapshot; whether any is being followed.

    To be called before the runs are listed, so that what comes in between is noticed.
    """
    followed = any(v.state_at(time.time_ns()) != "stopped" for v in place.store.live.all())
    if followed:
        by_itself(_moved, LIVE_SECONDS)(place, _snapshots(place))
    return followed


def _moved(place: Workspace, drawn: set[str]) -> None:
    """Draws the page anew; names jobs of which there is nothing yet."""
    if _snapshots(place) != drawn:
        st.rerun()
    for live in place.store.live.all():
        if live.run_id is None and live.state_at(time.time_ns()) != "stopped":
            there = fmt.count(live.entries, "entry", "entries") + " read so far" if live.entries else "no entry yet"
            what = (
                f"Following job {md(live.job)} of project {md(live.project)}"
                if live.project
                else f"Asking {md(live.job)}"
            )
            st.caption(f"{what}: {there}. {md(live.problem)}")


def _snapshots(place: Workspace) -> set[str]:
    return {v.run_id for v in place.store.live.all() if v.run_id}


def live_mark(live: Live) -> dict[str, str]:
    """What the list of runs shows beside its name."""
    now_ns = time.time_ns()
    state = live.state_at(now_ns)
    return {"state": state, "text": f"{BADGES[state][2]}, updated {ago(live.moved_ns, now_ns)}"}


def odd(live: Live) -> str:
    """What was unusual among the entries: ` (2 late, 1 repeated)`; nothing where nothing was."""
    told = ", ".join(f"{number:,} {md(what)}" for what, number in live.counts.items() if number)
    return f" ({told})" if told else ""


def ago(then_ns: int | None, now_ns: int) -> str:
    """`12 s ago`."""
    if then_ns is None:
        return "never"
    seconds = max(round((now_ns - then_ns) / 1e9), 0)
    if not seconds:
        return "just now"
    return f"{seconds} s ago" if seconds < 60 else f"{fmt.duration(seconds)} ago"
