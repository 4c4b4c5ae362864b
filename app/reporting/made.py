"""A report of one run or of two, as a document."""

import time

from app.cli.version import version_line
from app.reporting.document import Document
from app.reporting.gathering import About, about, what
from app.reporting.sections import RUN, parts
from app.workspace import Workspace
from errors import format as fmt
from runs.run import Run

SIMULATED = "Simulated: nobody ran this. Its numbers are those of a model."
COMPILED = "Compiled: nobody ran this. Its times are the least that the program needs, not what a step takes."
RUNNING = "Still running: this tells what it wrote so far."


def of_run(run: Run, place: Workspace) -> Document:
    """Raises InputError where the run is damaged beyond being read, or was removed meanwhile."""
    gathered = about(run, place)
    return Document(
        title=gathered.name, about=what(run), marks=marks(gathered), parts=parts(RUN, gathered), made=made()
    )


def marks(gathered: About) -> tuple[str, ...]:
    """What must be known before anything of it is read."""
    manifest = gathered.run.manifest
    found = (
        SIMULATED if manifest.simulated else "",
        COMPILED if manifest.kind == "compiled" else "",
        RUNNING if gathered.live else "",
        f"Damaged: {gathered.damage}" if gathered.damage else "",
    )
    return tuple(filter(None, found))


def made() -> str:
    return f"Made {fmt.date(time.time_ns())} by {version_line()}. It opens without a network and sends nothing anywhere."
