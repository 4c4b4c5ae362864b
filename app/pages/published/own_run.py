"""A run of the store as a point among published ones: its MFU by one convention, or why it has none."""

from analyzers.subject import parameters_of
from app.pages.published.figure import Own
from app.questions import asking as questions
from app.questions.mfu import MFU
from app.workspace import Workspace
from errors import ChipledgerError

DEFAULT = "causal"


def own_run(run_id: str, place: Workspace, convention: str | None) -> tuple[Own | None, str]:
    """(the run, why it cannot be drawn).

    Without a convention asked for it is that of the job's own print where that can be told, else exact causal.
    """
    try:
        run = place.store.find(run_id)
        if convention is None:
            said = questions.ask(MFU, run, {}, place.registry)
            convention = said.convention if said.convention != "job" else None
            convention = convention or next((c.name for c in said.fingerprint.matching), DEFAULT)
        result = questions.ask(MFU, run, {"convention": convention}, place.registry)
    except ChipledgerError as e:
        return None, f"This run cannot be drawn among them: {e}"
    chips = run.manifest.fact("chips")
    rate = result.tflops_per_s_per_chip
    return Own(
        name=run.manifest.name,
        convention=convention,
        chip=result.peaks.chip and result.peaks.chip.name,
        precision=result.peaks.precision,
        chips=float(chips) if chips else None,
        parameters=parameters_of(run.manifest.facts),
        utilisation=result.mfu,
        bf16_utilisation=result.emfu,
        flops_per_s_per_chip=None if rate is None else rate * 1e12,
    ), ""
