"""Two served runs compared: where pages and command line meet `analyzers.serving.ab`. Answers are kept."""

from analyzers.serving.ab import AbResult, compare
from analyzers.serving.served import Served, served
from app.words import short
from errors import QuestionError
from runs.kept import Answers
from runs.run import Run

_compared = Answers(64 << 20)


def compare_runs(a: Run, b: Run, stage_a: str | None = None, stage_b: str | None = None) -> AbResult:
    """B against A, each as a whole or one of its loads.

    Raises QuestionError where one of them has no single requests, or no such load, and where both are one.
    """
    if a.run_id == b.run_id and stage_a == stage_b:
        raise one_twice(a, "two different runs, or two loads of one")
    key = (a.writing, b.writing, stage_a, stage_b)
    return _compared.get(key, lambda: compare(_of(a, stage_a), _of(b, stage_b)))


def one_twice(run: Run, expected: str = "two different runs") -> QuestionError:
    """The refusal to hold a run against itself."""
    return QuestionError(f"{short(run.manifest.name)} is both runs", expected=expected, advice="Name another one")


def _of(run: Run, stage: str | None) -> Served:
    return served(run.tables).for_stage(stage)
