"""A report of one run or of two, as a document."""

import time

from app.cli.version import version_line
from app.reporting.document import Document
from app.reporting.gathering import About, about, pair, what
from app.reporting.sections import JOBS, RUN, SERVED, parts
from app.workspace import Workspace
from errors import format as fmt
from runs.run import Manifest, Run

SIMULATED = "Simulated: nobody ran this. Its numbers are those of a model."
COMPILED = "Compiled: nobody ran this. Its times are the least that the program needs, not what a step takes."
NOT_COMPILED = "Did not compile: nobody ran this, and it has no times."
RUNNING = "Still running: this tells what it wrote so far."


def of_run(run: Run, place: Workspace) -> Document:
    """Raises InputError where the run is damaged beyond being read, or was removed meanwhile."""
    gathered = about(run, place)
    return Document(
        title=gathered.name, about=what(run), marks=marks(gathered), parts=parts(RUN, gathered), made=made()
    )


def of_pair(a: Run, b: Run, place: Workspace, load_a: str | None = None, load_b: str | None = None) -> Document:
    """B against A. Raises QuestionError where nothing of the two can be compared."""
    gathered = pair(a, b, place, load_a, load_b)
    both = (("A", gathered.a, load_a), ("B", gathered.b, load_b))
    told = [f"{side}: {one.name}{f', load {load}' if load else ''} ({what(one.run)})" for side, one, load in both]
    sections = SERVED if gathered.compared.jobs is None else JOBS
    return Document(
        title=f"{gathered.a.name} and {gathered.b.name}",
        about=". ".join(told) + ".",
        marks=tuple(f"{side}: {mark}" for side, one, _ in both for mark in marks(one)),
        parts=parts(sections, gathered),
        made=made(),
    )


def marks(gathered: About) -> tuple[str, ...]:
    """What must be known before anything of it is read."""
    manifest = gathered.run.manifest
    found = (
        SIMULATED if manifest.simulated else "",
        _compiled(manifest) if manifest.kind == "compiled" else "",
        RUNNING if gathered.live else "",
        f"Damaged: {gathered.damage}" if gathered.damage else "",
    )
    return tuple(filter(None, found))


def _compiled(manifest: Manifest) -> str:
    """A program that its compiler refused has no operation that a time could be worked out of."""
    return COMPILED if manifest.fact("outcome") in (None, "compiled") else NOT_COMPILED


def made() -> str:
    return (
        f"Made {fmt.date(time.time_ns())} by {version_line()}. It opens without a network and sends nothing anywhere."
    )
