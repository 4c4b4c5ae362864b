"""Two runs compared, for command, API and agents alike: request by request where both were served, else job by job."""

from typing import Any

from analyzers.difference import DifferenceResult
from analyzers.difference.differs import Differs, differs
from analyzers.serving.ab import AbResult
from app.comparing import job_words, words
from app.comparing.gate_figures import Sides
from app.comparing.requests import compare_runs
from app.comparing.sides import compare_jobs
from app.words import Table, Verdict
from app.workspace import Workspace
from runs.run import Run


class Compared:
    """The answer, in words, rows and JSON. `jobs`: that of two jobs, `served`: that of two servers; else None.
    `differing`: what is known to differ between the two."""

    def __init__(self, a: Run, b: Run, place: Workspace, load_a: str | None = None, load_b: str | None = None):
        self.names = a.manifest.name, b.manifest.name
        self.ids = a.run_id, b.run_id
        self._of = a, b, place
        self.jobs: DifferenceResult | None = None
        self.served: AbResult | None = None
        self.differing: tuple[Differs, ...]
        self.verdict: Verdict
        self.notes: tuple[str, ...]
        if load_a or load_b or (a.manifest.kind == b.manifest.kind == "serving"):
            self.served = served = compare_runs(a, b, load_a, load_b)
            self.differing = known = differs(a.manifest.facts, b.manifest.facts)
            self.verdict = words.verdict(served, a.manifest.name, b.manifest.name, known)
            self.table: Table = words.table(served)
            self.notes = (*served.traffic.warnings, *served.notes)
            self._told = {"differs": [d.to_dict() for d in known], **served.to_dict()}
        else:
            self.jobs = compare_jobs(a, b, place)
            self.differing = self.jobs.differs
            self.verdict, self.table = job_words.verdict(self.jobs), job_words.table(self.jobs)
            self.notes = self.jobs.notes
            self._told = self.jobs.to_dict()

    @property
    def sides(self) -> Sides:
        """What gates look at."""
        a, b, place = self._of
        return Sides(jobs=self.jobs, served=self.served, both=lambda tell: (tell(a, place), tell(b, place)))

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract."""
        return {"a": self.ids[0], "b": self.ids[1], "verdict": self.verdict.whole, **self._told}
