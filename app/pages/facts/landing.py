"""Where a run that was just added is shown first: its facts, where one more would tell a headline; else its page."""

from app.facts.opening import WORTH
from app.facts.told import missing
from app.menu import Page
from app.pages.facts import FACTS
from app.questions.findings import FINDINGS
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run

ADDED = "added"  # in the address: the run was just added


def landing(run_id: str, place: Workspace) -> tuple[Page, dict[str, str]]:
    """The page, and what its address says."""
    try:
        run = place.store.find(run_id)
        if worth_asking(run, place):
            return FACTS, {"run": run_id, ADDED: "yes"}
    except ChipledgerError:  # the run's own page tells what is wrong with it
        pass
    return FINDINGS, {"run": run_id}


def worth_asking(run: Run, place: Workspace) -> bool:
    """Whether a fact that nothing tells would open a headline."""
    asked = [m for m in missing(run, place) if m.fact.asked]
    return not run.manifest.simulated and any(WORTH & {*m.opens} for m in asked)
