"""What lines of a log, flight recorders and memory tell where nothing tells of a job's chip time: it may have ended
before its first step, or what was left of it may be what these wrote alone."""

import pyarrow as pa
import pyarrow.compute as pc

from analyzers.device.memory import MemoryResult
from analyzers.findings.base import Answers
from analyzers.lost.interruptions.evidence import MILD
from analyzers.ranks.blocked import BlockedResult, ranks_listed
from catalog.causes import CAUSES
from errors import format as fmt
from runs.tables import Tables

LONGEST = 200  # characters of a line


def lines_told(tables: Tables) -> str:
    """A sentence with the cause that most lines name, how many do, and the first of them; empty where none does. A line
    that tells a symptom counts where none names more."""
    if not tables.rows("evidence"):
        return ""
    table = tables.arrow("evidence", ["cause", "severity", "text"])
    causes = pc.cast(table["cause"], pa.string()).to_pylist()
    severities = pc.cast(table["severity"], pa.string()).to_pylist()
    named = [c if c in CAUSES and str(s).lower() not in MILD else None for c, s in zip(causes, severities, strict=True)]
    found = [c for c in named if c and not CAUSES[c].symptom] or [c for c in named if c]
    if not found:
        return ""
    cause = max(dict.fromkeys(found), key=found.count)
    first = str(table["text"][named.index(cause)].as_py() or "").strip()
    said = f", the first of them {first[:LONGEST]!r}" if first else ""
    count = found.count(cause)
    return f"Its log tells of a failure: {CAUSES[cause].title} ({fmt.count(count, 'line')}{said})."


def others_told(answers: Answers) -> str:
    """Sentences about the questions that do have an answer of such a run: who hangs it, and what held memory; empty
    where none has."""
    found, told = answers.get("hangs"), list[str]()
    if isinstance(found, BlockedResult) and found.hung:
        named = f", and name {ranks_listed(found.named)} as the reason" if found.named else ""
        told.append(f"Its flight recorders tell of operations that had not completed{named}: see `hangs`.")
    memory = answers.get("memory")
    if isinstance(memory, MemoryResult) and memory.subject == "snapshot":
        told.append("What held memory is told by `memory`.")
    return " ".join(told)
