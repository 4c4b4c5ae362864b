"""The viewer on a page: a canvas that asks for what it shows."""

from pathlib import Path

from app.components.browser import component
from runs.run import Run

_viewer = component("chipledger_timeline", Path(__file__).parent / "timeline")


def viewer(run: Run) -> None:
    """The timeline of a run. The address has where it looks: `from`, `to` and `at`."""
    _viewer(key=f"timeline {run.run_id}", data={"run": run.run_id, "written": str(run.written.created_ns)})
