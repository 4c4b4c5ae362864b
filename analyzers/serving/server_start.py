"""What is said of a server's log that tells of its start alone: nothing was served, and perhaps it failed.

Questions about training have no answer of a server, and those about serving none before it served: both say so in
words of serving, with the line of the log that tells why where there is one, and not that steps are missing.
"""

from analyzers.base import Facts, fact
from analyzers.serving.latency.log_lines import log_lines, said
from errors import QuestionError
from runs.tables import Tables

ADVICE = (
    "Add the engine's log of a time in which it served, scrapes of its /metrics, or the result of a load test; "
    "its room for the cache is answered by kv."
)
TRAINED = ("steps", "lifecycle")


def is_server(tables: Tables, facts: Facts) -> bool:
    """Whether the run is of a serving engine, and of no training job."""
    return fact(facts, "engine") is not None and not any(tables.rows(t) for t in TRAINED)


def refuse_of_a_server(tables: Tables, facts: Facts, lacking: str) -> None:
    """Raises QuestionError, in words of serving, where the run is of a server. `lacking`: what it does not tell."""
    if not is_server(tables, facts):
        return
    version = fact(facts, "engine_version")
    name = f"{fact(facts, 'engine')} {version}" if version else str(fact(facts, "engine"))
    lines = log_lines(tables)
    why = f"; {said(lines).rstrip('.')}" if len(lines) else ""
    raise QuestionError(f"this run is of a server ({name}), and {lacking}{why}", advice=ADVICE)
