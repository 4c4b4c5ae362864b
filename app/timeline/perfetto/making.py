"""A run's timeline as a file for Perfetto: asked for by whoever keeps or sends it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.timeline import Timeline
from app.cells import file_name
from app.questions.asking import ask
from app.questions.timeline import TIMELINE
from app.timeline.perfetto.choosing import Chosen, choose, ticks
from app.timeline.perfetto.writing import pieces
from app.workspace import Workspace
from runs.run import Run

ENDING = ".pftrace"


@dataclass(frozen=True)
class Made:
    """`data`: the file's pieces, to be taken once."""

    timeline: Timeline
    chosen: Chosen
    data: Iterator[bytes]

    def to_dict(self) -> dict[str, Any]:
        per_s = 1e12 / self.timeline.tick_ps
        return {
            "events": self.chosen.events,
            "rows": len(self.chosen.rows),
            "from_s": self.chosen.start / per_s,
            "to_s": self.chosen.end / per_s,
        }


def made(run: Run, given: Mapping[str, Any], place: Workspace, in_seconds: bool = False) -> Made:
    """`given`: by the names of options, in ticks or seconds. Raises QuestionError for what cannot be chosen, before
    anything is written."""
    of: Timeline = ask(TIMELINE, run, {}, place.registry).timeline
    chosen = choose(of, ticks(of, given) if in_seconds else given)
    return Made(of, chosen, pieces(of, chosen, run.tables, run.manifest.name))


def named(run: Run) -> str:
    """What the file is called."""
    return f"{file_name(run.manifest.name)}{ENDING}"
