"""What a gate looks at beside steps and requests: useful time of steps, goodput, and memory at its peak, of one run."""

from analyzers.difference.lost_time import LostTime, lost_time
from analyzers.difference.peaks import peaks
from analyzers.flops.mfu_result import MfuResult
from analyzers.time.ledger import LedgerResult
from app.comparing.figures import peak_told
from app.comparing.sides import steps_compared
from app.library.answers import goodput_of
from app.questions.asking import ask
from app.questions.ledger import LEDGER
from app.questions.memory import MEMORY
from app.questions.mfu import MFU
from app.workspace import Workspace
from errors import ChipledgerError
from runs.run import Run


def useful_s(run: Run, place: Workspace) -> float | None:
    """Seconds that the useful FLOPs of a settled step take at the peak, on average: over what the step takes they are
    its MFU. None where not told."""
    try:
        result: MfuResult = ask(MFU, run, {}, place.registry)
    except ChipledgerError:
        return None
    steps = steps_compared(run)
    if steps is None:
        return None
    rows = result.rows[result.rows["kept"].astype(bool) & result.rows["step"].isin(steps.step)]
    rows = rows[rows["mfu"].notna() & rows["dur_s"].notna()]
    took = rows["dur_s"].astype(float)
    return float((rows["mfu"].astype(float) * took).mean()) if took.sum() > 0 else None


def goodput(run: Run, place: Workspace) -> float | None:
    try:
        result: LedgerResult = ask(LEDGER, run, {}, place.registry)
    except ChipledgerError:
        return None
    return goodput_of(result)


def peak_bytes(run: Run, place: Workspace) -> tuple[float | None, str]:
    """(bytes, how they are known)."""
    try:
        return peak_told(ask(MEMORY, run, {}, place.registry))
    except ChipledgerError:
        return None, ""


def peaks_of(run: Run, place: Workspace) -> tuple[float, ...] | None:
    """Bytes at the peak of each settled part of each sampled device; none where there are too few samples, None where
    they differ within a device."""
    try:
        return peaks(ask(MEMORY, run, {}, place.registry).samples)
    except ChipledgerError:
        return ()


def lost_of(run: Run, place: Workspace) -> LostTime | None:
    """The stretches of time that a job lost; None where nothing tells when."""
    return None if run.manifest.kind in ("serving", "compiled") else lost_time(run.tables, run.manifest.facts)
