"""Asks this product about the cases of a set: ingest as the command line does, and its findings."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analyzers.findings import FindingsResult
from analyzers.findings.base import Finding
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.workspace import Workspace, workspace
from benchmarks.diagnosis.faults import BY_CAUSE, FAULTS
from benchmarks.diagnosis.tools.readings import NAMES, OF_SOME
from collectors.ingest import ingest
from errors import ChipledgerError
from runs.run import Run


def answers(folder: Path, tell: Callable[[str], None] = print, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer about each case of a set but those known, in a store that is thrown away."""
    said = dict(known or {})
    with tempfile.TemporaryDirectory(prefix="diagnosis-store-") as store:
        place = workspace(store)
        for case in sorted(p for p in (folder / "cases").iterdir() if p.is_dir() and not p.name.startswith(".")):
            if case.name in said:
                continue
            try:
                said[case.name] = answer(place.store.get(ingest([case], place.store).run_id), place)
            except ChipledgerError as e:
                tell(f"{case.name}: cannot be read: {e}")
                said[case.name] = {"causes": [], "not_told": sorted(f.cause for f in FAULTS)}
                continue
            named = ", ".join(c["cause"] for c in said[case.name]["causes"]) or "nothing named"
            tell(f"{case.name}: {named}")
    return said


def answer(run: Run, place: Workspace) -> dict[str, Any]:
    """What the product says of a run: each finding in the words of the benchmark."""
    fleet = run.manifest.kind == "simulated"
    result = ask(FINDINGS, run, {}, place.registry)
    named = [(finding, name) for finding in result.findings for name in _faults(finding, fleet)]
    unheard = [finding for finding in result.findings if not _faults(finding, fleet)]
    told = {name for gap in result.not_told for cause in gap.causes for name in _of(cause, fleet)}
    return {
        "causes": [_named(finding, name) for finding, name in named],
        "headlines": [
            {"says": f.title, "accuses": _any_of(f), "chip_seconds": f.likely if f.gain else None} for f in unheard
        ],
        "not_told": sorted(told | _never(result, fleet)),
    }


def _named(finding: Finding, name: str) -> dict[str, Any]:
    gain = finding.gain
    place = finding.where.to_dict()
    wanted = BY_CAUSE[name].place
    return {
        "cause": name,
        "place": {wanted: place[wanted]} if wanted in place else {},
        "chip_seconds": gain.to_dict() if gain else None,
        "question": finding.question,
    }


def _faults(finding: Finding, fleet: bool) -> list[str]:
    """The fault that a finding names; where its cause stands for several, the one that its title tells."""
    names = [] if _any_of(finding) else _of(finding.cause, fleet)
    if finding.cause == "recompilation":
        return ["recompile_constant" if "constant" in finding.title else "recompile_shape"]
    return names[:1]


def _any_of(finding: Finding) -> list[str]:
    """The faults of which any would make a finding true that names none of them."""
    return list(OF_SOME.get(finding.cause, ())) if finding.where.hosts else []


def _of(cause: str, fleet: bool) -> list[str]:
    """Faults that a cause of the product stands for, of fleets or of jobs."""
    return [name for name in NAMES.get(cause, ()) if name.startswith("fleet_") == fleet]


def _never(result: FindingsResult, fleet: bool) -> set[str]:
    """Faults that no rule of the product looks for: it cannot tell them, and says so."""
    known = {name for cause in NAMES for name in _of(cause, fleet)}
    return {f.cause for f in FAULTS if f.family != "evidence" and f.cause.startswith("fleet_") == fleet} - known
