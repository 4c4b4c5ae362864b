"""How many requests a server did not answer, which no account of its chip time tells."""

from analyzers.serving.latency.summary import all_loads
from errors import QuestionError
from runs.tables import Tables


def unanswered(tables: Tables) -> tuple[int, int] | None:
    """(requests that did not complete, all that were sent), of all loads together; None where no input tells."""
    try:
        loads = all_loads(tables, times=False)
    except QuestionError:
        return None
    known = [(load.failed, load.requests) for load in loads if load.failed is not None and load.requests]
    return (sum(failed for failed, _ in known), sum(sent for _, sent in known)) if known else None
