"""The viewer on a page: a canvas that asks for what it shows."""

import hashlib
from pathlib import Path

from app.components.browser import component
from runs.run import Run

VERSION = 1  # of how marks are made and packed: another one is asked for anew
_viewer = component("chipledger_timeline", Path(__file__).parent / "timeline")


def viewer(run: Run) -> None:
    """The timeline of a run. The address has where it looks: `from`, `to` and `at`."""
    _viewer(key=f"timeline {run.run_id}", data={"run": run.run_id, "written": kept_by(run)})


def kept_by(run: Run) -> str:
    """What marks may be kept by for ever: the run as it was written, what people said of it, and this version's form
    of marks."""
    told = (run.run_id, run.written.created_ns, run.said.mark, VERSION)
    return hashlib.blake2b(repr(told).encode(), digest_size=8).hexdigest()
